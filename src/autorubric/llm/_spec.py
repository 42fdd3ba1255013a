"""The base of specs: frozen data, read from files, whose faults are all told at once and show no secret."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from autorubric.errors import Fault, FileError

_LARGEST_FILE: Final = 1 << 20
_UNION_TAG: Final = ":"
"""Starts the tags of unions, so that they can be left out of paths."""

S = TypeVar("S", bound="Spec")


class Spec(BaseModel):
    """Frozen data whose faults never show their input by themselves, and name the nearest right parameter."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            spec = handler(given)
            spec.check_together()
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            lines = [_explained(one, cls.model_fields) for one in details]
        except ValueError as error:
            lines = [_line(str(error), ())]
        else:
            return spec
        raise ValidationError.from_exception_data(cls.__name__, lines, hide_input=True)

    def check_together(self) -> None:
        """Checks parameters that depend on each other.

        Raises:
            ValueError: They cannot stand together.
        """


def _explained(detail: ErrorDetails, known: Iterable[str]) -> InitErrorDetails:
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
        message = unknown_key(str(detail["loc"][0]), known)
    return _line(message, detail["loc"])


def _line(message: str, location: tuple[int | str, ...]) -> InitErrorDetails:
    # A message may have braces, and is no template: it goes in as a value.
    fault = PydanticCustomError("spec_fault", "{message}", {"message": message})
    return InitErrorDetails(type=fault, loc=location, input=None)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What to say of a key that does not exist: the nearest one that does, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(names)}"
    return f"unknown parameter {key!r}; {hint}"


def read_spec(kind: type[S], path: str | Path) -> S:
    """The spec of this kind in a YAML file.

    Raises:
        FileError: The file cannot be read, or has faults; all of them at once.
    """
    given = _read_mapping(path)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        raise FileError(str(path), [Fault(path=_path(d["loc"]), message=d["msg"]) for d in details]) from None


def write_spec(spec: Mapping[str, Any], path: str | Path) -> None:
    """Writes a spec's public parameters as YAML.

    Raises:
        FileError: The file cannot be written.
    """
    text = yaml.safe_dump(dict(spec), sort_keys=False, allow_unicode=True)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(str(path), [Fault(path="", message=f"cannot be written: {error.strerror}")]) from None


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith(_UNION_TAG):
            path += f".{part}" if path else part
    return path


class _PlainLoader(yaml.SafeLoader):
    """Reads YAML without aliases: a few lines of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed")
        return super().compose_node(parent, index)


def _read_mapping(path: str | Path) -> dict[str, Any]:
    def fault(message: str, line: int | None = None) -> FileError:
        return FileError(str(path), [Fault(path="", message=message, line=line)])

    try:
        with Path(path).open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise fault(f"cannot be read: {error.strerror}") from None
    if len(raw) > _LARGEST_FILE:
        raise fault(f"has over {_LARGEST_FILE:,} bytes; a model's config has a few hundred")
    try:
        given = yaml.load(raw.decode("utf-8"), Loader=_PlainLoader)
    except UnicodeDecodeError as error:
        raise fault(f"is not UTF-8: byte {error.start} cannot be decoded") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise fault(f"is not YAML: {error.problem or error.context}", line) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise fault(f"is not YAML: {error}") from None
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise fault("must be a mapping of parameters, as 'model: gpt-4.1-mini'")
    return given
