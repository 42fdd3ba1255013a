"""Figures of comparisons: strengths against a published table, positions, and a criterion's own figures."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from autorubric import (
    ComparativeCriterion,
    CriterionGrader,
    DataItem,
    RankingCriterionMetrics,
    Rubric,
    RubricDataset,
    compute_metrics,
)
from autorubric.errors import ArgumentError
from autorubric.eval import ItemResult
from autorubric.judges import JudgeRequest
from autorubric.metrics import MetricsResult, bradley_terry, position_consistency, votes_table
from tests.doubles import binary, in_loop

# Citations among four journals of statistics (Stigler 1994, as in the BradleyTerry2 package for R): who was
# cited by whom. Rows win.
JOURNALS = ["Biometrika", "Comm Statist", "JASA", "JRSS-B"]
CITATIONS = [[0, 730, 498, 221], [33, 0, 68, 17], [320, 813, 0, 142], [284, 276, 325, 0]]


def wins(names: list[str], table: list[list[int]]) -> list[tuple[str, str, str | None]]:
    return [
        (names[i], names[j], names[i])
        for i in range(len(names))
        for j in range(len(names))
        for _ in range(table[i][j])
    ]


def test_strengths_of_journals_are_the_published_ones() -> None:
    """0, -2.94907, -0.47957 and 0.26895 against Biometrika; centred, their mean is 0."""
    found = bradley_terry(wins(JOURNALS, CITATIONS))
    assert found.strengths is not None
    against = [found.strengths[name] - found.strengths["Biometrika"] for name in JOURNALS]
    assert against == pytest.approx([0.0, -2.94907, -0.47957, 0.26895], abs=5e-6)
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
    found = bradley_terry(comparisons, ties="davidson")
    best = minimize(likelihood, np.zeros(4), args=(comparisons, ["a", "b", "c"]), tol=1e-10)
    assert found.strengths is not None and found.tie_strength is not None
    assert list(found.strengths.values()) == pytest.approx(list(best.x[:3] - best.x[:3].mean()), abs=1e-4)
    assert math.log(found.tie_strength) == pytest.approx(best.x[3], abs=1e-4)


def test_a_tie_is_half_a_win() -> None:
    """One win and two ties are two wins to one."""
    found = bradley_terry([("a", "b", "a"), ("a", "b", None), ("b", "a", None)])
    assert found.strengths is not None
    assert found.strengths["a"] - found.strengths["b"] == pytest.approx(math.log(2))
    assert found.tie_strength is None


def test_players_that_are_not_connected_are_named() -> None:
    """No strengths then; a prior connects them."""
    comparisons = [("a", "b", "a"), ("b", "a", "b"), ("c", "a", "c")]
    found = bradley_terry(comparisons)
    assert (found.strengths, found.unconnected) == (None, ("c",))
    assert found.reason is not None and found.reason.endswith("chain: c")
    with_prior = bradley_terry(comparisons, prior=2)
    assert with_prior.strengths is not None
    assert with_prior.strengths["c"] > with_prior.strengths["a"]


@pytest.mark.parametrize(
    ("comparisons", "options", "told"),
    [
        ([("a", "b")], {}, r"give \(left, right, winner or None\)"),
        ([5], {}, "is no comparison"),
        ([("a", "a", "a")], {}, "two different players"),
        ([("a", "b", "tie")], {}, "one of them or None"),
        ([], {}, "0 comparisons of 0 players"),
        ([("a", "b", "a")], {"ties": "rao"}, "give one of"),
        ([("a", "b", "a")], {"prior": 0}, "above 0"),
    ],
)
def test_what_is_no_comparison(comparisons: list[Any], options: dict[str, Any], told: str) -> None:
    """Errors say what was given and what is allowed."""
    with pytest.raises(ArgumentError, match=told):
        bradley_terry(comparisons, **options)


def test_position_consistency_is_a_share() -> None:
    """Of the pairs with an outcome in both orders, those with the same; with an interval."""
    found = position_consistency(["a", "b", "tie", None, "b"], ["a", "a", "tie", "a", "b"])
    assert (found.value, found.n) == (0.75, 4)
    assert found.low is not None and found.low < 0.75
    assert position_consistency([], []).reason == "no_pairs"
    assert position_consistency(["a"], ["b"], scale=None, ci=None).value == 0.0


# A criterion's own figures


def dataset() -> RubricDataset:
    """Two systems that change places and a tie; candidates of the last item have other names."""
    rubric = Rubric([ComparativeCriterion(name="better"), binary("claim")])
    submissions = [{"new": f"n{i}", "old": f"o{i}"} for i in range(3)] + [{"p": "n3", "q": "o3"}]
    truths = ["new", "old", "tie", "p"]
    items = [
        DataItem(submission=submission, ground_truth={"better": truth, "claim": "MET"})
        for submission, truth in zip(submissions, truths, strict=True)
    ]
    return RubricDataset(rubric=rubric, items=items)


async def figures(*judges: Any, **options: Any) -> MetricsResult:
    given = dataset()
    return compute_metrics(await run(given, *judges), given, **options)


async def run(given: RubricDataset, *judges: Any) -> Any:
    grader = CriterionGrader(judges=list(judges))
    results = []
    for position, item in enumerate(given.items):
        report = await grader.grade(
            item.submission, given.get_item_rubric(position), item_id=given.item_id(position)
        )
        results.append(ItemResult(item_idx=position, item=item, report=report, duration_seconds=0.0))

    class Run:
        item_results = results

    return Run()


def first_declared(request: JudgeRequest) -> str:
    if request.criterion.level == "binary":
        return "MET"
    return next(iter(request.submission.candidates))


def swayed(request: JudgeRequest) -> str:
    if request.criterion.level == "binary":
        return "MET"
    return request.order[0] if request.item_id != "0" else "new"


@in_loop
async def test_figures_of_a_comparison() -> None:
    """Accuracy and kappa of outcomes by declared place, ties, and how often the order did not matter."""
    found = await figures(swayed, per_judge=True)
    one = found.per_criterion[0]
    assert isinstance(one, RankingCriterionMetrics)
    assert (one.criterion_type, one.n_samples, one.n_labelled, one.coverage) == ("ranking", 4, 4, 1.0)
    assert (one.accuracy, one.tie_rate) == (0.5, 0.75)
    # Truth: first, second, tie, first; judged: first, tie, tie, tie. Expected by chance: (2·1 + 1·3) / 16.
    assert one.kappa == pytest.approx((0.5 - 5 / 16) / (1 - 5 / 16))
    assert (one.position_consistency, one.n_position_pairs) == (0.25, 4)
    assert found.per_judge["swayed"].per_criterion[0] == one
    assert found.n_criteria == found.n_binary_criteria == 1
    assert found.criterion_accuracy == 1.0
    assert not any("better: answers" in warning for warning in found.warnings)
    assert "better" in found.summary()
    frame = found.to_dataframe()
    assert frame[frame.criterion == "better"].position_consistency.tolist() == [0.25, 0.25]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))


@in_loop
async def test_a_panel_has_the_positions_of_all_its_judges() -> None:
    """Each judge has its own share; the panel's is over the pairs of all."""
    found = await figures(swayed, first_declared, per_judge=True)
    panel, steady = found.per_criterion[0], found.per_judge["first_declared"].per_criterion[0]
    assert isinstance(panel, RankingCriterionMetrics) and isinstance(steady, RankingCriterionMetrics)
    assert (panel.position_consistency, panel.n_position_pairs) == (5 / 8, 8)
    assert (steady.position_consistency, steady.accuracy, steady.tie_rate) == (1.0, 0.5, 0.0)


@in_loop
async def test_votes_carry_their_order_in_the_table() -> None:
    """Rows of single votes say in which order candidates were shown, and decisions do not."""
    given = dataset()
    table = votes_table(await run(given, swayed), given)
    votes = table[(table.criterion == "better") & table["sample"].notna()]
    assert votes.order.tolist()[:2] == ["new, old", "old, new"]
    assert table[table["sample"].isna()].order.isna().all()
    assert votes.label.tolist()[2:4] == ["new", "old"]
    decided = table[(table.criterion == "better") & (table.rater_kind == "panel")]
    assert decided.value.tolist() == [1.0, 0.5, 0.5, 0.5]


@in_loop
async def test_a_comparison_that_nobody_judged_has_no_figures() -> None:
    """Where each vote was lost there are labels and nothing to set beside them."""

    def lost(request: JudgeRequest) -> str | None:
        return "MET" if request.criterion.level == "binary" else None

    one = (await figures(lost)).per_criterion[0]
    assert isinstance(one, RankingCriterionMetrics)
    assert (one.accuracy, one.kappa, one.tie_rate, one.position_consistency) == (None,) * 4
    assert set(one.reasons.values()) == {"no_pairs"}
    assert one.abstention_rate == 1.0
