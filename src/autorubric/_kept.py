"""What is computed once for an object, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import ref

OwnerT = TypeVar("OwnerT")
KeptT = TypeVar("KeptT")


class Kept(Generic[OwnerT, KeptT]):
    """Computes something of an object when it is first asked for, and keeps it for as long as that lives.

    Objects are told apart by identity. What equal ones have in common is computed for each of them: to find
    out that they are equal would take longer.

    Args:
        make: Computes it; the object must not change what comes of that.
    """

    __slots__ = ("_held", "_make")

    def __init__(self, make: Callable[[OwnerT], KeptT]) -> None:
        self._make = make
        self._held: dict[int, tuple[_Owner[OwnerT], KeptT]] = {}

    def of(self, owner: OwnerT) -> KeptT:
        """What is kept of this object."""
        held = self._held.get(id(owner))
        # Another object may have had the number before.
        if held is None or held[0]() is not owner:
            held = self._held[id(owner)] = (_Owner(owner, self._forget), self._make(owner))
        return held[1]

    def forget(self, is_over: Callable[[OwnerT], bool]) -> None:
        """Forgets what is kept of objects that live on and are of no use any more."""
        for number, (reference, _) in list(self._held.items()):
            owner = reference()
            if owner is not None and is_over(owner):
                self._held.pop(number, None)

    def _forget(self, owner: _Owner[OwnerT]) -> None:
        # Nothing global is used here: when the interpreter ends, that may be gone before the objects are.
        held = self._held.get(owner.number)
        if held is not None and held[0] is owner:
            del self._held[owner.number]

    def __len__(self) -> int:
        """Of how many objects something is kept."""
        return len(self._held)


class _Owner(ref[OwnerT]):
    """A weak reference that knows its object's number even after that is gone."""

    __slots__ = ("number",)

    number: int

    def __new__(cls, owner: OwnerT, callback: Callable[[Any], None]) -> _Owner[OwnerT]:
        made = super().__new__(cls, owner, callback)
        made.number = id(owner)
        return made
