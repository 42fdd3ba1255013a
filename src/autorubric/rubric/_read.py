"""From the four forms of a rubric file to criteria, with every fault on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from autorubric._files import Faults, FilePath, format_fault, nearest_key, retyped, shortened
from autorubric.criteria import BaseCriterion, find_check, kind_of
from autorubric.errors import ArgumentError
from autorubric.values import Json

FORMAT: Final = 1
"""The newest format of rubric files that this version reads and the one it writes."""

_FORMS: Final = (
    "a rubric is a list of criteria, {'criteria': [...]}, {'sections': [{'name', 'criteria'}]} or "
    "{'rubric': ...}"
)


class Section(NamedTuple):
    """A label over consecutive criteria; scoring does not know of it.

    Attributes:
        name: The label.
        size: How many criteria stand under it.
    """

    name: str
    size: int


class Parts(NamedTuple):
    """What a rubric is made of.

    Attributes:
        criteria: In order, every one with a name.
        guidelines: Advice to judges on the rubric as a whole.
        sections: Labels over the criteria; empty, or covering all of them in order.
    """

    criteria: tuple[BaseCriterion, ...]
    guidelines: str | None
    sections: tuple[Section, ...]


def read_rubric(
    given: Json, faults: Faults, at: FilePath = (), *, demand_checks: bool = True
) -> Parts | None:
    """The parts of a rubric given in one of its four forms; None where there are faults.

    Args:
        given: A list of criteria, or a mapping with them; criteria as mappings or ready made.
        faults: Gets every fault found.
        at: Where the rubric stands inside its file.
        demand_checks: Whether the checks that it names must be registered.
    """
    before = len(faults)
    parts = _Reader(faults, demand_checks).read(given, at)
    return parts if len(faults) == before else None


class _Reader:
    def __init__(self, faults: Faults, demand_checks: bool) -> None:
        self._faults = faults
        self._demand_checks = demand_checks
        self._found: list[tuple[FilePath, BaseCriterion]] = []
        self._sections: list[Section] = []

    def read(self, given: Json, at: FilePath) -> Parts:
        guidelines = self._read_form(given, at)
        return Parts(self._named(), guidelines, tuple(self._sections))

    def _read_form(self, given: Json, at: FilePath, outer: bool = True) -> str | None:
        if not isinstance(given, Mapping):
            self._read_criteria(given, at)
            return None
        bodies = ("criteria", "sections", "rubric") if outer else ("criteria", "sections")
        if not self._check_format(given, at):
            return None
        self._check_keys(given, (*bodies, "guidelines", "format"), at)
        body = [key for key in bodies if key in given]
        if len(body) != 1:
            got = f"got {body or list(given)!r}"
            self._faults.add(at, f"give exactly one of {', '.join(bodies)}; {got}; {_FORMS}")
            return None
        guidelines = self._guidelines(given, at)
        match body[0]:
            case "criteria":
                self._read_criteria(given["criteria"], (*at, "criteria"))
            case "sections":
                self._read_sections(given["sections"], (*at, "sections"))
            case _:
                inner = self._read_form(given["rubric"], (*at, "rubric"), outer=False)
                if None not in (guidelines, inner):
                    message = "guidelines stand inside 'rubric' too; give them once"
                    self._faults.add((*at, "guidelines"), message)
                guidelines = inner if guidelines is None else guidelines
        return guidelines

    def _check_format(self, given: Mapping[str, Json], at: FilePath) -> bool:
        fault = format_fault(given.get("format", 1), FORMAT)
        if fault:
            self._faults.add((*at, "format"), fault)
        return fault is None

    def _check_keys(self, given: Mapping[str, Json], allowed: Sequence[str], at: FilePath) -> None:
        for key in given:
            if key not in allowed:
                self._faults.add((*at, key), f"unknown key {key!r}; {nearest_key(str(key), allowed)}")

    def _guidelines(self, given: Mapping[str, Json], at: FilePath) -> str | None:
        guidelines = given.get("guidelines")
        if guidelines is None or isinstance(guidelines, str):
            return guidelines
        self._faults.add((*at, "guidelines"), f"guidelines are a text; got {shortened(guidelines)}")
        return None

    def _read_sections(self, given: Json, at: FilePath) -> None:
        for path, section in self._elements(given, at, "sections"):
            if not isinstance(section, Mapping):
                message = f"a section is a mapping with 'name' and 'criteria'; got {shortened(section)}"
                self._faults.add(path, message)
                continue
            self._check_keys(section, ("name", "criteria"), path)
            name = section.get("name")
            if not isinstance(name, str) or not name:
                self._faults.add((*path, "name"), f"a section needs a name, a text; got {shortened(name)}")
            elif name in [known.name for known in self._sections]:
                self._faults.add((*path, "name"), f"the section {name!r} stands twice; names are unique")
            before = len(self._found)
            self._read_criteria(section.get("criteria"), (*path, "criteria"))
            self._sections.append(Section(str(name), len(self._found) - before))

    def _elements(self, given: Json, at: FilePath, what: str) -> Iterator[tuple[FilePath, Json]]:
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
            self._faults.add(at, f"{what} are a list; got {shortened(given)}")
        elif not given:
            self._faults.add(at, f"{what} are an empty list; give at least one")
        else:
            yield from (((*at, position), element) for position, element in enumerate(given))

    def _read_criteria(self, given: Json, at: FilePath) -> None:
        for path, element in self._elements(given, at, "criteria"):
            criterion = self._read_criterion(element, path)
            if criterion is not None:
                self._found.append((path, criterion))
                self._check_check(criterion, path)

    def _read_criterion(self, given: Json, path: FilePath) -> BaseCriterion | None:
        if isinstance(given, BaseCriterion):
            return given
        if not isinstance(given, Mapping):
            hint = "a criterion is a mapping with 'requirement', and 'weight' where it is not 10"
            self._faults.add(path, f"{hint}; got {shortened(given)}")
            return None
        try:
            # An explicit null is not the same as leaving the key out: no kind is called null.
            kind = kind_of(given["type"] or repr(given["type"])) if "type" in given else kind_of(None)
        except ArgumentError as error:
            self._faults.add((*path, "type"), str(error))
            return None
        fields = {key: value for key, value in given.items() if key != "type"}
        try:
            criterion = kind.model_validate(fields)
        except ValidationError as error:
            self._faults.add_validation(error, kind, fields, path)
            return None
        for inner, message in retyped(fields, criterion.model_dump(mode="json")):
            self._faults.add((*path, *inner), message)
        return criterion

    def _check_check(self, criterion: BaseCriterion, path: FilePath) -> None:
        if criterion.check is None or not self._demand_checks:
            return
        try:
            find_check(criterion.check)
        except ArgumentError as error:
            self._faults.add((*path, "check"), str(error))

    def _named(self) -> tuple[BaseCriterion, ...]:
        taken: dict[str, FilePath] = {}
        for path, criterion in self._found:
            if criterion.name is None:
                continue
            if criterion.name in taken:
                message = f"the name {criterion.name!r} is taken by an earlier criterion; names are unique"
                self._faults.add((*path, "name"), message)
            taken.setdefault(criterion.name, path)
        return tuple(
            criterion if criterion.name is not None else criterion.named(_free_name(position, taken))
            for position, (_, criterion) in enumerate(self._found, start=1)
        )


def _free_name(position: int, taken: Mapping[str, Any]) -> str:
    """`criterion_<position>`, or with `_2`, `_3`, … behind it where a criterion has that name already."""
    name, count = f"criterion_{position}", 1
    while name in taken:
        count += 1
        name = f"criterion_{position}_{count}"
    return name
