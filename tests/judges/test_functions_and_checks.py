"""Functions and deterministic checks as judges."""

from __future__ import annotations

import asyncio
import re
import threading
from functools import partial
from typing import Any

import pytest

from autorubric.criteria import Answer, register_check
from autorubric.errors import ArgumentError, JudgeError, ReplyError, RubricError
from autorubric.judges import FunctionJudge, JudgeReply, JudgeRequest, JudgeSpec
from autorubric.judges.function import CheckJudge
from autorubric.rubric import Rubric
from tests.criteria.kinds import Warmth
from tests.doubles import binary, choice, in_loop, request_for


def ask(function: Any, request: JudgeRequest | None = None) -> JudgeReply:
    judge = FunctionJudge(function=function, judge_id="fn")
    return asyncio.run(asyncio.wait_for(judge.ask(request or request_for(binary())), 120))


async def async_met(request: JudgeRequest) -> str:
    return "MET"


class Callable:
    """An object that is called."""

    async def __call__(self, request: JudgeRequest) -> str:
        return request.item_id


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (lambda request: "MET", "MET"),
        (lambda request: None, None),
        (lambda request: {"verdict": "UNMET", "reason": "r"}, {"verdict": "UNMET", "reason": "r"}),
        (async_met, "MET"),
        (lambda request: async_met(request), "MET"),
        (partial(async_met), "MET"),
        (Callable(), ""),
    ],
)
def test_functions_answer(function: Any, answer: Any) -> None:
    """Sync and async functions, partials and callable objects answer with what they return."""
    assert ask(function) == JudgeReply(answer=answer)


def test_a_whole_reply_is_kept() -> None:
    """A JudgeReply goes through as it is."""
    reply = JudgeReply(answer="MET", reason="because", confidence=0.8, cost=0.1)
    assert ask(lambda request: reply) is reply


def test_a_sync_function_may_block() -> None:
    """It runs in a thread of its own."""
    threads: list[str] = []
    ask(lambda request: threads.append(threading.current_thread().name))
    assert threads != [threading.current_thread().name]


@pytest.mark.parametrize("error", [KeyError("k"), StopIteration("s"), RubricError("r", []), TimeoutError()])
def test_whatever_a_function_raises_is_that_judges_failure(error: Exception) -> None:
    """The message names the exception; even one that no future can carry comes through."""

    def fail(request: JudgeRequest) -> str:
        raise error

    async def fail_later(request: JudgeRequest) -> str:
        raise error

    with pytest.raises(JudgeError, match=f"judge 'fn' raised {type(error).__name__}"):
        ask(fail)
    if not isinstance(error, StopIteration):
        with pytest.raises(JudgeError, match=type(error).__name__):
            ask(fail_later)


def test_a_judges_error_keeps_its_kind() -> None:
    """A function may say itself that a reply was unreadable."""

    def fail(request: JudgeRequest) -> str:
        raise ReplyError("no JSON")

    with pytest.raises(ReplyError, match="no JSON"):
        ask(fail)


def test_functions_describe_themselves_by_name() -> None:
    """Module and qualified name, of the class where the object has none."""
    described = FunctionJudge(function=async_met, judge_id="j").describe()
    assert described["judge"] == "function"
    assert described["function"] == f"{__name__}:async_met"
    assert re.fullmatch("[0-9a-f]{16}", described["code"])
    assert FunctionJudge(function=Callable(), judge_id="j").describe()["function"] == f"{__name__}:Callable"


# Checks


def check(returned: Any, criterion_of: Any = binary, **fields: Any) -> JudgeReply:
    criterion = criterion_of(check=lambda text: returned, **fields)
    return asyncio.run(CheckJudge().ask(request_for(criterion)))


def code(reply: JudgeReply) -> Any:
    return reply.answer.code if isinstance(reply.answer, Answer) else reply.answer


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (True, (True, "")),
        (1.0, ("MET", "")),
        (0, ("UNMET", "")),
        ("yes", ("yes", "")),
        (None, (None, "")),
        ((False, "no date"), (False, "no date")),
        ((None, "no text"), (None, "no text")),
        (({"verdict": "MET"}, "r"), ({"verdict": "MET"}, "r")),
    ],
)
def test_what_a_check_may_return(returned: Any, expected: tuple[Any, str]) -> None:
    """A bool, a number, a label, an evaluation, None, or one of these with a reason."""
    reply = check(returned)
    assert (code(reply), reply.reason) == expected


@pytest.mark.parametrize(
    ("share", "weight", "label"),
    [(0.0, 1.0, "poor"), (0.2, 1.0, "poor"), (0.25, 1.0, "poor"), (0.25, -1.0, "fair"), (1.0, 1.0, "good")],
)
def test_a_share_selects_the_nearest_option_of_a_scale(share: float, weight: float, label: str) -> None:
    """Between two options the one that helps the score least."""
    assert code(check(share, choice, weight=weight)) == label


def test_a_share_is_a_value_where_nothing_is_ordered() -> None:
    """On an unordered choice it must be an option's own value; numbers of a kind are in its own units."""
    nominal = {"values": {"a": 0.0, "b": 0.5, "c": 0.5}, "scale_type": "nominal"}
    assert code(check(0.0, choice, **nominal)) == "a"
    for share in (0.4, 0.5):
        with pytest.raises(ReplyError, match=r"allowed: 0 \(a\), 0\.5 \(b\)"):
            check(share, choice, **nominal)
    assert code(check(4, Warmth, name="w")) == 4


@pytest.mark.parametrize("returned", [1.5, -0.1, float("nan"), ("MET", "r", "x"), ("MET", 5)])
def test_what_a_check_may_not_return(returned: Any) -> None:
    """Numbers off [0, 1] and tuples that are no pair are unreadable replies."""
    for criterion_of in (binary, choice):
        with pytest.raises(ReplyError, match="the check returned"):
            check(returned, criterion_of)


def test_a_failing_check_is_a_failed_judge() -> None:
    """What it raises is named; a text is needed, and a check."""

    def fail(text: str) -> bool:
        raise ZeroDivisionError("by zero")

    for criterion, text, told in (
        (binary(check=fail), "text", "the check raised ZeroDivisionError: by zero"),
        (binary(check=len), None, "no text"),
        (binary(), "text", "has no check"),
    ):
        with pytest.raises(JudgeError, match=told):
            asyncio.run(CheckJudge().ask(request_for(criterion, text)))


def test_a_check_may_raise_a_judges_error() -> None:
    """A JudgeError of the check is passed on, another error of the library is the check's failure."""

    def refuse(text: str) -> bool:
        raise ReplyError("unreadable")

    def load(text: str) -> bool:
        return bool(Rubric([]))

    with pytest.raises(ReplyError, match="unreadable"):
        asyncio.run(CheckJudge().ask(request_for(binary(check=refuse))))
    with pytest.raises(JudgeError, match="the check raised RubricError"):
        asyncio.run(CheckJudge().ask(request_for(binary(check=load))))


@in_loop
async def test_checks_by_name() -> None:
    """A registered name is looked up; an unknown one is the caller's error, not a vote."""
    register_check("tests.has_digit", lambda text: any(map(str.isdigit, text)))
    reply = await CheckJudge().ask(request_for(binary(check="tests.has_digit"), "in 1848"))
    assert reply.answer is True
    with pytest.raises(ArgumentError, match=r"unknown check 'tests\.has_digits'"):
        await CheckJudge().ask(request_for(binary(check="tests.has_digits")))


def test_a_spec_may_hold_a_function() -> None:
    """JudgeSpec takes whatever `judges` takes."""
    assert JudgeSpec(async_met, "fn").llm_config is async_met


@pytest.mark.parametrize("wrong", [{"confidence": 7.0}, {"confidence": float("nan")}, {"cost": -3.0}])
def test_a_reply_of_impossible_figures_is_refused(wrong: dict[str, float]) -> None:
    """A probability lies in [0, 1] and a cost is not negative."""
    with pytest.raises(ReplyError, match=r"must be .*, or None; got"):
        JudgeReply(answer="MET", **wrong)  # type: ignore[arg-type]
