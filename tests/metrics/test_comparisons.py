"""Figures of a criterion that compares: outcomes, ties and positions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autorubric import ComparativeCriterion, CriterionGrader, DataItem, Rubric, RubricDataset, compute_metrics
from autorubric.judges import JudgeRequest
from autorubric.metrics import MetricsResult, RankingCriterionMetrics, votes_table
from autorubric.runs import ItemResult
from tests.doubles import binary, in_loop


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


@in_loop
async def test_comparisons_alone_are_covered() -> None:
    """What is used and covered counts comparisons; pooled figures of single answers there are none."""
    rubric = Rubric([ComparativeCriterion(name="better")])
    items = [
        DataItem(submission={"new": f"n{i}", "old": f"o{i}"}, ground_truth={"better": "new"})
        for i in range(4)
    ]
    given = RubricDataset(rubric=rubric, items=items)
    found = compute_metrics(await run(given, first_declared), given)
    assert (found.coverage, found.pooled.n, found.pooled.pearson) == (1.0, 0, None)
    assert "pooled" not in found.summary()
