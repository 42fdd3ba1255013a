"""Which drafts are to be refined, the most urgent first, without holding any of them in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from autorubric.critique._drafts import (
    MOST_FAULTS,
    Draft,
    LineFault,
    draft_of,
    key_of,
    line_at,
    lines_of,
    read_drafts,
)
from autorubric.critique._ledger import contract_error
from autorubric.critique._records import graded_score, issues_of, risk_of, scores_of, verdict_of
from autorubric.critique._schema import digest_of
from autorubric.values import Json

Risk = Literal["low", "medium", "high"]

RANKS: Final[Mapping[str, int]] = {"low": 1, "medium": 2, "high": 3}
"""Severities and risk levels, in order."""


class Job(NamedTuple):
    """A draft to refine.

    Attributes:
        id: Its id.
        critique: Its critique.
        draft: The draft; None if its file has none of that id.
        changed: Whether the draft has changed since its critique.
        written_id: Its id as the critique's file has it, a text or a whole number.
    """

    id: str
    critique: Mapping[str, Json]
    draft: Draft | None
    changed: bool
    written_id: str | int

    @property
    def digest(self) -> str:
        """The SHA-256 of what is refined: the draft, its critique, and whether they belong together."""
        return digest_of([None if self.draft is None else self.draft.digest, self.critique, self.changed])


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRange:
    """Which risk levels are taken; a critique without one is taken where no bound is given.

    Attributes:
        least: The least level.
        most: The greatest level.
    """

    least: Risk | None = None
    most: Risk | None = None

    def takes(self, critique: Mapping[str, Any]) -> bool:
        """Return whether a critique's risk level is in the range."""
        if self.least is None and self.most is None:
            return True
        rank = RANKS.get(risk_of(critique) or "")
        return rank is not None and RANKS[self.least or "low"] <= rank <= RANKS[self.most or "high"]


class Jobs:
    """The drafts of a critique file whose verdict is revise, without those that were removed from theirs.

    Where no draft is found at all, or some lines of the drafts cannot be read, none counts as removed.

    Their order is that of the worst severity among their issues, then of their lowest score, or the score of
    the rubric that they were made by, then of the file.

    Args:
        critiques_path: The critiques.
        drafts_path: The drafts.
        risk: Which risk levels are taken.

    Attributes:
        critiques: Critiques, failed ones too.
        failed: How many of them have no verdict.
        first_failure: Why the first of these has none; None if there are none.
        total: Critiques whose verdict is revise.
        filtered: How many of them the risk range leaves out.
        removed: Critiques whose draft is no longer in its file; they are in no other count.
        faults: Lines of the critiques that cannot be read; the first thousand.
        fault_count: How many there are.

    Raises:
        FileError: If a file cannot be read.
    """

    def __init__(self, critiques_path: Path, drafts_path: Path, risk: RiskRange) -> None:
        self._critiques_path, self._drafts_path = critiques_path, drafts_path
        self.faults: list[LineFault] = []
        self.fault_count = 0
        self.filtered = 0
        # On disk, under no name, so that memory does not grow with the number of drafts.
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
        """Yield the ids of all critiques that have a verdict, whichever it is, and a draft."""
        query = "SELECT id FROM jobs WHERE failure IS NULL AND NOT removed"
        return (key for (key,) in self._index.execute(query))

    def holds(self, key: str) -> bool:
        """Return whether there is a critique of that id, of a draft that was not removed."""
        query = "SELECT 1 FROM jobs WHERE id = ? AND NOT removed"
        return self._index.execute(query, (key,)).fetchone() is not None

    def of(self, key: str) -> Job | None:
        """Return the refinement job of an id; None if its verdict is not revise."""
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
                    self.faults.append(LineFault(line.number, "no record of a critique"))
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
                # Of several drafts with one id the first counts, as in the critique pass.
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
    # A rubric's values are no better the greater they are: of a penalty the opposite holds.
    graded = graded_score(critique)
    if graded is not None:
        return graded
    # One without scores says nothing of its urgency: it comes last.
    return min(scores_of(critique).values(), default=float("inf"))


def _failure(record: Mapping[str, Any]) -> str:
    """Return why a record has no verdict."""
    error = contract_error(record)
    if isinstance(error, Mapping):
        return f"{error.get('code')}: {error.get('message')}"
    return "the record has no critique with a verdict"
