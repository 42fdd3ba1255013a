"""The critique pass, in which a teacher critiques every draft of a file."""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from autorubric.apps.drafts.critics import DraftCritic, critic_of
from autorubric.apps.drafts.drafts import (
    MOST_FAULTS,
    CritiqueTally,
    Draft,
    LineFault,
    critique_record,
    key_of,
    read_drafts,
)
from autorubric.apps.drafts.ledger import RecordLog, contract_error, locked, set_all_aside, write_json
from autorubric.apps.drafts.manifest import (
    Setup,
    Unfinished,
    check_apart,
    counts_of,
    manifest_of,
    setup_changes,
)
from autorubric.apps.drafts.provenance import CritiqueSchema
from autorubric.errors import ArgumentError
from autorubric.llm.budget import spending_within
from autorubric.llm.route import spending_limit
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import run_bounded, sync_twin
from autorubric.support.objects import Json
from autorubric.support.reading_errors import shortened

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
            ledger = self._open_ledger(resume)
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
        ledger = RecordLog(path)
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
        return {**self._statistics(tally), **done}

    def _open_ledger(self, resume: bool) -> RecordLog:
        path = self.out_dir / CRITIQUES
        if resume:
            self.notices += setup_changes(self.out_dir / MANIFEST, self.setup)
            self.unfinished.read()
        else:
            self.notices += set_all_aside([path, self.out_dir / UNFINISHED])
        ledger = RecordLog(path)
        ledger.open()
        self.notices += ledger.notices[:MOST_FAULTS]
        return ledger

    def _pending(self, ledger: RecordLog) -> Iterator[Draft]:
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
                self._tell(LineFault(found.line, f"duplicate id, already used on line {first}", found.id))
                continue
            self.drafts += 1
            known = ledger.known(found.id)
            changed = known is not None and known.digest not in (None, found.digest)
            if known is not None and not changed and not (known.failed and self.retry_errors):
                self.skipped += 1
                self.unfinished.forget(found.id, found.digest)
                continue
            yield found

    def _current(self, ledger: RecordLog) -> Iterator[dict[str, Any]]:
        """Yield the records of drafts that are in the file, and count the records of removed drafts."""
        for record in ledger.records():
            if self._resumes and self._seen.is_missing(key_of(record["id"]) or ""):
                self.removed += 1
            else:
                yield record
        if self.removed:
            self.notices.append(
                "records excluded from the statistics because their drafts are no longer in "
                f"{self.drafts_path.name}: {self.removed} (kept in {CRITIQUES})"
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

    def _finish(self, ledger: RecordLog, tally: CritiqueTally, seconds: float) -> dict[str, Json]:
        if self.unfinished.limit is not None:
            self.notices.append(self.unfinished.told(self.left, self.drafts))
        self._warn()
        stats = {**self._statistics(tally), "seconds": seconds}
        self._write_manifest(tally)
        write_json(self.out_dir / STATS, stats)
        return stats

    def _statistics(self, tally: CritiqueTally) -> dict[str, Json]:
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


async def generate_critiques_async(  # noqa: PLR0913 - the public contract
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    *,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    retry_errors: bool = False,
    dry_run: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """Critique every draft in a file, write one record per draft, and return statistics.

    It writes `critiques_v1.jsonl`, `critiques_v1_manifest.json` and `critiques_v1_stats.json`. Records are
    written as critiques arrive. At most 32 drafts, or as many as `max_parallel_requests` allows, are in
    progress at once; a sync teacher function gets one draft at a time unless the config allows more. For an
    unusable critique, the record contains the error. The pass stops (`stopped` is `errors`) if the teacher
    repeatedly fails with the same provider error or timeout.

    Args:
        drafts_path: JSON lines file with `{"id", "prompt", "output", "contract"}`; other keys are ignored.
            Invalid lines and duplicate ids are skipped and listed under `faults`.
        out_dir: The output folder, which is created if missing.
        teacher: A model name, an `LLMConfig`, an `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a function that takes a `TeacherPrompt` and returns JSON text, a dict, a
            `TeacherReply`, or an object with a string attribute `text`. With a rubric, any value that
            `judges=[...]` accepts.
        config: `{"models": [...], "generation": {...}}`: fallbacks and settings for a model passed by name.
            The setting `timeout`, in seconds per critique, also applies to async functions and `aforward`;
            sync functions cannot be interrupted and must enforce their own. For other teachers, the config is
            only recorded in the manifest. Secrets are never written.
        schema: JSON schema of the critiques, or its path; None for the built-in schema.
        template: Text of the prompt template, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`,
            `{contract}`, `{material}` (prompt, output and contract), `{schema}` and `{rule}`.
        limit: Number of drafts to critique from the start of the file; None for all.
        resume: Whether to keep existing records and skip drafts that have one, unless they have changed. If
            False, existing records are moved to `critiques_v1.previous.jsonl`.
        rubric: A rubric or the path of a rubric file, used instead of schema and template. Its criteria's
            values in [0, 1] become the scores.
        threshold: With a rubric, minimum score in [0, 1] for the verdict pass instead of revise; None for
            0.7.
        retry_errors: Whether to retry unusable critiques; requires `resume`.
        dry_run: Whether to only read the drafts and report what a full pass would do.
        max_calls: Maximum number of requests to models, including retries and repeated questions. When the
            limit is reached, requests in flight are completed and written, and the pass ends; another pass
            with `resume` continues under a new limit. Requests sent by your own teachers count if they use
            this library's clients.
        max_cost: Maximum cost of requests in US dollars, enforced in the same way. The price of every model
            must be known.

    Raises:
        ArgumentError: If the arguments are invalid or cannot be combined, or if `max_cost` is set and the
            price of a model is unknown.
        FileError: If a file cannot be read or has no drafts.
        RunLockedError: If another process is writing to the folder.
    """
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if config is not None and not isinstance(config, Mapping):
        raise ArgumentError(f"config must be a mapping; got {shortened(config)}")
    if rubric is not None and schema is not None:
        raise ArgumentError("schema cannot be combined with a rubric, which has its own schema; omit one")
    checked = CritiqueSchema.of(schema)
    critic = critic_of(
        teacher, config=config, schema=checked, template=template, rubric=rubric, threshold=threshold
    )
    inputs = {"drafts": Path(drafts_path)}
    check_apart(inputs, Path(out_dir), [*OUTPUTS.values(), UNFINISHED])
    try:
        budget = spending_limit(critic.models, max_calls=max_calls, max_cost=max_cost)
        setup = Setup.of(
            inputs=inputs,
            critic=critic,
            schema=checked if rubric is None else None,
            config=config,
            options={"limit": limit},
        )
        work = CritiquePass(
            drafts_path=Path(drafts_path),
            limit=limit,
            setup=setup,
            critic=critic,
            out_dir=Path(out_dir),
            retry_errors=retry_errors,
            unfinished=Unfinished(Path(out_dir) / UNFINISHED, setup.basis),
        )
        if dry_run:
            return work.rehearse(resume)
        with spending_within(budget) if budget.is_set else nullcontext():
            return await work.run(resume)
    finally:
        await critic.aclose()


generate_critiques = sync_twin(generate_critiques_async)
"""Call `generate_critiques_async` from synchronous code, even inside a running event loop."""


def check_going_on(limit: Any, *, resume: bool, retry_errors: bool) -> None:
    """Check the options that limit or resume a pass."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit must be a non-negative integer, or None for all; got {limit!r}")
    if retry_errors and not resume:
        raise ArgumentError(
            "retry_errors=True requires resume=True, because a new pass critiques all drafts; pass "
            "resume=True or omit retry_errors"
        )
