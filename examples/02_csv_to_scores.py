"""Engineer: grade the replies in a CSV, and write the scores to another one."""

import pathlib

from judge import GRADER

from autorubric import RubricDataset, evaluate_sync

dataset = RubricDataset.from_file("replies.csv", rubric="rubric.yaml", id="ticket")
print("columns:", dataset.field_map)
result = evaluate_sync(dataset, GRADER, experiment_name="replies", on_mismatch="rejudge", show_progress=False)

with pathlib.Path("scores.csv").open("wb") as file:
    file.write(result.export("csv"))
scores = [item.report.score for item in result.item_results if item.report and item.report.score is not None]
print(f"graded {len(scores)} replies, mean score {sum(scores) / len(scores):.2f}; see scores.csv")
