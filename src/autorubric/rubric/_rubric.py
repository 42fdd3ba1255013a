"""The rubric: weighted criteria in order, from and to files, with its score and its grading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, overload

from pydantic import ValidationError

from autorubric._files import (
    FORMATS,
    Faults,
    FilePath,
    dump_structured,
    format_of,
    nearest_key,
    parse_structured,
    read_structured,
    shortened,
    text_or_path,
    write_text_atomic,
)
from autorubric.criteria import BaseCriterion, check_name, is_registered
from autorubric.errors import ArgumentError, Fault, RubricError
from autorubric.rubric._read import FORMAT, Parts, members_to_list, read_rubric
from autorubric.rubric._schema import rubric_json_schema
from autorubric.types import (
    CannotAssessConfig,
    CannotAssessStrategy,
    RubricGroup,
)
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.types import EnsembleEvaluationReport

_SUFFIXES: Final = {suffix: form for suffix, form in FORMATS.items() if form != "jsonl"}


class SupportsGrade(Protocol):
    """What a rubric needs of a grader."""

    async def grade(
        self,
        to_grade: Any,
        rubric: Rubric,
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """The report on one submission."""
        ...


class Rubric(Sequence[BaseCriterion]):
    """Weighted criteria in order; an immutable sequence of them, each with a name of its own.

    Criteria may stand in groups, at any depth; the sequence is that of the leaves, `root` the tree.
    """

    __slots__ = ("_by_name", "_parts")

    def __init__(
        self,
        criteria: Iterable[BaseCriterion | RubricGroup | Mapping[str, Any]],
        *,
        guidelines: str | None = None,
    ) -> None:
        """A rubric of these criteria.

        Args:
            criteria: At least one criterion or group, ready made or as mappings. The nameless criteria are
                named `criterion_<position>`, depth first.
            guidelines: Advice to judges on the rubric as a whole.

        Raises:
            RubricError: There are none, a name occurs twice, conditions go in a circle or name no criterion,
                or a mapping has faults; all are reported.
        """
        if isinstance(criteria, (str, bytes, Mapping)) or not isinstance(criteria, Iterable):
            raise RubricError(
                "Rubric",
                [
                    Fault(
                        path="",
                        message=f"criteria are a list; got {type(criteria).__name__}. For a mapping "
                        "use Rubric.from_dict, for a file Rubric.from_file",
                    )
                ],
            )
        self._fill(_read({"criteria": list(criteria), "guidelines": guidelines}, Faults("Rubric")))

    def _fill(self, parts: Parts) -> None:
        self._parts = parts
        self._by_name = {criterion.name or "": criterion for criterion in parts.criteria}

    @classmethod
    def _of(cls, parts: Parts) -> Self:
        rubric = cls.__new__(cls)
        rubric._fill(parts)
        return rubric

    @classmethod
    def from_dict(cls, given: Mapping[str, Any] | Sequence[Any]) -> Self:
        """The rubric of a mapping or list in one of the forms that files have.

        The forms are a list of criteria, `{"criteria": [...]}`, `{"sections": [{"name", "criteria"}]}` and
        `{"rubric": ...}`; the mappings may carry `guidelines` and `format`. Among criteria may stand groups,
        `{"name", "weight", "criteria": [...]}`, at any depth up to 100; one alone is a rubric too.

        Raises:
            RubricError: It has faults; all are reported.
        """
        return cls._of(_read(given, Faults("Rubric.from_dict")))

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """The rubric of a JSON text, or of a file: a `Path`, or one line that ends in `.json`.

        Raises:
            RubricError: It has faults; all are reported.
        """
        return cls._from_text(given, "json")

    @classmethod
    def from_yaml(cls, given: str | Path) -> Self:
        """The rubric of a YAML text, or of a file: a `Path`, or one line that ends in `.yaml` or `.yml`.

        Raises:
            RubricError: It has faults; all are reported.
        """
        return cls._from_text(given, "yaml")

    @classmethod
    def from_toml(cls, given: str | Path) -> Self:
        """The rubric of a TOML text, or of a file: a `Path`, or one line that ends in `.toml`.

        Raises:
            RubricError: It has faults; all are reported.
        """
        return cls._from_text(given, "toml")

    @classmethod
    def _from_text(cls, given: str | Path, form: str) -> Self:
        path = text_or_path(given, form)
        if path is not None:
            return cls.from_file(path)
        document = parse_structured(str(given), form, source=f"Rubric.from_{form}", error=RubricError)
        return cls._of(_read(document.data, document.faults()))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The rubric in a YAML, JSON or TOML file; the suffix says which.

        Beside the forms of `from_dict` two of other tools are read: `[[criterion]]` tables with a `type` of
        `binary`, `likert` (`points`) or `numeric` (`min`, `max`), and criteria of `name`, `text`, `weight`
        and `choices`: labels from the worst to the best, or labels with values. A criterion without a
        weight weighs 1 there.

        Raises:
            RubricError: The file cannot be read, or has faults; all are reported, with lines where the
                format gives them.
        """
        document = read_structured(path, suffixes=_SUFFIXES, error=RubricError)
        return cls._of(_read(document.data, document.faults()))

    @classmethod
    def _read_inside(cls, given: Json, faults: Faults, at: FilePath) -> Self | None:
        """The rubric that stands at `at` inside another file; None where it has faults, told to `faults`."""
        parts = read_rubric(given, faults, at)
        return None if parts is None else cls._of(parts)

    @classmethod
    def restore(cls, given: Mapping[str, Any]) -> Self:
        """The rubric that `snapshot` stored; its checks need not be registered in this process."""
        return cls._of(_read(given, Faults("stored rubric"), demand_checks=False))

    def to_dict(self) -> dict[str, Json]:
        """The rubric as a mapping that `from_dict` reads; nothing is lost.

        Raises:
            ArgumentError: A check is a function that no file can name.
        """
        for criterion in self:
            if criterion.check is not None and not is_registered(criterion.check):
                raise ArgumentError(
                    f"the check of {criterion.name!r}, {check_name(criterion.check)}, has no name that a "
                    "file can hold; register it first: register_check(name, function)"
                )
        return self.snapshot()

    def snapshot(self) -> dict[str, Json]:
        """The rubric as a mapping, unregistered checks by their qualified names; see `restore`."""
        head: dict[str, Json] = {"format": FORMAT}
        if self.guidelines is not None:
            head["guidelines"] = self.guidelines
        if not self._parts.sections:
            return {**head, "criteria": members_to_list(self.root.criteria)}
        return {
            **head,
            "sections": [
                {"name": name, "criteria": members_to_list(members)} for name, members in self._by_section()
            ],
        }

    def to_file(self, path: str | Path) -> None:
        """Writes the rubric to a YAML, JSON or TOML file; the suffix says which.

        Raises:
            ArgumentError: A check is a function that no file can name.
            FileError: The file cannot be written.
        """
        form = format_of(path, suffixes=_SUFFIXES, error=RubricError)
        write_text_atomic(path, dump_structured(self.to_dict(), form))

    @staticmethod
    def json_schema() -> dict[str, Json]:
        """The JSON schema of rubric files, for editors; knows the kinds registered at the time."""
        return rubric_json_schema()

    @property
    def guidelines(self) -> str | None:
        """Advice to judges on the rubric as a whole."""
        return self._parts.guidelines

    @property
    def sections(self) -> dict[str, tuple[BaseCriterion, ...]]:
        """Criteria by section, in order; empty for a rubric without sections. Scoring ignores them.

        Of groups in a section these are the leaves.
        """
        return {name: RubricGroup(name, members).leaves for name, members in self._by_section()}

    def _by_section(self) -> Iterator[tuple[str, tuple[BaseCriterion | RubricGroup, ...]]]:
        start = 0
        for name, size in self._parts.sections:
            yield name, self.root.criteria[start : start + size]
            start += size

    @property
    def root(self) -> RubricGroup:
        """The tree of groups and criteria; its own name is `""`. A flat rubric's holds criteria alone."""
        return self._parts.root

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the criteria, in order."""
        return tuple(self._by_name)

    @property
    def total_positive_weight(self) -> float:
        """Sum of the positive weights by which the raw score is divided: of the root's criteria and groups.

        Bonuses are not among them, and neither is what stands inside groups.
        """
        return sum(
            one.weight
            for one in self.root.criteria
            if one.weight > 0 and (isinstance(one, RubricGroup) or (one.measures and not one.bonus))
        )

    def by_name(self, name: str) -> BaseCriterion:
        """The criterion of that name.

        Raises:
            ArgumentError: There is none; the nearest name is given.
        """
        if name in self._by_name:
            return self._by_name[name]
        raise ArgumentError(f"the rubric has no criterion {name!r}; {nearest_key(name, self.names)}")

    def compute_score(
        self,
        verdicts: Sequence[Json] | Mapping[str, Json],
        normalize: bool = True,
        cannot_assess_strategy: CannotAssessStrategy = CannotAssessStrategy.SKIP,
        partial_credit: float = 0.5,
    ) -> float | None:
        """The score that a label for each criterion gives, before any length penalty.

        Args:
            verdicts: A verdict, option label or number per criterion, in order or by name. None, or a name
                left out, was not judged and leaves the score; a gate without a label leaves its group
                without one.
            normalize: Whether to normalise to [0, 1]; else Σ value × weight, where the value of a group is
                its score.
            cannot_assess_strategy: How CANNOT_ASSESS and NA count.
            partial_credit: The value that `PARTIAL` gives, on [0, 1].

        Raises:
            ArgumentError: Verdicts are too few or too many, of no criterion, or not among those allowed; or
                the strategy or the credit is none.
        """
        try:
            policy = CannotAssessConfig(strategy=cannot_assess_strategy, partial_credit=partial_credit)
        except ValidationError as error:
            raise ArgumentError(
                f"cannot_assess_strategy {cannot_assess_strategy!r}, partial_credit {partial_credit!r}: give "
                f"one of {', '.join(CannotAssessStrategy)} and a number on [0, 1]"
            ) from error
        # Late: whoever reads a rubric seldom scores labels by it.
        from autorubric.rubric._scoring import score_labels

        return score_labels(self.root, verdicts, policy, normalize=normalize)

    async def grade(
        self,
        to_grade: Any,
        grader: SupportsGrade,
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """The grader's report on one submission.

        Args:
            to_grade: A text, `{"thinking", "output"}`, named candidates, a conversation, or None.
            grader: Grades it.
            query: What the submission answers.
            reference_submission: A model answer for the judges to compare with.
            item_id: The submission's id, by which recorded votes are found.

        Raises:
            ArgumentError: The grader is not one.
        """
        if not hasattr(grader, "grade"):
            raise ArgumentError(
                f"grader={shortened(grader)} cannot grade; give a grader, such as "
                "CriterionGrader(judges=['gpt-6-luna'])"
            )
        return await grader.grade(
            to_grade, self, query=query, reference_submission=reference_submission, item_id=item_id
        )

    def grade_sync(
        self,
        to_grade: Any,
        grader: SupportsGrade,
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """`grade` for synchronous code; works inside a running event loop too."""
        # Late, since most that is done with a rubric needs no event loop.
        from autorubric._sync import run_sync

        return run_sync(self.grade(to_grade, grader, query, reference_submission, item_id))

    @overload
    def __getitem__(self, index: int) -> BaseCriterion: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[BaseCriterion, ...]: ...
    def __getitem__(self, index: int | slice) -> BaseCriterion | tuple[BaseCriterion, ...]:
        return self._parts.criteria[index]

    def __len__(self) -> int:
        return len(self._parts.criteria)

    def __iter__(self) -> Iterator[BaseCriterion]:
        return iter(self._parts.criteria)

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Rubric) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.names, self.guidelines, self._parts.sections))

    def __repr__(self) -> str:
        return f"Rubric({len(self)} criteria: {', '.join(self.names)})"


def _read(given: Json, faults: Faults, *, demand_checks: bool = True) -> Parts:
    parts = read_rubric(given, faults, demand_checks=demand_checks)
    faults.raise_as(RubricError)
    assert parts is not None, "a rubric without faults has parts"
    return parts
