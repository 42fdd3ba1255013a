"""Base class of specs: frozen data read from files; all errors are reported at once, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from autorubric._files import dump_structured, nearest_key, parse_structured, read_text, write_text_atomic
from autorubric.errors import FileError

UNION_TAG: Final = ":"
"""Prefix of the tags of unions, so that they can be removed from paths."""

S = TypeVar("S", bound="Spec")


class Spec(BaseModel):
    """Base class of frozen data whose errors hide their input and suggest the closest valid parameter."""

    # Built at first use, because a run whose judges are functions needs no model config.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False, defer_build=True
    )

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
        """Check parameters that depend on each other.

        Raises:
            ValueError: If parameters contradict each other.
        """


def _explained(detail: ErrorDetails, known: Iterable[str]) -> InitErrorDetails:
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
        message = unknown_key(str(detail["loc"][0]), known)
    return _line(message, detail["loc"])


def _line(message: str, location: tuple[int | str, ...]) -> InitErrorDetails:
    # A message may contain braces and is not a template, so it is passed as a value.
    fault = PydanticCustomError("spec_fault", "{message}", {"message": message})
    return InitErrorDetails(type=fault, loc=location, input=None)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key, with the closest known key or all known keys."""
    return f"unknown parameter {key!r}; {nearest_key(key, sorted(known))}"


def read_spec(kind: type[S], path: str | Path) -> S:
    """Read a spec of this kind from a YAML file.

    Raises:
        FileError: If the file cannot be read or has errors; all errors are reported at once.
    """
    document = parse_structured(read_text(path), "yaml", source=str(path))
    faults = document.faults()
    if not isinstance(document.data, dict):
        faults.add((), "must be a mapping of parameters, such as 'model: gpt-6-luna'")
        faults.raise_as(FileError)
    try:
        return kind.model_validate(document.data)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            place = tuple(part for part in detail["loc"] if not str(part).startswith(UNION_TAG))
            faults.add(place, detail["msg"])
    faults.raise_as(FileError)
    raise AssertionError("a failed validation must have errors")


def write_spec(spec: Mapping[str, Any], path: str | Path) -> None:
    """Write a spec's public parameters as YAML.

    Raises:
        FileError: If the file cannot be written.
    """
    write_text_atomic(path, dump_structured(dict(spec), "yaml"))
