"""Opinion scores: the plan's examples, each statistic by hand, and agreement of grouped evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, ValidationError
from scipy import stats

from autorubric import (
    HolisticRubricCriterion,
    LikertCriterion,
    LikertItem,
    NumericalRatingCriterion,
    PassFailCriterion,
    RubricLevel,
)
from autorubric.errors import ArgumentError
from autorubric.metrics import (
    AggregatedScore,
    Nominal,
    Ordinal,
    aggregate_scores,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    inter_rater_reliability,
    krippendorff_alpha,
    mean_opinion_score,
    median_opinion_score,
)


@dataclass
class Rated:
    """An evaluation with a rating."""

    rating: Any


def rated(*ratings: float) -> list[Rated]:
    return [Rated(one) for one in ratings]


def grouped(rows: list[list[Any]], kind: Any = Rated) -> list[list[Any]]:
    """Items × raters of evaluations, None where there is none."""
    return [[None if one is None else kind(one) for one in row] for row in rows]


# The plan's examples (6.3)


def test_calculates_mean_correctly():
    """Value, method, number and the scores themselves."""
    mos = mean_opinion_score(rated(4, 5, 3))
    assert mos.aggregated_value == 4.0
    assert mos.aggregation_method == "mean"
    assert mos.n_scores == 3
    assert mos.individual_scores == [4, 5, 3]


def test_calculates_variance_and_std_dev():
    """Over n - 1."""
    mos = mean_opinion_score(rated(2, 4, 6))
    assert mos.variance == pytest.approx(4.0)
    assert mos.std_dev == pytest.approx(2.0)


def test_the_usage_example_has_the_samples_deviation():
    """The plan's comment says .816, which is that of a whole population; a sample's is 1."""
    mos = mean_opinion_score(rated(4, 5, 3))
    assert mos.std_dev == pytest.approx(1.0)
    assert mos.std_dev * np.sqrt(2 / 3) == pytest.approx(0.816, abs=1e-3)


@pytest.mark.parametrize(("ratings", "median"), [((1, 5, 2), 2.0), ((1, 5, 2, 4), 3.0), ((7,), 7.0)])
def test_median_of_odd_and_even_numbers(ratings, median):
    """The middle, or the mean of the two in the middle."""
    found = median_opinion_score(rated(*ratings))
    assert (found.aggregated_value, found.aggregation_method) == (median, "median")


def test_weighted_mean():
    """Σ w x / Σ w; equal weights are the mean, and a weight of 0 leaves out."""
    found = aggregate_scores(rated(1, 5), method="weighted_mean", weights=[1, 3])
    assert found.aggregated_value == 4.0
    assert found.aggregation_method == "weighted_mean"
    assert aggregate_scores(rated(1, 2, 6), "weighted_mean", [2, 2, 2]).aggregated_value == 3.0
    assert aggregate_scores(rated(1, 2, 6), "weighted_mean", [0, 1, 0]).aggregated_value == 2.0


@pytest.mark.parametrize(
    ("method", "value"), [("mode", 2.0), ("min", 1.0), ("max", 5.0), ("mean", 2.5), ("median", 2.0)]
)
def test_other_methods(method, value):
    """Each by its name."""
    assert aggregate_scores(rated(1, 2, 2, 5), method).aggregated_value == value


def test_of_several_modes_the_lowest_counts():
    """Whatever the order."""
    for ratings in ((3, 1, 3, 1, 5), (1, 3, 5, 3, 1)):
        assert aggregate_scores(rated(*ratings), "mode").aggregated_value == 1.0


# Where the score is


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"rating": 4}, 4.0),
        ({"score": 7.5}, 7.5),
        ({"passed": True}, 1.0),
        ({"passed": False}, 0.0),
        ({"level_index": 2}, 2.0),
        ({"overall_score": 3.25}, 3.25),
        ({"overall_score": 1, "level_index": 2, "passed": True, "score": 4, "rating": 5}, 5.0),
        ({"overall_score": 1, "level_index": 2, "passed": True, "score": 4}, 4.0),
        ({"overall_score": 1, "level_index": 2, "passed": True}, 1.0),
        ({"overall_score": 1, "level_index": 2}, 2.0),
        ({"rating": None, "score": 4}, 4.0),
    ],
    ids=str,
)
def test_the_first_field_that_is_there_is_the_score(fields, score):
    """In this order, from objects as from dicts."""
    assert mean_opinion_score([SimpleNamespace(**fields)]).individual_scores == [score]
    assert mean_opinion_score([fields]).individual_scores == [score]


def test_scores_of_the_librarys_own_evaluations():
    """Likert, pass and fail, numbers and levels."""
    likert = LikertCriterion(name="l", scale=[LikertItem(val=v, description=str(v)) for v in (1, 5)])
    levels = [RubricLevel(name=n, index=i, description=n) for i, n in enumerate(("low", "high"), 1)]
    evaluations: list[BaseModel] = [
        likert.evaluation_schema.model_validate({"rating": 4, "explanation": ""}),
        PassFailCriterion(name="p").evaluation_schema.model_validate({"passed": True, "reason": ""}),
        NumericalRatingCriterion(name="n").evaluation_schema.model_validate({"score": 9, "explanation": ""}),
        HolisticRubricCriterion(name="h", levels=levels).evaluation_schema.model_validate(
            {"level": "high", "level_index": 2, "explanation": ""}
        ),
    ]
    assert mean_opinion_score(evaluations).individual_scores == [4.0, 1.0, 9.0, 2.0]


@pytest.mark.parametrize("evaluation", [SimpleNamespace(verdict="MET"), {"narrative": "x"}, 4, "x"], ids=str)
def test_an_evaluation_without_a_score_is_refused(evaluation):
    """The error names the fields that would do."""
    with pytest.raises(ArgumentError, match="rating, score, passed, level_index, overall_score"):
        mean_opinion_score([evaluation])


@pytest.mark.parametrize("rating", [float("nan"), float("inf"), "many", [1]], ids=str)
def test_a_score_is_a_finite_number(rating):
    """Anything else is refused, with the field."""
    with pytest.raises(ArgumentError, match="rating must be a finite number"):
        mean_opinion_score(rated(rating))


@pytest.mark.parametrize(
    "arguments",
    [
        {"evaluations": []},
        {"evaluations": {}},
        {"evaluations": [[None, None]]},
        {"evaluations": "xyz"},
        {"evaluations": range},
        {"evaluations": {"item": Rated(1)}},
        {"evaluations": [[Rated(1), Rated(2)], [Rated(1)]]},
        {"evaluations": rated(1, 2), "method": "sum"},
        {"evaluations": rated(1, 2), "method": "weighted_mean"},
        {"evaluations": rated(1, 2), "method": "mean", "weights": [1, 2]},
        {"evaluations": rated(1, 2), "method": "weighted_mean", "weights": [1]},
        {"evaluations": rated(1, 2), "method": "weighted_mean", "weights": [0, 0]},
        {"evaluations": rated(1, 2), "method": "weighted_mean", "weights": [1, -1]},
        {"evaluations": rated(1, 2), "method": "weighted_mean", "weights": [1, float("nan")]},
    ],
    ids=str,
)
def test_arguments_that_cannot_work(arguments):
    """Nothing to combine, no list, weights that do not fit."""
    with pytest.raises(ArgumentError):
        aggregate_scores(**arguments)


# Spread and interval


def test_the_interval_of_the_mean_is_students_t():
    """m ± t(n - 1) s / √n."""
    ratings = [2, 4, 6, 3, 5]
    found = mean_opinion_score(rated(*ratings)).confidence_interval
    expected = stats.t.interval(0.95, 4, loc=4.0, scale=stats.sem(ratings))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("method", ["median", "mode", "min", "max", "weighted_mean"])
def test_other_intervals_are_a_bootstraps(method):
    """They hold the value, stay within the scores, and are the same every time."""
    weights = [1, 2, 3, 4, 5, 6] if method == "weighted_mean" else None
    found = aggregate_scores(rated(1, 2, 2, 3, 4, 5), method, weights)
    low, high = found.confidence_interval or (9.0, 0.0)
    assert 1 <= low <= found.aggregated_value <= high <= 5
    assert aggregate_scores(rated(1, 2, 2, 3, 4, 5), method, weights).confidence_interval == (low, high)


def test_one_score_has_no_spread():
    """Variance, deviation and interval are None, not 0."""
    one = median_opinion_score(rated(4))
    assert (one.variance, one.std_dev, one.confidence_interval) == (None, None, None)
    same = mean_opinion_score(rated(4, 4))
    assert (same.variance, same.std_dev, same.confidence_interval) == (0.0, 0.0, (4.0, 4.0))


def test_weights_that_leave_nothing_in_a_resample():
    """Such a resample has no mean and is left out."""
    found = aggregate_scores(rated(1, 2, 3), "weighted_mean", [0, 0, 1])
    assert found.confidence_interval == (3.0, 3.0)


def test_items_are_the_units_of_a_grouped_mean():
    """Raters of an item are no independent looks at the whole; with one item they are all there is."""
    rows = [[1, 1, 1], [3, 3, 3], [5, 5, 5]]
    found = mean_opinion_score(grouped(rows)).confidence_interval
    assert found == pytest.approx(stats.t.interval(0.95, 2, loc=3.0, scale=stats.sem([1, 3, 5])))
    alone = mean_opinion_score(grouped([[1, 2, 3]])).confidence_interval
    assert alone == pytest.approx(mean_opinion_score(rated(1, 2, 3)).confidence_interval)
    medians = median_opinion_score(grouped(rows)).confidence_interval
    assert medians == (1.0, 5.0)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10), min_size=1, max_size=6), st.randoms())
def test_the_order_of_evaluations_does_not_matter(ratings, random):
    """For any method without weights."""
    mixed = random.sample(ratings, len(ratings))
    for method in ("mean", "median", "mode", "min", "max"):
        one, other = (aggregate_scores(rated(*given), method) for given in (ratings, mixed))
        assert one.aggregated_value == pytest.approx(other.aggregated_value)
        assert min(ratings) <= one.aggregated_value <= max(ratings)


def test_an_aggregated_score_is_a_frozen_value_with_a_time_zone():
    """It cannot be changed, and goes through JSON."""
    found = mean_opinion_score(rated(4, 5))
    assert found.timestamp.utcoffset() == timedelta(0)
    with pytest.raises(ValidationError):
        found.n_scores = 3  # type: ignore[misc]
    assert AggregatedScore.model_validate_json(found.model_dump_json()) == found


# Agreement

N = None
FOUR: list[list[int | None]] = [
    [1, 1, N, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [N, 5, 5, 5], [N, N, 1, 1], [N, N, 3, N],
]  # fmt: skip
TWO = [[row[1], row[3]] for row in FOUR]


@pytest.mark.parametrize(
    ("method", "rows", "published"),
    [
        ("fleiss_kappa", FOUR, "0.76117"),
        ("gwet_ac1", FOUR, "0.77544"),
        ("krippendorff_alpha", FOUR, "0.81539"),
        (
            "icc",
            [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]],
            "0.28976",
        ),
    ],
)
def test_published_examples(method, rows, published):
    """Gwet's four raters, Krippendorff's ordinal alpha of the same, Shrout and Fleiss' ICC(2,1)."""
    assert f"{inter_rater_reliability(grouped(rows), method):.5f}" == published


def test_kappas_are_those_of_the_metrics():
    """Cohen's of two raters; weighted quadratically, Conger's where there are more."""
    left, right = zip(*TWO, strict=True)
    scale = Ordinal([1, 2, 3, 4, 5])
    assert inter_rater_reliability(grouped(TWO), "cohen_kappa") == cohen_kappa(left, right).value
    weighted = cohen_kappa(left, right, weights="quadratic", scale=scale).value
    assert inter_rater_reliability(grouped(TWO), "weighted_kappa") == pytest.approx(weighted)
    more = conger_kappa(FOUR, weights="quadratic", scale=scale).value
    assert inter_rater_reliability(grouped(FOUR), "weighted_kappa") == pytest.approx(more)
    with pytest.raises(ArgumentError, match="requires two raters; got 4"):
        inter_rater_reliability(grouped(FOUR), "cohen_kappa")


def test_items_and_raters_by_name():
    """A mapping of mappings is the same table; who is absent from an item did not rate it."""
    named = {
        f"item {i}": {f"rater {j}": Rated(one) for j, one in enumerate(row) if one is not None}
        for i, row in enumerate(FOUR)
    }
    assert inter_rater_reliability(named) == inter_rater_reliability(grouped(FOUR))
    assert inter_rater_reliability(named) == pytest.approx(fleiss_kappa(FOUR).value)
    left_out: dict[str, dict[str, Any]] = {"a": {"x": Rated(1), "y": None}, "b": {"y": Rated(2)}}
    assert inter_rater_reliability(left_out) is None


def test_the_level_of_krippendorffs_alpha_follows_the_field():
    """Passed is nominal, a rating ordinal, a score interval."""
    rows = [[row[0] or 1, row[1] or 5] for row in FOUR]
    for field, level in (("rating", "ordinal"), ("level_index", "ordinal"), ("score", "interval")):
        given = grouped(rows, lambda one, field=field: SimpleNamespace(**{field: one}))
        expected = krippendorff_alpha(rows, level=level).value  # type: ignore[arg-type]
        assert inter_rater_reliability(given, "krippendorff_alpha") == pytest.approx(expected)
    passed = grouped([[True, False], [True, True], [False, False]], lambda one: SimpleNamespace(passed=one))
    expected = krippendorff_alpha([[1, 0], [1, 1], [0, 0]]).value
    assert inter_rater_reliability(passed, "krippendorff_alpha") == pytest.approx(expected)


def test_categories_of_ac1_come_from_the_schema_or_the_caller():
    """A Likert item's bounds declare five of them, though three occur; a plain object declares none."""
    likert = LikertCriterion(name="l", scale=[LikertItem(val=v, description=str(v)) for v in (1, 5)])
    rows = [[1, 1], [2, 2], [3, 2], [3, 3], [1, 2]]

    def own(one: int) -> BaseModel:
        return likert.evaluation_schema.model_validate({"rating": one, "explanation": ""})

    def of(labels: range) -> float | None:
        return gwet_ac(ratings=rows, scale=Nominal(labels)).value

    assert inter_rater_reliability(grouped(rows, own), "gwet_ac1") == pytest.approx(of(range(1, 6)))
    assert inter_rater_reliability(grouped(rows), "gwet_ac1") == pytest.approx(of(range(1, 4)))
    given = inter_rater_reliability(grouped(rows), "gwet_ac1", categories=range(1, 8))
    assert given == pytest.approx(of(range(1, 8)))
    passed = grouped([[True, True], [True, True]], lambda one: SimpleNamespace(passed=one))
    assert inter_rater_reliability(passed, "gwet_ac1") == 1.0


@pytest.mark.parametrize(
    "method", ["fleiss_kappa", "cohen_kappa", "weighted_kappa", "icc", "krippendorff_alpha", "gwet_ac1"]
)
def test_undefined_agreement_is_none(method):
    """No pair of evaluations, none at all, or nothing that varies (where chance needs it)."""
    assert inter_rater_reliability({}, method) is None
    assert inter_rater_reliability([[None, None]], method) is None
    assert inter_rater_reliability(grouped([[1, N], [N, 2]]), method) is None
    assert inter_rater_reliability(grouped([[3, 3], [3, 3]]), method) is None


def test_a_flat_list_cannot_say_who_rated_what():
    """The error shows the two forms that can."""
    with pytest.raises(ArgumentError, match="flat list"):
        inter_rater_reliability(rated(1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="unknown method 'kappa'; available: fleiss_kappa"):
        inter_rater_reliability(grouped(TWO), "kappa")  # type: ignore[arg-type]


def test_grouped_evaluations_fill_in_the_agreement():
    """And a flat list leaves it open."""
    found = mean_opinion_score(grouped(FOUR))
    assert found.inter_rater_reliability == pytest.approx(fleiss_kappa(FOUR).value)
    assert found.agreement_method == "fleiss_kappa"
    assert found.n_scores == 41
    flat = mean_opinion_score(rated(1, 2))
    assert (flat.inter_rater_reliability, flat.agreement_method) == (None, None)


def test_weights_meet_the_scores_in_the_order_given() -> None:
    """Also where the raters of a later item stand in another order."""
    grouped = {"a": {"x": {"rating": 1}, "y": {"rating": 5}}, "b": {"y": {"rating": 2}, "x": {"rating": 4}}}
    found = aggregate_scores(grouped, "weighted_mean", weights=[0, 0, 1, 0])
    assert (found.individual_scores, found.aggregated_value) == ([1, 5, 2, 4], 2.0)


@pytest.mark.parametrize("weights", [["a", "b"], [1, None], 3])
def test_weights_that_are_none_are_refused(weights: Any) -> None:
    """With one kind of error."""
    with pytest.raises(ArgumentError, match="weights must be one non-negative number per score"):
        aggregate_scores([{"rating": 1}, {"rating": 2}], "weighted_mean", weights=weights)


def test_the_interval_of_a_median_is_that_of_a_bootstrap() -> None:
    """95 % of resampled medians, by another implementation, to what resampling leaves open."""
    ratings = np.random.default_rng(3).normal(3.0, 1.0, 60)
    found = median_opinion_score([{"rating": float(rating)} for rating in ratings]).confidence_interval
    drawn = stats.bootstrap(
        (ratings,), np.median, n_resamples=9_999, method="percentile", rng=np.random.default_rng(1)
    )
    assert found == pytest.approx(tuple(drawn.confidence_interval), abs=0.06)


def test_a_timestamp_without_a_zone_is_refused() -> None:
    """Nobody could tell when it was."""
    with pytest.raises(ValidationError, match="timezone"):
        AggregatedScore(
            aggregated_value=1.0, aggregation_method="mean", individual_scores=[1], n_scores=1,
            timestamp=datetime(2026, 1, 1),
        )  # fmt: skip
