"""Frozen dataclasses that are created thousands of times per second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

KindT = TypeVar("KindT")


def quickly_made(kind: type[KindT]) -> type[KindT]:
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
