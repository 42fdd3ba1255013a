"""What the importers share: fields of foreign mappings, and submissions brought beside the file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from autorubric._files import Faults, FilePath, nearest_key, shortened
from autorubric.errors import ArgumentError
from autorubric.values import Json, Submission

Submissions: TypeAlias = Mapping[str, Json]
"""What is graded, by the id of its item."""


def text_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> str:
    """Return the text under a key; if it is not a text, note an error and return an empty text."""
    text = given.get(key)
    if isinstance(text, str) and text.strip():
        return text
    said = f"the key {key!r} is missing" if key not in given else f"{key} is a text; got {shortened(text)}"
    faults.add((*at, key), said)
    return ""


def number_at(given: Mapping[str, Any], key: str, default: float, at: FilePath, faults: Faults) -> float:
    """Return the finite number under a key, or the default; note an error if it is not a number."""
    number = given.get(key, default)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number):
        return float(number)
    faults.add((*at, key), f"{key} is a number; got {shortened(number)}")
    return default


def list_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> Sequence[Json]:
    """Return the list under a key, empty if missing; note an error if it is not a list."""
    found = given.get(key)
    if found is None or isinstance(found, list):
        return found or []
    faults.add((*at, key), f"{key} is a list; got {shortened(found)}")
    return []


def check_submissions(submissions: Submissions, known: Collection[str], source: str) -> None:
    """Check that the file has an item for every submission.

    Raises:
        ArgumentError: If they are no mapping, or of an item that it has not.
    """
    if not isinstance(submissions, Mapping):
        raise ArgumentError(f"submissions={shortened(submissions)}; give a mapping of ids to what is graded")
    for key in submissions:
        if key not in known:
            raise ArgumentError(f"submissions: {source} has no item {key!r}; {nearest_key(str(key), known)}")


def conversation_text(turns: Json, at: FilePath, faults: Faults) -> str:
    """Return a conversation as one text; a single message of a user is returned unchanged."""
    if isinstance(turns, str) and turns.strip():
        return turns
    try:
        if not isinstance(turns, list):
            raise ArgumentError(f"a conversation is a list of {{'role', 'content'}}; got {shortened(turns)}")
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
        faults.add(at, str(error).replace("to_grade", "it"))
        return ""
