"""A running refinement pass, with the drafts that still need refinement and their outcomes."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from autorubric._sync import run_bounded
from autorubric.critique._drafts import key_of
from autorubric.critique._ledger import Ledger, locked, set_all_aside, write_json
from autorubric.critique._manifest import Setup, manifest_of, setup_changes
from autorubric.critique._records import now, percent
from autorubric.critique._refine_jobs import Job, Jobs
from autorubric.critique._refine_round import Outcome, Refiner
from autorubric.critique._unfinished import Unfinished
from autorubric.values import Json

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
MANIFEST: Final = "refined_v1_manifest.json"
STATS: Final = "refined_v1_stats.json"
UNFINISHED: Final = "refined_v1_unfinished.json"
OUTPUTS: Final[Mapping[str, str]] = {
    **{str(name): f"{name}_v1.jsonl" for name in OUTCOMES},
    "manifest": MANIFEST,
    "stats": STATS,
}

_WINDOW: Final = 16
"""Default number of drafts in progress, which is also the maximum number whose work is lost on a kill."""


@dataclass(slots=True, kw_only=True)
class RefinementPass:
    """One refinement pass.

    Attributes:
        setup: The settings that the outcomes depend on.
        jobs: The drafts to refine.
        refiner: The refiner for single drafts.
        out_dir: The output folder.
        limit: Maximum number of drafts to refine; None for all.
        retry_errors: Whether to retry drafts that failed.
        unfinished: Tracks drafts in progress and stops the pass when the budget is used up.
        left: Number of drafts that were left when the pass stopped.
    """

    setup: Setup
    jobs: Jobs
    refiner: Refiner
    out_dir: Path
    limit: int | None
    retry_errors: bool
    unfinished: Unfinished
    left: int = 0
    ledgers: dict[Outcome, Ledger] = field(default_factory=dict)
    processed: int = 0
    skipped: int = 0
    notices: list[str] = field(default_factory=list)

    async def run(self, resume: bool) -> dict[str, Json]:
        """Refine all pending drafts, until done or stopped by the budget or errors; return statistics."""
        started = time.perf_counter()
        with locked(self.out_dir):
            self._open(resume)
            try:
                self._write_manifest(None)
                limits = (self.refiner.teacher.parallel, self.refiner.critic.parallel)
                limit = min((one for one in limits if one), default=_WINDOW)
                self.unfinished.errors.in_flight = limit
                pending = self._pending()
                made = run_bounded(self.unfinished.taken(pending), self._refine, limit=limit)
                async with aclosing(made):
                    async for done in made:
                        if done is not None:
                            outcome, record = done
                            self.ledgers[outcome].append(record)
                            self.processed += 1
                self.unfinished.write()
                self.left = self.unfinished.left + sum(1 for _ in pending)
                decided = [ledger for name, ledger in self.ledgers.items() if name != "errors"]
                self.ledgers["errors"].sweep(decided)
                figures = _figures(self.ledgers, self.jobs)
            finally:
                for ledger in self.ledgers.values():
                    ledger.close()
            stats = self._finish(figures, time.perf_counter() - started)
        for notice in self.notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)
        return stats

    def _open(self, resume: bool) -> None:
        if resume:
            self.notices += setup_changes(self.out_dir / MANIFEST, self.setup)
            self.unfinished.read()
        else:
            names = [*(OUTPUTS[outcome] for outcome in OUTCOMES), UNFINISHED]
            self.notices += set_all_aside(self.out_dir / name for name in names)
        for outcome in OUTCOMES:
            ledger = Ledger(self.out_dir / OUTPUTS[outcome], digest_key="job_hash")
            self.ledgers[outcome] = ledger
            ledger.open()
            self.notices += ledger.notices
        if resume:
            self._sweep_stale()

    def _sweep_stale(self) -> None:
        """Remove the outcomes of drafts or critiques that have changed, before any request.

        A draft therefore never has two outcomes, even if the pass is interrupted.
        """
        stale = 0
        for key in self.jobs.judged():
            for ledger in self.ledgers.values():
                known = ledger.known(key)
                if known is None or known.digest is None:
                    continue
                job = self.jobs.of(key)
                if job is None or job.digest != known.digest:
                    ledger.forget(key)
                    stale += 1
        for ledger in self.ledgers.values():
            ledger.sweep()
        if stale:
            self.notices.append(f"outcomes removed because the draft or its critique has changed: {stale}")

    def _pending(self) -> Iterator[Job]:
        for taken, job in enumerate(self.jobs):
            if self.limit is not None and taken >= self.limit:
                return
            again = {"errors"} if self.retry_errors else set()
            if any(ledger.known(job.id) for name, ledger in self.ledgers.items() if name not in again):
                self.skipped += 1
                self.unfinished.forget(job.id, job.digest)
            else:
                yield job

    async def _refine(self, job: Job) -> tuple[Outcome, dict[str, Json]] | None:
        draft = job.draft
        if draft is None:
            return "errors", _unusable(job, "DRAFT_NOT_FOUND", "the drafts file has no draft with this id")
        if job.changed:
            told = "the draft has changed since it was critiqued; critique it again"
            return "errors", _unusable(job, "DRAFT_CHANGED", told)

        async def ask(begun: dict[str, Json]) -> tuple[Outcome, dict[str, Json]]:
            outcome, record = await self.refiner.refine(draft, job.critique, begun)
            self.unfinished.errors.add(record["error"])
            return outcome, {**record, "job_hash": job.digest}

        return await self.unfinished.work(job.id, job.digest, ask)

    def _finish(self, figures: Mapping[str, Json], seconds: float) -> dict[str, Json]:
        if self.unfinished.limit is not None:
            self.notices.append(self.unfinished.told(self.left, self.left + self.processed + self.skipped))
        if self.jobs.fault_count:
            lines = ", ".join(str(fault.line) for fault in self.jobs.faults[:5])
            self.notices.append(
                f"invalid lines in the critiques file: {lines} ({self.jobs.fault_count} in total)"
            )
        if self.jobs.removed:
            self.notices.append(
                "critiques excluded, with their outcomes, because their drafts are no longer in the drafts "
                f"file: {self.jobs.removed}"
            )
        stats: dict[str, Json] = {**self._counts(), **figures, **self._told()}
        stats |= {"inputs": dict(self.setup.inputs), "generated_at": now(), "seconds": seconds}
        self._write_manifest(figures)
        write_json(self.out_dir / STATS, stats)
        return stats

    def _counts(self) -> dict[str, Json]:
        return {
            "total": self.jobs.total,
            "filtered": self.jobs.filtered,
            "processed": self.processed,
            "skipped": self.skipped,
            "removed": self.jobs.removed,
            "critiques": self.jobs.critiques,
            "critiques_failed": self.jobs.failed,
            "first_critique_error": self.jobs.first_failure,
        }

    def _told(self) -> dict[str, Json]:
        return {
            "stopped": self.unfinished.limit,
            "left": self.left,
            "faults": [fault._asdict() for fault in self.jobs.faults],
            "fault_count": self.jobs.fault_count,
            "notices": self.notices,
        }

    def _write_manifest(self, figures: Mapping[str, Json] | None) -> None:
        """Write the manifest; the counts of the outcome files are None while the pass is running."""
        counts = self._counts()
        counts |= {name: None if figures is None else figures[name] for name in OUTCOMES}
        told = {"finished": figures is not None and self.unfinished.limit is None, **self._told()}
        write_json(self.out_dir / MANIFEST, {**manifest_of(self.setup, counts, OUTPUTS), **told})


def _unusable(job: Job, code: str, message: str) -> dict[str, Json]:
    return {
        "id": job.written_id,
        "draft_id": job.written_id,
        "prompt": None if job.draft is None else job.draft.prompt,
        "output": None if job.draft is None else job.draft.output,
        "contract": None if job.draft is None else job.draft.contract,
        "reason": "error",
        "rounds": 0,
        "output_round": 0,
        "critique": dict(job.critique),
        "mean_scores": [],
        "history": [],
        "error": {"stage": "load", "code": code, "message": message, "raw_text": None, "teacher": None},
        "created_at": now(),
        "draft_hash": None if job.draft is None else job.draft.digest,
        "job_hash": job.digest,
    }


def _figures(ledgers: Mapping[Outcome, Ledger], jobs: Jobs) -> dict[str, Json]:
    """Return statistics over the records of all outcome files; the success rate is a percentage.

    Outcomes of drafts that were removed from the drafts file are not counted.
    """
    counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    reasons: Counter[str] = Counter()
    rounds: Counter[int] = Counter()
    gains: list[float] = [0.0, 0.0]
    first_error: str | None = None
    for outcome, ledger in ledgers.items():
        for record in ledger.records():
            if not jobs.holds(key_of(record["id"]) or ""):
                continue
            if (error := record.get("error")) and first_error is None:
                first_error = f"{error.get('code')}: {error.get('message')}"
            counts[outcome] += 1
            reasons[str(record.get("reason"))] += 1
            rounds[int(record.get("rounds") or 0)] += 1
            levels = [level for level in record.get("mean_scores") or [] if isinstance(level, int | float)]
            if outcome == "refined" and len(levels) > 1:
                gains[0] += levels[-1] - levels[0]
                gains[1] += 1
    return {
        **counts,
        "success_rate": percent(counts["refined"], counts.total()),
        "reason_counts": dict(reasons),
        "rounds_distribution": {str(number): rounds[number] for number in sorted(rounds)},
        "mean_gain": gains[0] / gains[1] if gains[1] else None,
        "first_error": first_error,
    }
