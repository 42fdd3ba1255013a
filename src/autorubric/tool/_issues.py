"""Parsing of issues and suggestions: unambiguous entries are normalized, others are omitted with a note."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from autorubric._files import shortened
from autorubric.tool._response import Issue, Severity
from autorubric.values import Json

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""Severities in ascending order."""

_SYNONYMS: Final[Mapping[str, Severity]] = {
    **{one: one for one in SEVERITIES},
    **dict.fromkeys(("minor", "trivial", "cosmetic"), "low"),
    "moderate": "medium",
    **dict.fromkeys(("major", "severe", "serious"), "high"),
    **dict.fromkeys(("blocker", "fatal"), "critical"),
}
_LONGEST_LOCATION: Final = 500
_NOT_IN_NAMES: Final = re.compile(r"[\W_]+")


class Names:
    """The names of the requested criteria, matched regardless of case, whitespace and punctuation.

    Args:
        names: Names of the criteria.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._by_key: dict[str, str | None] = {}
        for name in self.names:
            key = _key(name)
            self._by_key[key] = None if key in self._by_key else name

    def find(self, given: Json) -> str | None:
        """Return the name that a spelling refers to; None if no name matches or several names match."""
        if not isinstance(given, str):
            return None
        return given if given in self.names else self._by_key.get(_key(given))


def read_issues(given: Json, names: Names, notes: list[str]) -> tuple[Issue, ...]:
    """Parse the issues of a reply and return them in order.

    Args:
        given: Value of `issues` in the reply.
        names: Names of the requested criteria.
        notes: List to which a note is appended for each omitted issue.
    """
    if isinstance(given, Mapping):
        given = [given]
    return tuple(_issues(_listed(given, "issues", notes), names, notes))


def read_suggestions(given: Json, notes: list[str]) -> tuple[str, ...]:
    """Parse the suggestions of a reply and append a note to `notes` for each omitted suggestion."""
    texts = []
    for number, one in enumerate(
        _listed([given] if isinstance(given, str) else given, "suggestions", notes), 1
    ):
        if isinstance(one, str):
            texts.append(one.strip())
        else:
            notes.append(f"suggestion {number} omitted: {shortened(one)} is not a string")
    return tuple(filter(None, texts))


def plain_text(given: Json) -> str:
    """Return a string without surrounding whitespace, or an empty string for other values."""
    return given.strip() if isinstance(given, str) else ""


def most_severe(issues: Sequence[Issue], most: int) -> tuple[Issue, ...]:
    """Return at most `most` issues per criterion, keeping the most severe."""
    ranked = sorted(range(len(issues)), key=lambda at: -SEVERITIES.index(issues[at].severity))
    kept: set[int] = set()
    counts: dict[str, int] = {}
    for at in ranked:
        name = issues[at].criterion
        if counts.get(name, 0) < most:
            counts[name] = counts.get(name, 0) + 1
            kept.add(at)
    return tuple(issue for at, issue in enumerate(issues) if at in kept)


def _issues(entries: Sequence[Json], names: Names, notes: list[str]) -> Iterator[Issue]:
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            notes.append(f"issue {number} omitted: {shortened(entry)} is not an object")
            continue
        description = plain_text(entry.get("description"))
        severity = _SYNONYMS.get(plain_text(entry.get("severity")).casefold())
        name = _criterion(entry, names)
        if not description:
            notes.append(f"issue {number} omitted: the description is missing")
        elif name is None:
            named = shortened(entry.get("criterion"))
            notes.append(f"issue {number} omitted: criterion {named} was not requested: {description}")
        elif severity is None:
            found = shortened(entry.get("severity"))
            allowed = ", ".join(SEVERITIES)
            notes.append(
                f"issue {number} ({name}) omitted: severity {found} is not one of {allowed}: {description}"
            )
        else:
            yield Issue(
                criterion=name,
                severity=severity,
                location=_location(entry.get("location")),
                description=description,
                suggestion=plain_text(entry.get("suggestion")) or None,
            )


def _criterion(entry: Mapping[str, Json], names: Names) -> str | None:
    if entry.get("criterion") is None and len(names.names) == 1:
        return names.names[0]
    return names.find(entry.get("criterion"))


def _location(given: Json) -> str | None:
    """Return the location of an issue; an integer is interpreted as a line number."""
    if isinstance(given, int) and not isinstance(given, bool):
        return f"line {given}"
    return plain_text(given)[:_LONGEST_LOCATION] or None


def _listed(given: Json, name: str, notes: list[str]) -> Sequence[Json]:
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return given
    notes.append(f"{name} omitted: {shortened(given)} is not a list")
    return ()


def _key(name: str) -> str:
    return _NOT_IN_NAMES.sub("", name).casefold()
