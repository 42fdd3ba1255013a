"""Strengths from comparisons: second implementations, intervals, unconnected players."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from autorubric.errors import ArgumentError
from autorubric.metrics import bradley_terry
from tests.metrics.published import CITATIONS, JOURNALS


def wins(names: list[str], table: list[list[int]]) -> list[tuple[str, str, str | None]]:
    return [
        (names[i], names[j], names[i])
        for i in range(len(names))
        for j in range(len(names))
        for _ in range(table[i][j])
    ]


def test_strengths_are_centred() -> None:
    """The mean of the strengths is 0, and every comparison counts."""
    found = bradley_terry(wins(JOURNALS, CITATIONS))
    assert found.strengths is not None
    assert sum(found.strengths.values()) == pytest.approx(0.0, abs=1e-12)
    assert found.n == sum(map(sum, CITATIONS))


def likelihood(point: Any, comparisons: list[tuple[str, str, str | None]], names: list[str]) -> float:
    """Davidson's, written down once more."""
    strength = dict(zip(names, point[:-1], strict=True))
    total = 0.0
    for left, right, winner in comparisons:
        a, b, h = strength[left], strength[right], point[-1]
        tie = h + (a + b) / 2
        chosen = tie if winner is None else strength[winner]
        total += chosen - float(np.logaddexp(np.logaddexp(a, b), tie))
    return -total + 1e-6 * float(np.sum(point[:-1])) ** 2


def test_davidsons_ties_are_those_of_a_general_optimiser() -> None:
    """The strengths and the strength of ties are where scipy finds the greatest likelihood."""
    comparisons: list[tuple[str, str, str | None]] = [
        *[("a", "b", "a")] * 5, *[("b", "a", "b")] * 2, *[("a", "b", None)] * 4,
        *[("b", "c", "b")] * 3, *[("c", "b", "c")] * 3, *[("c", "a", None)] * 2, ("a", "c", "a"),
    ]  # fmt: skip
    found = bradley_terry(comparisons)
    assert found == bradley_terry(comparisons, ties="davidson")
    best = minimize(likelihood, np.zeros(4), args=(comparisons, ["a", "b", "c"]), tol=1e-10)
    assert found.strengths is not None and found.tie_strength is not None
    assert list(found.strengths.values()) == pytest.approx(list(best.x[:3] - best.x[:3].mean()), abs=1e-4)
    assert math.log(found.tie_strength) == pytest.approx(best.x[3], abs=1e-4)


def test_a_tie_is_half_a_win() -> None:
    """One win and two ties are two wins to one."""
    found = bradley_terry([("a", "b", "a"), ("a", "b", None), ("b", "a", None)], ties="half")
    assert found.strengths is not None
    assert found.strengths["a"] - found.strengths["b"] == pytest.approx(math.log(2))
    assert found.tie_strength is None


def test_players_that_are_not_connected_are_named() -> None:
    """No strengths then; a prior connects them."""
    comparisons = [("a", "b", "a"), ("b", "a", "b"), ("c", "a", "c")]
    found = bradley_terry(comparisons)
    assert (found.strengths, found.unconnected) == (None, ("c",))
    assert found.reason is not None and found.reason.endswith("to all others: c")
    with_prior = bradley_terry(comparisons, prior=2)
    assert with_prior.strengths is not None
    assert with_prior.strengths["c"] > with_prior.strengths["a"]


@pytest.mark.parametrize(
    ("comparisons", "options"),
    [
        ([("a", "b", None)], {}),
        ([("a", "b", None), ("c", "d", None)], {"prior": 0.1}),
        # The likelihood grows along a direction in which ties and the distance of i from j grow together.
        ([("i", "j", "i"), ("i", "k", None), ("k", "j", None)] * 50, {}),
    ],
)
def test_ties_without_enough_wins_have_no_strength(comparisons: Any, options: Any) -> None:
    """The result says so instead of returning where the search stopped; half wins have a maximum."""
    found = bradley_terry(comparisons, **options)
    assert (found.strengths, found.tie_strength, found.unconnected) == (None, None, ())
    assert found.reason is not None and "too few wins" in found.reason
    assert {one.reason for one in found.estimates.values()} == {"not_connected"}
    assert bradley_terry(comparisons, ties="half", **options).strengths is not None


def test_the_model_of_ties_is_covered_and_half_wins_are_not() -> None:
    """Players 1.5 apart with ties in four of ten games: half wins shrink the difference."""
    chances = np.exp([0.75, -0.75, np.log(1.5)])
    rng, held = np.random.default_rng(0), {"davidson": 0, "half": 0}
    for _ in range(100):
        winners = rng.choice(["a", "b", None], size=200, p=chances / chances.sum())
        games = [("a", "b", winner) for winner in winners]
        for ties in held:
            found = bradley_terry(games, ties=ties).difference("a", "b")  # type: ignore[arg-type]
            held[ties] += (found.low or 0) <= 1.5 <= (found.high or 0)
    assert held["davidson"] >= 88
    assert held["half"] <= 47


@pytest.mark.parametrize(
    ("comparisons", "options", "told"),
    [
        ([("a", "b")], {}, r"must be \(left, right, winner or None\)"),
        ([5], {}, "a comparison must be"),
        ([("a", "a", "a")], {}, "two different players"),
        ([("a", "b", "tie")], {}, "one of them or None"),
        ([], {}, "0 comparisons of 0 players"),
        ([("a", "b", "a")], {"ties": "rao"}, "ties must be one of"),
        ([("a", "b", "a")], {"prior": 0}, "finite number above 0"),
        ([("a", "b", "a")], {"confidence_level": 95}, "between 0 and 1"),
    ],
)
def test_what_is_no_comparison(comparisons: list[Any], options: dict[str, Any], told: str) -> None:
    """Errors say what was given and what is allowed."""
    with pytest.raises(ArgumentError, match=told):
        bradley_terry(comparisons, **options)


def design(names: list[str], comparisons: list[tuple[str, str, str | None]]) -> tuple[Any, Any]:
    """A row a comparison: 1 for the left player, -1 for the right one, no column for the first; and wins."""
    rows = np.zeros((len(comparisons), len(names)))
    for row, (left, right, _) in zip(rows, comparisons, strict=True):
        row[names.index(left)], row[names.index(right)] = 1, -1
    return rows[:, 1:], np.array([float(winner == left) for left, _, winner in comparisons])


def test_errors_of_differences_are_those_of_a_logistic_regression() -> None:
    """Against Biometrika: 0.10255, 0.06059, 0.07083, from the inverse information of a logit fit by scipy."""
    comparisons = wins(JOURNALS, CITATIONS)
    found = bradley_terry(comparisons)
    left, won = design(JOURNALS, comparisons)

    def less(at: Any) -> float:
        return float(np.logaddexp(0, (1 - 2 * won) * (left @ at)).sum())

    best = minimize(less, np.zeros(3), tol=1e-9).x
    share = 1 / (1 + np.exp(-left @ best))
    errors = np.sqrt(np.diag(np.linalg.inv((left.T * share * (1 - share)) @ left)))
    differences = [found.difference(name, "Biometrika") for name in JOURNALS[1:]]
    assert [float(one) for one in differences] == pytest.approx(list(best), abs=1e-5)
    assert [one.se for one in differences] == pytest.approx(list(errors), rel=1e-4)
    assert [one.se for one in differences] == pytest.approx([0.10255, 0.06059, 0.07083], abs=5e-6)
    assert [one.low for one in differences] == pytest.approx(list(best - 1.959964 * errors), abs=1e-4)
    assert found.difference("JASA", "JASA").se == 0.0


def test_errors_of_two_players_by_hand() -> None:
    """Three wins to one: the error of log 3 is 1/√(4 · 3/4 · 1/4) = 1.1547, that of a strength half of it."""
    found = bradley_terry([("a", "b", "a")] * 3 + [("a", "b", "b")], confidence_level=0.9)
    apart = found.difference("a", "b")
    assert apart == pytest.approx(math.log(3))
    assert apart.se == pytest.approx(1.154701, abs=1e-6)
    own = found.estimates["a"]
    assert [own.value, own.se] == pytest.approx([math.log(3) / 2, 0.577350], abs=1e-6)
    assert own.low == pytest.approx(math.log(3) / 2 - 1.644854 * 0.577350, abs=1e-5)
    assert (own.n, found.n, found.confidence_level) == (4, 4, 0.9)
    assert "Wald, 90%" in own.method


def test_errors_of_davidsons_model_are_those_of_a_numerical_hessian() -> None:
    """Second differences of the likelihood written down in the test give the same covariance."""
    comparisons: list[tuple[str, str, str | None]] = [
        *[("a", "b", "a")] * 9, *[("b", "a", "b")] * 4, *[("a", "b", None)] * 5,
        *[("b", "c", "b")] * 6, *[("c", "b", "c")] * 5, *[("c", "a", None)] * 4, *[("a", "c", "a")] * 3,
    ]  # fmt: skip
    found = bradley_terry(comparisons, ties="davidson")
    assert found.strengths is not None and found.tie_strength is not None and found.covariance is not None
    at = np.array([*found.strengths.values(), math.log(found.tie_strength)])
    names, step = ["a", "b", "c"], 1e-4

    def less(point: Any) -> float:
        # Without the last player's freedom: strengths that sum to 0.
        return likelihood([point[0], point[1], -point[0] - point[1], point[2]], comparisons, names)

    free, eye = np.array([at[0], at[1], at[3]]), np.eye(3) * step
    hessian = [
        [
            (less(free + x + y) - less(free + x - y) - less(free - x + y) + less(free - x - y))
            / (4 * step**2)
            for x in eye
        ]
        for y in eye
    ]
    expected = np.linalg.inv(hessian)[:2, :2]
    assert np.array(found.covariance)[:2, :2] == pytest.approx(expected, rel=1e-3)


def test_without_strengths_there_are_no_estimates() -> None:
    """Each player's is undefined, and so are differences; all of it goes into JSON."""
    found = bradley_terry([("a", "b", "a"), ("b", "c", "b")])
    assert [one.reason for one in found.estimates.values()] == ["not_connected"] * 3
    assert found.difference("a", "b").value is None
    assert (found.covariance, len(found.unconnected)) == (None, 2)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["strengths"] is None
    defined = bradley_terry([("a", "b", "a"), ("b", "a", "b")])
    plain = json.loads(json.dumps(defined.to_dict(), allow_nan=False))
    assert plain["estimates"]["a"]["value"] == plain["strengths"]["a"] == pytest.approx(0)
    with pytest.raises(ArgumentError, match="unknown player 'z'; available: a, b"):
        defined.difference("a", "z")


def test_a_prior_shrinks_strengths_and_their_errors() -> None:
    """More comparisons with an average player pull to 0 and make surer."""
    comparisons = [*[("a", "b", "a")] * 6, ("b", "a", "b"), ("b", "c", "b"), ("c", "b", "c")]
    plain, weak, strong = (bradley_terry(comparisons, prior=prior) for prior in (None, 1.0, 50.0))
    for name in "abc":
        errors = [one.estimates[name].se or 0.0 for one in (plain, weak, strong)]
        assert errors[0] > errors[1] > errors[2] > 0
    spans = [max(map(abs, (one.strengths or {}).values())) for one in (plain, weak, strong)]
    assert spans[0] > spans[1] > spans[2] > 0


outcomes = st.lists(
    st.tuples(st.sampled_from([("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")]), st.integers(0, 2)),
    max_size=20,
)


@settings(deadline=None, max_examples=40)
@given(outcomes, st.randoms(use_true_random=False), st.sampled_from(["half", "davidson"]))
def test_neither_order_nor_sides_matter_and_reversal_negates(drawn: Any, random: Any, ties: Any) -> None:
    """Shuffled and mirrored comparisons give the same strengths; exchanged winners the opposite ones."""
    ring: list[tuple[str, str, str | None]] = [
        ("a", "b", "a"),
        ("b", "c", "b"),
        ("c", "a", "c"),
        ("a", "b", None),
    ]
    comparisons = ring + [(left, right, (left, right, None)[won]) for (left, right), won in drawn]
    found = bradley_terry(comparisons, ties=ties).strengths
    shuffled = [(right, left, winner) for left, right, winner in comparisons]
    random.shuffle(shuffled)
    assert bradley_terry(shuffled, ties=ties).strengths == pytest.approx(found, abs=1e-9)
    reversed_ = [
        (left, right, None if winner is None else right if winner == left else left)
        for left, right, winner in comparisons
    ]
    opposite = bradley_terry(reversed_, ties=ties).strengths
    assert found is not None and opposite is not None
    assert {name: -value for name, value in opposite.items()} == pytest.approx(found, abs=1e-9)
