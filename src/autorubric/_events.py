"""What a grading or a run tells those who listen: votes as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from autorubric.types import JudgeVote


class Exchanged(NamedTuple):
    """What was sent to a judge for one vote and what came back.

    Attributes:
        messages: Role and content of each message first sent.
        replies: Raw replies, oldest first; more than one where it was asked again.
        dropped_params: Parameters that the provider does not take and that were left out.
        shared_with: Criterion with whose vote the exchange stands, where one request asked about several.
        request_id: The provider's id of the last reply, where it gives one; stands in no run folder.
        attempted: Models asked, in order; stand in no run folder.
        cached: Served from the reply cache; stands in no run folder.
    """

    messages: tuple[tuple[str, str], ...] = ()
    replies: tuple[str, ...] = ()
    dropped_params: tuple[str, ...] = ()
    shared_with: str | None = None
    request_id: str | None = None
    attempted: tuple[str, ...] = ()
    cached: bool = False


class VoteCast(NamedTuple):
    """A vote has arrived.

    Attributes:
        item_id: The item it is about.
        criterion: Name of the criterion.
        vote: The vote.
        exchanged: What was sent and received, where a model was asked, or a reply could not be read.
    """

    item_id: str
    criterion: str
    vote: JudgeVote
    exchanged: Exchanged | None = None


class Listener(Protocol):
    """Hears of votes as they arrive, in the event loop of the grading; must not block."""

    def vote_cast(self, event: VoteCast) -> None:
        """One vote has arrived."""
        ...
