"""Shortens submissions that are too long for a model until they fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias, TypeVar

from autorubric.errors import ContextLengthError, JudgeError
from autorubric.judges._base import JudgeRequest
from autorubric.llm import Exchange, TruncatePolicy
from autorubric.values import Submission

ReadT = TypeVar("ReadT")
Submissions: TypeAlias = tuple[Submission, ...]

_SHORTEST_CUT = 200
"""Number of characters below which a text is not shortened further, because too little would remain."""


def demand_text(judge_id: str, request: JudgeRequest) -> None:
    """Check that a request has text to judge.

    Raises:
        JudgeError: If the submission has no text.
    """
    if request.submission.text is None:
        raise JudgeError(f"judge {judge_id!r}: item {request.item_id!r} has no text to judge")


async def ask_fitting(
    ask: Callable[[Submissions], Awaitable[Exchange[ReadT]]],
    submissions: Submissions,
    policy: TruncatePolicy | None,
    *,
    compared: bool,
) -> tuple[Exchange[ReadT], bool]:
    """Send a request, shortening texts until they fit; return the exchange and whether any was shortened.

    Args:
        ask: Function that sends the request with the submissions, shortened if necessary.
        submissions: The submissions in one request.
        policy: Which part of a text to remove; None if texts must not be shortened.
        compared: Whether the submissions' candidates are shown instead of their text.

    Raises:
        ContextLengthError: If the texts are too long and cannot be shortened further.
        JudgeError: If `ask` raises it.
    """
    truncated = False
    while True:
        try:
            return await ask(submissions), truncated
        except ContextLengthError:
            shorter = _shortened(submissions, policy, compared)
            if shorter is None:
                raise
            submissions, truncated = shorter, True


class _Shown(NamedTuple):
    """A text in the prompt, with the position of its submission and the name of its candidate."""

    place: int
    name: str
    text: str


def _shortened(submissions: Submissions, policy: TruncatePolicy | None, compared: bool) -> Submissions | None:
    """Return the submissions without a third of the longest text; None if it must not be shortened."""
    texts = [
        _Shown(place, name, text)
        for place, one in enumerate(submissions)
        for name, text in (one.candidates.items() if compared else [("", one.text or "")])
    ]
    longest = max(texts, key=lambda one: len(one.text))
    cut = _cut(longest.text, policy)
    if cut is None:
        return None
    whole = submissions[longest.place]
    if compared:
        shorter = replace(whole, candidates={**whole.candidates, longest.name: cut})
    else:
        shorter = replace(whole, text=cut)
    return (*submissions[: longest.place], shorter, *submissions[longest.place + 1 :])


def _cut(text: str, policy: TruncatePolicy | None) -> str | None:
    if policy is None or len(text) <= _SHORTEST_CUT:
        return None
    keep = max(_SHORTEST_CUT, len(text) * 2 // 3)
    if policy == "end":
        cut = text[:keep] + "\n[…]"
    else:
        cut = text[: keep // 2] + "\n[…]\n" + text[len(text) - (keep - keep // 2) :]
    # The mark may be longer than the removed text, and shortening would never end.
    return cut if len(cut) < len(text) else None
