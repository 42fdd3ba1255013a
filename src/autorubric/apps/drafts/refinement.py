"""The refinement pass, which rewrites drafts and critiques them again, the most urgent first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from autorubric.apps.drafts.drafts import (
    Draft,
    LineFault,
    draft_key,
    draft_of,
    graded_score,
    issues_of,
    line_at,
    lines_of,
    now,
    percent,
    read_drafts,
    risk_of,
    scores_of,
    verdict_in,
)
from autorubric.apps.drafts.passes import DraftOptions, DraftPass
from autorubric.apps.drafts.provenance import json_digest
from autorubric.apps.drafts.records import contract_error, temporary_table
from autorubric.apps.drafts.refinement_round import Refiner, RewriteOutcome, Validate
from autorubric.apps.drafts.teacher import rewrite_template, teacher_of, template_text
from autorubric.errors import ArgumentError
from autorubric.llm.config import LLMConfig
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import sync_twin
from autorubric.support.objects import Json, is_whole
from autorubric.support.reading_errors import short_repr

Risk = Literal["low", "medium", "high"]

RANKS: Final[Mapping[str, int]] = {"low": 1, "medium": 2, "high": 3}
"""Ranks of severities and risk levels, in ascending order."""


class RefinementJob(NamedTuple):
    """A draft to refine."""

    id: str
    critique: Mapping[str, Json]
    draft: Draft | None  # None if the drafts file has no draft with this id
    changed: bool  # whether the draft has changed since it was critiqued
    written_id: str | int  # id as written in the critiques file

    @property
    def digest(self) -> str:
        """Return the SHA-256 digest of the draft, its critique, and whether the draft has changed."""
        return json_digest([None if self.draft is None else self.draft.digest, self.critique, self.changed])


class RiskRange(NamedTuple):
    """A range of risk levels. A critique without a risk level is only included if no bound is set."""

    least: Risk | None = None
    most: Risk | None = None

    def includes(self, critique: Mapping[str, Any]) -> bool:
        """Return whether the risk level of a critique is in the range."""
        if self.least is None and self.most is None:
            return True
        rank = RANKS.get(risk_of(critique) or "")
        return rank is not None and RANKS[self.least or "low"] <= rank <= RANKS[self.most or "high"]


class Jobs:
    """The drafts of a critiques file whose verdict is revise, except drafts removed from the drafts file."""

    def __init__(
        self,
        critiques_path: Path,
        drafts_path: Path,
        risk: RiskRange,
        add_fault: Callable[[LineFault], None] = lambda fault: None,
    ) -> None:
        self._critiques_path, self._drafts_path = critiques_path, drafts_path
        # `critique` and `draft` are the offsets of their lines.
        self._index = temporary_table(
            "id TEXT PRIMARY KEY, revise INTEGER, taken INTEGER, severity INTEGER, lowest REAL, "
            "critique INTEGER, draft INTEGER, failure TEXT"
        )
        self._read_critiques(risk, add_fault)
        self.removed = self._find_drafts()  # critiques whose draft was removed, and that are not counted
        self.critiques = self._count("1")
        self.failed = self._count("failure IS NOT NULL")  # critiques without a verdict
        self.total = self._count("revise")
        self.filtered = self._count("revise AND NOT taken")  # whose risk level is not in the range
        first = self._index.execute(
            "SELECT failure FROM rows WHERE failure IS NOT NULL ORDER BY critique"
        ).fetchone()
        self.first_failure: str | None = None if first is None else first[0]

    def __iter__(self) -> Iterator[RefinementJob]:
        query = "SELECT id FROM rows WHERE taken ORDER BY severity DESC, lowest ASC, critique ASC"
        for (key,) in self._index.execute(query):
            job = self.find(key)
            assert job is not None
            yield job

    def judged_ids(self) -> Iterator[str]:
        """Yield the ids of all critiques that have a verdict."""
        return (key for (key,) in self._index.execute("SELECT id FROM rows WHERE failure IS NULL"))

    def __contains__(self, key: str) -> bool:
        """Return whether there is a critique with this id."""
        return self._index.execute("SELECT 1 FROM rows WHERE id = ?", (key,)).fetchone() is not None

    def find(self, key: str) -> RefinementJob | None:
        """Return the refinement job of an id; None if the verdict is not revise."""
        row = self._index.execute(
            "SELECT critique, draft FROM rows WHERE id = ? AND revise", (key,)
        ).fetchone()
        if row is None:
            return None
        critique_at, draft_at = row
        record = json.loads(line_at(self._critiques_path, critique_at).raw)
        found = None if draft_at is None else draft_of(line_at(self._drafts_path, draft_at))
        draft = found if isinstance(found, Draft) else None
        is_changed = draft is not None and record.get("draft_hash") not in (None, draft.digest)
        return RefinementJob(key, record["critique"], draft, is_changed, record["id"])

    def _read_critiques(self, risk: RiskRange, add_fault: Callable[[LineFault], None]) -> None:
        for line in lines_of(self._critiques_path):
            try:
                record = json.loads(line.raw)
                key = draft_key(record["id"])
                if key is None:
                    raise TypeError(record["id"])
            except (ValueError, KeyError, TypeError, RecursionError):
                add_fault(LineFault(line.number, "not a critique record"))
                continue
            row: tuple[object, ...]
            if (verdict := verdict_in(record)) is None:
                row = (key, False, False, 0, 0.0, line.offset, None, _failure(record))
            else:
                critique, revise = record["critique"], verdict == "revise"
                taken = revise and risk.includes(critique)
                ranks = (RANKS.get(str(issue.get("severity")), 0) for issue in issues_of(critique))
                severity, lowest = max(ranks, default=0), _lowest(critique)
                row = (key, revise, taken, severity, lowest, line.offset, None, None)
            self._index.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _find_drafts(self) -> int:
        """Find the draft of each critique; drop critiques of removed drafts, and return their number."""
        is_complete = True
        for found in read_drafts(self._drafts_path):
            if isinstance(found, LineFault):
                is_complete = False
            else:
                # The first draft with an id is used, as in the critique pass.
                place = (found.offset, found.id)
                self._index.execute("UPDATE rows SET draft = ? WHERE id = ? AND draft IS NULL", place)
        if not is_complete or not self._count("draft IS NOT NULL"):
            return 0
        return self._index.execute("DELETE FROM rows WHERE draft IS NULL").rowcount

    def _count(self, condition: str) -> int:
        count: int = self._index.execute(f"SELECT COUNT(*) FROM rows WHERE {condition}").fetchone()[0]
        return count


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


class RefinementPass(DraftPass[RefinementJob]):
    """One pass over critiques whose verdict is revise."""

    stem = "refined_v1"
    names = get_args(RewriteOutcome)
    digest_key = "job_hash"
    window = 16

    def __init__(
        self,
        options: DraftOptions,
        out_dir: str | Path,
        inputs: Mapping[str, str | Path],
        *,
        max_rounds: int,
        rewrite: str | Path | None,
        risk: RiskRange,
        validate: Validate | None,
    ) -> None:
        if not is_whole(max_rounds) or max_rounds < 1:
            raise ArgumentError(f"max_rounds must be a positive integer; got {max_rounds!r}")
        if validate is not None and not callable(validate):
            raise ArgumentError(f"validate must be a function of the output; got {short_repr(validate)}")
        for name, level in (("min_risk", risk.least), ("max_risk", risk.most)):
            if level is not None and level not in RANKS:
                raise ArgumentError(f"{name} must be low, medium or high; got {level!r}")
        super().__init__(options, out_dir, inputs)
        self.risk = risk
        self.refiner = Refiner(
            teacher=teacher_of(options.teacher, options.config),
            critic=self.critic,
            template=rewrite_template(rewrite),
            max_rounds=max_rounds,
            validate=validate,
        )

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return (*self.refiner.teacher.models, *self.critic.models)

    @property
    def parallel(self) -> int | None:
        limits = (self.refiner.teacher.parallel, self.critic.parallel)
        return min((one for one in limits if one), default=None)

    @property
    def settings(self) -> dict[str, Json]:
        return {
            "limit": self.options.limit,
            "max_rounds": self.refiner.max_rounds,
            "min_risk": self.risk.least,
            "max_risk": self.risk.most,
            "rewrite_hash": json_digest(template_text(self.refiner.template)),
        }

    def prepare(self) -> None:
        super().prepare()
        self.jobs = Jobs(self.inputs["critiques"], self.inputs["drafts"], self.risk, self.add_fault)

    def open_files(self) -> None:
        """Open the files of outcomes, and remove the outcomes of drafts or critiques that have changed."""
        super().open_files()
        if not self.options.resume:
            return
        # Removed before any request, so that a draft never has two outcomes, even after an interruption.
        stale = 0
        for key in self.jobs.judged_ids():
            for file in self.files.values():
                entry = file.find(key)
                if entry is None or entry.digest is None:
                    continue
                job = self.jobs.find(key)
                if job is None or job.digest != entry.digest:
                    file.forget(key)
                    stale += 1
        for file in self.files.values():
            file.sweep()
        if stale:
            self.notices.append(f"outcomes removed because the draft or its critique has changed: {stale}")

    def pending(self) -> Iterator[RefinementJob]:
        kept = [
            file for name, file in self.files.items() if name != "errors" or not self.options.retry_errors
        ]
        for job in islice(self.jobs, self.options.limit):
            if any(file.find(job.id) for file in kept):
                self.skipped += 1
                self.checkpoint.forget(job.id, job.digest)
            else:
                yield job

    async def work_on(self, item: RefinementJob) -> tuple[str, dict[str, Json]] | None:
        draft = item.draft
        if draft is None:
            return _unusable(item, "DRAFT_NOT_FOUND", "the drafts file has no draft with this id")
        if item.changed:
            message = "the draft has changed since it was critiqued; critique it again"
            return _unusable(item, "DRAFT_CHANGED", message)

        async def ask(begun: dict[str, Json]) -> tuple[str, dict[str, Json]]:
            outcome, record = await self.refiner.refine(draft, item.critique, begun)
            self.checkpoint.errors.add(record["error"])
            return outcome, {**record, "job_hash": item.digest}

        return await self.checkpoint.work(item.id, item.digest, ask)

    def sweep(self) -> None:
        self.files["errors"].sweep([file for name, file in self.files.items() if name != "errors"])

    def counts(self) -> dict[str, Json]:
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

    def figures(self) -> dict[str, Json]:
        """Return statistics over the records of all files; the success rate is a percentage."""
        counts: Counter[str] = Counter(dict.fromkeys(self.names, 0))
        reasons: Counter[str] = Counter()
        rounds: Counter[int] = Counter()
        gain, gained = 0.0, 0
        first_error: str | None = None
        for outcome, file in self.files.items():
            for record in file.records():
                if (draft_key(record["id"]) or "") not in self.jobs:
                    continue  # the draft was removed from the drafts file
                if (error := record.get("error")) and first_error is None:
                    first_error = f"{error.get('code')}: {error.get('message')}"
                counts[outcome] += 1
                reasons[str(record.get("reason"))] += 1
                rounds[int(record.get("rounds") or 0)] += 1
                scores = [one for one in record.get("mean_scores") or [] if isinstance(one, int | float)]
                if outcome == "refined" and len(scores) > 1:
                    gain += scores[-1] - scores[0]
                    gained += 1
        return {
            **counts,
            "success_rate": percent(counts["refined"], counts.total()),
            "reason_counts": dict(reasons),
            "rounds_distribution": {str(number): rounds[number] for number in sorted(rounds)},
            "mean_gain": gain / gained if gained else None,
            "first_error": first_error,
        }

    def manifest_counts(self, figures: Mapping[str, Json] | None) -> dict[str, Json]:
        return {**self.counts(), **{name: figures and figures[name] for name in self.names}}

    def add_notices(self) -> None:
        super().add_notices()
        if self.fault_count:
            lines = ", ".join(str(fault["line"]) for fault in self.faults[:5])
            self.notices.append(f"invalid lines in the critiques file: {lines} ({self.fault_count} in total)")
        if self.jobs.removed:
            self.notices.append(
                "critiques excluded, with their outcomes, because their drafts are no longer in the drafts "
                f"file: {self.jobs.removed}"
            )

    def origin(self) -> dict[str, Json]:
        return {"inputs": self.manifest["inputs"], "generated_at": now()}

    async def aclose(self) -> None:
        await self.refiner.teacher.aclose()
        await super().aclose()


def _unusable(job: RefinementJob, code: str, message: str) -> tuple[str, dict[str, Json]]:
    draft = job.draft
    return "errors", {
        "id": job.written_id,
        "draft_id": job.written_id,
        "prompt": None if draft is None else draft.prompt,
        "output": None if draft is None else draft.output,
        "contract": None if draft is None else draft.contract,
        "reason": "error",
        "rounds": 0,
        "output_round": 0,
        "critique": dict(job.critique),
        "mean_scores": [],
        "history": [],
        "error": {"stage": "load", "code": code, "message": message, "raw_text": None, "teacher": None},
        "created_at": now(),
        "draft_hash": None if draft is None else draft.digest,
        "job_hash": job.digest,
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
    options = DraftOptions(
        teacher=teacher,
        config=config,
        schema=schema,
        template=template,
        rubric=rubric,
        threshold=threshold,
        limit=limit,
        resume=resume,
        retry_errors=retry_errors,
        max_calls=max_calls,
        max_cost=max_cost,
    )
    work = RefinementPass(
        options,
        out_dir,
        {"critiques": critiques_path, "drafts": drafts_path},
        max_rounds=max_rounds,
        rewrite=rewrite,
        risk=RiskRange(min_risk, max_risk),
        validate=validate,
    )
    return await work.run()


refine = sync_twin(refine_async)
"""Call `refine_async` from synchronous code, even inside a running event loop."""
