"""Events that notify listeners of votes while a submission or a dataset is graded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from autorubric.scoring.votes import JudgeVote


class Exchanged(NamedTuple):
    """The messages sent to a judge for one vote, and its replies."""

    messages: tuple[tuple[str, str], ...] = ()
    replies: tuple[str, ...] = ()
    dropped_params: tuple[str, ...] = ()
    shared_with: str | None = None
    request_id: str | None = None
    attempted: tuple[str, ...] = ()  # models called, in order; not stored in run folders
    cached: bool = False


class VoteCast(NamedTuple):
    """The event sent when a vote arrives."""

    item_id: str
    criterion: str
    vote: JudgeVote
    exchanged: Exchanged | None = None


class Listener(Protocol):
    """A listener for votes, which is called in the grading event loop and must not block."""

    def vote_cast(self, event: VoteCast) -> None:
        """Handle a vote when it arrives."""
        ...
