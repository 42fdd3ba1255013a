"""A running critique pass, with the drafts that still need a critique and their records."""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from autorubric.critique._critics import DraftCritic
from autorubric.critique._drafts import MOST_FAULTS, Draft, LineFault, key_of, read_drafts
from autorubric.critique._ledger import Ledger, contract_error, locked, set_all_aside, write_json
from autorubric.critique._manifest import Setup, counts_of, manifest_of, setup_changes
from autorubric.critique._records import critique_record
from autorubric.critique._stats import CritiqueTally
from autorubric.critique._unfinished import Unfinished
from autorubric.eval import run_bounded
from autorubric.values import Json

CRITIQUES: Final = "critiques_v1.jsonl"
MANIFEST: Final = "critiques_v1_manifest.json"
STATS: Final = "critiques_v1_stats.json"
UNFINISHED: Final = "critiques_v1_unfinished.json"
OUTPUTS: Final[Mapping[str, str]] = {"critiques": CRITIQUES, "manifest": MANIFEST, "stats": STATS}

_WINDOW: Final = 32
"""Default number of drafts in progress, which is also the maximum number whose work is lost on a kill."""


@dataclass(slots=True, kw_only=True)
class CritiquePass:
    """One pass over a file of drafts.

    Attributes:
        drafts_path: Path of the drafts file.
        limit: Maximum number of drafts to critique; None for all.
        setup: The settings that the records depend on.
        critic: The critic that writes the critiques.
        out_dir: The output folder.
        retry_errors: Whether to critique drafts again whose record is a failure.
        unfinished: Tracks drafts in progress and stops the pass when the budget is used up.
        left: Number of drafts that were left when the pass stopped.
    """

    drafts_path: Path
    limit: int | None
    setup: Setup
    critic: DraftCritic
    out_dir: Path
    retry_errors: bool
    unfinished: Unfinished
    left: int = 0
    drafts: int = 0
    processed: int = 0
    skipped: int = 0
    faults: list[dict[str, Json]] = field(default_factory=list)
    fault_count: int = 0
    removed: int = 0
    notices: list[str] = field(default_factory=list)
    _resumes: bool = False
    _seen: _Seen = field(default_factory=lambda: _Seen())

    async def run(self, resume: bool) -> dict[str, Json]:
        """Critique all pending drafts, until done or stopped by the budget or errors; return statistics."""
        started = time.perf_counter()
        self._resumes = resume
        with locked(self.out_dir):
            ledger = self._opened(resume)
            try:
                self._write_manifest(None)
                limit = self.critic.parallel or _WINDOW
                self.unfinished.errors.in_flight = limit
                pending = self._pending(ledger)
                made = run_bounded(self.unfinished.taken(pending), self._critique, limit=limit)
                async with aclosing(made):
                    async for record in made:
                        if record is not None:
                            ledger.append(record)
                            self.processed += 1
                self.unfinished.write()
                # The rest of the file is only read now that no request is in flight.
                self.left = self.unfinished.left + sum(1 for _ in pending)
                ledger.sweep()
                tally = CritiqueTally.of(self._current(ledger))
            finally:
                ledger.close()
            return self._finish(ledger, tally, time.perf_counter() - started)

    def rehearse(self, resume: bool) -> dict[str, Json]:
        """Return the plan of a pass, with the number of pending drafts and the length of their prompts."""
        done: dict[str, Json] = {"dry_run": True, "prompt_characters": 0}
        path = self.out_dir / CRITIQUES
        ledger = Ledger(path)
        self._resumes = resume
        if resume and path.exists():
            ledger.read()
        for draft in self._pending(ledger):
            self.processed += 1
            length = self.critic.prompt_length(draft)
            known = done["prompt_characters"]
            done["prompt_characters"] = None if length is None or known is None else known + length
        tally = CritiqueTally.of(self._current(ledger) if resume and path.exists() else ())
        self._warn()
        done |= {"pending": self.processed}
        self.processed = 0
        return {**self._counted(tally), **done}

    def _opened(self, resume: bool) -> Ledger:
        path = self.out_dir / CRITIQUES
        if resume:
            self.notices += setup_changes(self.out_dir / MANIFEST, self.setup)
            self.unfinished.read()
        else:
            self.notices += set_all_aside([path, self.out_dir / UNFINISHED])
        ledger = Ledger(path)
        ledger.open()
        self.notices += ledger.notices[:MOST_FAULTS]
        return ledger

    def _pending(self, ledger: Ledger) -> Iterator[Draft]:
        """Yield the drafts that need a critique, in order, and count the other drafts."""
        for found in read_drafts(self.drafts_path):
            is_beyond = self.limit is not None and self.drafts >= self.limit
            if is_beyond and not self._resumes:
                return
            if isinstance(found, LineFault):
                self._seen.is_whole = False
                if not is_beyond:
                    self._tell(found)
                continue
            first = self._seen.first_line(found.id, found.line)
            if is_beyond:
                continue
            if first is not None:
                self._tell(LineFault(found.line, f"duplicate id, already used in line {first}", found.id))
                continue
            self.drafts += 1
            known = ledger.known(found.id)
            changed = known is not None and known.digest not in (None, found.digest)
            if known is not None and not changed and not (known.failed and self.retry_errors):
                self.skipped += 1
                self.unfinished.forget(found.id, found.digest)
                continue
            yield found

    def _current(self, ledger: Ledger) -> Iterator[dict[str, Any]]:
        """Yield the records of drafts that are in the file, and count the records of removed drafts."""
        for record in ledger.records():
            if self._resumes and self._seen.is_missing(key_of(record["id"]) or ""):
                self.removed += 1
            else:
                yield record
        if self.removed:
            self.notices.append(
                f"records of drafts that are no longer in {self.drafts_path.name}: {self.removed}; they are "
                f"kept in {CRITIQUES} but not counted"
            )

    async def _critique(self, draft: Draft) -> dict[str, Json] | None:
        async def ask(begun: dict[str, Json]) -> dict[str, Json]:
            record = critique_record(draft, await self.critic.critique(draft, begun))
            self.unfinished.errors.add(contract_error(record))
            return record

        return await self.unfinished.work(draft.id, draft.digest, ask)

    def _tell(self, fault: LineFault) -> None:
        self.fault_count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault._asdict())

    def _finish(self, ledger: Ledger, tally: CritiqueTally, seconds: float) -> dict[str, Json]:
        if self.unfinished.limit is not None:
            self.notices.append(self.unfinished.told(self.left, self.drafts))
        self._warn()
        stats = {**self._counted(tally), "seconds": seconds}
        self._write_manifest(tally)
        write_json(self.out_dir / STATS, stats)
        return stats

    def _counted(self, tally: CritiqueTally) -> dict[str, Json]:
        return {
            "total": self.drafts,
            "processed": self.processed,
            "skipped": self.skipped,
            "removed": self.removed,
            **tally.to_dict(),
            "stopped": self.unfinished.limit,
            "left": self.left,
            "faults": self.faults,
            "fault_count": self.fault_count,
            "notices": self.notices,
        }

    def _write_manifest(self, tally: CritiqueTally | None) -> None:
        counts = counts_of(self.drafts, self.processed, self.skipped, tally)
        stopped = self.unfinished.limit
        told = {
            "finished": tally is not None and stopped is None,
            "stopped": stopped,
            "left": self.left,
            "faults": self.faults,
            "notices": self.notices,
        }
        write_json(self.out_dir / MANIFEST, {**manifest_of(self.setup, counts, OUTPUTS), **told})

    def _warn(self) -> None:
        """Issue warnings about invalid lines and all notices."""
        if self.fault_count:
            shown = "; ".join(f"line {one['line']}: {one['fault']}" for one in self.faults[:3])
            more = " …" if self.fault_count > 3 else ""
            count = f"{self.fault_count} line{'s' if self.fault_count != 1 else ''}"
            self.notices.append(f"skipped {count} of {self.drafts_path.name}: {shown}{more}")
        for notice in self.notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)


class _Seen:
    """Ids with the line of their first draft, stored on disk so that memory use does not grow.

    Attributes:
        is_whole: Whether every line was a valid draft. If not, a missing draft may be on an invalid line.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("PRAGMA journal_mode=OFF")
        self._ids.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID")

    def first_line(self, key: str, line: int) -> int | None:
        """Store an id; return the line on which it first occurred, or None if the id is new."""
        added = self._ids.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (key, line)).rowcount
        if added:
            return None
        found: int = self._ids.execute("SELECT line FROM ids WHERE id = ?", (key,)).fetchone()[0]
        return found

    def is_missing(self, key: str) -> bool:
        """Return whether the file certainly has no draft with this id."""
        found = self._ids.execute("SELECT 1 FROM ids WHERE id = ?", (key,)).fetchone()
        return self.is_whole and found is None
