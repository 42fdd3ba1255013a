"""Selection of the drafts to refine, the most urgent first, without keeping them in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from autorubric.apps.drafts.drafts import (
    MOST_FAULTS,
    Draft,
    LineFault,
    draft_of,
    graded_score,
    issues_of,
    key_of,
    line_at,
    lines_of,
    read_drafts,
    risk_of,
    scores_of,
    verdict_of,
)
from autorubric.apps.drafts.ledger import contract_error
from autorubric.apps.drafts.provenance import digest_of
from autorubric.support.objects import Json

Risk = Literal["low", "medium", "high"]

RANKS: Final[Mapping[str, int]] = {"low": 1, "medium": 2, "high": 3}
"""Ranks of severities and risk levels, in ascending order."""


class Job(NamedTuple):
    """A draft to refine.

    Attributes:
        id: Id of the draft.
        critique: The critique of the draft.
        draft: The draft; None if the drafts file has no draft with this id.
        changed: Whether the draft has changed since it was critiqued.
        written_id: Id of the draft as written in the critiques file, a string or an integer.
    """

    id: str
    critique: Mapping[str, Json]
    draft: Draft | None
    changed: bool
    written_id: str | int

    @property
    def digest(self) -> str:
        """Return the SHA-256 digest of the draft, its critique, and whether the draft has changed."""
        return digest_of([None if self.draft is None else self.draft.digest, self.critique, self.changed])


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRange:
    """A range of risk levels. A critique without a risk level is only included if no bound is set.

    Attributes:
        least: The lowest level to include; None for no lower bound.
        most: The highest level to include; None for no upper bound.
    """

    least: Risk | None = None
    most: Risk | None = None

    def takes(self, critique: Mapping[str, Any]) -> bool:
        """Return whether the risk level of a critique is in the range."""
        if self.least is None and self.most is None:
            return True
        rank = RANKS.get(risk_of(critique) or "")
        return rank is not None and RANKS[self.least or "low"] <= rank <= RANKS[self.most or "high"]


class Jobs:
    """The drafts of a critiques file whose verdict is revise, except drafts removed from the drafts file.

    If the drafts file has no matching draft or has invalid lines, no draft counts as removed.

    Drafts are sorted by the worst severity among their issues, then by their lowest score or the score of the
    rubric that was used, then by their order in the file.

    Attributes:
        critiques: Number of critiques, including failed critiques.
        failed: Number of critiques without a verdict.
        first_failure: Error of the first critique without a verdict; None if all critiques have a verdict.
        total: Number of critiques whose verdict is revise.
        filtered: Number of critiques whose verdict is revise but whose risk level is not in the range.
        removed: Number of critiques whose draft was removed; they are not included in other counts.
        faults: The first thousand invalid lines of the critiques file.
        fault_count: Number of invalid lines of the critiques file.
    """

    def __init__(self, critiques_path: Path, drafts_path: Path, risk: RiskRange) -> None:
        self._critiques_path, self._drafts_path = critiques_path, drafts_path
        self.faults: list[LineFault] = []
        self.fault_count = 0
        self.filtered = 0
        # In a temporary file, so that memory use does not grow with the number of drafts.
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute(
            "CREATE TABLE jobs (id TEXT PRIMARY KEY, revise INTEGER, taken INTEGER, severity INTEGER, "
            "lowest REAL, critique INTEGER, draft INTEGER, failure TEXT, removed INTEGER DEFAULT 0)"
        )
        self._read_critiques(risk)
        self._find_drafts()
        self.removed = self._count("SELECT COUNT(*) FROM jobs WHERE removed")
        self.critiques = self._count("SELECT COUNT(*) FROM jobs WHERE NOT removed")
        self.failed = self._count("SELECT COUNT(*) FROM jobs WHERE failure IS NOT NULL AND NOT removed")
        self.total = self._count("SELECT COUNT(*) FROM jobs WHERE revise AND NOT removed")
        self.filtered = self._count("SELECT COUNT(*) FROM jobs WHERE revise AND NOT taken AND NOT removed")
        first = self._index.execute(
            "SELECT failure FROM jobs WHERE failure IS NOT NULL AND NOT removed ORDER BY critique"
        ).fetchone()
        self.first_failure: str | None = None if first is None else first[0]

    def __iter__(self) -> Iterator[Job]:
        query = (
            "SELECT id, critique, draft FROM jobs WHERE taken AND NOT removed "
            "ORDER BY severity DESC, lowest ASC, critique ASC"
        )
        for key, critique_at, draft_at in self._index.execute(query):
            yield self._job(key, critique_at, draft_at)

    def judged(self) -> Iterator[str]:
        """Yield the ids of all critiques that have a verdict and whose draft was not removed."""
        query = "SELECT id FROM jobs WHERE failure IS NULL AND NOT removed"
        return (key for (key,) in self._index.execute(query))

    def holds(self, key: str) -> bool:
        """Return whether there is a critique with this id whose draft was not removed."""
        query = "SELECT 1 FROM jobs WHERE id = ? AND NOT removed"
        return self._index.execute(query, (key,)).fetchone() is not None

    def of(self, key: str) -> Job | None:
        """Return the refinement job of an id; None if the verdict is not revise."""
        row = self._index.execute("SELECT critique, draft, revise FROM jobs WHERE id = ?", (key,)).fetchone()
        return self._job(key, row[0], row[1]) if row is not None and row[2] else None

    def _job(self, key: str, critique_at: int, draft_at: int | None) -> Job:
        record = json.loads(line_at(self._critiques_path, critique_at).raw)
        draft = None
        if draft_at is not None:
            found = draft_of(line_at(self._drafts_path, draft_at))
            draft = found if isinstance(found, Draft) else None
        of = record.get("draft_hash")
        changed = draft is not None and of is not None and of != draft.digest
        return Job(key, record["critique"], draft, changed, record["id"])

    def _read_critiques(self, risk: RiskRange) -> None:
        for line in lines_of(self._critiques_path):
            try:
                record = json.loads(line.raw)
                key = key_of(record["id"])
                if key is None:
                    raise TypeError(record["id"])
            except (ValueError, KeyError, TypeError, RecursionError):
                self.fault_count += 1
                if len(self.faults) < MOST_FAULTS:
                    self.faults.append(LineFault(line.number, "not a critique record"))
                continue
            self._index.execute("DELETE FROM jobs WHERE id = ?", (key,))
            row: tuple[object, ...]
            if (verdict := verdict_of(record)) is None:
                row = (key, False, False, 0, 0.0, line.offset, _failure(record))
            else:
                critique = record["critique"]
                revise = verdict == "revise"
                taken = revise and risk.takes(critique)
                row = (key, revise, taken, _severity(critique), _lowest(critique), line.offset, None)
            self._index.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, NULL, ?, 0)", row)

    def _find_drafts(self) -> None:
        is_whole = True
        for found in read_drafts(self._drafts_path):
            if not isinstance(found, Draft):
                is_whole = False
            else:
                # The first draft with an id is used, as in the critique pass.
                self._index.execute(
                    "UPDATE jobs SET draft = ? WHERE id = ? AND draft IS NULL", (found.offset, found.id)
                )

        if is_whole and self._count("SELECT COUNT(*) FROM jobs WHERE draft IS NOT NULL"):
            self._index.execute("UPDATE jobs SET removed = 1 WHERE draft IS NULL")

    def _count(self, query: str) -> int:
        count: int = self._index.execute(query).fetchone()[0]
        return count


def _severity(critique: Mapping[str, Any]) -> int:
    return max((RANKS.get(str(issue.get("severity")), 0) for issue in issues_of(critique)), default=0)


def _lowest(critique: Mapping[str, Any]) -> float:
    # A higher value is not always better in a rubric: for a penalty, it is worse.
    graded = graded_score(critique)
    if graded is not None:
        return graded
    # The urgency of a critique without scores is unknown, so it comes last.
    return min(scores_of(critique).values(), default=float("inf"))


def _failure(record: Mapping[str, Any]) -> str:
    """Return the reason why a record has no verdict."""
    error = contract_error(record)
    if isinstance(error, Mapping):
        return f"{error.get('code')}: {error.get('message')}"
    return "the record has no critique with a verdict"
