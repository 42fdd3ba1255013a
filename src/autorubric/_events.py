"""Events of a grading or a run for listeners: votes as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from autorubric.types import JudgeVote


class Exchanged(NamedTuple):
    """The messages sent to a judge for one vote, and its replies.

    Attributes:
        messages: Role and content of each message first sent.
        replies: Raw replies, oldest first; more than one after retries.
        dropped_params: Parameters that were left out because the provider does not support them.
        shared_with: Criterion whose vote holds the exchange, if one request covered several criteria.
        request_id: The provider's id of the last reply, if it sends one; not stored in run folders.
        attempted: Models called, in order; not stored in run folders.
        cached: Whether the reply came from the reply cache; not stored in run folders.
    """

    messages: tuple[tuple[str, str], ...] = ()
    replies: tuple[str, ...] = ()
    dropped_params: tuple[str, ...] = ()
    shared_with: str | None = None
    request_id: str | None = None
    attempted: tuple[str, ...] = ()
    cached: bool = False


class VoteCast(NamedTuple):
    """The event that a vote has arrived.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        vote: The vote.
        exchanged: Messages sent and received, if a model was called or a reply could not be read.
    """

    item_id: str
    criterion: str
    vote: JudgeVote
    exchanged: Exchanged | None = None


class Listener(Protocol):
    """A listener for votes, called in the event loop of the grading; it must not block."""

    def vote_cast(self, event: VoteCast) -> None:
        """Handle one vote that has arrived."""
        ...
