"""Polars frames are taken and given where pandas frames are, and hold the same."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    JudgeReply,
    JudgeRequest,
    Rubric,
    RubricDataset,
    evaluate_sync,
    judge_report,
)
from autorubric.errors import ArgumentError
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
    lazy = RubricDataset.from_dataframe(pl.LazyFrame(ITEMS), rubric=RUBRIC, **fields)  # type: ignore[arg-type]
    assert lazy == found
    with pytest.raises(ArgumentError, match=r"must be a pandas or polars DataFrame; got \[\]"):
        RubricDataset.from_dataframe([])  # type: ignore[arg-type]


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


def judge(request: JudgeRequest) -> JudgeReply:
    """Answer MET to a text with a T."""
    return JudgeReply(answer="MET" if "T" in (request.submission.text or "") else "UNMET")


def test_results_are_given_as_polars_frames(tmp_path: Path) -> None:
    """Every table of a run, its metrics, a judge report and a dataset; a missing value is null."""
    dataset = RubricDataset.from_dataframe(
        pd.DataFrame(ITEMS), rubric=RUBRIC, submission="response", truth={"clear": "clear"}
    )
    grader = CriterionGrader(judges=[judge])
    result = evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False)
    pairs: list[tuple[pd.DataFrame, pl.DataFrame]] = [
        (result.votes_table(), result.votes_table(library="polars")),
        (result.scores_table(), result.scores_table("polars")),
        (result.compute_metrics().to_dataframe(), result.compute_metrics().to_dataframe("polars")),
        (
            judge_report(pd.DataFrame(LABELS)).to_dataframe(),
            judge_report(pd.DataFrame(LABELS)).to_dataframe("polars"),
        ),
        (dataset.to_dataframe(), dataset.to_dataframe("polars")),
    ]
    for ours, theirs in pairs:
        assert isinstance(theirs, pl.DataFrame)
        assert theirs.columns == list(ours.columns)
        for name in theirs.columns:
            for got, cell in zip(theirs[name], ours[name], strict=True):
                assert (got is None) if pd.isna(cell) else (got == cell or got == str(cell)), name
    assert pairs[1][1]["score"].to_list() == [0.0, 1.0, 1.0]
    with pytest.raises(
        ArgumentError, match=r"'polars' is not a dataset; use votes_table\(library='polars'\)"
    ):
        result.votes_table("polars")  # type: ignore[call-overload]


def test_columns_of_mixed_types_are_text() -> None:
    """Metadata of numbers and words in one column."""
    frame = pd.DataFrame({"response": ["One.", "Two.", "Three."], "note": [1, "two", None]})
    found = RubricDataset.from_dataframe(frame, rubric=RUBRIC, submission="response").to_dataframe("polars")
    assert found["meta.note"].to_list() == ["1", "two", None]


def test_another_library_is_refused() -> None:
    """The error names the two."""
    dataset = RubricDataset.from_dataframe(pd.DataFrame(ITEMS), rubric=RUBRIC, submission="response")
    with pytest.raises(ArgumentError, match="library must be one of 'pandas', 'polars'; got 'arrow'"):
        dataset.to_dataframe("arrow")  # type: ignore[call-overload]
