"""Whether what a critique points at is there: `payload.days[0].title` inside a draft's output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from autorubric.values import Json

_STEP: Final = re.compile(
    r"""\.?(?P<key>[^.\[\]\s"'][^.\[\]]*)|\[(?P<place>\d{1,9})\]|\[(?P<quoted>"[^"]*"|'[^']*')\]"""
)


def resolve_evidence(path: str, output: Json) -> bool:
    """Return whether a path leads to something inside an output.

    Args:
        path: Keys after dots or, quoted, in brackets, and positions from 0 in brackets, as
            `payload.days[0]["first title"]`; a `$` before them is the output itself.
        output: The output: data, or a JSON text. In a text that is not JSON no path leads anywhere.
    """
    steps = _steps(path)
    place = data_of(output)
    if not steps or place is None:
        return False
    for step in steps:
        if isinstance(place, list) and isinstance(step, int):
            there = step < len(place)
        else:
            there = isinstance(place, Mapping) and step in place
        if not there:
            return False
        place = place[step]
    return True


def evidence_of(critique: Mapping[str, Json], output: Json) -> list[dict[str, Json]]:
    """Yield each issue with a path: its number, the path, and whether the output has it."""
    issues = critique.get("issues")
    found: list[dict[str, Json]] = []
    for place, issue in enumerate(issues if isinstance(issues, list) else []):
        path = issue.get("evidence_path") if isinstance(issue, Mapping) else None
        if isinstance(path, str) and path:
            resolved = resolve_evidence(path, output)
            found.append({"issue": place, "evidence_path": path, "resolved": resolved})
    return found


def _steps(path: str) -> list[str | int] | None:
    """Return the steps of a path; None if it is none."""
    text = path.strip().removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        # A key needs its dot, except at the beginning.
        if match is None or (match["key"] and at > 0 and text[at] != "."):
            return None
        at = match.end()
        if match["place"] is not None:
            steps.append(int(match["place"]))
        else:
            steps.append(match["key"] if match["key"] is not None else match["quoted"][1:-1])
    return steps


def data_of(output: Json) -> Any:
    """Return an output as data: what a JSON text holds, None for any other text, and data as it is."""
    if not isinstance(output, str):
        return output
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None
