"""Run files and the flags that override them; loaded late, since it needs the judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from autorubric.errors import ArgumentError
from autorubric.judges.panel import demand_models, named_judges
from autorubric.llm.names import owner_of
from autorubric.runs.run_file import DataSource, RunFile, is_run_file, read_run_file
from autorubric.runs.run_setup import RunSetup, set_up

_RUN_FILE: Final = "autorubric.yaml"


def read_source(source: Path | None, judge: Sequence[str] | None) -> RunFile:
    """Read a run file, or create run file content that only names a dataset."""
    if source is None:
        if not Path(_RUN_FILE).exists():
            raise ArgumentError(
                f"no dataset was passed, and this folder has no {_RUN_FILE}; pass a dataset and --judge, or "
                "create a run file with: autorubric init"
            )
        return read_run_file(_RUN_FILE)
    if is_run_file(source):
        return read_run_file(source)
    if not judge:
        raise ArgumentError(f"no judge for {source}; pass --judge MODEL, or --judge lexical to work offline")
    return RunFile(data=DataSource(path=source))


def override_setup(
    file: RunFile, judge: Sequence[str] | None, changes: Mapping[str, Any], settings: Mapping[str, Any]
) -> RunSetup:
    """Return the run that a run file describes, with flags overriding its settings."""
    values = {key: value for key, value in changes.items() if value is not None}
    for key in ("rubric", "runs_dir", "cache_dir"):
        # Paths of flags start from the working directory, those of the file from its folder.
        if key in values and file.folder != Path():
            values[key] = values[key].absolute()
    if "rubric" in values:
        values["rubric"] = str(values["rubric"])
    file = file.model_copy(update=values)
    chosen = {key: value for key, value in settings.items() if value is not None}
    if judge:
        cache = None if file.cache_dir is None else file.folder / file.cache_dir
        return set_up(file, named_judges(judge, cache_dir=cache, **chosen))
    models = [entry.model for entry in file.judges if entry.is_model]
    demand_models(models, **chosen)
    variable = chosen.get("api_key_env")
    bases = {entry.api_base or owner_of(entry.model) for entry in file.judges if entry.is_model}
    if variable is not None and len(bases) > 1 and "api_base" not in chosen:
        raise ArgumentError(
            f"--api-key-env {variable}: the judges use several addresses or providers, and a key is sent to "
            "only one of them; set api_key_env for each judge in the run file"
        )
    return set_up(file.with_model_settings(chosen))
