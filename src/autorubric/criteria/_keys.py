"""Validation of keys that become fields of an evaluation."""

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
    """Check that keys can name fields of an evaluation.

    Args:
        keys: The keys.
        what: Plural name of the keyed objects, for error messages.
        taken: Names of the other fields of the evaluation.
        fields: Function that returns the names of the fields for a key.

    Raises:
        ValueError: If there are no keys, or a key cannot be a field; the message states the reason.
    """
    given = list(keys)
    if not given:
        raise ValueError(f"{what} must not be empty; add at least one")
    for key in given:
        fault = _fault(key, fields(key), {*_TAKEN, *taken})
        if fault:
            raise ValueError(f"{what}: the key {key!r} {fault}; use another name")


def field_fault(name: str, *, text: bool) -> str | None:
    """Return the reason why a criterion class cannot declare a field of this name; None if it can.

    Args:
        name: The field's name.
        text: Whether the field is a text field, which may be named `reason`.
    """
    if name.startswith("_"):
        return "starts with an underscore, which pydantic excludes from replies"
    if name in _TAKEN and not (text and name == "reason"):
        return f"conflicts with the field {name!r} of every evaluation"
    if name in _OF_MODELS:
        return f"conflicts with the attribute {name!r} of every evaluation"
    return None


def _fault(key: str, fields: Sequence[str], taken: set[str]) -> str | None:
    if key.startswith("_"):
        return "starts with an underscore"
    if keyword.iskeyword(key):
        return "is a reserved word of Python"
    if not key.isidentifier():
        return "must consist of letters, digits and underscores and must not start with a digit"
    for field in fields:
        if field in taken:
            return f"conflicts with the field {field!r} of the evaluation"
        if field in _OF_MODELS:
            return f"conflicts with the attribute {field!r} of every evaluation"
    return None
