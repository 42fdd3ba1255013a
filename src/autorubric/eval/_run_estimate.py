"""The figures of an estimate of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autorubric._blocks import Block, TableBlock, TextBlock, render_text
from autorubric.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEstimate:
    """The estimated requests of a run to one judge.

    Attributes:
        judge_id: The judge.
        model: Its model; None if it has none, or the judge does not name it.
        votes: Votes that it would cast.
        calls: Requests to its model; those asked or tried again come on top. None if it does not say.
        prompt_tokens: Estimate of the tokens sent, at four characters a token; None likewise.
        completion_tokens: Estimate of the tokens received, at 80 a criterion; None likewise.
        cost: Estimate in US dollars; None if it is not known.
        reason: Why it is not known; empty if it is.
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
        items: Items in the dataset.
        judges: What each judge would be asked, in the order of the panel.
        stored_votes: Votes that a stored run of that name already holds; they are not counted.
        at_most: Whether the run may take less: votes may be left out, or criteria not be escalated.
        notes: Limits of the figures.
    """

    items: int
    judges: tuple[JudgeEstimate, ...]
    stored_votes: int = 0
    at_most: bool = False
    notes: tuple[str, ...] = ()

    @property
    def votes(self) -> int:
        """Votes of all judges."""
        return sum(judge.votes for judge in self.judges)

    @property
    def calls(self) -> int | None:
        """Requests to all models; None if a judge gives no estimate."""
        return _total([judge.calls for judge in self.judges])

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens sent to all models; None if a judge gives no estimate."""
        return _total([judge.prompt_tokens for judge in self.judges])

    @property
    def completion_tokens(self) -> int | None:
        """Tokens received from all models; None if a judge gives no estimate."""
        return _total([judge.completion_tokens for judge in self.judges])

    @property
    def cost(self) -> float | None:
        """US dollars for all judges; None if one's cost is not known."""
        costs = [judge.cost for judge in self.judges]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def to_dict(self) -> dict[str, Json]:
        """Return the estimate as JSON."""
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
        """Return the estimate as a table with its notes, for any renderer."""
        head = ("judge", "votes", "calls", "tokens sent", "tokens received", "US dollars")
        rows = [
            (one.judge_id, one.votes, one.calls, one.prompt_tokens, one.completion_tokens, one.cost)
            for one in self.judges
        ]
        total = ("total", self.votes, self.calls, self.prompt_tokens, self.completion_tokens, self.cost)
        title = f"Estimate for {self.items} items{', at most' if self.at_most else ''}"
        table = TableBlock(title=title, columns=head, rows=(*rows, total))
        return [table, TextBlock(title="Notes", text="\n".join(self.notes))] if self.notes else [table]

    def summary(self) -> str:
        """Return the estimate in plain text."""
        return render_text(self.blocks())


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
