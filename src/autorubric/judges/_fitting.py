"""Submissions that are too long for a model, cut until it takes them."""

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
"""Characters below which a submission is not cut any further: what is left would not be the text."""


def demand_text(judge_id: str, request: JudgeRequest) -> None:
    """Check that a request has a text to judge.

    Raises:
        JudgeError: If there is none.
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
    """Return the exchange, and whether a text had to be cut for it to fit the model's context.

    Args:
        ask: Asks about the submissions, shortened or not.
        submissions: The submissions in one request.
        policy: Which part of a text to leave out; None to leave out nothing.
        compared: Whether their candidates are shown, not their text.

    Raises:
        ContextLengthError: If the text may not be cut, or not any further.
        JudgeError: If as `ask`.
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
    """A text that is shown: of which submission, and of which candidate."""

    place: int
    name: str
    text: str


def _shortened(submissions: Submissions, policy: TruncatePolicy | None, compared: bool) -> Submissions | None:
    """Return the submissions with a third of a text left out, or None if it is not to be cut further.

    It is the longest text, so that none is cut while another is longer.
    """
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
    # The mark of the cut may be longer than what it stands for, and cutting would never end.
    return cut if len(cut) < len(text) else None
