"""Gates, conditions between criteria, checks that judge without a model, and digests of functions."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

from autorubric.criteria.transcript_checks import TranscriptCheck
from autorubric.errors import ArgumentError
from autorubric.support.field_types import NonEmptyText, Share
from autorubric.support.objects import Json

Check: TypeAlias = Callable[[str], Any]
"""A function that judges a text. It returns a bool, a number in [0, 1], a label, None (cannot assess), or
a pair of such an answer and a reason."""

# One name for all of these checks, since a criterion contains their settings.
_TRANSCRIPT: Final = "autorubric.TranscriptCheck"
_registered: dict[str, Check] = {}


def register_check(name: str, check: Check) -> Check:
    """Register a check under a name for use in rubric files, and return the check.

    Args:
        name: Name to use in files, for example `has_a_date` in `check: "has_a_date"`.
        check: Function of the submission's text; see `Check`.

    Raises:
        ArgumentError: If the name is empty or registered for another function, or `check` is not callable.
    """
    if not name or not callable(check):
        raise ArgumentError(f"register_check({name!r}, {check!r}): pass a name and a function of the text")
    if _registered.setdefault(name, check) is not check:
        raise ArgumentError(f"the name {name!r} is already registered for another check; use another name")
    return check


def find_check(check: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return a check function: the argument itself or, if it is a name, the function registered under it."""
    if not isinstance(check, str):
        return check
    if check == _TRANSCRIPT:
        return TranscriptCheck
    if check in _registered:
        return _registered[check]
    near = difflib.get_close_matches(check, _registered, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(_registered) or 'none'}."
    raise ArgumentError(f"unknown check {check!r}; {hint} Register checks with register_check(name, check)")


def check_name(check: str | Callable[..., Any]) -> str:
    """Return the registered name of a check, or `module:qualified name` for an unregistered function."""
    if isinstance(check, str):
        return check
    if isinstance(check, TranscriptCheck):
        return _TRANSCRIPT
    for name, function in _registered.items():
        if function is check:
            return name
    return qualified_name(check)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:qualified name` for a function, or for the class of a callable such as a partial."""
    named = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    # Methods of built-in types, such as str.isupper, have no module.
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}:{named.__qualname__}"


def is_registered(check: str | Callable[..., Any]) -> bool:
    """Return whether a check is registered, that is, whether files can refer to it by name."""
    return isinstance(check, TranscriptCheck) or check_name(check) in _registered


# A mean of equal values may be smaller than these values because of rounding errors.
_SLACK: Final = 1e-9

_StrictShare = Annotated[Share, Field(strict=True)]


class Gate(BaseModel):
    """A minimum value for a criterion; if the criterion does not reach it, its group's score is capped.

    The string `"required"` means the default gate: the group's score is 0 unless the criterion is met.

    Attributes:
        at_least: Value in (0, 1] that the criterion must reach.
        cap: Maximum score of the group, in [0, 1], if the criterion does not reach `at_least`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_least: _StrictShare = Field(default=1.0, gt=0.0)
    cap: _StrictShare = 0.0

    def passes(self, value: float) -> bool:
        """Return whether a value reaches `at_least`, allowing for rounding errors."""
        return value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_word(cls, given: Any) -> Any:
        if given == "required":
            return {}
        if isinstance(given, str):
            raise ValueError(f"gate must be 'required' or a mapping with at_least and cap; got {given!r}")
        return given

    @model_serializer
    def _serialize(self) -> Json:
        return "required" if self == Gate() else {"at_least": self.at_least, "cap": self.cap}


class When(BaseModel):
    """A condition for a criterion to apply: another criterion must reach a value.

    A plain criterion name means that the named criterion must be met.

    Attributes:
        criterion: Name of the other criterion.
        at_least: Value in [0, 1] that the other criterion must reach.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: NonEmptyText
    at_least: _StrictShare = 1.0

    def holds(self, value: float | None) -> bool:
        """Return whether the other criterion's value reaches `at_least`; False if it has no value."""
        return value is not None and value >= self.at_least - _SLACK

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: Any) -> Any:
        return {"criterion": given} if isinstance(given, str) else given

    @model_serializer
    def _serialize(self) -> Json:
        alone = self.at_least == 1.0
        return self.criterion if alone else {"criterion": self.criterion, "at_least": self.at_least}


_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_DEEPEST = 8
_PACKAGE = __name__.partition(".")[0]


def code_digest(function: Any) -> str:
    """Return a digest of the bytecode, defaults, bound arguments and plain closure values of a function."""
    digest = hashlib.sha256()
    for part in _parts(function, _DEEPEST):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\x00")
    return digest.hexdigest()[:16]


def _parts(thing: Any, depth: int) -> Iterator[str]:
    if depth == 0 or isinstance(thing, _PLAIN):
        yield repr(thing) if isinstance(thing, _PLAIN) else type(thing).__qualname__
    elif isinstance(thing, (tuple, frozenset)):
        inner = ["/".join(_parts(one, depth - 1)) for one in thing]
        # The order of a set depends on the process.
        yield from (sorted(inner) if isinstance(thing, frozenset) else inner)
    elif isinstance(thing, CodeType):
        yield thing.co_code.hex()
        yield " ".join(thing.co_names)
        for const in thing.co_consts:
            yield from _parts(const, depth - 1)
    elif isinstance(thing, functools.partial):
        yield from _parts(thing.func, depth - 1)
        yield from _parts((*thing.args, *sorted(thing.keywords.items())), depth - 1)
    elif inspect.isfunction(thing):
        yield from _function_parts(thing, depth)
    elif inspect.ismethod(thing):
        yield from _parts(thing.__func__, depth - 1)
        yield from _parts(thing.__self__, depth - 1)
    elif inspect.isroutine(thing):
        yield thing.__qualname__
    else:
        yield from _object_parts(thing, depth)


def _function_parts(function: Any, depth: int) -> Iterator[str]:
    yield from _parts(function.__code__, depth - 1)
    yield from _parts(function.__defaults__ or (), depth - 1)
    yield from _parts(tuple(sorted((function.__kwdefaults__ or {}).items())), depth - 1)
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        yield from _parts(held, depth - 1)


def _object_parts(thing: Any, depth: int) -> Iterator[str]:
    """Yield the class, its methods `__call__` and `ask`, and the fields of a frozen dataclass."""
    kind = thing if inspect.isclass(thing) else type(thing)
    module = str(kind.__module__)
    # Our own classes may move to another module between versions.
    yield f"{_PACKAGE if module.startswith(f'{_PACKAGE}.') else module}:{kind.__qualname__}"
    for method in ("__call__", "ask"):
        found = kind.__dict__.get(method)
        if inspect.isfunction(found):
            yield from _parts(found, depth - 1)
    params = getattr(kind, "__dataclass_params__", None)
    if params is not None and params.frozen and not inspect.isclass(thing):
        for field in dataclasses.fields(thing):
            yield field.name
            yield from _parts(getattr(thing, field.name), depth - 1)
