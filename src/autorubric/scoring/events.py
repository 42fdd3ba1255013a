"""Events that notify listeners of votes while a submission or a dataset is graded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from autorubric.scoring.votes import JudgeVote


class Exchanged(NamedTuple):
    """The messages sent to a judge for one vote, and its replies.

    Attributes:
        messages: Role and content of each message in the first request.
        replies: Raw replies, oldest first; more than one after retries.
        dropped_params: Parameters omitted because the provider does not support them.
        shared_with: Criterion whose vote holds the exchange, if one request covered several criteria.
        request_id: Id that the provider assigned to the last reply, if any; not stored in run folders.
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
    """The event sent when a vote arrives.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        vote: The vote that arrived.
        exchanged: Messages sent and received, if a model was called or a reply could not be read.
    """

    item_id: str
    criterion: str
    vote: JudgeVote
    exchanged: Exchanged | None = None


class Listener(Protocol):
    """A listener for votes, which is called in the grading event loop and must not block."""

    def vote_cast(self, event: VoteCast) -> None:
        """Handle a vote when it arrives."""
        ...
