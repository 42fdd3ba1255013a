"""Judges that are objects of a user's own: what they return and raise is treated as a function's is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, Rubric
from autorubric.errors import ArgumentError, JudgeCodeError, JudgeError, ProviderError
from autorubric.judges import Critic, JudgeReply, JudgeRequest
from autorubric.scoring import EnsembleEvaluationReport, JudgeVote
from tests.judges.evaluators import HELPFUL

RUBRIC = Rubric([Criterion(name=name, requirement=f"It has {name}.") for name in ("a", "b")])


def outcome(given: Any) -> Any:
    if isinstance(given, Exception):
        raise given
    return given


@dataclass
class Own:
    """Returns or raises the same each time."""

    given: Any
    judge_id: str = "own"

    async def ask(self, request: JudgeRequest) -> Any:
        return outcome(self.given)


@dataclass
class Several(Own):
    """Answers several requests at once."""

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Any:
        return outcome(self.given)


class Blocking:
    """Has an `ask` that nobody awaits."""

    judge_id = "blocking"

    def ask(self, request: JudgeRequest) -> str:
        return "MET"


def graded(judge: Any, **options: Any) -> EnsembleEvaluationReport:
    return RUBRIC.grade_sync("A text.", CriterionGrader(judges=[judge], **options))


def votes(judge: Any, **options: Any) -> list[JudgeVote]:
    return [vote for one in graded(judge, **options).report for vote in one.votes]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("MET", "answered"),
        ({"verdict": "MET", "reason": "r"}, "answered"),
        (JudgeReply(answer="MET"), "answered"),
        (None, "abstained"),
        ("perhaps", "failed"),
        (KeyError("k"), "failed"),
        (AttributeError("x"), "failed"),
        (JudgeError("down"), "failed"),
    ],
)
def test_objects_and_functions_give_the_same_votes(given: Any, status: str) -> None:
    """A label, an evaluation, None and whatever is raised give the vote that a function's would."""
    of_object, of_function = votes(Own(given)), votes(lambda request: outcome(given))
    assert [vote.status for vote in of_object] == [status] * 2
    assert [(one.status, one.value) for one in of_object] == [(one.status, one.value) for one in of_function]


def test_a_failed_vote_names_the_judge_and_the_exception() -> None:
    """Whatever the object raises, the vote says who raised what."""
    assert {vote.error for vote in votes(Own(KeyError("k")))} == {
        "JudgeError: judge 'own' raised KeyError: 'k'"
    }


def test_an_ask_that_is_not_async_is_taken_too() -> None:
    """What it returns is its answer."""
    assert {vote.status for vote in votes(Blocking())} == {"answered"}


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        (["MET", None], [None, None]),
        ([ProviderError("down"), "MET"], ["ProviderError: down", None]),
        (["MET"], ["JudgeError: judge 'own' returned 1 replies to 2 requests"] * 2),
        (None, ["JudgeError: judge 'own' returned None replies to 2 requests"] * 2),
        (OSError("gone"), ["JudgeError: judge 'own' raised OSError: gone"] * 2),
    ],
)
def test_one_request_for_several_criteria(given: Any, errors: list[str | None]) -> None:
    """Each reply is read on its own, and too few are an error that says so."""
    assert [vote.error for vote in votes(Several(given), llm_calls="per_item")] == errors


@pytest.mark.parametrize("kind", [AttributeError, TypeError, NameError, NotImplementedError])
@pytest.mark.parametrize("as_object", [True, False])
def test_a_programming_error_is_logged_once_with_its_traceback(
    kind: type[Exception], as_object: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The votes say that it is one and where; the log has the traceback, once for all votes."""

    def faulty(request: JudgeRequest) -> str:
        raise kind("oops")

    class Faulty:
        judge_id = "faulty"

        async def ask(self, request: JudgeRequest) -> str:
            return faulty(request)

    with caplog.at_level(logging.ERROR, logger="autorubric"):
        cast = votes(Faulty() if as_object else faulty)
    assert [vote.status for vote in cast] == ["failed"] * 2
    for vote in cast:
        assert (vote.error or "").startswith(f"JudgeCodeError: judge 'faulty' raised {kind.__name__}: oops")
        assert "a programming error in test_judge_objects.py line" in (vote.error or "")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is kind
    assert "in faulty" in caplog.text


def test_other_errors_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What is no programming error is in the vote alone."""
    with caplog.at_level(logging.ERROR, logger="autorubric"):
        votes(Own(OSError("gone")))
    assert not caplog.records


def test_a_critic_around_a_judge_names_the_judge() -> None:
    """The judge's exception is an error that names it, not a bare one."""
    with pytest.raises(JudgeCodeError, match="judge 'own' raised TypeError: oops"):
        Critic(Own(TypeError("oops")), HELPFUL)("A text.")


class Mute:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no text")


class MuteError(Exception):
    """Cannot be shown either."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reason": 5}, "reason must be a string; got int"),
        ({"reason": ["a"]}, "reason must be a string; got list"),
        ({"model": 5}, "model must be a string, or None; got int"),
        ({"truncated": "yes"}, "truncated must be True or False; got str"),
        ({"usage": {"prompt_tokens": 1}}, "usage must be a TokenUsage, or None; got dict"),
        ({"exchanged": "x"}, "exchanged must be a VoteExchange, or None; got str"),
        ({"confidence": "high"}, "confidence must be a number between 0 and 1, or None; got str"),
        ({"cost": "1"}, "cost must be a number of US dollars, or None; got str"),
    ],
)
@pytest.mark.parametrize("as_object", [True, False])
def test_a_reply_with_a_field_of_another_type_is_a_failed_vote(
    fields: dict[str, Any], message: str, as_object: bool
) -> None:
    """It says which field, and whose code is to be changed; nothing of it reaches a run's files."""

    def replies(request: JudgeRequest) -> JudgeReply:
        return JudgeReply(answer="MET", **fields)

    class Replies:
        judge_id = "replies"

        async def ask(self, request: JudgeRequest) -> JudgeReply:
            return replies(request)

    for vote in votes(Replies() if as_object else replies):
        assert vote.status == "failed"
        assert (vote.error or "").startswith(
            f"JudgeCodeError: judge 'replies' raised TypeError: JudgeReply: {message}"
        )
        assert "in test_judge_objects.py line" in (vote.error or "")


@pytest.mark.parametrize("given", [Mute(), MuteError()])
def test_what_cannot_be_shown_is_a_failed_vote(given: Any) -> None:
    """An object or an exception without a text ends no run, whoever returns or raises it."""
    for judge in (Own(given), lambda request: outcome(given)):
        assert [vote.status for vote in votes(judge)] == ["failed"] * 2


def test_a_call_with_other_arguments_names_no_line_of_the_library() -> None:
    """An `ask` that takes no request fails with the judge's name."""

    class Narrow:
        judge_id = "narrow"

        async def ask(self) -> str:
            return "MET"

    for vote in votes(Narrow()):
        assert "judge 'narrow' raised TypeError" in (vote.error or "")
        assert "_failures.py" not in (vote.error or "")


@pytest.mark.parametrize("judge_id", [None, 5, ""])
def test_a_judge_needs_a_name(judge_id: Any) -> None:
    """A `judge_id` that is no text, or an empty one, is refused before anything is asked."""
    with pytest.raises(ArgumentError, match="judge_id must be a non-empty string"):
        CriterionGrader(judges=[Own("MET", judge_id=judge_id)])
