"""One judge, one criterion, one sample: one vote."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from autorubric.criteria import Answer, CriterionVerdict
from autorubric.errors import JudgeError, ReplyError, ServerError, TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest, JudgeSpec
from autorubric.judges.panel import panel_members
from autorubric.judges.vote import Cast, cast_vote, cast_votes
from tests.criteria.kinds import Warmth
from tests.doubles import TableJudge, binary, choice, model_judge, request_for

SPENT = TokenUsage(prompt_tokens=7, total_tokens=7)


def ticking() -> Any:
    """A clock that moves two seconds with every look."""
    ticks: Iterator[float] = iter(range(0, 1000, 2))
    return lambda: next(ticks)


def cast(criterion: Any, answer: Any, **spec: Any) -> Cast:
    judge = TableJudge({criterion.name: answer}, "j")
    member = panel_members([JudgeSpec(judge, **spec)])[0]
    return asyncio.run(cast_vote(member, request_for(criterion, sample=2), clock=ticking()))


def test_an_answer_is_a_vote() -> None:
    """Everything that the judge said stands in it."""
    reply = JudgeReply(
        answer="MET", reason="so", confidence=0.9, usage=SPENT, cost=0.5, model="m", truncated=True
    )
    vote = cast(binary(), reply, weight=2.0).vote
    assert (vote.judge_id, vote.sample, vote.status, vote.weight) == ("j", 2, "answered", 2.0)
    assert (vote.answer, vote.verdict, vote.value) == ("MET", CriterionVerdict.MET, 1.0)
    assert (vote.reason, vote.confidence, vote.model, vote.truncated) == ("so", 0.9, "m", True)
    assert (vote.token_usage, vote.completion_cost, vote.latency_seconds) == (SPENT, 0.5, 2.0)
    assert (vote.selected_index, vote.selected_label) == (None, None)


def test_an_option_is_a_vote_with_its_place() -> None:
    """Position and label for a choice, no verdict; a reason inside the answer counts."""
    vote = cast(choice(), {"label": "fair", "reason": "so-so"}).vote
    assert (vote.selected_index, vote.selected_label, vote.value) == (1, "fair", 0.5)
    assert vote.verdict is None
    assert vote.reason == "so-so"


def test_a_kind_of_ones_own_is_a_vote() -> None:
    """Its answer in its own units, its value in [0, 1]."""
    vote = cast(Warmth(name="w"), {"rating": 4, "explanation": "e"}).vote
    assert (vote.answer, vote.value, vote.reason) == (4, 0.5, "e")
    assert (vote.selected_index, vote.verdict) == (None, None)


@pytest.mark.parametrize(
    ("answer", "verdict"), [(None, "CANNOT_ASSESS"), ("CANNOT_ASSESS", "CANNOT_ASSESS"), ("no", "UNMET")]
)
def test_verdicts(answer: Any, verdict: str) -> None:
    """None and CANNOT_ASSESS are abstentions, with that verdict."""
    vote = cast(binary(), answer).vote
    assert vote.verdict == verdict
    assert vote.status == ("answered" if verdict == "UNMET" else "abstained")


def test_an_na_option_is_an_abstention() -> None:
    """It keeps the option chosen."""
    vote = cast(choice(na="none"), "none").vote
    assert (vote.status, vote.na, vote.selected_label, vote.value) == ("abstained", True, "none", None)


def test_a_read_answer_is_taken_as_it_is() -> None:
    """Judges that read for themselves are not read again."""
    vote = cast(binary(), JudgeReply(answer=Answer(code="MET", value=1.0, label="MET", index=1))).vote
    assert vote.answer == "MET"


def test_a_judges_error_is_a_failed_vote() -> None:
    """It says what happened and what it cost; without a reply it is not unreadable."""
    error = ServerError("down")
    error.usage, error.cost, error.replies = SPENT, 0.1, ("half a reply",)
    made = cast(binary(), error)
    assert (made.vote.status, made.vote.unreadable) == ("failed", False)
    assert made.vote.error == "ServerError: down"
    assert (made.vote.token_usage, made.vote.completion_cost) == (SPENT, 0.1)
    assert made.error is error
    assert made.exchanged is not None
    assert made.exchanged.replies == ("half a reply",)
    assert cast(binary(), JudgeError("no")).exchanged is None


def test_an_unreadable_answer_is_a_failed_vote() -> None:
    """Whether the judge said so or the criterion cannot read it; its tokens count."""
    assert cast(binary(), ReplyError("no JSON")).vote.unreadable
    vote = cast(binary(), JudgeReply(answer="perhaps", usage=SPENT, cost=0.1)).vote
    assert (vote.status, vote.unreadable, vote.answer) == ("failed", True, None)
    assert (vote.token_usage, vote.completion_cost) == (SPENT, 0.1)
    assert "'perhaps' is not a verdict" in (vote.error or "")


def test_a_judge_without_a_vote_was_not_asked() -> None:
    """Nothing else is claimed of it."""
    vote = cast(binary(), JudgeReply(answer=None, asked=False)).vote
    assert (vote.status, vote.verdict, vote.latency_seconds) == ("not_asked", None, None)


def test_any_exception_of_a_judge_is_a_failed_vote() -> None:
    """The vote names the judge and the exception."""
    vote = cast(binary(), ZeroDivisionError("by zero")).vote
    assert (vote.status, vote.unreadable) == ("failed", False)
    assert "raised ZeroDivisionError: by zero" in (vote.error or "")


@dataclass
class AllAtOnce:
    """A judge of several criteria at once, with scripted outcomes."""

    outcomes: Sequence[Any]
    judge_id: str = "all"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(answer="MET", reason="alone")

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> list[Any]:
        if isinstance(self.outcomes, Exception):
            raise self.outcomes
        return list(self.outcomes)


CRITERIA = [binary("a"), binary("b"), binary("c")]


def request_votes(judge: Any, count: int = 3) -> list[Cast]:
    member = panel_members([judge])[0]
    requests = [request_for(criterion) for criterion in CRITERIA[:count]]
    casts = asyncio.run(cast_votes(member, requests, clock=ticking()))
    return [cast for cast in casts if isinstance(cast, Cast)]


def test_votes_from_one_request_keep_their_order() -> None:
    """Answers and errors each stand with their criterion."""
    votes = [
        c.vote
        for c in request_votes(
            AllAtOnce([JudgeReply(answer="MET"), ReplyError("x"), JudgeReply(answer="no")])
        )
    ]
    assert [vote.status for vote in votes] == ["answered", "failed", "answered"]
    assert [vote.latency_seconds for vote in votes] == [2.0, 2.0, 2.0]


def test_one_criterion_is_asked_alone() -> None:
    """A batch of one is no batch."""
    assert [c.vote.reason for c in request_votes(AllAtOnce([]), 1)] == ["alone"]


def test_an_error_of_the_whole_request_is_spent_once() -> None:
    """Every criterion fails, and the tokens are counted at the first."""
    error = ServerError("down")
    error.usage, error.cost = SPENT, 0.1
    votes = [c.vote for c in request_votes(AllAtOnce(error))]  # type: ignore[arg-type]
    assert [vote.error for vote in votes] == ["ServerError: down"] * 3
    assert [vote.token_usage for vote in votes] == [SPENT, None, None]
    assert [vote.completion_cost for vote in votes] == [0.1, None, None]


def test_a_judge_of_single_criteria_is_asked_for_each() -> None:
    """It need not know about batches."""
    judge = TableJudge({"a": "MET", "b": "UNMET", "c": None})
    assert [c.vote.status for c in request_votes(judge)] == ["answered", "answered", "abstained"]


def test_a_models_exchange_is_kept() -> None:
    """What was sent and received can be stored beside the vote."""
    judge, _ = model_judge([{"verdict": "MET", "reason": "r"}])
    made = request_votes(judge, 1)[0]
    assert made.exchanged is not None
    assert made.exchanged.replies == ('{"verdict": "MET", "reason": "r"}',)
