"""Replay and calibration of a cascade on stored runs, against the cascade itself and by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EscalationConfig,
    EvalResult,
    JudgeReply,
    NumericalRatingCriterion,
    Rubric,
    RubricDataset,
)
from autorubric.errors import ArgumentError, TokenUsage
from autorubric.judges import JudgeRequest
from autorubric.runs import calibrate_escalation, replay_escalation
from tests.runs.runs import run

NAMES = ("a", "b")
RUBRIC = Rubric([Criterion(name=name, requirement=name) for name in NAMES])


@dataclass
class Known:
    """Answers from a table of (item, criterion) to (answer, confidence)."""

    judge_id: str
    said: Mapping[tuple[str, str], tuple[Any, float | None]]
    cost: float | None
    usage: TokenUsage | None = None
    asked: Counter[str] = field(default_factory=Counter)

    def describe(self) -> dict[str, str]:
        return {"judge": self.judge_id}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked[request.item_id] += 1
        answer, confidence = self.said[request.item_id, request.criterion.name or ""]
        return JudgeReply(answer=answer, confidence=confidence, cost=self.cost, usage=self.usage)


@dataclass
class World:
    """Items with truth, and a cheap and a strong judge of them."""

    dataset: RubricDataset
    cheap: Known
    strong: Known


@pytest.fixture
def world() -> World:
    """Forty items: the cheap judge is right as often as it says, the strong one nearly always."""
    rng = random.Random(7)
    items: list[DataItem] = []
    cheap: dict[tuple[str, str], tuple[str, float | None]] = {}
    strong: dict[tuple[str, str], tuple[str, float | None]] = {}
    for number in range(40):
        truth = {name: rng.choice(["MET", "UNMET"]) for name in NAMES}
        items.append(DataItem(id=f"i{number}", submission=f"text {number}", ground_truth=truth))
        for name, label in truth.items():
            other = "UNMET" if label == "MET" else "MET"
            confidence = rng.choice([0.55, 0.7, 0.85, 0.95])
            cheap[f"i{number}", name] = (label if rng.random() < confidence else other, confidence)
            strong[f"i{number}", name] = (label if rng.random() < 0.97 else other, None)
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    return World(dataset, Known("cheap", cheap, 0.001), Known("strong", strong, 0.1))


def full_run(world: World, folder: Path) -> EvalResult:
    return run(folder, None, world.dataset, grader=CriterionGrader(judges=[world.cheap, world.strong]))


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.7, 0.9, 1.0])
def test_a_replay_is_what_the_cascade_does(world: World, tmp_path: Path, threshold: float) -> None:
    """The same decisions, votes and cost as a run with that threshold."""
    config = EscalationConfig([world.strong], threshold=threshold)
    cascade = run(
        tmp_path / "cascade",
        None,
        world.dataset,
        grader=CriterionGrader(judges=[world.cheap], escalation=config),
    )
    replayed = replay_escalation(full_run(world, tmp_path / "full"), config)
    reports = [report for report in cascade.get_reports() if report is not None]
    assert replayed.cells == 80
    assert replayed.escalated == sum(len(report.escalated) for report in reports)
    assert replayed.votes == 160 - cascade.calls_saved
    assert replayed.cost == pytest.approx(cascade.total_completion_cost)
    assert replayed.full_cost == pytest.approx(8.0)
    right = [
        one.final_answer == (world.dataset.items[at].ground_truth or {})[one.name]  # type: ignore[call-overload]
        for at, report in enumerate(reports)
        for one in report.report
    ]
    assert replayed.accuracy.value == pytest.approx(sum(right) / 80)


def test_nobody_is_asked(world: World, tmp_path: Path) -> None:
    """Neither by a replay nor by a calibration."""
    result = full_run(world, tmp_path)
    before = world.cheap.asked.total() + world.strong.asked.total()
    calibrate_escalation(EvalResult.from_experiment(result.experiment_dir), judges=["strong"])
    replay_escalation(result, EscalationConfig([world.strong], threshold=0.9))
    assert world.cheap.asked.total() + world.strong.asked.total() == before == 160


def test_thresholds_of_single_criteria(world: World, tmp_path: Path) -> None:
    """Each is escalated by its own."""
    result = full_run(world, tmp_path)
    one = replay_escalation(result, EscalationConfig(["strong"], threshold=0.0, per_criterion={"b": 1.0}))
    assert one.escalated == 40
    assert one.escalated_share == 0.5


def test_a_misspelt_criterion_of_a_replay_is_told(world: World, tmp_path: Path) -> None:
    """Instead of a replay with the common threshold."""
    config = EscalationConfig(["strong"], threshold=0.0, per_criterion={"c": 1.0})
    with pytest.raises(ArgumentError, match="unknown criterion 'c'; available: 'a', 'b'"):
        replay_escalation(full_run(world, tmp_path), config)


def test_the_curve_runs_from_the_cheap_to_the_strong_judge(world: World, tmp_path: Path) -> None:
    """Nothing is escalated at 0, everything at 1 where nobody is certain; the ends are the two alone."""
    curve = calibrate_escalation(full_run(world, tmp_path), judges=["strong"])
    assert [point.threshold for point in curve.points] == [0.0, 0.55, 0.7, 0.85, 0.95, 1.0]
    assert [point.escalated for point in curve.points] == sorted(point.escalated for point in curve.points)
    assert (curve.points[0].escalated, curve.points[-1].escalated) == (0, 80)
    assert curve.points[0].accuracy.value == curve.first_accuracy.value
    assert curve.points[-1].accuracy.value == curve.strong_accuracy.value
    assert curve.points[-1].fidelity.value == 1.0
    costs = [point.cost for point in curve.points]
    assert costs == pytest.approx([0.08 + 0.1 * point.escalated for point in curve.points])
    low, high = curve.points[2].accuracy.low, curve.points[2].accuracy.high
    assert low is not None and high is not None and low < high
    assert "share escalated" in curve.summary()


def test_the_threshold_for_an_accuracy_escalates_least(world: World, tmp_path: Path) -> None:
    """Every point that escalates less is below what was wanted; by default, with the end of its interval."""
    curve = calibrate_escalation(full_run(world, tmp_path))
    threshold = curve.threshold_for(0.9, sure=False)
    assert threshold is not None
    chosen = next(point for point in curve.points if point.threshold == threshold)
    assert (chosen.accuracy.value or 0) >= 0.9
    for point in curve.points:
        assert point.escalated >= chosen.escalated or (point.accuracy.value or 0) < 0.9
    sure = curve.threshold_for(0.8)
    assert sure is not None and sure >= (curve.threshold_for(0.8, sure=False) or 0)
    chosen = next(point for point in curve.points if point.threshold == sure)
    assert (chosen.accuracy.low or 0) >= 0.8
    assert curve.threshold_for(float(chosen.accuracy)) != sure
    assert curve.threshold_for(1.01) is None
    own = curve.thresholds_for(0.9)
    assert set(own) == set(NAMES)
    assert curve.thresholds_for(1.01) == {"a": 1.0, "b": 1.0}


def test_a_threshold_above_one_that_fails_is_not_chosen(world: World, tmp_path: Path) -> None:
    """Where the strong judge fails on what the cheap one knows best, no lower threshold is sure."""
    opposite = {"MET": "UNMET", "UNMET": "MET"}
    sure = {cell: answer for cell, (answer, confidence) in world.cheap.said.items() if confidence == 0.95}
    wrong = {cell: (opposite[answer], None) for cell, answer in sure.items()}
    world.strong.said = {**world.strong.said, **wrong}
    curve = calibrate_escalation(full_run(world, tmp_path))
    assert [point.threshold for point in curve.points if (point.accuracy.low or 0) >= 0.8] == [0.85, 0.95]
    assert curve.threshold_for(0.8) is None
    assert (curve.threshold_for(0.8, sure=False) or 0) <= 0.85


def test_a_first_panel_above_the_strong_one_is_not_escalated(world: World, tmp_path: Path) -> None:
    """The lower bound at threshold 0 is enough; if none is, the better end is chosen."""
    sure = {cell: (answer, 0.9) for cell, (answer, _) in world.strong.said.items()}
    world.cheap.said, world.strong.said = sure, world.cheap.said
    curve = calibrate_escalation(full_run(world, tmp_path), judges=["strong"])
    assert (curve.first_accuracy.low or 0) >= 0.85 > (curve.strong_accuracy.value or 0)
    assert curve.threshold_for(0.85) == 0.0
    assert curve.threshold_for(1.01) is None
    assert curve.thresholds_for(1.01) == {"a": 0.0, "b": 0.0}


def test_many_confidences_are_thinned(tmp_path: Path) -> None:
    """At most 101 thresholds are tried, the ends among them."""
    rng = random.Random(1)
    items = [DataItem(id=str(n), submission=str(n), ground_truth=["MET", "MET"]) for n in range(150)]
    said: dict[tuple[str, str], tuple[str, float | None]] = {
        (str(n), name): ("MET", rng.random()) for n in range(150) for name in NAMES
    }
    made = World(
        RubricDataset(rubric=RUBRIC, items=items),
        Known("cheap", said, 0.0),
        Known("strong", dict.fromkeys(said, ("MET", None)), 0.0),
    )
    points = calibrate_escalation(full_run(made, tmp_path), judges=["strong"]).points
    assert len(points) <= 101
    assert (points[0].threshold, points[-1].threshold) == (0.0, 1.0)


def test_unknown_costs_stay_unknown(world: World, tmp_path: Path) -> None:
    """Tokens without a price leave the sum without one; a judge without tokens, as a classifier, is free."""
    config = EscalationConfig(["strong"], threshold=0.9)
    world.cheap.cost = None
    free = replay_escalation(full_run(world, tmp_path / "free"), config)
    assert free.cost == pytest.approx(0.1 * free.escalated)
    world.cheap.usage = TokenUsage(prompt_tokens=10, completion_tokens=1, total_tokens=11)
    point = replay_escalation(full_run(world, tmp_path / "unpriced"), config)
    assert point.cost is None
    assert point.full_cost == pytest.approx(8.0)
    world.cheap.usage = world.strong.cost = None
    unstated = replay_escalation(full_run(world, tmp_path / "unstated"), config)
    assert (unstated.cost, unstated.full_cost) == (None, None)


def test_truth_may_come_later(world: World, tmp_path: Path) -> None:
    """Labels of another dataset are matched by the items' ids; without any nothing can be calibrated."""
    bare = world.dataset.with_items(
        [item.model_copy(update={"ground_truth": None}) for item in world.dataset.items]
    )
    result = run(tmp_path, None, bare, grader=CriterionGrader(judges=[world.cheap, world.strong]))
    with pytest.raises(ArgumentError, match="no judged criterion has a label"):
        calibrate_escalation(result, judges=["strong"])
    undefined = replay_escalation(result, EscalationConfig(["strong"], threshold=0.9)).accuracy
    assert undefined.value is None and undefined.reason == "no_pairs"
    assert calibrate_escalation(result, world.dataset, judges=["strong"]).strong_accuracy.n == 80


@pytest.mark.parametrize(
    ("judges", "told"),
    [(["nobody"], "unknown judge nobody; judges of the run"), (["cheap", "strong"], "none is left")],
)
def test_panels_that_do_not_fit(world: World, tmp_path: Path, judges: list[str], told: str) -> None:
    """Who is not in the run, or leaves nobody to grade first."""
    with pytest.raises(ArgumentError, match=told):
        calibrate_escalation(full_run(world, tmp_path), judges=judges)


@pytest.mark.parametrize("options", [{"stop_when_decided": True}, {"escalation": True}])
def test_runs_with_votes_left_out_are_refused(world: World, tmp_path: Path, options: dict[str, Any]) -> None:
    """What was not asked cannot be replayed."""
    judges: list[Any] = [world.cheap, world.strong]
    if "escalation" in options:
        options, judges = {"escalation": EscalationConfig([world.strong], threshold=0.5)}, [world.cheap]
    else:
        options["aggregation"] = "any"
    result = run(tmp_path, None, world.dataset, grader=CriterionGrader(judges=judges, **options))
    with pytest.raises(ArgumentError, match="has skipped votes"):
        calibrate_escalation(result, judges=["strong"])


def test_a_cascade_that_escalated_everything_knows_its_panel(world: World, tmp_path: Path) -> None:
    """Its strong judges need not be named."""
    config = EscalationConfig([world.strong], threshold=1.0)
    grader = CriterionGrader(judges=[world.cheap], escalation=config)
    curve = calibrate_escalation(run(tmp_path, None, world.dataset, grader=grader))
    assert curve.points[-1].accuracy.value == curve.strong_accuracy.value


def test_a_cascade_is_gone_on_with(world: World, tmp_path: Path) -> None:
    """A lower threshold asks nobody, a higher one only the strong judge, and only for what is new."""

    def graded(threshold: float) -> EvalResult:
        config = EscalationConfig([world.strong], threshold=threshold)
        return run(
            tmp_path, None, world.dataset, grader=CriterionGrader(judges=[world.cheap], escalation=config)
        )

    middle = graded(0.8)
    asked = world.strong.asked.total()
    assert world.cheap.asked.total() == 80
    assert graded(0.6).calls_saved >= middle.calls_saved
    assert world.strong.asked.total() == asked
    high = graded(0.9)
    assert world.cheap.asked.total() == 80
    assert world.strong.asked.total() == 80 - high.calls_saved > asked
    stored = EvalResult.from_experiment(tmp_path / "run")
    assert [r.escalated for r in stored.get_reports() if r] == [r.escalated for r in high.get_reports() if r]


def test_numbers_count_in_votes_and_cost_and_in_no_accuracy(tmp_path: Path) -> None:
    """A cascade asks about them too, and what they cost is part of what it costs."""
    rubric = Rubric([*RUBRIC, NumericalRatingCriterion(name="mark", requirement="How good?")])
    items = [DataItem(id=str(n), submission=str(n), ground_truth=["MET", "MET", 5]) for n in range(4)]
    cheap: dict[tuple[str, str], tuple[Any, float | None]] = {}
    for n in range(4):
        cheap |= {(str(n), "a"): ("MET", 0.9), (str(n), "b"): ("UNMET", 0.9), (str(n), "mark"): (4, n / 4)}
    made = World(
        RubricDataset(rubric=rubric, items=items),
        Known("cheap", cheap, 0.001),
        Known("strong", {key: (5 if key[1] == "mark" else "MET", None) for key in cheap}, 0.1),
    )
    config = EscalationConfig([made.strong], threshold=0.6)
    grader = CriterionGrader(judges=[made.cheap], escalation=config)
    cascade = run(tmp_path / "cascade", None, made.dataset, grader=grader)
    full = full_run(made, tmp_path / "full")
    replayed = replay_escalation(full, config)
    assert (replayed.cells, replayed.escalated) == (12, 3)
    assert replayed.votes == 24 - cascade.calls_saved == 15
    assert replayed.cost == pytest.approx(cascade.total_completion_cost)
    assert (replayed.accuracy.value, replayed.accuracy.n) == (0.5, 8)
    assert calibrate_escalation(full).thresholds_for(0.9)["mark"] == 1.0
