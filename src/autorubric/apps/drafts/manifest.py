"""The settings that the records of a pass depend on, and what an interrupted pass stores."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from autorubric.apps.drafts.critics import DraftCritic
from autorubric.apps.drafts.drafts import CritiqueTally, input_digest
from autorubric.apps.drafts.ledger import write_json
from autorubric.apps.drafts.provenance import CritiqueSchema, digest_of
from autorubric.errors import ArgumentError, BudgetError
from autorubric.llm.specs import holds_secret
from autorubric.support.objects import Json

VERSION: Final = "v1"
_MASK: Final = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings that the records of a pass depend on.

    Attributes:
        inputs: Path and SHA-256 digest of every input file, such as `drafts_path` and `drafts_hash`.
        schema: The schema of the critiques; None if a rubric is used.
        teacher_config: Models and generation settings, without secrets.
        critic: The teacher, and the digest of the template or the rubric.
        options: Other options of the pass.
        started: Start time of the pass.
    """

    inputs: Mapping[str, str]
    schema: CritiqueSchema | None
    teacher_config: Mapping[str, Json]
    critic: Mapping[str, Json]
    options: Mapping[str, Json]
    started: datetime

    @classmethod
    def of(
        cls,
        *,
        inputs: Mapping[str, Path],
        critic: DraftCritic,
        schema: CritiqueSchema | None,
        config: Mapping[str, Json] | None,
        options: Mapping[str, Json],
    ) -> Setup:
        """Create the setup of a pass that starts now, with the digests of its input files."""
        described = critic.describe()
        given = {f"{name}_path": str(path) for name, path in inputs.items()}
        digests = {f"{name}_hash": input_digest(path) for name, path in inputs.items()}
        return cls(
            inputs={**given, **digests},
            schema=schema,
            teacher_config=without_secrets(config)
            if config is not None
            else _config_of(described["teacher"]),
            critic=described,
            options=options,
            started=datetime.now(UTC),
        )

    @property
    def basis(self) -> str:
        """Return a digest of the settings that each answer depends on, in addition to the draft."""
        schema = None if self.schema is None else self.schema.digest
        return digest_of([self.critic, schema, self.options.get("rewrite_hash")])


def check_apart(inputs: Mapping[str, Path], out_dir: Path, outputs: Iterable[str]) -> None:
    """Check that no input file is also an output file."""
    written = {(out_dir / name).resolve() for name in outputs}
    for name, path in inputs.items():
        if path.resolve() in written:
            raise ArgumentError(f"{path} contains the {name} and would be overwritten; use another folder")


def manifest_of(setup: Setup, counts: Mapping[str, Json], outputs: Mapping[str, str]) -> dict[str, Json]:
    """Return the manifest of a pass as JSON-compatible data."""
    schema = setup.schema
    return {
        "version": VERSION,
        "run_id": f"{setup.started:%Y%m%d_%H%M%S}",
        "generated_at": setup.started.isoformat(),
        "inputs": dict(setup.inputs),
        "critique_schema": {
            "path": schema.path if schema else None,
            "hash": schema.digest if schema else None,
            "version": schema.version if schema else None,
        },
        "teacher_config": dict(setup.teacher_config),
        "counts": dict(counts),
        "outputs": dict(outputs),
        **setup.options,
        **setup.critic,
    }


def counts_of(drafts: int, processed: int, skipped: int, tally: CritiqueTally | None) -> dict[str, Json]:
    """Return the counts of a manifest; without a tally, while the pass is running, some are None."""
    return {
        "total_drafts": drafts,
        "processed": processed,
        "skipped": skipped,
        "critique_parse_ok": None if tally is None else tally.parsed,
        "critique_schema_ok": None if tally is None else tally.valid,
    }


def setup_changes(path: Path, setup: Setup) -> list[str]:
    """Return a notice for each setting that differs from the settings of existing records."""
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(before, dict):
        return []
    now = manifest_of(setup, {}, {})
    found = []
    for name, of in _COMPARED.items():
        one, other = _at(before, of), _at(now, of)
        if one is not _MISSING and one != other:
            found.append(f"the {name} differs from the one used for earlier records, which are kept")
    return found


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


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(content, Mapping) or step not in content:
            return _MISSING
        content = content[step]
    return content


def without_secrets(given: Json, name: str = "") -> Json:
    """Return JSON data with every secret masked and values of other types converted to strings."""
    if name and not isinstance(given, Mapping | list | tuple) and holds_secret(name, given):
        return _MASK
    if isinstance(given, Mapping):
        return {
            str(key): _MASK if holds_secret(str(key), None) else without_secrets(value, str(key))
            for key, value in given.items()
        }
    if isinstance(given, list | tuple):
        return [without_secrets(one, name) for one in given]
    return given if given is None or isinstance(given, str | int | float | bool) else str(given)


def _config_of(teacher: Mapping[str, Json]) -> dict[str, Json]:
    """Return the models and generation settings of a teacher that is a model; otherwise empty settings."""
    if "model" not in teacher:
        return {"models": [], "generation": {}}
    fallbacks = [one if isinstance(one, str) else one.get("model") for one in teacher.get("fallbacks") or []]
    generation = {
        name: teacher[name]
        for name in ("temperature", "top_p", "max_tokens", "seed")
        if teacher.get(name) is not None
    }
    return {"models": [teacher["model"], *fallbacks], "generation": generation}


MOST: Final = 5
"""Number of consecutive drafts with the same failure that stops a pass without any answer."""

_UNANSWERED: Final = ("PROVIDER_ERROR", "TIMEOUT")
_CHANGING: Final = re.compile(r"[\w-]*\d[\w-]*")


@dataclass(slots=True, kw_only=True)
class RepeatedPassErrors:
    """A counter of consecutive identical errors in the records of a pass.

    If the teacher has answered before, a short outage can fail all drafts that are in progress, so the limit
    is raised by their number.

    Attributes:
        in_flight: Maximum number of drafts in progress at a time.
        message: The reason why the pass stops; None while the pass continues.
    """

    in_flight: int
    message: str | None = None
    _error: str = ""
    _count: int = 0
    _answered: bool = False

    def add(self, error: Any) -> None:
        """Count the error of a record; None for a record without an error."""
        code = error.get("code") if isinstance(error, dict) else None
        if code not in _UNANSWERED:
            self._answered, self._count = True, 0
            return
        text = f"{code}: {error.get('message')}"
        same = _CHANGING.sub("#", text)
        self._count = self._count + 1 if same == self._error else 1
        self._error = same
        if self._count >= (MOST + self.in_flight if self._answered else MOST) and self.message is None:
            which = "the last" if self._answered else "all"
            so_far = "" if self._answered else " so far"
            self.message = f"{which} {self._count} drafts{so_far} failed with the same error: {text}"


T = TypeVar("T")


class Unfinished:
    """A tracker that works on drafts until the budget or errors stop it, and keeps the answers received.

    The file is written once, when the pass ends, and contains only drafts that were in progress.

    Attributes:
        ended_by: The error that was raised by the budget; None if the budget sufficed.
        errors: The counter that detects a teacher that repeatedly fails.
        left: Number of drafts that were started but not finished.
    """

    def __init__(self, path: Path, basis: str) -> None:
        self._path, self._basis = path, basis
        self.errors = RepeatedPassErrors(in_flight=0)
        self._drafts: dict[str, dict[str, Any]] = {}
        self.ended_by: BudgetError | None = None
        self.left = 0

    def read(self) -> None:
        """Read the answers kept by an earlier pass."""
        try:
            self._drafts = dict(json.loads(self._path.read_text(encoding="utf-8"))["drafts"])
        # If the file is invalid, its answers are requested again.
        except (OSError, ValueError, KeyError, TypeError):
            return

    def taken(self, waiting: Iterator[T]) -> Iterator[T]:
        """Yield the items in order until the budget is used up or the teacher repeatedly fails."""
        while self.ended_by is None and self.errors.message is None:
            item = next(waiting, None)
            if item is None:
                return
            yield item

    async def work(self, key: str, digest: str, ask: Callable[[dict[str, Json]], Awaitable[T]]) -> T | None:
        """Ask about a draft and return the result; None if the budget did not allow all questions."""
        place = self._place(key, digest)
        begun: dict[str, Json] = self._drafts.pop(place, {}).get("answered", {})
        try:
            return await ask(begun)
        except BudgetError as error:
            self.ended_by = self.ended_by or error
            self.left += 1
            if any(begun.values()):
                self._drafts[place] = {"id": key, "answered": begun}
            return None

    @property
    def limit(self) -> str | None:
        """Return the reason for stopping: `max_calls`, `max_cost` or `errors`; None if not stopped."""
        if self.ended_by is None:
            return None if self.errors.message is None else "errors"
        return self.ended_by.limit

    def forget(self, key: str, digest: str) -> None:
        """Drop the stored answers of a draft that has a record."""
        self._drafts.pop(self._place(key, digest), None)

    def write(self) -> None:
        """Write the kept answers to the file atomically, or delete the file if there are none."""
        if self._drafts:
            write_json(self._path, {"version": VERSION, "drafts": self._drafts})
        else:
            self._path.unlink(missing_ok=True)

    def _place(self, key: str, digest: str) -> str:
        """Return the key under which answers are stored: a digest of the draft and the settings."""
        return digest_of([self._basis, key, digest])

    def told(self, left: int, total: int) -> str:
        """Return the notice about a stopped pass with the number of drafts that are left."""
        why = self.ended_by or self.errors.message
        more = "" if self.ended_by else " with retry_errors"
        return f"the pass was stopped: {why}; resume{more} to process the remaining {left} of {total} drafts"
