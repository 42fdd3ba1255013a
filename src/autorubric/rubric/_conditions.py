"""What conditions, gates and bonuses demand of the rubric around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from autorubric._files import Faults, FilePath, nearest_key
from autorubric.criteria import BaseCriterion


class Placed(NamedTuple):
    """A criterion and where its file has it."""

    path: FilePath
    criterion: BaseCriterion


def check_conditions(
    found: Mapping[str, Placed], groups: Collection[str], faults: Faults, *, complete: bool
) -> None:
    """Notes conditions and gates that cannot be decided.

    Args:
        found: The criteria by name.
        groups: Names of the groups.
        faults: Gets every fault.
        complete: Whether every criterion of the file could be read; only then is a name unknown.
    """
    for path, criterion in found.values():
        if criterion.gate is not None and not criterion.measures:
            faults.add((*path, "gate"), "the criterion measures nothing, so it cannot be a gate")
        if criterion.when is None:
            continue
        other = criterion.when.criterion
        if other in groups:
            message = f"{other!r} is a group; a condition names a criterion"
            faults.add((*path, "when"), message)
        elif other in found:
            if not found[other].criterion.measures:
                message = f"{other!r} measures nothing, so nothing can depend on it"
                faults.add((*path, "when"), message)
        elif complete:
            faults.add((*path, "when"), f"no criterion {other!r}; {nearest_key(other, found)}")
    conditions = {name: one.criterion.when for name, one in found.items()}
    for circle in _circles({name: when.criterion for name, when in conditions.items() if when is not None}):
        message = f"conditions go in a circle: {' → '.join([*circle, circle[0]])}"
        faults.add((*found[circle[0]].path, "when"), message)


def _circles(conditions: Mapping[str, str]) -> Iterator[list[str]]:
    """The circles that names form, each name pointing to at most one other."""
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
    """Notes a group of bonuses alone; `members` are its criteria, None for groups in it."""
    if members and all(one is not None and one.bonus for one in members):
        faults.add(at, "bonuses alone have no score that they could add to; put a criterion beside them")
