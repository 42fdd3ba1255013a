"""Converts the return values and exceptions of judges to replies and errors."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from autorubric._sync import NoStrayCancellation
from autorubric.errors import ArgumentError, BudgetError, JudgeCodeError, JudgeError, MissingDependencyError
from autorubric.judges._base import BatchJudge, Judge, JudgeReply, JudgeRequest

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_STANDARD: Final = Path(traceback.__file__).parent
_PROGRAMMING_ERRORS: Final = (AttributeError, TypeError, NameError, ImportError, NotImplementedError)


async def ask_judge(judge: Judge, request: JudgeRequest, *, judge_id: str) -> JudgeReply:
    """Return the judge's reply; a value that is not a `JudgeReply` is the answer, and None an abstention.

    Args:
        judge: The judge to ask.
        request: The request to send.
        judge_id: The judge's id in the panel.

    Raises:
        JudgeError: If the judge raised this or another exception; the message names both.
        ArgumentError: If a check is not registered.
        BudgetError: If the run's budget is used up.
        MissingDependencyError: If the judge needs a package that is not installed.
    """
    return reply_of(await _answered(judge.ask, request, judge_id))


async def ask_judge_many(
    judge: BatchJudge, requests: Sequence[JudgeRequest], *, judge_id: str
) -> list[JudgeReply | JudgeError | BudgetError]:
    """Return the judge's replies in the order of the requests; see `ask_judge`.

    Raises:
        JudgeError: If the judge failed, or did not return one reply per request.
        ArgumentError: If a check is not registered.
        BudgetError: If the run's budget is used up.
        MissingDependencyError: If the judge needs a package that is not installed.
    """
    found = await _answered(judge.ask_many, requests, judge_id)
    if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(requests):
        count = len(found) if isinstance(found, Sequence) and not isinstance(found, str) else repr(found)
        raise JudgeError(f"judge {judge_id!r} returned {count} replies to {len(requests)} requests")
    return [one if isinstance(one, JudgeError | BudgetError) else reply_of(one) for one in found]


def reply_of(returned: Any) -> JudgeReply:
    """Return a judge's result as a `JudgeReply`."""
    return returned if isinstance(returned, JudgeReply) else JudgeReply(answer=returned)


def failure_of(judge_id: str, error: Exception) -> JudgeError:
    """Convert an exception raised by a judge's code to a `JudgeError`, or for a bug a `JudgeCodeError`."""
    message = f"judge {judge_id!r} raised {type(error).__name__}: {_text_of(error)}"
    if not isinstance(error, _PROGRAMMING_ERRORS):
        return JudgeError(message)
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if _is_own(Path(frame.filename))][-1:]
    place = "".join(f"{Path(frame.filename).name} line {frame.lineno}" for frame in last)
    return JudgeCodeError(
        f"{message} (a programming error{place and ' in '}{place}; the traceback is in the log)", place=place
    )


def _is_own(file: Path) -> bool:
    """Return whether a file is the judge's own code: not this library's, Python's or generated."""
    if file.name == "<string>" or _PACKAGE in file.parents:
        return False
    return _STANDARD not in file.parents or "site-packages" in file.parts


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "(an exception without a readable message)"


async def _answered(ask: Any, asked: Any, judge_id: str) -> Any:
    try:
        with NoStrayCancellation(f"judge {judge_id!r}"):
            outcome = ask(asked)
            return await outcome if inspect.isawaitable(outcome) else outcome
    except (JudgeError, ArgumentError, BudgetError, MissingDependencyError):
        raise
    # A judge may be user code, and its failure on one item must not affect the others.
    except Exception as error:
        raise failure_of(judge_id, error) from error
