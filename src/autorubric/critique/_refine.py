"""The refinement pass: drafts to revise are rewritten and critiqued again, the most urgent first."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from autorubric._sync import run_sync
from autorubric.critique._drafts import file_digest
from autorubric.critique._generate import critic_of, locked
from autorubric.critique._ledger import Ledger, set_aside, write_json
from autorubric.critique._prompts import rewrite_template
from autorubric.critique._records import now
from autorubric.critique._refine_jobs import RANKS, Job, Jobs, Risk, RiskRange
from autorubric.critique._refine_round import Outcome, Refiner
from autorubric.critique._schema import CritiqueSchema
from autorubric.critique._stats import percent
from autorubric.critique._teacher import teacher_of
from autorubric.errors import ArgumentError
from autorubric.eval import run_bounded
from autorubric.rubric import Rubric
from autorubric.values import Json

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
REFINED_STATS: Final = "refined_v1_stats.json"

_WINDOW: Final = 16


def refine(  # noqa: PLR0913 - the public contract
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
) -> dict[str, Json]:
    """The statistics of a refinement pass over the drafts to revise; safe inside a running event loop.

    A draft is rewritten as its critique says and critiqued again, until the verdict is pass (`refined`) or
    reject (`rejected`), the mean score does not rise, a text comes again, or the rounds are used up
    (`undecided`, with the reason), or the teacher fails (`errors`). Drafts with the worst issues come first,
    then those with the lowest scores. Writes `refined_v1.jsonl`, `rejected_v1.jsonl`, `undecided_v1.jsonl`,
    `errors_v1.jsonl`, whose lines are drafts again, and `refined_v1_stats.json`.

    Args:
        critiques_path: What `generate_critiques` wrote.
        drafts_path: The drafts that it was made of.
        out_dir: Where the files go; made where it is missing.
        teacher: Who rewrites and critiques, as in `generate_critiques`; a function tells them apart by
            `prompt.task`. With a rubric it is asked to rewrite as a teacher, and to judge as a judge.
        max_rounds: How often a draft is rewritten at most; from 1 up.
        config: As in `generate_critiques`.
        schema: As there.
        template: As there.
        rewrite: The text of the rewrite prompt, or a `Path` to it, with `{id}`, `{prompt}`, `{output}`,
            `{contract}`, `{remarks}`, `{material}` (these four), `{form}` and `{rule}`.
        rubric: As there.
        threshold: As there.
        min_risk: The least risk of hallucination that is taken: `low`, `medium` or `high`.
        max_risk: The greatest.
        limit: So many of the most urgent drafts; None for all.
        resume: Go on with what is there; without it, files that are there are moved to `….previous.jsonl`.
        retry_errors: On resume, try again what failed.

    Raises:
        ArgumentError: The arguments cannot work together.
        FileError: A file cannot be read or written.
        RunLockedError: Another process writes to the folder.
    """
    return run_sync(
        refine_async(
            critiques_path,
            drafts_path,
            out_dir,
            teacher,
            max_rounds=max_rounds,
            config=config,
            schema=schema,
            template=template,
            rewrite=rewrite,
            rubric=rubric,
            threshold=threshold,
            min_risk=min_risk,
            max_risk=max_risk,
            limit=limit,
            resume=resume,
            retry_errors=retry_errors,
        )
    )


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
) -> dict[str, Json]:
    """What `refine` gives, without blocking the event loop."""
    _check_counts(max_rounds, limit)
    for name, level in (("min_risk", min_risk), ("max_risk", max_risk)):
        if level is not None and level not in RANKS:
            raise ArgumentError(f"{name} {level!r} is no risk level; give low, medium or high")
    writer = teacher_of(teacher, config)
    critic = critic_of(
        teacher,
        config=config,
        schema=CritiqueSchema.of(schema),
        template=template,
        rubric=rubric,
        threshold=threshold,
    )
    refiner = Refiner(
        teacher=writer, critic=critic, template=rewrite_template(rewrite), max_rounds=max_rounds
    )
    sources = (Path(critiques_path), Path(drafts_path))
    risk = RiskRange(least=min_risk, most=max_risk)
    work = _Refining(refiner=refiner, out_dir=Path(out_dir), limit=limit, retry_errors=retry_errors)
    try:
        return await work.run(sources, risk, resume)
    finally:
        await writer.aclose()
        await critic.aclose()


def _check_counts(max_rounds: int, limit: int | None) -> None:
    if isinstance(max_rounds, bool) or not isinstance(max_rounds, int) or max_rounds < 1:
        raise ArgumentError(f"max_rounds {max_rounds!r}: give a whole number from 1 up")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ArgumentError(f"limit {limit!r}: give a whole number from 0 up, or None for all")


@dataclass(slots=True, kw_only=True)
class _Refining:
    """One refinement pass.

    Attributes:
        refiner: Refines single drafts.
        out_dir: Where the files go.
        limit: How many drafts are taken; None for all.
        retry_errors: Whether failures are tried again.
    """

    refiner: Refiner
    out_dir: Path
    limit: int | None
    retry_errors: bool
    ledgers: dict[Outcome, Ledger] = field(default_factory=dict)
    processed: int = 0
    skipped: int = 0
    notices: list[str] = field(default_factory=list)

    async def run(self, sources: tuple[Path, Path], risk: RiskRange, resume: bool) -> dict[str, Json]:
        """The statistics, once every draft has its outcome."""
        started = time.perf_counter()
        jobs = Jobs(*sources, risk)
        with locked(self.out_dir):
            self._open(resume)
            try:
                limit = 1 if self.refiner.teacher.in_turn or self.refiner.critic.in_turn else _WINDOW
                made = run_bounded(self._pending(jobs), self._refine, limit=limit)
                async with aclosing(made):
                    async for outcome, record in made:
                        self.ledgers[outcome].append(record)
                        self.processed += 1
                decided = [ledger for name, ledger in self.ledgers.items() if name != "errors"]
                self.ledgers["errors"].sweep(decided)
                stats = {**self._counted(jobs), **_figures(self.ledgers)}
            finally:
                for ledger in self.ledgers.values():
                    ledger.close()
            names = ("critiques", "drafts")
            inputs = {f"{name}_path": str(path) for name, path in zip(names, sources, strict=True)}
            inputs |= {f"{name}_hash": file_digest(path) for name, path in zip(names, sources, strict=True)}
            stats |= {"inputs": inputs, "generated_at": now(), "seconds": time.perf_counter() - started}
            write_json(self.out_dir / REFINED_STATS, stats)
        for notice in self.notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)
        return stats

    def _open(self, resume: bool) -> None:
        for outcome in OUTCOMES:
            path = self.out_dir / f"{outcome}_v1.jsonl"
            aside = None if resume else set_aside(path)
            if aside is not None:
                self.notices.append(f"records that were there are in {aside.name} now")
            ledger = self.ledgers[outcome] = Ledger(path)
            ledger.open()
            self.notices += ledger.notices

    def _pending(self, jobs: Jobs) -> Iterator[Job]:
        for taken, job in enumerate(jobs):
            if self.limit is not None and taken >= self.limit:
                return
            again = {"errors"} if self.retry_errors else set()
            if any(ledger.known(job.id) for name, ledger in self.ledgers.items() if name not in again):
                self.skipped += 1
            else:
                yield job

    async def _refine(self, job: Job) -> tuple[Outcome, dict[str, Json]]:
        if job.draft is None:
            return "errors", _unusable(job, "DRAFT_NOT_FOUND", "there is no draft of that id")
        if job.changed:
            told = "the draft has changed since it was critiqued; critique it again"
            return "errors", _unusable(job, "DRAFT_CHANGED", told)
        return await self.refiner.refine(job.draft, job.critique)

    def _counted(self, jobs: Jobs) -> dict[str, Json]:
        if jobs.faults:
            lines = ", ".join(str(fault.line) for fault in jobs.faults[:5])
            self.notices.append(f"{len(jobs.faults)} lines of the critiques cannot be read: {lines}")
        return {
            "total": jobs.total,
            "filtered": jobs.filtered,
            "processed": self.processed,
            "skipped": self.skipped,
            "faults": [fault._asdict() for fault in jobs.faults],
            "fault_count": len(jobs.faults),
            "notices": self.notices,
        }


def _unusable(job: Job, code: str, message: str) -> dict[str, Json]:
    return {
        "id": job.id,
        "draft_id": job.id,
        "prompt": None if job.draft is None else job.draft.prompt,
        "output": None if job.draft is None else job.draft.output,
        "contract": None,
        "reason": "error",
        "rounds": 0,
        "critique": dict(job.critique),
        "mean_scores": [],
        "history": [],
        "error": {"stage": "load", "code": code, "message": message, "raw_text": None, "teacher": None},
        "created_at": now(),
        "draft_hash": None if job.draft is None else job.draft.digest,
    }


def _figures(ledgers: Mapping[Outcome, Ledger]) -> dict[str, Json]:
    """What the records of all files come to; the success rate is in percent of the drafts in them."""
    counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    reasons: Counter[str] = Counter()
    rounds: Counter[int] = Counter()
    gains: list[float] = [0.0, 0.0]
    for outcome, ledger in ledgers.items():
        for record in ledger.records():
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
    }
