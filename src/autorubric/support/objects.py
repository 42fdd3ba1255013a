"""Types and small helpers: JSON, numbers, caches, context variables, loggers, errors, garbage collection."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields, make_dataclass
from typing import Any, Final, Generic, TypeAlias, TypeGuard, TypeVar, cast
from weakref import ref

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, or a list or string-keyed dict of these."""

REASON_LENGTH: Final = 600
"""Default maximum number of characters of a reason."""

SAME_ERRORS_TO_STOP: Final = 5
"""Number of consecutive calls that fail with the same error, after which a run or a critique pass stops."""

NOT_ANSWERING: Final = (
    f"{SAME_ERRORS_TO_STOP} time-outs in a row with one request in flight. Increase --timeout (timeout), or "
    "check that the server is not busy with other work"
)
"""End of the error after which a run stops, because a local server does not answer."""

_VARYING: Final = re.compile(r"[\w-]*\d[\w-]*")

OwnerT = TypeVar("OwnerT")
KeptT = TypeVar("KeptT")


class IdentityCache(Generic[OwnerT, KeptT]):
    """A cache that computes a value on the first request for an object, and keeps it with the object."""

    __slots__ = ("_held", "_make")

    def __init__(self, make: Callable[[OwnerT], KeptT]) -> None:
        self._make = make
        self._held: dict[int, tuple[_Owner[OwnerT], KeptT]] = {}

    def of(self, owner: OwnerT) -> KeptT:
        """Return the value for this object, computing it if needed."""
        held = self._held.get(id(owner))
        # An earlier object may have had the same id.
        if held is None or held[0]() is not owner:
            held = self._held[id(owner)] = (_Owner(owner, self._forget), self._make(owner))
        return held[1]

    def forget(self, is_over: Callable[[OwnerT], bool]) -> None:
        """Release the values of the objects for which `is_over` is true."""
        for number, (reference, _) in list(self._held.items()):
            owner = reference()
            if owner is not None and is_over(owner):
                self._held.pop(number, None)

    def _forget(self, owner: _Owner[OwnerT]) -> None:
        # No globals are used here, because they may be deleted before the objects at interpreter shutdown.
        held = self._held.get(owner.number)
        if held is not None and held[0] is owner:
            del self._held[owner.number]

    def __len__(self) -> int:
        """Return the number of objects with a cached value."""
        return len(self._held)


class _Owner(ref[OwnerT]):
    """A weak reference that remembers its object's id after the object is gone."""

    __slots__ = ("number",)

    number: int

    def __new__(cls, owner: OwnerT, callback: Callable[[Any], None]) -> _Owner[OwnerT]:
        made = super().__new__(cls, owner, callback)
        made.number = id(owner)
        return made


class Memo(dict[Any, KeptT]):
    """Values by key; it is emptied when it has `most`, so that it cannot grow without limit."""

    def __init__(self, most: int = 1024) -> None:
        super().__init__()
        self._most = most

    def once(self, key: Hashable, make: Callable[..., KeptT], *arguments: Any) -> KeptT:
        """Return the value of a key, computing it from the arguments if needed."""
        found = self.get(key)
        if found is None:
            if len(self) >= self._most:
                self.clear()
            found = self[key] = make(*arguments)
        return found


@contextmanager
def set_within(variable: ContextVar[KeptT], value: KeptT) -> Iterator[None]:
    """Give a context variable a value inside the block, and in tasks that are started there."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def maker_of(kind: type[OwnerT]) -> Callable[..., OwnerT]:
    """Return a function that creates objects of a frozen dataclass with slots, without `__post_init__`.

    It takes a third of the time of the class itself, which sets each field with `object.__setattr__`: it sets
    them in an object of a class with the same slots that is not frozen, which then becomes one of the class.
    """

    def become(draft: Any) -> None:
        draft.__class__ = kind

    # A dataclass, but type checkers cannot know.
    same: Any = [
        (one.name, Any, field(default=one.default, default_factory=one.default_factory))
        for one in fields(kind)  # type: ignore[arg-type]
    ]
    made: Any = make_dataclass(
        kind.__name__, same, slots=True, kw_only=True, namespace={"__post_init__": become}
    )
    return cast(Callable[..., OwnerT], made)


def error_pattern(message: str) -> str:
    """Return an error message without the words that vary between calls, which are those with a digit."""
    return _VARYING.sub("#", message)


def is_number(given: object) -> TypeGuard[float]:
    """Return whether a value is an integer or a float, but not a boolean."""
    return isinstance(given, int | float) and not isinstance(given, bool)


def is_whole(given: object) -> TypeGuard[int]:
    """Return whether a value is an integer, but not a boolean."""
    return isinstance(given, int) and not isinstance(given, bool)


# Without a handler, warnings would go to stderr.
logging.getLogger("autorubric").addHandler(logging.NullHandler())


def logger_of(module: str) -> logging.Logger:
    """Return the logger of the library module with this name."""
    return logging.getLogger(module)


_ALLOCATED: Final = 50_000
"""Number of new objects that triggers a collection; Python's default is 700 or 2,000."""


@contextmanager
def fewer_gc_collections() -> Iterator[None]:
    """Make the garbage collector run less often within a block that creates many lasting objects."""
    # Otherwise, collecting takes a sixth of a run's CPU time and a third of the time of reading a dataset.
    before = gc.get_threshold()
    if not 0 < before[0] < _ALLOCATED:
        # The collector is off, or another block or the program has already raised the threshold.
        yield
        return
    gc.set_threshold(_ALLOCATED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
