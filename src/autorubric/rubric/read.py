"""Parsing of rubrics, also of those written for other tools, with all errors collected."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from autorubric.criteria.base import BaseCriterion, criterion_to_dict, kind_of
from autorubric.criteria.conditions import When, find_check
from autorubric.errors import ArgumentError
from autorubric.scoring.policies import RubricGroup, is_group
from autorubric.support.objects import Json, is_number
from autorubric.support.read import format_fault
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, short_repr, type_changes

TABLES: Final = "criterion"
"""The key of `[[criterion]]` tables."""

SETTINGS: Final = ("judge", "scoring")
"""Tables in the same file that configure judges and scoring; a rubric does not store them."""

_SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "binary": (),
    "likert": ("points",),
    "numeric": ("min", "max"),
}
_FOREIGN_WEIGHT: Final = 1.0


def to_own_keys(given: Mapping[str, Json], tables: bool, faults: Faults, at: FilePath) -> Mapping[str, Json]:
    """Convert a criterion to the library's own keys; one that already uses them is returned unchanged."""
    # Built-in and user-defined kinds may have parameters with these names.
    if not tables and ("type" in given or not {"text", "choices"} & set(given)):
        return given
    found = {"weight": _FOREIGN_WEIGHT, **given}
    for key, own in (("text", "requirement"), ("choices", "options")):
        if key in found:
            if own in found:
                faults.add((*at, key), f"{key} and {own} are synonyms; use only one of them")
            found[own] = found.pop(key)
            if key == "choices":
                found[own] = _options(found[own], faults, (*at, key))
    shape = found.get("type")
    if tables and isinstance(shape, str) and shape in _SHAPES and not {"scale", "rating"} & set(found):
        found |= _scale(found, shape, faults, at)
    return found


def _options(given: Json, faults: Faults, at: FilePath) -> Json:
    """Convert choices to options; labels without values are spaced evenly from 0 (first) to 1 (last)."""
    if isinstance(given, Mapping):
        return [{"label": str(label), "value": value} for label, value in given.items()]
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 2:
        message = "choices must be a list of at least two labels, from worst to best, or map labels to values"
        faults.add(at, f"{message}; got {short_repr(given)}")
        return None
    if any(isinstance(one, Mapping) for one in given):
        return list(given)
    return [{"label": str(label), "value": place / (len(given) - 1)} for place, label in enumerate(given)]


def _scale(found: dict[str, Any], shape: str, faults: Faults, at: FilePath) -> dict[str, Any]:
    """Convert the type of a table to the library's fields, and remove the table's own keys from `found`."""
    del found["type"]
    own = {key: found.pop(key) for key in ("points", "min", "max") if key in found}
    wanted = _SHAPES[shape]
    for key in own:
        if key not in wanted:
            faults.add((*at, key), f"unknown key {key!r} for {shape}. Keys: {', '.join(wanted) or 'none'}")
    for needed in wanted:
        if needed not in own:
            faults.add(at, f"a {shape} criterion requires a number {needed!r}")
    if shape == "likert":
        return {"type": "likert", "rating": {"min_val": 1, "max_val": own.get("points", 2)}}
    if shape == "numeric":
        bounds = {"min_value": own.get("min", 0.0), "max_value": own.get("max", 1.0)}
        return {"type": "numerical_rating", **bounds}
    return {}


FORMAT: Final = 1
"""Newest version of the rubric file format that can be read, and the version that is written."""

MAX_DEPTH: Final = 100
"""Maximum nesting depth of groups, which keeps files that contain a rubric within the limit for files."""

_DEFAULT_WEIGHT: Final = 10.0

_FORMS: Final = (
    "A rubric must be a list of criteria, {'criteria': [...]}, {'sections': [{'name', 'criteria'}]} or "
    "{'rubric': ...}"
)


class Section(NamedTuple):
    """A label for consecutive criteria and groups, which does not affect the score."""

    name: str
    size: int


class Parts(NamedTuple):
    root: RubricGroup
    criteria: tuple[BaseCriterion, ...]
    guidelines: str | None
    # Labels for the members of the root, in order; empty, or covering all members.
    sections: tuple[Section, ...]


def read_rubric(
    given: Json, faults: Faults, at: FilePath = (), *, demand_checks: bool = True
) -> Parts | None:
    """Parse a rubric in any of its four forms; return None if it has errors."""
    return _RubricReader(faults, demand_checks).read(given, at)


_Placed: TypeAlias = tuple[FilePath, BaseCriterion]
_Unread: TypeAlias = tuple[FilePath, str | None, str | None]
"""A criterion with errors: its path, its name, and the criterion in its condition."""


class _Draft(NamedTuple):
    """A group being parsed, whose criteria are positions in the list of all criteria found."""

    name: str
    weight: float
    members: list[_Member]

    def build(self, leaves: Sequence[BaseCriterion]) -> RubricGroup:
        members = [leaves[one] if isinstance(one, int) else one.build(leaves) for one in self.members]
        return RubricGroup(self.name, tuple(members), self.weight)


_Member: TypeAlias = _Draft | int


class _RubricReader:
    def __init__(self, faults: Faults, demand_checks: bool) -> None:
        self._faults = faults
        self._demand_checks = demand_checks
        self._members: list[_Member] = []
        self._found: list[_Placed] = []
        self._sections: list[Section] = []
        self._taken: dict[str, str] = {}
        self._unread: list[_Unread] = []
        self._tables = False

    def read(self, given: Json, at: FilePath) -> Parts | None:
        before = len(self._faults)
        guidelines = self._read_form(given, at)
        self._check_bonuses(self._members, at)
        by_name: dict[str, _Placed] = {}
        for position, placed in enumerate(self._found, start=1):
            name = placed[1].name or free_name(f"criterion_{position}", self._taken)
            by_name.setdefault(name, placed)
        self._check_rows(by_name)
        self._check_conditions(by_name)
        if len(self._faults) > before:
            return None
        leaves = [one if one.name is not None else one.with_name(name) for name, (_, one) in by_name.items()]
        root = _Draft("", _DEFAULT_WEIGHT, self._members).build(leaves)
        return Parts(root, tuple(leaves), guidelines, tuple(self._sections))

    def _read_form(self, given: Json, at: FilePath, outer: bool = True) -> str | None:
        if not isinstance(given, Mapping):
            self._members = self._read_members(given, at)
            return None
        if TABLES in given:
            return self._read_tables(given, at)
        bodies = ("criteria", "sections", "rubric") if outer else ("criteria", "sections")
        if fault := format_fault(given.get("format", 1), FORMAT):
            self._faults.add((*at, "format"), fault)
            return None
        if is_group(given) and not {"name", "weight"}.isdisjoint(given):
            group = {key: value for key, value in given.items() if key not in ("guidelines", "format")}
            self._members = self._read_group(group, at, 0)
            return self._guidelines(given, at)
        self._faults.add_unknown_keys(given, (*bodies, "guidelines", "format"), at)
        body = [key for key in bodies if key in given]
        if len(body) != 1:
            got = f"got {body or list(given)!r}"
            self._faults.add(at, f"exactly one of {', '.join(bodies)} is required; {got}. {_FORMS}")
            return None
        guidelines = self._guidelines(given, at)
        match body[0]:
            case "criteria":
                self._members = self._read_members(given["criteria"], (*at, "criteria"))
            case "sections":
                self._read_sections(given["sections"], (*at, "sections"))
            case _:
                inner = self._read_form(given["rubric"], (*at, "rubric"), outer=False)
                if None not in (guidelines, inner):
                    message = "guidelines are also defined inside 'rubric'; define them only once"
                    self._faults.add((*at, "guidelines"), message)
                guidelines = inner if guidelines is None else guidelines
        return guidelines

    def _read_tables(self, given: Mapping[str, Json], at: FilePath) -> str | None:
        """Read `[[criterion]]` tables; warn about the settings next to them, which are ignored."""
        self._faults.add_unknown_keys(given, (TABLES, "guidelines", *SETTINGS), at)
        self._tables = True
        self._members = self._read_members(given[TABLES], (*at, TABLES))
        for key in SETTINGS:
            if key in given:
                message = f"{self._faults.source}: [{key}] is ignored because a rubric contains only criteria"
                warnings.warn(f"{message}. Set judges and aggregation in the grader", stacklevel=2)
        return self._guidelines(given, at)

    def _guidelines(self, given: Mapping[str, Json], at: FilePath) -> str | None:
        guidelines = given.get("guidelines")
        if guidelines is None or isinstance(guidelines, str):
            return guidelines
        self._faults.add((*at, "guidelines"), f"guidelines must be a string; got {short_repr(guidelines)}")
        return None

    def _read_sections(self, given: Json, at: FilePath) -> None:
        for path, section in self._elements(given, at, "sections"):
            if not isinstance(section, Mapping):
                message = f"a section must be a mapping with 'name' and 'criteria'; got {short_repr(section)}"
                self._faults.add(path, message)
                continue
            self._faults.add_unknown_keys(section, ("name", "criteria"), path)
            name = section.get("name")
            if not isinstance(name, str) or not name:
                self._faults.add((*path, "name"), f"a section must have a name; got {short_repr(name)}")
            elif name in [known.name for known in self._sections]:
                self._faults.add((*path, "name"), f"section {name!r} is repeated; names must be unique")
            members = self._read_members(section.get("criteria"), (*path, "criteria"))
            self._sections.append(Section(str(name), len(members)))
            self._members += members

    def _elements(self, given: Json, at: FilePath, what: str) -> Iterator[tuple[FilePath, Json]]:
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
            self._faults.add(at, f"{what} must be a list; got {short_repr(given)}")
        elif not given:
            self._faults.add(at, f"{what} must not be empty; add at least one")
        else:
            yield from (((*at, position), element) for position, element in enumerate(given))

    def _read_members(self, given: Json, at: FilePath, depth: int = 0) -> list[_Member]:
        members: list[_Member] = []
        for path, element in self._elements(given, at, "criteria"):
            if isinstance(element, RubricGroup):
                element = {"name": element.name, "weight": element.weight, "criteria": element.criteria}
            if isinstance(element, Mapping) and is_group(element):
                members += self._read_group(element, path, depth)
            elif (criterion := self._read_criterion(element, path)) is not None:
                members.append(len(self._found))
                self._found.append((path, criterion))
                self._take(criterion.name, "criterion", path)
                if criterion.check is not None and self._demand_checks:
                    try:
                        find_check(criterion.check)
                    except ArgumentError as error:
                        self._faults.add((*path, "check"), str(error))
            else:
                # The name and the condition are checked nevertheless.
                fields = element if isinstance(element, Mapping) else {}
                name = fields["name"] if isinstance(fields.get("name"), str) else None
                self._unread.append((path, name, _condition_of(fields.get("when"))))
                self._take(name, "criterion", path)
        return members

    def _read_group(self, given: Mapping[str, Json], path: FilePath, depth: int) -> list[_Member]:
        """Parse a group and return it in a list, which is empty if the group is nested too deeply."""
        if depth >= MAX_DEPTH:
            self._faults.add(path, f"groups are nested deeper than {MAX_DEPTH} levels; make the tree flatter")
            return []
        self._faults.add_unknown_keys(given, ("name", "weight", "criteria"), path)
        name, weight = given.get("name"), given.get("weight", _DEFAULT_WEIGHT)
        if not isinstance(name, str) or not name:
            self._faults.add((*path, "name"), f"a group must have a name; got {short_repr(name)}")
        else:
            self._take(name, "group", path)
        if not is_number(weight) or not 0 <= weight <= sys.float_info.max:
            message = f"the weight of a group must be a non-negative number; got {short_repr(weight)}"
            self._faults.add((*path, "weight"), f"{message}. Only criteria can be penalties")
            weight = 0.0
        members = self._read_members(given["criteria"], (*path, "criteria"), depth + 1)
        self._check_bonuses(members, path)
        return [_Draft(str(name), float(weight), members)]

    def _check_bonuses(self, members: Sequence[_Member], at: FilePath) -> None:
        bonuses = [isinstance(one, int) and self._found[one][1].bonus for one in members]
        if members and all(bonuses):
            self._faults.add(at, "a group must not contain only bonuses; add another criterion")

    def _check_rows(self, by_name: Mapping[str, _Placed]) -> None:
        """Check that no criterion has the name of another's part, since metrics have one row per part."""
        for name, (_, criterion) in by_name.items():
            for part in criterion.part_fields.values():
                row = f"{name}/{(part.name or '').rpartition('/')[2]}"
                if row in by_name:
                    message = f"the name {row!r} is already used for a metrics row of {name!r}"
                    self._faults.add((*by_name[row][0], "name"), message)

    def _take(self, name: str | None, what: str, path: FilePath) -> None:
        if name is None:
            return
        if name in self._taken:
            message = f"the name {name!r} is already used by an earlier {self._taken[name]}"
            self._faults.add((*path, "name"), message)
        self._taken.setdefault(name, what)

    def _read_criterion(self, given: Json, path: FilePath) -> BaseCriterion | None:
        if isinstance(given, BaseCriterion):
            return given
        if not isinstance(given, Mapping):
            hint = "a criterion must be a mapping with 'requirement' and optionally 'weight' (default 10)"
            self._faults.add(path, f"{hint}; got {short_repr(given)}")
            return None
        given = to_own_keys(given, self._tables, self._faults, path)
        try:
            # An explicit null differs from a missing key, because no kind is called null.
            kind = kind_of(given["type"] or repr(given["type"])) if "type" in given else kind_of(None)
        except ArgumentError as error:
            self._faults.add((*path, "type"), str(error))
            return None
        fields = {key: value for key, value in given.items() if key != "type"}
        criterion = self._faults.validate(kind, fields, path)
        if criterion is None:
            return None
        for inner, message in type_changes(fields, criterion.model_dump(mode="json")):
            self._faults.add((*path, *inner), message)
        return criterion

    def _check_conditions(self, found: Mapping[str, _Placed]) -> None:
        """Report conditions and gates that can never be decided."""
        names = [name for _, name, _ in self._unread]
        known = list(dict.fromkeys([*found, *(name for name in names if name is not None)]))
        # If criteria could not be parsed, the names that unnamed criteria will get are not known.
        open_names = re.compile(r"criterion_\d+(_\d+)?" if None in names else "(?!)")

        def check_target(path: FilePath, other: str) -> None:
            if self._taken.get(other) == "group":
                message = f"{other!r} is a group; a condition must name a criterion"
                self._faults.add((*path, "when"), message)
            elif other not in known and not open_names.fullmatch(other):
                message = f"unknown criterion {other!r}; {nearest_key(other, known)}"
                self._faults.add((*path, "when"), message)

        for path, _, when in self._unread:
            if when is not None:
                check_target(path, when)
        conditions: dict[str, str] = {}
        for name, (path, criterion) in found.items():
            if criterion.gate is not None and not criterion.measures:
                message = "the criterion has no value in [0, 1], so it cannot be a gate"
                self._faults.add((*path, "gate"), message)
            if criterion.when is None:
                continue
            other = conditions[name] = criterion.when.criterion
            check_target(path, other)
            if other in found and not found[other][1].measures:
                message = f"{other!r} has no value in [0, 1], so no condition can use it"
                self._faults.add((*path, "when"), message)
        for circle in _cycles(conditions):
            message = f"conditions form a cycle: {' → '.join([*circle, circle[0]])}"
            self._faults.add((*found[circle[0]][0], "when"), message)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, plus `_2`, `_3` and so on if it is taken."""
    names = itertools.chain([name], (f"{name}_{count}" for count in itertools.count(2)))
    return next(one for one in names if one not in taken)


def members_to_list(members: Sequence[BaseCriterion | RubricGroup]) -> list[Json]:
    """Convert criteria and groups to the form of a rubric file."""
    return [
        {"name": one.name, "weight": one.weight, "criteria": members_to_list(one.criteria)}
        if isinstance(one, RubricGroup)
        else criterion_to_dict(one)
        for one in members
    ]


def _condition_of(when: Any) -> str | None:
    """Return the criterion that a condition in a rubric file names; None if the condition is invalid."""
    try:
        return When.model_validate(when).criterion
    except ValidationError:
        return None


def _cycles(conditions: Mapping[str, str]) -> Iterator[list[str]]:
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
