"""Resolution of evidence paths in critiques, such as `payload.days[0].title`, in the output of a draft."""

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
    """Return whether an evidence path exists in an output.

    Args:
        path: Keys separated by dots or quoted in brackets, and indices in brackets, for example
            `payload.days[0]["first title"]`. The path may start with `$`, which denotes the output.
        output: The output, as data or a JSON string. No path exists in text that is not JSON.
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
    """Return each issue that has a path, with its index, the path, and whether it exists in the output."""
    issues = critique.get("issues")
    found: list[dict[str, Json]] = []
    for place, issue in enumerate(issues if isinstance(issues, list) else []):
        path = issue.get("evidence_path") if isinstance(issue, Mapping) else None
        if isinstance(path, str) and path:
            resolved = resolve_evidence(path, output)
            found.append({"issue": place, "evidence_path": path, "resolved": resolved})
    return found


def _steps(path: str) -> list[str | int] | None:
    """Split a path into keys and indices; None if the path is invalid."""
    text = path.strip().removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        # A key must follow a dot, except at the beginning.
        if match is None or (match["key"] and at > 0 and text[at] != "."):
            return None
        at = match.end()
        if match["place"] is not None:
            steps.append(int(match["place"]))
        else:
            steps.append(match["key"] if match["key"] is not None else match["quoted"][1:-1])
    return steps


def data_of(output: Json) -> Any:
    """Return an output as data: a string is parsed as JSON (None if invalid), other data is unchanged."""
    if not isinstance(output, str):
        return output
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None
