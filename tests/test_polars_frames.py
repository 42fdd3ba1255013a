"""Polars frames are taken where pandas frames are, and give the same results."""

from __future__ import annotations

import pandas as pd
import polars as pl

from autorubric import Criterion, Rubric, RubricDataset, judge_report
from autorubric.metrics import icc, krippendorff_alpha, self_consistency

RUBRIC = Rubric([Criterion(name="clear", requirement="It is clear.")])
ITEMS = {"id": ["a", "b", "c"], "response": ["One.", "Two.", "Three."], "clear": ["MET", None, "UNMET"]}
LABELS = {
    "item_id": [f"i{at}" for at in range(8)] * 3,
    "criterion": ["clear"] * 24,
    "rater": ["truth"] * 8 + ["j1"] * 8 + ["j2"] * 8,
    "rater_kind": ["truth"] * 8 + ["judge"] * 16,
    "label": [*"MMMMUUUU", *"MMMUUUUM", *"MMUUUUUU"],
}


def test_a_dataset_comes_from_a_polars_frame() -> None:
    """Columns, missing labels and metadata are read as from pandas."""
    fields = {"submission": "response", "truth": {"clear": "clear"}}
    found = RubricDataset.from_dataframe(pl.DataFrame(ITEMS), rubric=RUBRIC, **fields)  # type: ignore[arg-type]
    assert found == RubricDataset.from_dataframe(pd.DataFrame(ITEMS), rubric=RUBRIC, **fields)  # type: ignore[arg-type]
    assert [item.ground_truth for item in found] == [{"clear": "MET"}, None, {"clear": "UNMET"}]


def test_label_tables_are_polars_frames_too() -> None:
    """The judge report is that of the pandas frame."""
    ours, theirs = pl.DataFrame(LABELS), pd.DataFrame(LABELS)
    assert judge_report(ours).to_dict() == judge_report(theirs).to_dict()


def test_rater_tables_are_polars_frames_too() -> None:
    """A column a rater, with gaps; and repeated ratings."""
    wide = {"ann": [1, 2, 3, None, 5], "bo": [1, 2, 4, 4, 5], "cy": [1, 3, 3, 4, None]}
    assert krippendorff_alpha(pl.DataFrame(wide)) == krippendorff_alpha(pd.DataFrame(wide))
    whole = {name: [1, 2, 3, 4, 5 + at] for at, name in enumerate(wide)}
    assert icc(pl.DataFrame(whole)) == icc(pd.DataFrame(whole))
    repeats = {"first": ["M", "U", "M"], "second": ["M", "M", "M"]}
    ours, theirs = (self_consistency(frame(repeats)) for frame in (pl.DataFrame, pd.DataFrame))
    assert ours.to_dict() == theirs.to_dict()
