"""Researcher: compare a judge with human labels, criterion by criterion."""

from judge import GRADER

from autorubric import RubricDataset, evaluate_sync

# The columns `polite` and `next_step` are recognised as labels of the criteria with these names.
dataset = RubricDataset.from_file("replies.csv", rubric="rubric.yaml", id="ticket")
result = evaluate_sync(
    dataset, GRADER, experiment_name="measured", on_mismatch="rejudge", show_progress=False
)

metrics = result.compute_metrics(bootstrap=True, seed=1)
for criterion in metrics.per_criterion:
    if criterion.n_samples:
        figures = f"accuracy {criterion.accuracy:.2f}  kappa {criterion.kappa:.2f}"
        print(f"{criterion.name:10} n={criterion.n_samples}  {figures}")
