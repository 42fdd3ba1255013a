"""Immutable mappings for criteria."""

from __future__ import annotations

from typing import Any, Never, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class FrozenDict(dict[KeyT, ValueT]):
    """An immutable, hashable dict."""

    def _refuse(self, *_: Any, **__: Any) -> Never:
        raise TypeError("criteria are immutable; create a new criterion instead")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)
