"""Every registered figure: invariances, bounds, and what it does with nothing."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest

import autorubric.metrics as metrics
from autorubric.errors import ArgumentError
from autorubric.metrics import (
    SPECS,
    Binary,
    Estimate,
    Interval,
    MetricDisplay,
    Nominal,
    Ordinal,
    TableMetric,
    agreement,
    metric,
    spec,
)
from autorubric.metrics.core.scales import Scale
from autorubric.metrics.figures.specs import shown_metrics
from tests.metrics.asserting import width

LABELS = ["a", "b", "c"]
SCALE = Ordinal(LABELS, [0.0, 0.3, 1.0])
RNG = np.random.default_rng(17)


def _columns(one, seed=0, n=60):
    """Input of the kind that a figure needs, as positional arguments, and the keyword arguments it needs."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    pred = np.where(rng.random(n) < 0.6, truth, rng.integers(0, 3, n))
    if one.needs in ("numbers", "samples"):
        return (truth.astype(float).tolist(), (pred + 0.5 * (pred > 1)).tolist()), {}
    if one.needs == "probabilities":
        prob = np.clip(0.15 + 0.3 * pred + rng.normal(0, 0.1, n), 0.01, 0.99)
        return ((truth > 0).astype(int).tolist(), prob.tolist()), {}
    if one.needs == "scores":
        third = np.where(rng.random(n) < 0.6, truth, rng.integers(0, 3, n)) - 0.25
        return (np.column_stack([truth, pred, third]).tolist(),), {}
    named = [[LABELS[code] for code in column] for column in (truth, pred)]
    keywords: dict[str, Any] = {"scale": SCALE}
    if one.one_class:
        keywords["positive"] = "b"
    if one.needs == "ratings":
        third = [LABELS[code] for code in rng.integers(0, 3, n)]
        return ([list(row) for row in zip(*named, third, strict=True)],), keywords
    return tuple(named), keywords


def _equal(one):
    """Two equal sides that vary, in the form that a figure needs."""
    columns, keywords = _columns(one)
    if one.needs == "probabilities":
        return (columns[0], [float(label) for label in columns[0]]), keywords
    if one.needs in ("ratings", "scores"):
        return ([[row[0]] * 3 for row in columns[0]],), keywords
    return (columns[0], columns[0]), keywords


@pytest.fixture(params=SPECS, ids=lambda one: one.name)
def one(request):
    """Each registered figure in turn."""
    return request.param


def test_registered_figures_are_public(one):
    """A registered figure is importable under its name and has a reference."""
    assert getattr(metrics, one.name) is one.function
    assert spec(one.name) is one
    assert one.reference
    assert one.levels
    assert (
        "undefined" in (one.function.__doc__ or "").lower()
        or "arguments as in" in (one.function.__doc__ or "").lower()
        or one.name == "adjacent_accuracy"
    )


def test_order_of_items_does_not_matter(one):
    """Permuting the items changes nothing."""
    columns, keywords = _columns(one)
    order = RNG.permutation(len(columns[0]))
    permuted = tuple([column[i] for i in order] for column in columns)
    expected = float(one.function(*columns, **keywords, ci=None))
    assert one.function(*permuted, **keywords, ci=None) == pytest.approx(expected)


def test_names_of_labels_do_not_matter(one):
    """Relabelling categories consistently changes nothing, and neither does moving and stretching numbers."""
    columns, keywords = _columns(one)
    expected = float(one.function(*columns, **keywords, ci=None))
    if one.needs in ("numbers", "samples"):
        moved = tuple([3 * number + 2 for number in column] for column in columns)
        factor = 3 if one.bounds[1] is None else 1
        assert one.function(*moved, ci=None) == pytest.approx(factor * expected)
        return
    if one.needs == "scores":
        moved = ([[3 * number + 2 for number in row] for row in columns[0]],)
        assert one.function(*moved, ci=None) == pytest.approx(expected)
        return
    if one.needs == "probabilities":
        words = [("UNMET", "MET")[label] for label in columns[0]]
        assert one.function(words, columns[1], ci=None) == pytest.approx(expected)
        return
    new = {"a": 7, "b": "x", "c": 2.5}
    renamed = Ordinal(list(new.values()), [0.0, 0.3, 1.0])
    if one.needs == "ratings":
        columns = ([[new[label] for label in row] for row in columns[0]],)
    else:
        columns = tuple([new[label] for label in column] for column in columns)
    keywords = {"scale": renamed} | ({"positive": "x"} if one.one_class else {})
    assert one.function(*columns, **keywords, ci=None) == pytest.approx(expected)


def test_sides_may_be_exchanged_where_symmetric(one):
    """Symmetric figures do not care who is truth; the others do on this input."""
    columns, keywords = _columns(one)
    expected = float(one.function(*columns, **keywords, ci=None))
    if one.needs == "probabilities":
        with pytest.raises(ArgumentError):
            one.function(*columns[::-1], **keywords, ci=None)
        return
    if one.needs in ("ratings", "scores"):
        exchanged = ([row[::-1] for row in columns[0]],)
    else:
        exchanged = columns[::-1]
    found = float(one.function(*exchanged, **keywords, ci=None))
    if one.symmetric:
        assert found == pytest.approx(expected)
    else:
        assert found != pytest.approx(expected)


def test_equal_sides_reach_the_bound(one):
    """Agreement on everything gives the perfect value; an interval, if any, has width and holds it."""
    columns, keywords = _equal(one)
    found = one.function(*columns, **keywords, n_resamples=50)
    assert found == pytest.approx(one.perfect)
    if found.low is None:
        assert found.reason == "no_variance"
    else:
        assert width(found) > 1e-3
    if found.low is not None and one.needs != "samples":
        assert found.low - 1e-9 <= one.perfect <= found.high + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_values_stay_within_bounds(one, seed):
    """On random input of few and many items value and interval respect the bounds."""
    columns, keywords = _columns(one, seed, n=3 + 5 * seed)
    found = one.function(*columns, **keywords, n_resamples=40)
    low, high = one.bounds
    for number in (found.value, found.low, found.high):
        assert number is None or low is None or number >= low - 1e-9
        assert number is None or high is None or number <= high + 1e-9


def test_weighted_figures_take_an_identity_matrix(one):
    """Identity weights are no weights."""
    if not one.weighted:
        return
    columns, keywords = _columns(one)
    plain = float(one.function(*columns, **keywords, ci=None))
    assert one.function(*columns, **keywords, weights=np.eye(3), ci=None) == pytest.approx(plain)
    for named in ("linear", "quadratic"):
        assert one.function(*columns, **keywords, weights=named, ci=None).is_defined


EMPTY = [[], [None, None], [None]]


@pytest.mark.parametrize("empty", EMPTY, ids=str)
@pytest.mark.parametrize("ci", ["auto", "percentile", None])
def test_nothing_is_undefined_with_a_reason_and_without_a_warning(one, empty, ci):
    """No item, or missing ones alone, give None and a reason: no zero, no NaN, no warning."""
    _, keywords = _columns(one)
    columns = ([[label] for label in empty],) if one.needs in ("ratings", "scores") else (empty, empty)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = one.function(*columns, **keywords, ci=ci)
    assert isinstance(found, Estimate)
    assert found.value is None
    assert found.reason in ("no_pairs", "no_ratings", "no_values")


CASES = [(["a"], ["a"]), (["a"], ["b"]), (["a", "a"], ["a", "a"]), (["a", "a"], ["b", "b"]),
         (["a", "b"], ["b", "b"]), (["a", "a", "b"], ["b", "a", "b"])]  # fmt: skip


@pytest.mark.parametrize("ci", ["auto", "analytic", "percentile", "bca", "smoothed", None])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_degenerate_input_warns_never(one, case, ci):
    """One item, constant sides and all methods of interval: a number or a reason, and no warning."""
    _, keywords = _columns(one)
    columns = case
    if one.needs in ("numbers", "samples", "scores"):
        columns = tuple([float(LABELS.index(label)) for label in column] for column in case)
    if one.needs == "probabilities":
        columns = tuple([LABELS.index(label) for label in column] for column in case)
    if one.needs in ("ratings", "scores"):
        columns = ([list(row) for row in zip(*columns, strict=True)],)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = one.function(*columns, **keywords, ci=ci, n_resamples=30)
        except ArgumentError:
            assert ci in ("analytic", "bca", "smoothed")
            return
    assert (found.value is None) <= (found.reason is not None)


def test_clusters_work_for_every_figure(one):
    """Clusters of items are accepted wherever there are items."""
    columns, keywords = _columns(one)
    found = one.function(*columns, **keywords, cluster=[i // 3 for i in range(60)], n_resamples=60)
    assert width(found) >= 0
    assert found.n >= 60


def test_labels_count_codes(one):
    """Figures of categories take integer codes with `labels=K`."""
    if one.needs not in ("labels", "ratings"):
        return
    columns, keywords = _columns(one)
    codes = {label: code for code, label in enumerate(LABELS)}
    coded: tuple[Any, ...]
    if one.needs == "ratings":
        coded = (np.array([[codes[label] for label in row] for row in columns[0]]),)
    else:
        coded = tuple(np.array([codes[label] for label in column]) for column in columns)
    positive = {"positive": 1} if one.one_class else {}
    expected = float(one.function(*columns, **keywords, ci=None))
    assert one.function(*coded, labels=3, **positive, ci=None) == pytest.approx(expected)


def test_unknown_figures_are_named():
    """Asking for a figure that is not there lists those that are."""
    with pytest.raises(ArgumentError, match="cohen_kappa"):
        spec("kappa")


def test_an_unused_category_changes_no_plain_kappa():
    """Categories that nobody used leave the unweighted coefficients of the margins alone."""
    truth, pred = list("aabbab"), list("abbbaa")
    for name in ("cohen_kappa", "scott_pi", "accuracy", "macro_f1", "mcc"):
        few = spec(name).function(truth, pred, scale=Nominal("ab"), ci=None)
        assert few == pytest.approx(spec(name).function(truth, pred, scale=Nominal("abz"), ci=None))
    for name in ("gwet_ac", "brennan_prediger"):
        few = spec(name).function(truth, pred, scale=Nominal("ab"), ci=None)
        assert few != pytest.approx(spec(name).function(truth, pred, scale=Nominal("abz"), ci=None))


@pytest.mark.parametrize("shown", shown_metrics(), ids=lambda one: one.key)
def test_results_contain_declared_metrics(shown):
    """Each has a field in `agreement`, a value at its levels, and a name, a heading and a title."""
    scales: dict[str, Scale] = {
        "binary": Binary(),
        "nominal": Nominal([0, 1]),
        "ordinal": Ordinal([0, 1]),
        "interval": Interval(),
    }
    truth, pred = [0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 1]
    assert shown.key and shown.label and shown.title and shown.column
    for level, scale in scales.items():
        found = agreement(truth, pred, scale=scale, ci=None)
        estimate = getattr(found, shown.key)
        assert (estimate.reason != "not_on_scale") == (level in shown.where["agreement"])
        assert (shown.key in found.figures()) == (level in shown.where["agreement"])
        assert shown.key in found.to_dict()


HITS = TableMetric(name="k", hits=lambda tables: tables[..., 0, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shown": MetricDisplay()}, "'lonely': shown must have a table"),
        ({"shown": MetricDisplay(table=TableMetric(name="k"))}, "'lonely': TableMetric must have compute or"),
        ({"levels": ("weird",)}, "'lonely': levels must contain only 'binary'.*; got 'weird'"),
        ({"shown": MetricDisplay(table=HITS, pages=cast("Any", ("nope",)))}, "pages must .*; got 'nope'"),
    ],
)
def test_a_declaration_with_a_mistake_names_the_metric(options, message):
    """Nothing is declared then."""

    def lonely(truth, pred):
        """Be declared."""

    declaration: dict[str, Any] = {"inputs": "labels", "levels": ("binary",), "reference": "r"}
    declaration |= {"shown": MetricDisplay(table=HITS), **options}
    with pytest.raises(ArgumentError, match=message):
        metric(**declaration)(lonely)
