"""Tables of ratings come as lists of rows, arrays and frames; each gives the same figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Estimate,
    Ordinal,
    alt_test,
    brennan_prediger,
    conger_kappa,
    cronbach_alpha,
    dawid_skene,
    fleiss_kappa,
    gwet_ac,
    human_ceiling,
    icc,
    kendall_w,
    krippendorff_alpha,
    majority_vote,
    percent_agreement,
    reliability,
    self_consistency,
)

GAPS: list[list[Any]] = [
    [1, 1, 2], [2, 2, 2], [1, None, 1], [3, 3, 2], [1, 2, 2], [3, 3, 3], [2, 1, None], [1, 1, 1],
]  # fmt: skip
FULL: list[list[Any]] = [[1.0 if label is None else label for label in row] for row in GAPS]

OF_LABELS: dict[str, Callable[[Any], Any]] = {
    "krippendorff_alpha": lambda t: krippendorff_alpha(t, n_resamples=20).to_dict(),
    "krippendorff_alpha interval": lambda t: krippendorff_alpha(
        t, level="interval", n_resamples=20
    ).to_dict(),
    "fleiss_kappa": lambda t: fleiss_kappa(t, n_resamples=20).to_dict(),
    "conger_kappa": lambda t: conger_kappa(t, n_resamples=20).to_dict(),
    "percent_agreement": lambda t: percent_agreement(t, n_resamples=20).to_dict(),
    "majority_vote": lambda t: majority_vote(t, ties="lowest"),
    "dawid_skene": lambda t: np.round(np.array(dawid_skene(t, smoothing=0.1).posterior), 9).tolist(),
    "self_consistency": lambda t: self_consistency(t, n_resamples=20).alpha.to_dict(),
    "human_ceiling": lambda t: human_ceiling(t, stat="accuracy", n_resamples=20).to_dict()["value"],
    "reliability": lambda t: reliability(t, scale=Ordinal([1, 2, 3]), n_resamples=20).alpha.to_dict(),
    "alt_test": lambda t: [one.n for one in alt_test([1] * 8, t, n_resamples=20).per_annotator.values()],
}
OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "icc": lambda t: icc(t, n_resamples=20).to_dict(),
    "cronbach_alpha": lambda t: cronbach_alpha(t, n_resamples=20).to_dict(),
    "kendall_w": lambda t: kendall_w(t, n_resamples=20).to_dict(),
}
FIGURES = OF_LABELS | OF_NUMBERS

COLUMNS: dict[str, Any] = {
    "names": ["ann", "bo", "cy"],
    "numbers": [0, 1, 2],
    "levels": pd.MultiIndex.from_tuples([("label", "ann"), ("label", "bo"), ("label", "cy")]),
}


def forms(rows: list[list[Any]]) -> dict[str, Any]:
    """The same table in all forms that hold its gaps."""
    filled = pd.DataFrame(rows, dtype=float)
    return {
        "array": np.array(rows, dtype=float),
        "objects": np.array(rows, dtype=object),
        "masked": np.ma.masked_invalid(np.array(rows, dtype=float)),
        "rows": iter([tuple(row) for row in rows]),
        "nullable": filled.astype("Int64"),
        "categories": filled.astype("category"),
    } | {name: filled.set_axis(names, axis=1) for name, names in COLUMNS.items()}


@pytest.mark.parametrize("form", list(forms(GAPS)))
@pytest.mark.parametrize("figure", list(FIGURES))
def test_every_form_of_a_table_gives_the_same_figure(figure: str, form: str) -> None:
    """A frame's names and index are no ratings, and how missing ones are written does not matter."""
    rows = GAPS if figure in OF_LABELS else FULL
    assert FIGURES[figure](forms(rows)[form]) == FIGURES[figure](rows)


@pytest.mark.parametrize("figure", [gwet_ac, brennan_prediger])
def test_the_coefficients_of_two_take_a_frame_of_many(figure: Callable[..., Estimate]) -> None:
    """`ratings=` of the two coefficients that take either reads a frame as rows."""
    frame = pd.DataFrame(GAPS, columns=["ann", "bo", "cy"])
    assert figure(ratings=frame, labels=4).value == figure(ratings=frame.to_numpy(), labels=4).value
    assert figure(ratings=frame, labels=4).n == 8


def test_a_frame_of_words_is_a_table_of_labels() -> None:
    """Two of three units agree wholly, the third not at all: agreement 2/3."""
    frame = pd.DataFrame({"ann": ["good", "bad", "bad"], "bo": ["good", "bad", "good"]})
    for one in (frame, frame.astype("string"), frame.astype("category"), frame.T.T):
        assert percent_agreement(one).value == pytest.approx(2 / 3)
        assert majority_vote(one) == ["good", "bad", None]


def test_a_frame_of_truth_values_is_a_table_of_labels() -> None:
    """Nullable truth values with a gap: the pairs there are agree on one unit of two."""
    frame = pd.DataFrame({"ann": [True, False, None], "bo": [True, True, True]}, dtype="boolean")
    assert percent_agreement(frame) == 0.5


def test_counts_come_as_a_frame_too() -> None:
    """Units × K counts, nullable or not, are read as an array is."""
    counts = [[3, 0], [2, 1], [0, 3]]
    for one in (pd.DataFrame(counts, columns=["no", "yes"]), pd.DataFrame(counts, dtype="Int64")):
        assert fleiss_kappa(counts=one).to_dict() == fleiss_kappa(counts=counts).to_dict()


@pytest.mark.parametrize("table", ["abc", b"abc", {"ann": [1, 2]}, 3, [1, 2, 3], ["ab", "cd"], [{"ann": 1}]])
@pytest.mark.parametrize("figure", [name for name in FIGURES if name != "reliability"])
def test_what_is_no_table_is_refused(figure: str, table: Any) -> None:
    """Flat lists, texts, mappings and numbers raise an error that says what to give."""
    with pytest.raises(ArgumentError, match=r"must be|must have|needed|Required columns"):
        FIGURES[figure](table)


@pytest.mark.parametrize("figure", list(FIGURES))
def test_rows_of_different_lengths_and_other_dimensions_are_refused(figure: str) -> None:
    """A ragged table or a cube is none."""
    for table in ([[1, 2], [1]], np.zeros(3), np.zeros((2, 2, 2)), [np.zeros((2, 2))]):
        with pytest.raises(ArgumentError):
            FIGURES[figure](table)


def test_two_annotators_of_one_name_are_refused() -> None:
    """By name the one would take the other's place."""
    with pytest.raises(ArgumentError, match="unique names"):
        human_ceiling(pd.DataFrame([[1, 1], [0, 0]], columns=["ann", "ann"]))
