"""The manifest of a pass, with the settings that its records depend on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from autorubric.critique._critics import DraftCritic
from autorubric.critique._drafts import input_digest
from autorubric.critique._records import CritiqueTally
from autorubric.critique._schema import CritiqueSchema, digest_of
from autorubric.errors import ArgumentError
from autorubric.llm import holds_secret
from autorubric.values import Json

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
        """Create the setup of a pass that starts now, with the digests of its input files.

        Raises:
            FileError: If a file cannot be read or is empty.
        """
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
    """Check that no input file is also an output file.

    Raises:
        ArgumentError: If an input file would be overwritten.
    """
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
