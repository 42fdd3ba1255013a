"""The result of estimating a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autorubric._blocks import Block, TableBlock, TextBlock, render_text
from autorubric.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEstimate:
    """A run's estimated requests to one judge.

    Attributes:
        judge_id: Id of the judge.
        model: The judge's model; None if the judge has no model or its model is unknown.
        votes: Number of votes that the judge would cast.
        calls: Number of requests to the model if no request is repeated; None if unknown.
        prompt_tokens: Estimated tokens sent, at four characters per token; None if unknown.
        completion_tokens: Estimated tokens received, at 80 tokens per criterion; None if unknown.
        cost: Estimated cost in US dollars; None if unknown.
        reason: Reason for an unknown cost; empty if the cost is known.
    """

    judge_id: str
    model: str | None
    votes: int
    calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """A rough estimate of a run; see `JudgeEstimate`.

    Attributes:
        items: Number of items in the dataset.
        judges: One estimate per judge, in panel order.
        stored_votes: Number of votes reused from a stored run with the same name; the estimate excludes them.
        at_most: Whether the figures are upper limits, because votes may be skipped or never escalated.
        notes: Assumptions and limitations of the estimate.
    """

    items: int
    judges: tuple[JudgeEstimate, ...]
    stored_votes: int = 0
    at_most: bool = False
    notes: tuple[str, ...] = ()

    @property
    def votes(self) -> int:
        """Number of votes from all judges."""
        return sum(judge.votes for judge in self.judges)

    @property
    def calls(self) -> int | None:
        """Number of requests to all models; None if the number is unknown for a judge."""
        return _total([judge.calls for judge in self.judges])

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens sent to all models; None if the number is unknown for a judge."""
        return _total([judge.prompt_tokens for judge in self.judges])

    @property
    def completion_tokens(self) -> int | None:
        """Tokens received from all models; None if the number is unknown for a judge."""
        return _total([judge.completion_tokens for judge in self.judges])

    @property
    def cost(self) -> float | None:
        """Cost of all judges in US dollars; None if the cost of a judge is unknown."""
        costs = [judge.cost for judge in self.judges]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def to_dict(self) -> dict[str, Json]:
        """Return the estimate as a JSON-serializable dictionary."""
        names = ("votes", "calls", "prompt_tokens", "completion_tokens", "cost")
        return {
            "items": self.items,
            **{name: getattr(self, name) for name in names},
            "at_most": self.at_most,
            "stored_votes": self.stored_votes,
            "judges": [{name: getattr(one, name) for name in one.__slots__} for one in self.judges],
            "notes": list(self.notes),
        }

    def blocks(self) -> list[Block]:
        """Return the estimate and its notes as blocks for renderers."""
        head = ("judge", "votes", "calls", "tokens sent", "tokens received", "US dollars")
        rows = [
            (one.judge_id, one.votes, one.calls, one.prompt_tokens, one.completion_tokens, one.cost)
            for one in self.judges
        ]
        total = ("total", self.votes, self.calls, self.prompt_tokens, self.completion_tokens, self.cost)
        title = f"{'Upper bound' if self.at_most else 'Estimate'} for {self.items} items"
        table = TableBlock(title=title, columns=head, rows=(*rows, total))
        return [table, TextBlock(title="Notes", text="\n".join(self.notes))] if self.notes else [table]

    def summary(self) -> str:
        """Return the estimate as plain text."""
        return render_text(self.blocks())


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
