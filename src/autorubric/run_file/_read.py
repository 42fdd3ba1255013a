"""Reading of run files; all errors of a file are reported at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from autorubric._files import (
    Faults,
    FilePath,
    format_fault,
    parse_structured,
    read_structured,
    read_text,
    retyped,
    shortened,
)
from autorubric.errors import ArgumentError, FileError
from autorubric.llm import holds_secret
from autorubric.rubric import Rubric
from autorubric.run_file._content import FORMAT, JudgeEntry, RunFile
from autorubric.values import Json

SUFFIXES: Final = (".yaml", ".yml")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RENAMED: Final = {"thinking": "reasoning_effort"}


def is_run_file(path: Path) -> bool:
    """Return whether a YAML file is a run file rather than a dataset.

    A run file is a mapping with `data` or `judges`; a dataset is a list, or a mapping with `items`.

    Raises:
        FileError: If the file cannot be read, or is neither a run file nor a dataset.
    """
    if path.suffix.lower() not in SUFFIXES:
        return False
    data = read_structured(path).data
    if isinstance(data, list) or (isinstance(data, Mapping) and "items" in data):
        return False
    if isinstance(data, Mapping) and {"data", "judges"} & data.keys():
        return True
    faults = Faults(str(path))
    what = (
        f"a mapping with the keys {', '.join(map(str, data))}"
        if isinstance(data, Mapping)
        else shortened(data)
    )
    faults.add(
        (),
        "the file is neither a dataset (a list of items, or a mapping with 'items') nor a run file (a "
        f"mapping with 'data' and 'judges'); got {what}",
    )
    faults.raise_as(FileError)
    raise AssertionError("a file with errors is refused")  # pragma: no cover


def read_run_file(path: str | Path) -> RunFile:
    """Return the content of a run file.

    Raises:
        FileError: If the file cannot be read or has errors; all errors are reported with line numbers.
    """
    text = read_text(path)
    document = parse_structured(text, "yaml", source=str(path))
    faults = document.faults()
    if not isinstance(document.data, Mapping):
        faults.add(
            (), f"a run file must be a mapping with 'data' and 'judges'; got {shortened(document.data)}"
        )
        faults.raise_as(FileError)
    if fault := format_fault(document.data.get("format", 1), FORMAT):
        faults.add(("format",), fault)
        faults.raise_as(FileError)
    data = {key: _without_secrets(value, faults, (key,)) for key, value in document.data.items()}
    data = _without_secrets(data, faults, ())
    file = _validated(data, faults)
    _check_judges(data.get("judges"), faults)
    if data.get("rubric") is not None and not isinstance(data["rubric"], str):
        Rubric._read_inside(data["rubric"], faults, ("rubric",))
    faults.raise_as(FileError)
    assert file is not None
    return file.read_from(Path(path).parent, text)


def _validated(data: Mapping[str, Json], faults: Faults) -> RunFile | None:
    try:
        file = RunFile.model_validate(data)
    except ValidationError as error:
        faults.add_validation(error, RunFile, data)
        return None
    for path, message in retyped(data, file.model_dump(mode="json", exclude={"rubric"})):
        faults.add(path, message)
    return file


def _without_secrets(given: Json, faults: Faults, at: FilePath) -> Json:
    """Return the data without secrets; each is reported by its key, without its value."""
    if at and at[0] in ("rubric", "data", "few_shot"):
        return given
    if isinstance(given, list):
        return [_without_secrets(one, faults, (*at, position)) for position, one in enumerate(given)]
    if not isinstance(given, Mapping):
        return given
    kept: dict[str, Any] = {}
    for key, value in given.items():
        place = (*at, str(key))
        if key == "api_key_env" and isinstance(value, str) and not _VARIABLE.fullmatch(value):
            faults.add(
                place, "set the name of an environment variable, such as OPENAI_API_KEY, not the key itself"
            )
        elif str(key) not in JudgeEntry.model_fields and holds_secret(str(key), ""):
            faults.add(
                place,
                f"{key!r} is not allowed: a run file must not contain secrets. Put the key in an "
                "environment variable and set its name, such as api_key_env: OPENAI_API_KEY",
            )
        else:
            kept[key] = _without_secrets(value, faults, place)
    return kept


def _check_judges(given: Json, faults: Faults) -> None:
    """Report unknown judges, settings that a judge does not support, and duplicate names."""
    known: set[str] = set()
    for position, entry in enumerate(given if isinstance(given, list) else ()):
        at: FilePath = ("judges", position)
        try:
            judge = JudgeEntry.model_validate({"model": entry} if isinstance(entry, str) else entry)
        except ValidationError:
            # Reported with the rest of the file.
            continue
        _check_judge(judge, faults, at)
        name = judge.name or judge.model
        if name in known:
            faults.add(at, f"two judges are named {name!r}; set a different 'name' for each")
        known.add(name)


def _check_judge(judge: JudgeEntry, faults: Faults, at: FilePath) -> None:
    try:
        if judge.is_model:
            judge.to_config()
            return
    except ArgumentError as error:
        faults.add((*at, "model"), str(error))
        return
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            loc = [_RENAMED.get(str(step), step) for step in detail["loc"] if not str(step).startswith(":")]
            faults.add((*at, *loc), detail["msg"])
        return
    for key in judge.settings:
        if key != "model":
            faults.add((*at, key), f"{key!r} applies only to models, and {judge.model!r} is not a model")
