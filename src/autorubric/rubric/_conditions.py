"""Checks of conditions, gates and bonuses against the rubric that contains them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from autorubric._files import Faults, FilePath, nearest_key
from autorubric.criteria import BaseCriterion, When


class Placed(NamedTuple):
    """A criterion and its path in the file."""

    path: FilePath
    criterion: BaseCriterion


class Unread(NamedTuple):
    """A criterion that could not be parsed because it has errors.

    Attributes:
        path: Path of the criterion in the file.
        name: Name of the criterion; None if it has no name.
        when: Name of the criterion in its condition; None if there is no condition.
    """

    path: FilePath
    name: str | None
    when: str | None


def condition_of(when: Any) -> str | None:
    """Return the criterion that a condition in a rubric file names; None if the condition is invalid."""
    try:
        return When.model_validate(when).criterion
    except ValidationError:
        return None


def check_conditions(
    found: Mapping[str, Placed], groups: Collection[str], faults: Faults, unread: Sequence[Unread] = ()
) -> None:
    """Report conditions and gates that can never be decided.

    Args:
        found: The criteria by name.
        groups: Names of the groups.
        faults: Collects the errors.
        unread: Criteria with other errors; conditions may still name them.
    """
    known = list(dict.fromkeys([*found, *(one.name for one in unread if one.name is not None)]))
    # If criteria could not be parsed, the names that unnamed criteria will get are not known.
    open_names = re.compile(r"criterion_\d+(_\d+)?" if any(one.name is None for one in unread) else "(?!)")

    def check_target(path: FilePath, other: str) -> None:
        if other in groups:
            faults.add((*path, "when"), f"{other!r} is a group; a condition must name a criterion")
        elif other not in known and not open_names.fullmatch(other):
            faults.add((*path, "when"), f"unknown criterion {other!r}; {nearest_key(other, known)}")

    for one in unread:
        if one.when is not None:
            check_target(one.path, one.when)
    for path, criterion in found.values():
        if criterion.gate is not None and not criterion.measures:
            faults.add((*path, "gate"), "the criterion has no value in [0, 1], so it cannot be a gate")
        if criterion.when is None:
            continue
        other = criterion.when.criterion
        check_target(path, other)
        if other in found and not found[other].criterion.measures:
            message = f"{other!r} has no value in [0, 1], so no condition can use it"
            faults.add((*path, "when"), message)
    conditions = {name: one.criterion.when for name, one in found.items()}
    for circle in _circles({name: when.criterion for name, when in conditions.items() if when is not None}):
        message = f"conditions form a cycle: {' → '.join([*circle, circle[0]])}"
        faults.add((*found[circle[0]].path, "when"), message)


def _circles(conditions: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the cycles in `conditions`, where each name points to at most one other name."""
    done: set[str] = set()
    for start in conditions:
        chain: dict[str, None] = {}
        name = start
        while name in conditions and name not in done and name not in chain:
            chain[name] = None
            name = conditions[name]
        if name in chain:
            way = list(chain)
            yield way[way.index(name) :]
        done.update(chain)


def check_bonuses(members: Sequence[BaseCriterion | None], at: FilePath, faults: Faults) -> None:
    """Report a group that contains only bonuses; in `members`, None stands for a nested group."""
    if members and all(one is not None and one.bonus for one in members):
        faults.add(at, "a group must not contain only bonuses; add another criterion")
