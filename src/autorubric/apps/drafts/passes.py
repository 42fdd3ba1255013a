"""What the passes share: their options and manifest, the run, and the conditions on which it stops."""

from __future__ import annotations

import json
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

from autorubric.apps.drafts.critics import DraftCritic, SchemaCritic, rubric_critic
from autorubric.apps.drafts.drafts import MOST_FAULTS, LineFault, input_digest
from autorubric.apps.drafts.provenance import CritiqueSchema, json_digest
from autorubric.apps.drafts.records import RecordFile, lock_folder, set_aside, write_json
from autorubric.apps.drafts.teacher import critique_template, teacher_of
from autorubric.errors import ArgumentError, BudgetError
from autorubric.llm.budget import spending_within
from autorubric.llm.config import LLMConfig
from autorubric.llm.route import spending_limit
from autorubric.llm.specs import holds_secret
from autorubric.rubric.rubric import Rubric
from autorubric.support.concurrency import run_bounded
from autorubric.support.objects import SAME_ERRORS_TO_STOP, Json, error_pattern, is_whole
from autorubric.support.reading_errors import short_repr

VERSION: Final = "v1"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """Options of both passes, named and documented as the keywords of `generate_critiques`."""

    teacher: Any
    config: Mapping[str, Json] | None
    schema: Mapping[str, Json] | str | Path | None
    template: str | Path | None
    rubric: Rubric | str | Path | None
    threshold: float | None
    limit: int | None
    resume: bool
    retry_errors: bool
    max_calls: int | None
    max_cost: float | None

    def __post_init__(self) -> None:
        if self.limit is not None and (not is_whole(self.limit) or self.limit < 0):
            raise ArgumentError(f"limit must be a non-negative integer, or None for all; got {self.limit!r}")
        if self.retry_errors and not self.resume:
            raise ArgumentError(
                "retry_errors=True requires resume=True, because a new pass critiques all drafts; pass "
                "resume=True or omit retry_errors"
            )
        if self.config is not None and not isinstance(self.config, Mapping):
            raise ArgumentError(f"config must be a mapping; got {short_repr(self.config)}")
        if self.rubric is None:
            if self.threshold is not None:
                raise ArgumentError("threshold requires a rubric; pass rubric as well, or omit threshold")
            return
        for name, own in (("schema", "its own schema"), ("template", "its own prompts")):
            if getattr(self, name) is not None:
                raise ArgumentError(f"{name} cannot be combined with a rubric, which has {own}; omit one")
        if not isinstance(self.rubric, Rubric | str | Path):
            given = short_repr(self.rubric)
            raise ArgumentError(f"rubric must be a Rubric or the path of a rubric file; got {given}")

    def critic(self, schema: CritiqueSchema) -> DraftCritic:
        """Create the critic: a teacher with schema and template, or a rubric with the teacher as judge."""
        if self.rubric is None:
            teacher = teacher_of(self.teacher, self.config)
            return SchemaCritic(teacher=teacher, schema=schema, template=critique_template(self.template))
        rubric = self.rubric if isinstance(self.rubric, Rubric) else Rubric.from_file(self.rubric)
        return rubric_critic(rubric, self.teacher, threshold=self.threshold, config=self.config)


_MISSING: Final = object()
_COMPARED: Final = {
    "schema": ("critique_schema", "hash"),
    "template": ("template_hash",),
    "rubric": ("rubric_hash",),
    "threshold": ("threshold",),
    "teacher": ("teacher",),
    "rewrite template": ("rewrite_hash",),
    "number of rounds": ("max_rounds",),
}
"""Paths in a manifest of the settings that records depend on."""


def setup_changes(path: Path, manifest: Mapping[str, Json]) -> list[str]:
    """Return a notice for each setting that differs from the manifest of existing records."""
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    found = []
    for name, place in _COMPARED.items():
        earlier = _value_at(before, place)
        if earlier is not _MISSING and earlier != _value_at(manifest, place):
            found.append(f"the {name} differs from the one used for earlier records, which are kept")
    return found


def _value_at(content: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(content, Mapping) or step not in content:
            return _MISSING
        content = content[step]
    return content


def without_secrets(given: Json, name: str = "") -> Json:
    """Return JSON data with every secret masked and values of other types converted to strings."""
    if isinstance(given, Mapping):
        return {
            str(key): "***" if holds_secret(str(key), None) else without_secrets(value, str(key))
            for key, value in given.items()
        }
    if isinstance(given, list | tuple):
        return [without_secrets(one, name) for one in given]
    if name and holds_secret(name, given):
        return "***"
    return given if given is None or isinstance(given, str | int | float | bool) else str(given)


def _config_of(teacher: Mapping[str, Json]) -> dict[str, Json]:
    """Return the models and generation settings of a teacher that is a model; otherwise empty settings."""
    if "model" not in teacher:
        return {"models": [], "generation": {}}
    fallbacks = [one if isinstance(one, str) else one.get("model") for one in teacher.get("fallbacks") or []]
    settings = ("temperature", "top_p", "max_tokens", "seed")
    generation = {name: teacher[name] for name in settings if teacher.get(name) is not None}
    return {"models": [teacher["model"], *fallbacks], "generation": generation}


_UNANSWERED: Final = ("PROVIDER_ERROR", "TIMEOUT")


class RepeatedPassErrors:
    """A counter of consecutive identical errors in the records of a pass."""

    def __init__(self, in_flight: int) -> None:
        self._in_flight = in_flight  # maximum number of drafts in progress at a time
        self.message: str | None = None  # the reason why the pass stops; None while it continues
        self._error, self._count, self._has_answered = "", 0, False

    def add(self, error: Any) -> None:
        """Count the error of a record; None for a record without an error."""
        code = error.get("code") if isinstance(error, dict) else None
        if code not in _UNANSWERED:
            self._has_answered, self._count = True, 0
            return
        text = f"{code}: {error.get('message')}"
        same = error_pattern(text)
        self._count = self._count + 1 if same == self._error else 1
        self._error = same
        # If the teacher has answered before, a short outage can fail all drafts that are in progress.
        most = SAME_ERRORS_TO_STOP + (self._in_flight if self._has_answered else 0)
        if self._count >= most and self.message is None:
            which = "the last" if self._has_answered else "all"
            so_far = "" if self._has_answered else " so far"
            self.message = f"{which} {self._count} drafts{so_far} failed with the same error: {text}"


class Checkpoint:
    """Works on drafts until the budget or repeated errors stop the pass, and keeps answers for the next."""

    def __init__(self, path: Path, basis: str, in_flight: int) -> None:
        self._path = path
        self._basis = basis  # digest of the settings that answers depend on, in addition to the draft
        self._answers: dict[str, dict[str, Any]] = {}
        self._budget_error: BudgetError | None = None
        self.errors = RepeatedPassErrors(in_flight)
        self.left = 0  # number of drafts that were started but not finished

    def read(self) -> None:
        """Read the answers kept by an earlier pass."""
        try:
            self._answers = dict(json.loads(self._path.read_text(encoding="utf-8"))["drafts"])
        # If the file is invalid, its answers are requested again.
        except (OSError, ValueError, KeyError, TypeError):
            return

    def until_stop(self, waiting: Iterator[T]) -> Iterator[T]:
        """Yield the items in order until the pass is to stop."""
        while self.limit is None:
            item = next(waiting, None)
            if item is None:
                return
            yield item

    async def work(self, key: str, digest: str, ask: Callable[[dict[str, Json]], Awaitable[T]]) -> T | None:
        """Ask about a draft and return the result; None if the budget did not allow all questions."""
        begun: dict[str, Json] = self.forget(key, digest).get("answered", {})
        try:
            return await ask(begun)
        except BudgetError as error:
            self._budget_error = self._budget_error or error
            self.left += 1
            if any(begun.values()):
                self._answers[self._place(key, digest)] = {"id": key, "answered": begun}
            return None

    @property
    def limit(self) -> str | None:
        """Return the reason for stopping: `max_calls`, `max_cost` or `errors`; None if not stopped."""
        if self._budget_error is None:
            return None if self.errors.message is None else "errors"
        return self._budget_error.limit

    def forget(self, key: str, digest: str) -> dict[str, Any]:
        """Drop the stored answers of a draft, and return them."""
        return self._answers.pop(self._place(key, digest), {}) if self._answers else {}

    def write(self) -> None:
        """Write the kept answers to the file atomically, or delete the file if there are none."""
        if self._answers:
            write_json(self._path, {"version": VERSION, "drafts": self._answers})
        else:
            self._path.unlink(missing_ok=True)

    def _place(self, key: str, digest: str) -> str:
        return json_digest([self._basis, key, digest])

    def notice(self, left: int, total: int) -> str:
        """Return the notice about a stopped pass with the number of drafts that are left."""
        why = self._budget_error or self.errors.message
        more = "" if self._budget_error else " with retry_errors"
        return f"the pass was stopped: {why}; resume{more} to process the remaining {left} of {total} drafts"


WorkT = TypeVar("WorkT")


class DraftPass(ABC, Generic[WorkT]):
    """A pass over drafts, whose records are appended to files as they arrive, so that it can be resumed."""

    # Beginning of the names of the manifest, the statistics and the file of unfinished drafts.
    stem: ClassVar[str]
    names: ClassVar[tuple[str, ...]]  # names of the files of records
    digest_key: ClassVar[str]  # key of the digest in a record that says what the record depends on
    # Default number of drafts in progress, and therefore the most whose work is lost on a kill.
    window: ClassVar[int]

    def __init__(self, options: DraftOptions, out_dir: str | Path, inputs: Mapping[str, str | Path]) -> None:
        self.options = options
        self.schema = CritiqueSchema.of(options.schema)
        self.critic = options.critic(self.schema)
        self.out_dir = Path(out_dir)
        self.inputs = {name: Path(path) for name, path in inputs.items()}
        self.outputs = {name: f"{name}_{VERSION}.jsonl" for name in self.names}
        self.outputs |= {name: f"{self.stem}_{name}.json" for name in ("manifest", "stats")}
        self.unfinished = self.out_dir / f"{self.stem}_unfinished.json"
        self.files: dict[str, RecordFile] = {}
        self.processed = self.skipped = self.left = 0
        self.faults: list[dict[str, Json]] = []
        self.fault_count = 0
        self.notices: list[str] = []
        written = {(self.out_dir / name).resolve() for name in (*self.outputs.values(), self.unfinished.name)}
        for name, path in self.inputs.items():
            if path.resolve() in written:
                raise ArgumentError(
                    f"{path} contains the {name} and would be overwritten; use another folder"
                )

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the pass calls, without their fallbacks."""
        return self.critic.models

    @property
    def parallel(self) -> int | None:
        """Maximum number of drafts in progress at a time; None if not set."""
        return self.critic.parallel

    @property
    def settings(self) -> dict[str, Json]:
        """The options of the pass that its manifest contains."""
        return {"limit": self.options.limit}

    @abstractmethod
    def pending(self) -> Iterator[WorkT]:
        """Yield what is to be done, in order, and count the other drafts."""

    @abstractmethod
    async def work_on(self, item: WorkT) -> tuple[str, dict[str, Json]] | None:
        """Return the record of an item and the name of its file; None if the budget did not allow one."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove replaced records from the files."""

    @abstractmethod
    def counts(self) -> dict[str, Json]:
        """Return counts of drafts, at the beginning of the statistics."""

    @abstractmethod
    def figures(self) -> dict[str, Json]:
        """Return the statistics of all valid records."""

    @abstractmethod
    def manifest_counts(self, figures: Mapping[str, Json] | None) -> dict[str, Json]:
        """Return the counts in the manifest; those of records are None while the pass is running."""

    async def run(self) -> dict[str, Json]:
        """Run the pass within its budget and return statistics."""
        options = self.options
        try:
            budget = spending_limit(self.models, max_calls=options.max_calls, max_cost=options.max_cost)
            self.prepare()
            with spending_within(budget) if budget.is_set else nullcontext():
                return await self.process()
        finally:
            await self.aclose()

    def prepare(self) -> None:
        """Read the input files, before anything is written."""
        described, config, started = self.critic.describe(), self.options.config, datetime.now(UTC)
        schema = self.schema if self.options.rubric is None else None
        inputs: dict[str, Json] = {f"{name}_path": str(path) for name, path in self.inputs.items()}
        inputs |= {f"{name}_hash": input_digest(path) for name, path in self.inputs.items()}
        self.manifest: dict[str, Json] = {
            "version": VERSION,
            "run_id": f"{started:%Y%m%d_%H%M%S}",
            "generated_at": started.isoformat(),
            "inputs": inputs,
            "critique_schema": {
                "path": schema and schema.path,
                "hash": schema and schema.digest,
                "version": schema and schema.version,
            },
            "teacher_config": _config_of(described["teacher"]) if config is None else without_secrets(config),
            "counts": {},
            "outputs": self.outputs,
            **self.settings,
            **described,
        }
        basis = [described, schema and schema.digest, self.settings.get("rewrite_hash")]
        self.in_flight = self.parallel or self.window
        self.checkpoint = Checkpoint(self.unfinished, json_digest(basis), self.in_flight)

    async def process(self) -> dict[str, Json]:
        """Process all pending drafts, until done or stopped by the budget or errors; return statistics."""
        started = time.perf_counter()
        with lock_folder(self.out_dir):
            try:
                self.open_files()
                self._write_manifest(None)
                pending = self.pending()
                made = run_bounded(self.checkpoint.until_stop(pending), self.work_on, limit=self.in_flight)
                async with aclosing(made):
                    async for done in made:
                        if done is not None:
                            name, record = done
                            self.files[name].append(record)
                            self.processed += 1
                self.checkpoint.write()
                # The rest of the file is only read now that no request is in flight.
                self.left = self.checkpoint.left + sum(1 for _ in pending)
                self.sweep()
                figures = self.figures()
            finally:
                for file in self.files.values():
                    file.close()
            self.add_notices()
            stats = {**self.counts(), **figures, **self.stop_entry(), **self.origin()}
            stats["seconds"] = time.perf_counter() - started
            self._write_manifest(figures)
            write_json(self.out_dir / self.outputs["stats"], stats)
        self.warn()
        return stats

    def open_files(self) -> None:
        """Open the files of records, after moving existing files away unless the pass is resumed."""
        if self.options.resume:
            self.notices += setup_changes(self.out_dir / self.outputs["manifest"], self.manifest)
            self.checkpoint.read()
        else:
            paths = [self.out_dir / self.outputs[name] for name in self.names]
            self.notices += set_aside([*paths, self.unfinished])
        for name in self.names:
            file = RecordFile(self.out_dir / self.outputs[name], digest_key=self.digest_key)
            self.files[name] = file
            file.open()
            self.notices += file.notices[:MOST_FAULTS]

    def add_fault(self, fault: LineFault) -> None:
        """Count an invalid line, and list it if there are not too many."""
        self.fault_count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault._asdict())

    def add_notices(self) -> None:
        """Add the notices of a pass that has ended."""
        if self.checkpoint.limit is not None:
            total = self.left + self.processed + self.skipped
            self.notices.append(self.checkpoint.notice(self.left, total))

    def stop_entry(self) -> dict[str, Json]:
        """Return why the pass stopped, and the problems found."""
        return {
            "stopped": self.checkpoint.limit,
            "left": self.left,
            "faults": self.faults,
            "fault_count": self.fault_count,
            "notices": self.notices,
        }

    def origin(self) -> dict[str, Json]:
        """Return the end of the statistics, about their origin."""
        return {}

    def warn(self) -> None:
        """Issue all notices as warnings."""
        for notice in self.notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)

    def _write_manifest(self, figures: Mapping[str, Json] | None) -> None:
        finished = figures is not None and self.checkpoint.limit is None
        entry = {"counts": self.manifest_counts(figures), "finished": finished, **self.stop_entry()}
        write_json(self.out_dir / self.outputs["manifest"], {**self.manifest, **entry})

    async def aclose(self) -> None:
        """Release the resources of the critic."""
        await self.critic.aclose()
