"""The run of `eval`: a dataset with judges from flags, or a run file that flags override."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autorubric.cli._judges import JUDGE, ON_FAILURE, OnFailure, judge_option, parse_judges
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.run_file import RunFile, RunSetup

DEFAULT = "autorubric.yaml"

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATASET]",
        help="Dataset (JSON, JSONL, YAML, CSV, TSV, Parquet) or run file (YAML).  [default: autorubric.yaml]",
        show_default=False,
    ),
]
Panel = Annotated[list[str] | None, judge_option(f"{JUDGE} Replaces the run file's judges.")]
RunsFolder = Annotated[
    Path | None,
    typer.Option(
        "--runs-dir", metavar="DIR", help="Folder for the runs.  [default: experiments]", show_default=False
    ),
]
FailurePolicy = Annotated[OnFailure | None, ON_FAILURE]


def read_source(source: Path | None, judge: Sequence[str] | None) -> RunFile:
    """Read a run file, or create run file content that only names a dataset.

    Args:
        source: A run file or a dataset; None means `autorubric.yaml` in the working directory.
        judge: Values of `--judge`.

    Raises:
        ArgumentError: If there is no run file, or a dataset is passed without a judge.
        FileError: If the file cannot be read or has errors.
    """
    from autorubric.run_file import DataSource, RunFile, is_run_file, read_run_file

    if source is None:
        if not Path(DEFAULT).exists():
            raise ArgumentError(
                f"no dataset was passed, and this folder has no {DEFAULT}; pass a dataset and --judge, or "
                "create a run file with: autorubric init"
            )
        return read_run_file(DEFAULT)
    if is_run_file(source):
        return read_run_file(source)
    if not judge:
        raise ArgumentError(f"no judge for {source}; pass --judge MODEL, or --judge lexical to work offline")
    return RunFile(data=DataSource(path=source))


def override(
    file: RunFile, judge: Sequence[str] | None, changes: Mapping[str, Any], settings: Mapping[str, Any]
) -> RunSetup:
    """Return the run that a run file describes, with flags overriding its settings.

    Args:
        file: The content of the run file.
        judge: Values of `--judge`, which replace the file's judges.
        changes: Values by field of `RunFile`; None for flags that were not set.
        settings: Model settings by field of `JudgeEntry`; None for flags that were not set.
    """
    from autorubric.judges import demand_models
    from autorubric.llm import owner_of
    from autorubric.run_file import set_up

    given = {key: value for key, value in changes.items() if value is not None}
    for key in ("rubric", "runs_dir", "cache_dir"):
        # Paths of flags start from the working directory, those of the file from its folder.
        if key in given and file.folder != Path():
            given[key] = given[key].absolute()
    if "rubric" in given:
        given["rubric"] = str(given["rubric"])
    file = file.model_copy(update=given)
    chosen = {key: value for key, value in settings.items() if value is not None}
    if judge:
        cache = None if file.cache_dir is None else file.folder / file.cache_dir
        return set_up(file, parse_judges(judge, cache_dir=cache, **chosen))
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
