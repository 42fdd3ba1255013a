"""Types and small helpers for objects: JSON values, caches by identity, quick constructors, loggers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import ref

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, or a list or string-keyed dict of these."""

REASON_LENGTH: Final = 600
"""Default maximum number of characters of a reason."""

OwnerT = TypeVar("OwnerT")
KeptT = TypeVar("KeptT")


class IdentityCache(Generic[OwnerT, KeptT]):
    """A cache that computes a value on the first request for an object and keeps it while the object exists.

    Objects are compared by identity. The value is computed separately for equal objects, because comparing
    them would take longer.

    Args:
        make: Function that computes the value; later changes to the object must not affect it.
    """

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


KindT = TypeVar("KindT")


def fast_init(kind: type[KindT]) -> type[KindT]:
    """Replace the `__init__` of a frozen, slotted dataclass with one that is twice as fast.

    The `__init__` that `dataclass` generates looks up `object.__setattr__` and the field name for every field
    of every instance. The replacement calls the setters of the slots directly.

    Args:
        kind: The dataclass to modify.
    """
    slots: list[Field[Any]] = [one for one in fields(kind) if one.init]  # type: ignore[arg-type]
    known: dict[str, Any] = {f"_store_{one.name}": getattr(kind, one.name).__set__ for one in slots}
    known |= {f"_default_{one.name}": _default_of(one) for one in slots}
    taken = [_parameter(one) for one in slots if not one.kw_only]
    named = [_parameter(one) for one in slots if one.kw_only]
    stored = [f"_store_{one.name}(self, {_value_of(one)})" for one in slots]
    if hasattr(kind, "__post_init__"):
        stored.append("self.__post_init__()")
    head = f"def __init__({', '.join(['self', *taken, *(['*', *named] if named else [])])}):"
    # `dataclass` does the same. The code contains only field names, which are identifiers.
    exec("\n    ".join([head, *stored]), known)  # noqa: S102
    made: Callable[..., None] = known["__init__"]
    made.__annotations__ = kind.__init__.__annotations__
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__module__ = kind.__module__
    kind.__init__ = made  # type: ignore[method-assign]
    return kind


def _default_of(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory


def _parameter(one: Field[Any]) -> str:
    return one.name if _default_of(one) is MISSING else f"{one.name}=_default_{one.name}"


def _value_of(one: Field[Any]) -> str:
    if one.default_factory is MISSING:
        return one.name
    # The factory is the default that marks a missing argument.
    return f"{one.name} if {one.name} is not _default_{one.name} else _default_{one.name}()"


# Without a handler, warnings would go to stderr.
logging.getLogger("autorubric").addHandler(logging.NullHandler())


def logger_of(module: str) -> logging.Logger:
    """Return the logger of the library module with this name."""
    return logging.getLogger(module)
