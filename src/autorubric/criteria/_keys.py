"""Checks of keys that become fields of an evaluation."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pydantic import BaseModel

_TAKEN: Final = frozenset({"criterion_name", "cannot_assess", "reason", "id"})
_OF_MODELS: Final = frozenset(dir(BaseModel))


def check_keys(
    keys: Iterable[str],
    what: str,
    *,
    taken: Sequence[str] = (),
    fields: Callable[[str], Sequence[str]] = lambda key: (key,),
) -> None:
    """Refuse keys that cannot name fields of an evaluation.

    Args:
        keys: The keys given.
        what: What the keys belong to, for errors.
        taken: Fields that the evaluation has besides.
        fields: The fields that a key makes.

    Raises:
        ValueError: If there are none, or one cannot be a field; the message says why.
    """
    given = list(keys)
    if not given:
        raise ValueError(f"{what} are empty; give at least one")
    for key in given:
        fault = _fault(key, fields(key), {*_TAKEN, *taken})
        if fault:
            raise ValueError(f"{what}: the key {key!r} {fault}; give it another name")


def field_fault(name: str, *, text: bool) -> str | None:
    """Return why a kind may not declare a field of this name, in words; None if it may.

    Args:
        name: The field's name.
        text: Whether it is a text, which may well be the `reason`.
    """
    if name.startswith("_"):
        return "starts with an underscore, so that no reply has it"
    if name in _TAKEN and not (text and name == "reason"):
        return f"collides with the field {name!r} of every evaluation"
    if name in _OF_MODELS:
        return f"shadows {name!r}, which every evaluation has as a method"
    return None


def _fault(key: str, fields: Sequence[str], taken: set[str]) -> str | None:
    if key.startswith("_"):
        return "starts with an underscore"
    if keyword.iskeyword(key):
        return "is a word of the Python language"
    if not key.isidentifier():
        return "is not an identifier; use letters, digits and underscores, and no digit first"
    for field in fields:
        if field in taken:
            return f"collides with the field {field!r} of the evaluation"
        if field in _OF_MODELS:
            return f"shadows {field!r}, which every evaluation has as a method"
    return None
