"""Team lead: stop a release if the mean score falls, or if too much could not be judged."""

import sys

from judge import GRADER

from autorubric import RubricDataset, evaluate_sync

THRESHOLD, MOST_MISSING = 0.4, 0.02

dataset = RubricDataset.from_file("replies.csv", rubric="rubric.yaml", id="ticket")
result = evaluate_sync(dataset, GRADER, experiment_name="gate", on_mismatch="rejudge", show_progress=False)

mean = result.item_results.tally.mean_score
missing = result.verdicts.missing_share or 0.0
print(f"mean score {mean:.2f}, threshold {THRESHOLD}; {missing:.0%} of the verdicts missing")
if mean is None or missing > MOST_MISSING:
    sys.exit("not judged well enough to decide")
sys.exit(0 if mean >= THRESHOLD else "below the threshold")
