"""Items that a run leaves without a score are left out of figures over scores."""

from __future__ import annotations

from pathlib import Path

from autorubric import Criterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import JudgeRequest


def test_abstentions_and_an_assumed_answer_are_no_score(tmp_path: Path) -> None:
    """Where all criteria but an unreadable one were abstained on, no side of the figures has a score."""

    def judge(request: JudgeRequest) -> str:
        if "odd" in (request.submission.text or ""):
            return "?" if request.criterion.name == "c0" else "CANNOT_ASSESS"
        return "MET"

    rubric = Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(3)])
    items = [
        DataItem(id=f"i{n}", submission="odd" if n == 4 else "even", ground_truth=["MET", "UNMET", "MET"])
        for n in range(5)
    ]
    dataset = RubricDataset(name="d", rubric=rubric, items=items)
    result = evaluate_sync(
        dataset,
        CriterionGrader(judges=[judge]),
        experiment_name="run",
        experiments_dir=tmp_path,
        show_progress=False,
    )
    assert result.get_scores() == [1.0] * 4 + [None]
    found = result.compute_metrics()
    assert found.n_scores == 4
    assert found.bias is not None and found.bias.mean_bias is not None
    assert abs(found.bias.mean_bias - 1 / 3) < 1e-12
