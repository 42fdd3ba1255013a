"""Labels become codes on a declared or inferred scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from autorubric.criteria import (
    ChecklistCriterion,
    Criterion,
    CriterionOption,
    CriterionVerdict,
    NumericalRatingCriterion,
)
from autorubric.errors import ArgumentError
from autorubric.metrics import Binary, Interval, Nominal, Ordinal, cohen_kappa, scale_of
from autorubric.metrics.core.contingency import cluster_codes, encode
from autorubric.metrics.core.scales import infer_scale, is_missing


def test_binary_reads_words_bools_and_numbers():
    """The readings of a binary label are those of recorded votes, and CANNOT_ASSESS is missing."""
    labels = [
        True,
        False,
        1,
        0,
        1.0,
        np.int64(1),
        "MET",
        "unmet",
        "Yes",
        "no",
        CriterionVerdict.CANNOT_ASSESS,
        None,
    ]
    assert Binary().encode(labels).tolist() == [1, 0, 1, 0, 1, 1, 1, 0, 1, 0, -1, -1]
    with pytest.raises(ArgumentError, match="maybe"):
        Binary().encode(["maybe"])
    with pytest.raises(ArgumentError):
        Binary().encode([2])


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_every_kind_of_missing_is_missing(missing):
    """None, NaN and pandas' markers are no rating."""
    assert is_missing(missing)
    assert Nominal("ab").code(missing) == -1


def test_outside_label_raises_with_the_scale():
    """A label that is not declared is an error that names the allowed ones."""
    with pytest.raises(ArgumentError, match=r"'c'.*\['a', 'b'\]"):
        Nominal(["a", "b"]).encode(["a", "c"])
    with pytest.raises(ArgumentError):
        Nominal(["a", "b"]).code(["a"])


def test_declarations_are_checked():
    """Repeated labels, no labels, and values that do not fit are refused."""
    for make in (
        lambda: Nominal([]),
        lambda: Nominal(["a", "a"]),
        lambda: Ordinal(["a", None]),
        lambda: Ordinal(["a", "b"], [1.0]),
        lambda: Ordinal(["a", "b"], [1.0, float("inf")]),
        lambda: Interval(1, 1),
    ):
        with pytest.raises(ArgumentError):
            make()


def test_positions_follow_values_or_places():
    """Without values an ordinal scale is equally spaced."""
    assert Ordinal(["lo", "mid", "hi"]).positions.tolist() == [0, 1, 2]
    assert Ordinal(["lo", "mid", "hi"], [0, 0.2, 1]).positions.tolist() == [0, 0.2, 1]
    assert Nominal("ab").positions is None
    assert Binary().positions.tolist() == [0, 1]


def test_interval_checks_its_ends():
    """Values beyond a declared end are outside; an open end takes all."""
    assert Interval(0, 10).span == 10
    assert Interval(0).span is None
    Interval(0).check(np.array([1e9]))
    Interval(None, 5).check(np.array([-1e9]))
    with pytest.raises(ArgumentError, match=r"10\.5"):
        Interval(0, 10).check(np.array([3.0, 10.5]))


def test_scale_is_inferred_from_what_is_seen():
    """Binary readings make Binary, numbers an ordinal scale at their values, the rest a nominal one."""
    assert infer_scale(["MET", "UNMET"]) == Binary()
    assert infer_scale([3, 1, None]) == Ordinal([1, 3], [1, 3])
    assert infer_scale(["b", "a"]) == Nominal(["a", "b"])
    assert infer_scale(["b", 7]) == Nominal([7, "b"])
    assert infer_scale([None]) is None
    with pytest.raises(ArgumentError, match="hashable"):
        infer_scale([["a"]])


def test_codes_are_checked_under_labels():
    """With `labels=K` codes stand for themselves and must lie in 0..K-1 or be -1."""
    assert cohen_kappa([0, 1, -1, 2], [0, 1, 1, 2], labels=3).n == 3
    assert cohen_kappa([0, 1, None, 2.0], [0, 1, 1, 2], labels=3).n == 3
    for wrong in ([0, 3], [-2, 0], [0.5, 1]):
        with pytest.raises(ArgumentError):
            cohen_kappa(wrong, [0, 0], labels=3)
    with pytest.raises(ArgumentError, match="not both"):
        cohen_kappa([0], [0], labels=2, scale=Binary())


def test_typed_arrays_code_as_lists_do():
    """An array of numbers with NaN gives the codes of the same list."""
    column = [2.0, 1.0, float("nan"), 2.0]
    scale = Ordinal([1, 2])
    by_array = encode([np.array(column)], scale, None).codes[0]
    assert by_array.tolist() == encode([column], scale, None).codes[0].tolist() == [1, 0, -1, 1]


def test_columns_must_be_sequences():
    """Texts, mappings and matrices are no columns; iterators are."""
    assert cohen_kappa(iter([1, 0, 1]), iter([1, 0, 0])).n == 3
    for wrong in ("MET", {"a": 1}, np.zeros((2, 2))):
        with pytest.raises(ArgumentError):
            cohen_kappa(wrong, [1, 0])


def test_clusters_are_numbered_by_first_appearance():
    """Cluster ids may be anything hashable, one id per unit."""
    np.testing.assert_array_equal(cluster_codes(["b", "a", "b"], 3), [0, 1, 0])
    np.testing.assert_array_equal(cluster_codes(np.array([7, 3, 7]), 3), [1, 0, 1])
    assert cluster_codes(None, 3) is None
    with pytest.raises(ArgumentError, match="one id per unit"):
        cluster_codes(["a"], 3)
    with pytest.raises(ArgumentError, match="hashable"):
        cluster_codes([["a"], ["b"]], 2)


def test_scale_of_a_criterion_leaves_na_out():
    """A criterion declares labels, order and values; NA is no place on the scale."""
    options = [
        CriterionOption(label="low", value=0.0),
        CriterionOption(label="high", value=1.0),
        CriterionOption(label="n/a", na=True),  # type: ignore[call-arg]
    ]
    assert scale_of(Criterion(requirement="r")) == Binary()
    assert scale_of(Criterion(requirement="r", options=options)) == Ordinal(["low", "high"], [0, 1])
    nominal = Criterion(requirement="r", options=options, scale_type="nominal")
    assert scale_of(nominal) == Nominal(["low", "high"])
    for criterion in (nominal, Criterion(requirement="r", options=options)):
        codes = scale_of(criterion).encode(["low", "n/a", "CANNOT_ASSESS", None, "high"])  # type: ignore[union-attr]
        assert codes.tolist() == [0, -1, -1, -1, 1]


class _Level:
    def __init__(self, level):
        self.level = level

    def answers(self):
        return ()

    def answer_at(self, value):
        raise AssertionError("no scale, so no answers on one")


def test_scale_of_other_levels():
    """Numbers are an interval between the ends that they have; rankings and texts have no scale."""
    rating = NumericalRatingCriterion(name="n", requirement="r", min_value=1, max_value=7)
    assert scale_of(rating) == Interval(1, 7)
    assert scale_of(ChecklistCriterion(name="c", requirement="r", items={"a": "has a"})) == Interval()
    with pytest.raises(ArgumentError, match="ranking"):
        scale_of(_Level("ranking"))


@pytest.mark.parametrize("given", [None, 3, "met", {"a": 1}, pd.DataFrame({"a": [1], "b": [0]})])
def test_a_column_is_one_sequence(given):
    """What is none is refused, a frame among it, whose names are no labels."""
    with pytest.raises(ArgumentError, match=r"truth and pred|must be a s"):
        cohen_kappa(given, [1])
