"""Collection of the errors found while a file is read, with their places in the file."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from autorubric.errors import Fault, FileError
from autorubric.support.objects import Json

FilePath: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the top of a file down, such as `("criteria", 2, "weight")`."""

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_DEPTH: Final = 250
"""Maximum nesting depth of lists and mappings in a file."""

_PLAIN_KEY: Final = re.compile(r"[\w-]+")


class SyntaxFault(Exception):
    """A syntax error in a text, which becomes a `FileError` where the file is known."""

    def __init__(
        self, message: str, line: int | None = None, path: FilePath = (), more: Sequence[SyntaxFault] = ()
    ) -> None:
        self.message = message
        self.line = line  # from 1; None if unknown
        self.path = path  # inside the file; empty if unknown
        self.more = tuple(more)
        super().__init__(message)


def path_text(path: FilePath) -> str:
    """Format a path as text, such as `criteria[2].weight`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


_SHOWN: Final = 80
_MOST: Final = 1000
"""Maximum number of errors that are kept; a hostile file may have one per byte."""


class Faults:
    """The errors found so far in one file."""

    def __init__(self, source: str, line_of: Callable[[FilePath], int | None] | None = None) -> None:
        self.source = source
        self.places: dict[FilePath, str] = {}
        self._line_of = line_of or (lambda path: None)
        self._found: dict[Hashable, Fault] = {}
        self._more = 0

    @classmethod
    def by_line(cls, source: str, first: int | None = None) -> Faults:
        """Return a collection for errors whose paths begin with a line; `first` is the line of others."""
        return cls(source, lambda at: at[0] if at and isinstance(at[0], int) else first)

    def __len__(self) -> int:
        return len(self._found) + self._more

    @property
    def found(self) -> tuple[Fault, ...]:
        """The errors found so far, and a note with the number of further errors that were not kept."""
        more = Fault(path="", message=f"and {self._more} more errors; fix these first")
        return (*self._found.values(), more) if self._more else tuple(self._found.values())

    def add(self, path: FilePath, message: str, *, group: Hashable = None) -> None:
        """Add one error; a repeated one counts once, and of a group the first is kept with their number."""
        line = self._line_of(path)
        place = self.places.get(path[-2:], "" if path == (line,) else path_text(path))
        fault = Fault(path=place, message=message, line=line)
        key = group or fault
        if group and key in self._found:
            self._found[key] = replace(self._found[key], count=self._found[key].count + 1)
        elif len(self._found) >= _MOST:
            self._more += 1
        else:
            self._found[key] = fault

    def add_unknown_keys(self, given: Iterable[Any], allowed: Iterable[str], at: FilePath = ()) -> None:
        """Add an error for each key that is not allowed."""
        known = list(allowed)
        for key in given:
            if key not in known:
                self.add((*at, key), f"unknown key {key!r}; {nearest_key(str(key), known)}")

    def validate(self, model: type[ModelT], given: Json, at: FilePath = ()) -> ModelT | None:
        """Return `given` as a model; if it is invalid, add every error and return None."""
        try:
            # Without the arguments of `model_validate`, which take a fifth of the time.
            found: ModelT = model.__pydantic_validator__.validate_python(given)
        except ValidationError as error:
            self.add_validation(error, model, given, at)
            return None
        return found

    def add_validation(
        self, error: ValidationError, model: type[BaseModel], given: Json, at: FilePath = ()
    ) -> None:
        """Add every error that pydantic found in `given`, at the path `at`."""
        for path, message in _validation_messages(error, model, given):
            self.add((*at, *path), message)

    def raise_as(self, kind: type[FileError]) -> None:
        """Raise the errors that were found, if any."""
        if self._found:
            raise kind(self.source, self.found)


def fields_text(error: ValidationError, whole: str) -> str:
    """Format pydantic's errors as one line, with `whole` as the place of an error without a field."""
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or whole}: {one['msg']}" for one in error.errors())


def nearest_key(key: str, allowed: Iterable[str]) -> str:
    """Return a hint for an unknown key: the nearest allowed key, or the list of allowed keys."""
    known = list(allowed)
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(map(repr, known)) or 'none'}"


def list_first(names: Sequence[str], most: int) -> str:
    """Return the first names separated by commas, with the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def short_repr(given: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    text = repr(given)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def validation_text(error: ValidationError, model: type[BaseModel], given: Json) -> str:
    """Return the errors that pydantic found in arguments, in one line."""
    faults = Faults("")
    faults.add_validation(error, model, given)
    return "; ".join(f"{one.path}: {one.message}" if one.path else one.message for one in faults.found)


def _validation_messages(
    error: ValidationError, model: type[BaseModel], given: Json
) -> Iterator[tuple[FilePath, str]]:
    found = []
    for fault in error.errors(include_url=False):
        path, whole = _path_in(given, fault["loc"])
        if fault["type"] == "missing":
            # The key is last in `loc`, and is missing from the data.
            key = fault["loc"][-1]
            found.append((True, (path, f"the key {key!r} is missing")))
        elif fault["type"] == "extra_forbidden":
            key = str(fault["loc"][-1])
            hint = nearest_key(key, _keys_at(model, path[:-1]))
            found.append((whole, (path, f"unknown key {key!r}; {hint}")))
        else:
            context = fault.get("ctx", {})
            kind = fault["type"] + context.get("class", "") + context.get("pattern", "")
            message = _EXPECTED.get(kind, "").format(**context)
            if fault["type"] == "model_type":
                message += f" with the keys {', '.join(_keys_at(model, path))}"
            message = message and f"expected {message}"
            if message and found and found[-1][1][0] == path and found[-1][1][1].startswith("expected "):
                # Another branch of a union.
                message = message.replace("expected", f"{found.pop()[1][1].partition('; got ')[0]} or")
            message = message or fault["msg"].removeprefix("Value error, ").replace(
                "Input should", "the value must"
            )
            plain = not isinstance(fault["input"], (Mapping, list, BaseModel))
            found.append(
                (whole, (path, f"{message}; got {short_repr(fault['input'])}" if plain else message))
            )
    # A model may fill in keys that were not given; their errors repeat those of the given keys.
    complete = [entry for whole, entry in found if whole]
    return iter(complete or [entry for _, entry in found])


def _path_in(given: Json, loc: tuple[str | int, ...]) -> tuple[FilePath, bool]:
    """Return the part of pydantic's location that exists in the data, and whether its last step does."""
    # Between keys and positions, pydantic names the branches of unions; these are skipped.
    path: list[str | int] = []
    whole = True
    for step in loc:
        if isinstance(given, (list, tuple)):
            given = dict(enumerate(given))
        if isinstance(given, Mapping) and step in given:
            given, whole = given[step], True
            path.append(step)
        else:
            whole = isinstance(step, int) or not isinstance(given, Mapping)
    return tuple(path), whole


def _keys_at(model: type[BaseModel], path: FilePath) -> list[str]:
    """Return the keys that the models at `path` inside `model` allow."""
    models = [model]
    for step in path:
        fields = [found.model_fields[step] for found in models if step in found.model_fields]
        if fields:
            models = [inner for field in fields for inner in _models_in(field.annotation)]
    return list(dict.fromkeys(key for found in models for key in found.model_fields))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def type_changes(given: Json, kept: Json, path: FilePath = ()) -> Iterator[tuple[FilePath, str]]:
    """Yield the places where validation changed a type, such as a string to a number, with a message."""
    if isinstance(given, Mapping) and isinstance(kept, Mapping):
        for key in given.keys() & kept.keys():
            yield from type_changes(given[key], kept[key], (*path, key))
    elif isinstance(given, list) and isinstance(kept, list):
        for index, (one, other) in enumerate(zip(given, kept, strict=False)):
            yield from type_changes(one, other, (*path, index))
    elif (wanted := _WORDS.get(type(kept))) and (got := _WORDS.get(type(given))) and wanted != got:
        yield path, f"the value must be {wanted}; got {short_repr(given)}, {got}"


_EXPECTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("tuple_type", "list_type", "is_instance_ofSequence", "sequence_str"), "a list"),
    **dict.fromkeys(("model_type", "dict_type"), "a mapping"),
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
    "string_type": "a string",
    r"string_pattern_mismatch\S": "a string that is not blank",
    "path_type": "a path",
    "none_required": "null",
}
"""What pydantic's types of errors expect, in the terms of a file."""
_WORDS: Final[Mapping[type, str]] = {str: "a string", bool: "a boolean", int: "a number", float: "a number"}
