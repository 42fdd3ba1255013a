"""Recorded labels and reference figures of the data beside the repository, and runs over it."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from autorubric.dataset import RubricDataset
from autorubric.eval import EvalResult, evaluate_sync
from autorubric.graders import CriterionGrader
from autorubric.judges import RecordedJudge
from tests.conftest import SHARED_DATA
from tests.proof.real_data import reference


@cache
def references(name: str) -> dict[str, dict[str, Any]]:
    """The reference figures of a data set by id."""
    return reference(SHARED_DATA / name)


@cache
def cells(name: str) -> dict[str, dict[tuple[str, str], str]]:
    """The labels of a data set: by rater, then by item and criterion."""
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    with (SHARED_DATA / name / "labels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["rater"]][row["item_id"], row["criterion"]] = row["value"]
    return dict(found)


def run(dataset: RubricDataset, judges: list[RecordedJudge], folder: Path) -> EvalResult:
    """A run of recorded judges as a panel."""
    grader = CriterionGrader(judges=list(judges))
    return evaluate_sync(dataset, grader, show_progress=False, experiments_dir=folder)


def same(found: float | None, wanted: dict[str, Any]) -> bool:
    """Whether a figure is the reference: in full where known, and to the printed decimals where published."""
    if wanted["value"] is None:
        return found is None
    if found is None or abs(found - wanted["value"]) > 1e-9:
        return False
    if wanted["published"] is None:
        return True
    return bool(abs(found - wanted["published"]) <= 0.5 * 10 ** -wanted["decimals"] + 1e-12)
