"""The critique pass: every draft of a file put to a teacher, one record a draft."""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from autorubric._files import shortened
from autorubric._sync import run_sync
from autorubric.critique._critics import DraftCritic, critic_of
from autorubric.critique._drafts import MOST_FAULTS, Draft, LineFault, read_drafts
from autorubric.critique._ledger import Ledger, locked, set_all_aside, write_json
from autorubric.critique._manifest import Setup, check_apart, counts_of, manifest_of, setup_changes
from autorubric.critique._records import critique_record
from autorubric.critique._schema import CritiqueSchema
from autorubric.critique._stats import CritiqueTally
from autorubric.critique._unfinished import Unfinished
from autorubric.errors import ArgumentError
from autorubric.eval import run_bounded, spending_limit
from autorubric.llm import spending_within
from autorubric.rubric import Rubric
from autorubric.values import Json

CRITIQUES: Final = "critiques_v1.jsonl"
MANIFEST: Final = "critiques_v1_manifest.json"
STATS: Final = "critiques_v1_stats.json"
UNFINISHED: Final = "critiques_v1_unfinished.json"

_WINDOW: Final = 32
"""Drafts under way at a time; also the most whose work a kill can undo."""


def generate_critiques(  # noqa: PLR0913 - the public contract
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
    """The statistics of a critique pass, which writes one record a draft; safe inside a running event loop.

    Writes `critiques_v1.jsonl`, `critiques_v1_manifest.json` and `critiques_v1_stats.json`. Records stand in
    the order in which critiques arrive, at most 32 drafts being under way; a teacher that is a plain function
    is asked for one draft at a time, so that its records stand in the order of the drafts. A critique that
    cannot be used is a record with its error, and never ends the pass.

    Args:
        drafts_path: JSON lines, each `{"id", "prompt", "output", "contract"}`; further keys are let be. Lines
            that give no draft, and ids that come twice, are told of under `faults`; the rest goes on.
        out_dir: Where the files go; made where it is missing.
        teacher: A model's name, an `LLMConfig`, an `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a function of a `TeacherPrompt`, which gives JSON text, a dict, a
            `TeacherReply`, or an object with a text as `.text`. With a rubric, anything that `judges=[...]`
            takes.
        config: `{"models": [...], "generation": {...}}`: fallbacks and settings of a model given by name.
            Its `timeout`, in seconds, holds for an async function or an `aforward` too, for one critique; a
            plain function cannot be ended, and has to see to that itself. For any other teacher it only
            stands in the manifest. Secrets in it are not written.
        schema: JSON schema of the critiques, or its file; by default the one that ships.
        template: The prompt's text, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`, `{contract}`,
            `{material}` (these three), `{schema}` and `{rule}`; texts of a draft always stand between
            delimiters.
        limit: So many of the file's first drafts; None for all.
        resume: Go on with the records that are there: drafts that have one are passed over, unless the draft
            has changed. Without it, records that are there are moved to `critiques_v1.previous.jsonl`.
        rubric: A rubric, or its file, in the place of schema and template: its criteria's values on [0, 1]
            become the scores.
        threshold: Score on [0, 1] from which a rubric's verdict is pass, below it is revise; None: 0.7.
        retry_errors: With resume, ask again for the critiques that could not be used.
        dry_run: Read the drafts and say what would be done; ask nobody and write nothing.
        max_calls: Most requests that are sent to models, re-asked and retried ones included. At the limit
            what is in flight is still answered and written, and the pass ends; with `resume` another goes on,
            with a new allowance. Teachers of your own are counted where they ask through this library.
        max_cost: US dollars that requests may cost, the same way; every model's price has to be known.

    Raises:
        ArgumentError: The arguments cannot work together; or `max_cost` is set and a model's price is not
            known.
        FileError: A file cannot be read, or there is nothing in the drafts.
        RunLockedError: Another process writes to the folder.
    """
    return run_sync(
        generate_critiques_async(
            drafts_path,
            out_dir,
            teacher,
            config,
            schema,
            template,
            limit,
            resume,
            rubric=rubric,
            threshold=threshold,
            retry_errors=retry_errors,
            dry_run=dry_run,
            max_calls=max_calls,
            max_cost=max_cost,
        )
    )


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
    """What `generate_critiques` gives, without blocking the event loop."""
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if config is not None and not isinstance(config, Mapping):
        raise ArgumentError(f"config is {shortened(config)}; give a mapping")
    if rubric is not None and schema is not None:
        raise ArgumentError("a rubric's critiques have a form of their own; leave out schema, or the rubric")
    checked = CritiqueSchema.of(schema)
    critic = critic_of(
        teacher, config=config, schema=checked, template=template, rubric=rubric, threshold=threshold
    )
    inputs = {"drafts": Path(drafts_path)}
    check_apart(inputs, Path(out_dir), (CRITIQUES, MANIFEST, STATS, UNFINISHED))
    try:
        budget = spending_limit(critic.models, max_calls=max_calls, max_cost=max_cost)
        setup = Setup.of(
            inputs=inputs,
            critic=critic,
            schema=checked if rubric is None else None,
            config=config,
            options={"limit": limit},
        )
        work = _Pass(
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


def check_going_on(limit: Any, *, resume: bool, retry_errors: bool) -> None:
    """Checks how much of a pass is wanted.

    Raises:
        ArgumentError: It cannot be had.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit {limit!r}: give a whole number from 0 up, or None for all")
    if retry_errors and not resume:
        raise ArgumentError(
            "retry_errors=True tries again what failed before, and without resume=True everything is asked "
            "anew; give resume=True with it, or leave it out"
        )


@dataclass(slots=True, kw_only=True)
class _Pass:
    """One pass over a file of drafts.

    Attributes:
        drafts_path: The file.
        limit: How many drafts are taken; None for all.
        setup: What it depends on.
        critic: Who makes the critiques.
        out_dir: Where the files go.
        retry_errors: Whether failures are asked for again.
        unfinished: Has drafts worked on until a budget ends it.
        left: Drafts that it ended before.
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
    notices: list[str] = field(default_factory=list)

    async def run(self, resume: bool) -> dict[str, Json]:
        """The statistics, once every draft has its record, or a budget has ended it."""
        started = time.perf_counter()
        with locked(self.out_dir):
            ledger = self._opened(resume)
            try:
                self._write_manifest(None)
                # A plain function is called in the order of the drafts, and never twice at a time.
                limit = 1 if self.critic.in_turn else _WINDOW
                pending = self._pending(ledger)
                made = run_bounded(self.unfinished.taken(pending), self._critique, limit=limit)
                async with aclosing(made):
                    async for record in made:
                        if record is not None:
                            ledger.append(record)
                            self.processed += 1
                self.unfinished.write()
                # The rest of the file is read only now that no request waits for its answer.
                self.left = self.unfinished.left + sum(1 for _ in pending)
                ledger.sweep()
                tally = CritiqueTally.of(ledger.records())
            finally:
                ledger.close()
            return self._finish(ledger, tally, time.perf_counter() - started)

    def rehearse(self, resume: bool) -> dict[str, Json]:
        """What a pass would do: how many drafts are asked about, and how long their prompts are."""
        done: dict[str, Json] = {"dry_run": True, "prompt_characters": 0}
        path = self.out_dir / CRITIQUES
        ledger = Ledger(path)
        if resume and path.exists():
            ledger.read()
        for draft in self._pending(ledger):
            self.processed += 1
            length = self.critic.prompt_length(draft)
            known = done["prompt_characters"]
            done["prompt_characters"] = None if length is None or known is None else known + length
        tally = CritiqueTally.of(ledger.records() if resume and path.exists() else ())
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
        """The drafts that are to be critiqued, in order; the others are counted."""
        seen = _Seen()
        for found in read_drafts(self.drafts_path):
            if self.limit is not None and self.drafts >= self.limit:
                return
            if isinstance(found, LineFault):
                self._tell(found)
                continue
            first = seen.first_line(found.id, found.line)
            if first is not None:
                self._tell(LineFault(found.line, f"the id stands in line {first} already", found.id))
                continue
            self.drafts += 1
            known = ledger.known(found.id)
            changed = known is not None and known.digest not in (None, found.digest)
            if known is not None and not changed and not (known.failed and self.retry_errors):
                self.skipped += 1
                self.unfinished.forget(found.id)
                continue
            yield found

    async def _critique(self, draft: Draft) -> dict[str, Json] | None:
        async def ask(begun: dict[str, Json]) -> dict[str, Json]:
            return critique_record(draft, await self.critic.critique(draft, begun))

        return await self.unfinished.work(draft.id, draft.digest, ask)

    def _tell(self, fault: LineFault) -> None:
        self.fault_count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault._asdict())

    def _finish(self, ledger: Ledger, tally: CritiqueTally, seconds: float) -> dict[str, Json]:
        if self.unfinished.ended_by is not None:
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
            **tally.to_dict(),
            "stopped": self.unfinished.limit,
            "left": self.left,
            "faults": self.faults,
            "fault_count": self.fault_count,
            "notices": self.notices,
        }

    def _write_manifest(self, tally: CritiqueTally | None) -> None:
        counts = counts_of(self.drafts, self.processed, self.skipped, tally)
        outputs = {"critiques": CRITIQUES, "manifest": MANIFEST, "stats": STATS}
        stopped = self.unfinished.limit
        told = {
            "finished": tally is not None and stopped is None,
            "stopped": stopped,
            "left": self.left,
            "faults": self.faults,
            "notices": self.notices,
        }
        write_json(self.out_dir / MANIFEST, {**manifest_of(self.setup, counts, outputs), **told})

    def _warn(self) -> None:
        """Tells of lines that gave no draft, and of what else is to be known."""
        if self.fault_count:
            shown = "; ".join(f"line {one['line']}: {one['fault']}" for one in self.faults[:3])
            more = " …" if self.fault_count > 3 else ""
            count = f"{self.fault_count} line{'s' if self.fault_count != 1 else ''}"
            self.notices.append(f"{count} of {self.drafts_path.name} passed over: {shown}{more}")
        for notice in self.notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)


class _Seen:
    """Ids with the line of the first draft that has it; on disk, so that memory does not grow."""

    def __init__(self) -> None:
        self._ids = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._ids.execute("PRAGMA journal_mode=OFF")
        self._ids.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID")

    def first_line(self, key: str, line: int) -> int | None:
        """The line on which the id stood first; None where it is new."""
        added = self._ids.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (key, line)).rowcount
        if added:
            return None
        found: int = self._ids.execute("SELECT line FROM ids WHERE id = ?", (key,)).fetchone()[0]
        return found
