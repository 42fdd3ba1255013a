"""Functions that the importers share for reading fields, conversations and submissions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from autorubric._files import Faults, FilePath, nearest_key, shortened
from autorubric.errors import ArgumentError
from autorubric.values import Json, Submission

Submissions: TypeAlias = Mapping[str, Json]
"""Submissions by item id."""


def text_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> str:
    """Return the string under a key; if it is empty or not a string, add an error and return `""`."""
    text = given.get(key)
    if isinstance(text, str) and text.strip():
        return text
    wrong = f"{key} must be a non-empty string; got {shortened(text)}"
    faults.add((*at, key), wrong if key in given else f"the key {key!r} is missing")
    return ""


def number_at(given: Mapping[str, Any], key: str, default: float, at: FilePath, faults: Faults) -> float:
    """Return the finite number under a key, or the default; add an error if it is not a number."""
    number = given.get(key, default)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number):
        return float(number)
    faults.add((*at, key), f"{key} must be a number; got {shortened(number)}")
    return default


def list_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> Sequence[Json]:
    """Return the list under a key, or an empty list if it is missing; add an error if it is not a list."""
    found = given.get(key)
    if found is None or isinstance(found, list):
        return found or []
    faults.add((*at, key), f"{key} must be a list; got {shortened(found)}")
    return []


def check_submissions(submissions: Submissions, known: Collection[str], source: str) -> None:
    """Check that the file has an item for every submission.

    Raises:
        ArgumentError: If `submissions` is not a mapping or contains an id that is not in the file.
    """
    if not isinstance(submissions, Mapping):
        raise ArgumentError(f"submissions must map item ids to submissions; got {shortened(submissions)}")
    for key in submissions:
        if key not in known:
            raise ArgumentError(f"submissions: no item {key!r} in {source}; {nearest_key(str(key), known)}")


def conversation_text(turns: Json, at: FilePath, faults: Faults) -> str:
    """Convert a conversation to text; the content of a single user message is returned unchanged."""
    if isinstance(turns, str) and turns.strip():
        return turns
    try:
        if not isinstance(turns, list):
            raise ArgumentError(f"expected a list of {{'role', 'content'}}; got {shortened(turns)}")
        kept = [
            {key: turn[key] for key in ("role", "content") if key in turn}
            if isinstance(turn, Mapping)
            else turn
            for turn in turns
        ]
        if len(kept) == 1 and kept[0].get("role") == "user" and isinstance(kept[0].get("content"), str):
            return str(kept[0]["content"])
        return Submission.parse(kept).text or ""
    except (ArgumentError, AttributeError) as error:
        faults.add(at, str(error).replace("to_grade", "prompt"))
        return ""
