"""Votes on one draft as they arrive, with their provenance and the data to keep for a later pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autorubric._events import Exchanged, VoteCast
from autorubric.critique._provenance import Provenance
from autorubric.types import JudgeVote
from autorubric.values import Json


class Heard:
    """A listener that collects the votes on one draft.

    Args:
        begun: The answers of an earlier pass, to which each answered vote is added as it arrives.
    """

    def __init__(self, begun: dict[str, Json]) -> None:
        self._kept: list[dict[str, Json]] = begun.setdefault("votes", [])
        self._events = [_event(one) for one in self._kept]

    @property
    def stored(self) -> dict[str, list[JudgeVote]]:
        """Return the votes received so far, by criterion name."""
        votes: dict[str, list[JudgeVote]] = {}
        for event in self._events:
            votes.setdefault(event.criterion, []).append(event.vote)
        return votes

    def vote_cast(self, event: VoteCast) -> None:
        """Store a vote, and keep it for a later pass unless it failed."""
        self._events.append(event)
        # Failed votes are requested again by the pass that resumes.
        if event.vote.status in ("answered", "abstained"):
            self._kept.append(_line(event))

    def reply_of(self, vote: JudgeVote) -> str | None:
        """Return the last reply that led to a vote; None if there was no reply."""
        exchanged = self._exchange(vote)
        return exchanged.replies[-1] if exchanged is not None and exchanged.replies else None

    def provenance(self, asked: Provenance, failed: JudgeVote | None = None) -> Provenance:
        """Return the provenance of the votes.

        Args:
            asked: The provenance that is known before the judge is called.
            failed: The failed vote that prevents a critique. Model and request id are taken from its reply;
                if None, from the last reply.
        """
        votes = [event.vote for event in self._events if event.vote.status != "not_asked"]
        exchanges = [event.exchanged for event in self._events if event.exchanged is not None]
        told = failed or next((vote for vote in reversed(votes) if vote.model is not None), None)
        told = told or next(iter(votes), None)
        attempted = dict.fromkeys(model for one in exchanges for model in one.attempted)
        exchanged = None if told is None else self._exchange(told)
        return replace(
            asked,
            selected_model=_answering(told),
            attempted_models=tuple(attempted) or asked.attempted_models,
            request_id=None if exchanged is None else exchanged.request_id,
            cached=bool(exchanges) and all(one.cached for one in exchanges),
            truncated=any(vote.truncated for vote in votes),
        )

    def _exchange(self, vote: JudgeVote) -> Exchanged | None:
        return next((event.exchanged for event in self._events if event.vote is vote), None)


def _answering(vote: JudgeVote | None) -> str | None:
    """Return the model that cast a vote; None if the vote failed before a reply arrived."""
    if vote is None:
        return None
    return vote.model or (None if vote.status == "failed" else vote.judge_id)


def _line(event: VoteCast) -> dict[str, Json]:
    exchanged = event.exchanged
    told: dict[str, Json] | None = None
    if exchanged is not None:
        told = {
            "request_id": exchanged.request_id,
            "attempted": list(exchanged.attempted),
            "cached": exchanged.cached,
        }
    return {"criterion": event.criterion, "vote": event.vote.to_dict(), "exchange": told}


def _event(line: dict[str, Any]) -> VoteCast:
    told = line["exchange"]
    exchanged = None if told is None else Exchanged(**{**told, "attempted": tuple(told["attempted"])})
    vote = JudgeVote.from_dict(line["vote"])
    return VoteCast(item_id="", criterion=line["criterion"], vote=vote, exchanged=exchanged)
