"""The refinement pass, which rewrites drafts and critiques them again, the most urgent first."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from autorubric.apps.drafts.critics import critic_of
from autorubric.apps.drafts.drafts import key_of, now, percent
from autorubric.apps.drafts.generate import check_going_on
from autorubric.apps.drafts.ledger import RecordLog, locked, set_all_aside, write_json
from autorubric.apps.drafts.manifest import Setup, Unfinished, check_apart, manifest_of, setup_changes
from autorubric.apps.drafts.prompts import rewrite_template, template_text
from autorubric.apps.drafts.provenance import CritiqueSchema, digest_of
from autorubric.apps.drafts.refinement_jobs import RANKS, Job, Jobs, Risk, RiskRange
from autorubric.apps.drafts.refinement_round import Outcome, Refiner
from autorubric.apps.drafts.teacher import teacher_of
from autorubric.errors import ArgumentError
from autorubric.llm.budget import spending_within
from autorubric.llm.route import spending_limit
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import run_bounded, sync_twin
from autorubric.support.objects import Json
from autorubric.support.reading_errors import shortened

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
    ledgers: dict[Outcome, RecordLog] = field(default_factory=dict)
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
            ledger = RecordLog(self.out_dir / OUTPUTS[outcome], digest_key="job_hash")
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
        stats: dict[str, Json] = {**self._counts(), **figures, **self._stop_entry()}
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

    def _stop_entry(self) -> dict[str, Json]:
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
        told = {"finished": figures is not None and self.unfinished.limit is None, **self._stop_entry()}
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


def _figures(ledgers: Mapping[Outcome, RecordLog], jobs: Jobs) -> dict[str, Json]:
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


async def refine_async(  # noqa: PLR0913 - the public contract
    critiques_path: str | Path,
    drafts_path: str | Path,
    out_dir: str | Path,
    teacher: Any,
    *,
    max_rounds: int = 3,
    config: Mapping[str, Json] | None = None,
    schema: Mapping[str, Json] | str | Path | None = None,
    template: str | Path | None = None,
    rewrite: str | Path | None = None,
    rubric: Rubric | str | Path | None = None,
    threshold: float | None = None,
    min_risk: Risk | None = None,
    max_risk: Risk | None = None,
    limit: int | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    validate: Callable[[Json], Json] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
) -> dict[str, Json]:
    """Rewrite the drafts whose verdict is revise, critique them again, and return statistics.

    A draft is rewritten based on its critique and critiqued again until the verdict is pass (`refined`) or
    reject (`rejected`), or until the teacher fails (`errors`). If the score does not increase, a text
    repeats, or all rounds are used up, the draft is `undecided`, with the reason and the best text, which can
    be the draft itself. The score is the mean of a critique's scores, or the rubric's score. Drafts with the
    worst issues come first, then drafts with the lowest scores. The function writes the drafts to
    `refined_v1.jsonl`, `rejected_v1.jsonl`, `undecided_v1.jsonl` and `errors_v1.jsonl`, and also writes
    `refined_v1_manifest.json` and `refined_v1_stats.json`.

    Args:
        critiques_path: The critiques file written by `generate_critiques`.
        drafts_path: The file of the drafts that were critiqued. Drafts removed from it are ignored.
        out_dir: The output folder, which is created if missing.
        teacher: The teacher that rewrites and critiques; see `generate_critiques`. A function distinguishes
            the two tasks by `prompt.task`. With a rubric, the teacher rewrites and votes as a judge.
        max_rounds: Maximum number of rewrites per draft, at least 1.
        config: See `generate_critiques`.
        schema: See `generate_critiques`.
        template: See `generate_critiques`.
        rewrite: Text of the rewrite prompt template, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`,
            `{contract}`, `{remarks}`, `{material}` (all four), `{form}` and `{rule}`.
        rubric: See `generate_critiques`.
        threshold: See `generate_critiques`.
        min_risk: Lowest hallucination risk to include: `low`, `medium` or `high`.
        max_risk: Highest hallucination risk to include.
        limit: Number of drafts to refine, most urgent first; None for all.
        resume: Whether to keep existing outcomes, unless the draft or its critique has changed. If False,
            existing files are moved to `….previous.jsonl`.
        retry_errors: Whether to retry failed drafts; requires `resume`.
        validate: A function that checks the rewritten output and returns its findings as JSON data, which
            become the contract in the record and in the next critique. An exception marks the output as
            invalid, and a model is asked again. Replaces the check that no top-level keys are lost.
        max_calls: See `generate_critiques`. Finished rounds of drafts in progress are kept.
        max_cost: See `generate_critiques`.

    Raises:
        ArgumentError: If the arguments are invalid or cannot be combined, or if `max_cost` is set and the
            price of a model is unknown.
        FileError: If a file cannot be read or is empty.
        RunLockedError: If another process is writing to the folder.
    """
    if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
        raise ArgumentError(f"max_rounds must be a positive integer; got {max_rounds!r}")
    check_going_on(limit, resume=resume, retry_errors=retry_errors)
    if validate is not None and not callable(validate):
        raise ArgumentError(f"validate must be a function of the output; got {shortened(validate)}")
    for name, level in (("min_risk", min_risk), ("max_risk", max_risk)):
        if level is not None and level not in RANKS:
            raise ArgumentError(f"{name} must be low, medium or high; got {level!r}")
    writer = teacher_of(teacher, config)
    checked = CritiqueSchema.of(schema)
    critic = critic_of(
        teacher, config=config, schema=checked, template=template, rubric=rubric, threshold=threshold
    )
    rewriting = rewrite_template(rewrite)
    refiner = Refiner(
        teacher=writer, critic=critic, template=rewriting, max_rounds=max_rounds, validate=validate
    )
    risk = RiskRange(least=min_risk, most=max_risk)
    inputs = {"critiques": Path(critiques_path), "drafts": Path(drafts_path)}
    check_apart(inputs, Path(out_dir), [*OUTPUTS.values(), UNFINISHED])
    try:
        models = (*writer.models, *critic.models)
        budget = spending_limit(models, max_calls=max_calls, max_cost=max_cost)
        setup = Setup.of(
            inputs=inputs,
            critic=critic,
            schema=checked if rubric is None else None,
            config=config,
            options={
                "limit": limit,
                "max_rounds": max_rounds,
                "min_risk": min_risk,
                "max_risk": max_risk,
                "rewrite_hash": digest_of(template_text(rewriting)),
            },
        )
        jobs = Jobs(Path(critiques_path), Path(drafts_path), risk)
        work = RefinementPass(
            setup=setup,
            jobs=jobs,
            refiner=refiner,
            out_dir=Path(out_dir),
            limit=limit,
            retry_errors=retry_errors,
            unfinished=Unfinished(Path(out_dir) / UNFINISHED, setup.basis),
        )
        with spending_within(budget) if budget.is_set else nullcontext():
            return await work.run(resume)
    finally:
        await writer.aclose()
        await critic.aclose()


refine = sync_twin(refine_async)
"""Call `refine_async` from synchronous code, even inside a running event loop."""
