"""Cascades by a band of probabilities: what goes up, how a band is chosen, and what it saves and loses."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric import CriterionGrader, DataItem, EscalationConfig, EvalResult, Rubric, RubricDataset
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.runs import choose_band, replay_escalation
from autorubric.scoring import EnsembleEvaluationReport
from autorubric.scoring.probabilities import is_in_band
from tests.criteria.kinds import KINDS
from tests.doubles import TableJudge, binary, choice
from tests.runs.runs import run


def _graded(
    probabilities: Any, criterion: BaseCriterion, strong: Any, **config: Any
) -> EnsembleEvaluationReport:
    reply = JudgeReply(answer=None, probabilities=probabilities, probability_source="decision_model")
    name = criterion.name
    escalation = EscalationConfig([TableJudge({name: strong}, "strong")], **config)
    grader = CriterionGrader(judges=[TableJudge({name: reply}, "cheap")], escalation=escalation)
    return Rubric([criterion]).grade_sync("A text.", grader)


@pytest.mark.parametrize(
    ("met", "is_escalated"), [(0.1, False), (0.2, True), (0.5, True), (0.8, True), (0.81, False)]
)
def test_a_binary_criterion_goes_up_inside_the_band(met: float, is_escalated: bool) -> None:
    """By the probability of its positive answer, ends included; the strong judge then decides."""
    report = _graded({"MET": met, "UNMET": 1 - met}, binary(), "MET", band=(0.2, 0.8))
    assert report.escalated == (("claim",) if is_escalated else ())
    assert report.report[0].final_answer == ("MET" if is_escalated or met > 0.5 else "UNMET")


@pytest.mark.parametrize(("top", "is_escalated"), [(0.79, True), (0.8, False), (0.9, False)])
def test_another_criterion_goes_up_below_the_upper_end(top: float, is_escalated: bool) -> None:
    """By the probability of its most probable answer."""
    shares = {"poor": (1 - top) / 2, "fair": (1 - top) / 2, "good": top}
    report = _graded(shares, choice(), "poor", band=(0.2, 0.8))
    assert report.escalated == (("scale",) if is_escalated else ())


def test_the_least_sure_part_counts() -> None:
    """A checklist goes up if one of its items is uncertain."""
    sure, unsure = {"yes": 0.95, "no": 0.05}, {"yes": 0.6, "no": 0.4}
    every = {"has_docstring": sure, "has_tests": sure, "handles_errors": sure}
    strong = dict.fromkeys(every, True)
    checklist = KINDS["checklist"]()
    assert _graded(every, checklist, strong, band=(0.2, 0.8)).escalated == ()
    assert _graded(every | {"has_tests": unsure}, checklist, strong, band=(0.2, 0.8)).escalated == ("code",)


def test_a_vote_without_probabilities_goes_up() -> None:
    """It is not known how sure it is."""
    escalation = EscalationConfig([TableJudge({"claim": "MET"}, "strong")], band=(0.2, 0.8))
    grader = CriterionGrader(judges=[TableJudge({"claim": "UNMET"}, "cheap")], escalation=escalation)
    assert Rubric([binary()]).grade_sync("A text.", grader).escalated == ("claim",)


@given(low=st.floats(0, 1), high=st.floats(0, 1), met=st.floats(0, 1))
def test_a_wider_band_never_escalates_less(low: float, high: float, met: float) -> None:
    """Whatever the probability."""
    low, high = min(low, high), max(low, high)
    for level in ("binary", "ordinal"):
        if is_in_band(level, met, (low, high)):
            assert is_in_band(level, met, (low / 2, (1 + high) / 2))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "either threshold"),
        ({"threshold": 0.5, "band": (0.2, 0.8)}, "either threshold"),
        ({"band": (0.2, 0.8), "per_criterion": {"claim": 0.5}}, "either threshold"),
        ({"band": (0.8, 0.2)}, "a lower and an upper probability"),
        ({"band": (0.2,)}, "a lower and an upper probability"),
        ({"band": (0.2, 1.5)}, "band must be a number between 0 and 1"),
    ],
)
def test_a_wrong_band_is_refused(config: dict[str, Any], message: str) -> None:
    """With what is allowed."""
    with pytest.raises(ArgumentError, match=message):
        EscalationConfig([TableJudge({}, "strong")], **config)


@dataclass
class Answers:
    """Replies by item."""

    judge_id: str
    replies: dict[str, JudgeReply]

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        return self.replies[request.item_id]


def _world(folder: Path) -> tuple[EvalResult, RubricDataset, RubricDataset]:
    """A run of 200 items whose cheap judge is wrong only where it is unsure, and two splits of its labels."""
    rng, cheap, strong, items = random.Random(5), {}, {}, []
    for number in range(200):
        truth, p = rng.choice(["MET", "UNMET"]), rng.uniform(0.02, 0.98)
        is_sure = not 0.3 <= p <= 0.7
        p = (max(p, 1 - p) if truth == "MET" else min(p, 1 - p)) if is_sure else p
        item_id = f"i{number}"
        cheap[item_id] = JudgeReply(answer=None, probabilities={"MET": p, "UNMET": 1 - p}, cost=0.01)
        strong[item_id] = JudgeReply(answer=truth, reason="Because.", cost=1.0)
        items.append(DataItem(submission=f"Text {number}.", id=item_id, ground_truth={"claim": truth}))
    data = RubricDataset(name="d", rubric=Rubric([binary()]), items=items)
    grader = CriterionGrader(judges=[Answers("cheap", cheap), Answers("strong", strong)])
    halves = [RubricDataset(name="d", rubric=data.rubric, items=items[at::2]) for at in (0, 1)]
    return run(folder, None, data, grader=grader), halves[0], halves[1]


def test_a_band_is_chosen_on_one_split_and_reported_on_another(tmp_path: Path) -> None:
    """It costs a part of the strong judge, and loses next to nothing."""
    result, first, second = _world(tmp_path)
    band = choose_band(result, first, judges=["strong"])
    assert 0.2 <= band[0] <= 0.45 and 0.55 <= band[1] <= 0.8
    config = EscalationConfig([Answers("strong", {})], band=band)
    point = replay_escalation(result, config, dataset=second)
    assert point.band == band
    assert point.cells == 100
    assert point.saving is not None and point.saving == pytest.approx(1 - point.escalated / 100 - 0.01)
    assert 0.4 < point.saving < 0.8
    assert point.loss is not None and 0.0 <= point.loss <= 0.03
    assert "loss of accuracy" in point.summary()


def test_a_band_with_more_loss_escalates_less(tmp_path: Path) -> None:
    """A loss of everything escalates least."""
    result, first, _ = _world(tmp_path)
    shares = []
    for max_loss in (0.0, 0.05, 1.0):
        band = choose_band(result, first, judges=["strong"], max_loss=max_loss)
        config = EscalationConfig([Answers("strong", {})], band=band)
        shares.append(replay_escalation(result, config, dataset=first).escalated)
    assert shares == sorted(shares, reverse=True) and shares[-1] <= 2


def test_a_band_requires_probabilities(tmp_path: Path) -> None:
    """Votes without them say nothing of a band."""
    items = [DataItem(submission="Text.", id="i", ground_truth={"claim": "MET"})]
    data = RubricDataset(name="d", rubric=Rubric([binary()]), items=items)
    judges = [TableJudge({"claim": "MET"}, "cheap"), TableJudge({"claim": "MET"}, "strong")]
    result = run(tmp_path, None, data, grader=CriterionGrader(judges=judges))
    with pytest.raises(ArgumentError, match="no labelled criterion has votes with probabilities"):
        choose_band(result, data, judges=["strong"])
