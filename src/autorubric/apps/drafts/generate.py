"""The critique pass, in which a teacher critiques every draft of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autorubric.apps.drafts.drafts import (
    CritiqueTally,
    Draft,
    LineFault,
    critique_record,
    draft_key,
    read_drafts,
)
from autorubric.apps.drafts.passes import DraftOptions, DraftPass
from autorubric.apps.drafts.records import RecordFile, contract_error, temporary_table
from autorubric.errors import FileError
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import sync_twin
from autorubric.support.objects import Json
from autorubric.support.read import read_errors_as


class CritiquePass(DraftPass[Draft]):
    """One pass over a file of drafts."""

    stem = "critiques_v1"
    names = ("critiques",)
    digest_key = "draft_hash"
    window = 32

    def __init__(
        self, options: DraftOptions, out_dir: str | Path, drafts_path: str | Path, *, dry_run: bool
    ) -> None:
        super().__init__(options, out_dir, {"drafts": drafts_path})
        self.dry_run = dry_run
        self.drafts = self.removed = 0
        self._seen = _SeenIds()

    async def process(self) -> dict[str, Json]:
        return self.plan() if self.dry_run else await super().process()

    def plan(self) -> dict[str, Json]:
        """Return what the pass would do: the pending drafts and the length of their prompts."""
        path = self.out_dir / self.outputs["critiques"]
        records = self.files["critiques"] = RecordFile(path)
        if self.options.resume and path.exists():
            with read_errors_as(path, FileError):
                records.read()
        pending = 0
        characters: int | None = 0
        for draft in self.pending():
            pending += 1
            length = self.critic.prompt_length(draft)
            characters = None if length is None or characters is None else characters + length
        figures = self.figures() if self.options.resume else CritiqueTally().to_dict()
        self.add_notices()
        self.warn()
        planned = {"dry_run": True, "prompt_characters": characters, "pending": pending}
        return {**self.counts(), **figures, **self.stop_entry(), **planned}

    def pending(self) -> Iterator[Draft]:
        limit, resume, retry = self.options.limit, self.options.resume, self.options.retry_errors
        for found in read_drafts(self.inputs["drafts"]):
            is_beyond = limit is not None and self.drafts >= limit
            if is_beyond and not resume:
                return
            if isinstance(found, LineFault):
                self._seen.is_whole = False
                if not is_beyond:
                    self.add_fault(found)
                continue
            first = self._seen.first_line(found.id, found.line)
            if is_beyond:
                continue
            if first is not None:
                fault = f"duplicate id, already used on line {first}"
                self.add_fault(LineFault(found.line, fault, found.id))
                continue
            self.drafts += 1
            entry = self.files["critiques"].find(found.id)
            if entry is not None and entry.digest in (None, found.digest) and not (entry.failed and retry):
                self.skipped += 1
                self.checkpoint.forget(found.id, found.digest)
            else:
                yield found

    async def work_on(self, item: Draft) -> tuple[str, dict[str, Json]] | None:
        async def ask(begun: dict[str, Json]) -> tuple[str, dict[str, Json]]:
            record = critique_record(item, await self.critic.critique(item, begun))
            self.checkpoint.errors.add(contract_error(record))
            return "critiques", record

        return await self.checkpoint.work(item.id, item.digest, ask)

    def sweep(self) -> None:
        self.files["critiques"].sweep()

    def counts(self) -> dict[str, Json]:
        names = {"total": self.drafts, "processed": self.processed, "skipped": self.skipped}
        return {**names, "removed": self.removed}

    def figures(self) -> dict[str, Json]:
        """Return statistics over the records of drafts that are in the file."""
        tally = CritiqueTally()
        for record in self.files["critiques"].records():
            if self.options.resume and self._seen.is_missing(draft_key(record["id"]) or ""):
                self.removed += 1
            else:
                tally.add(record)
        if self.removed:
            self.notices.append(
                "records excluded from the statistics because their drafts are no longer in "
                f"{self.inputs['drafts'].name}: {self.removed} (kept in {self.outputs['critiques']})"
            )
        self._tally = tally
        return tally.to_dict()

    def manifest_counts(self, figures: Mapping[str, Json] | None) -> dict[str, Json]:
        return {
            "total_drafts": self.drafts,
            "processed": self.processed,
            "skipped": self.skipped,
            "critique_parse_ok": None if figures is None else self._tally.parsed,
            "critique_schema_ok": None if figures is None else self._tally.valid,
        }

    def add_notices(self) -> None:
        super().add_notices()
        if self.fault_count:
            shown = "; ".join(f"line {one['line']}: {one['fault']}" for one in self.faults[:3])
            more = " …" if self.fault_count > 3 else ""
            count = f"{self.fault_count} line{'s' if self.fault_count != 1 else ''}"
            self.notices.append(f"skipped {count} of {self.inputs['drafts'].name}: {shown}{more}")


class _SeenIds:
    """Ids with the line of their first draft, stored on disk so that memory use does not grow."""

    def __init__(self) -> None:
        self.is_whole = True  # if not every line is a valid draft, a missing draft may be on an invalid one
        self._ids = temporary_table("id TEXT PRIMARY KEY, line INTEGER")

    def first_line(self, key: str, line: int) -> int | None:
        """Store an id; return the line on which it first occurred, or None if the id is new."""
        if self._ids.execute("INSERT OR IGNORE INTO rows VALUES (?, ?)", (key, line)).rowcount:
            return None
        found: int = self._ids.execute("SELECT line FROM rows WHERE id = ?", (key,)).fetchone()[0]
        return found

    def is_missing(self, key: str) -> bool:
        """Return whether the file certainly has no draft with this id."""
        return self.is_whole and not self._ids.execute("SELECT 1 FROM rows WHERE id = ?", (key,)).fetchone()


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
    return await CritiquePass(options, out_dir, drafts_path, dry_run=dry_run).run()


generate_critiques = sync_twin(generate_critiques_async)
"""Call `generate_critiques_async` from synchronous code, even inside a running event loop."""
