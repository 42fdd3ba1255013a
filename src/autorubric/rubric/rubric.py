"""The rubric class, which holds weighted criteria and supports reading, writing, scoring and grading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, overload

from pydantic import ValidationError

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.conditions import check_name, is_registered
from autorubric.criteria.values import Answer
from autorubric.errors import ArgumentError, ReplyError, RubricError
from autorubric.rubric.read import FORMAT, Parts, members_to_list, read_rubric
from autorubric.rubric.schema import rubric_json_schema
from autorubric.scoring.policies import CannotAssessConfig, CannotAssessStrategy, RubricGroup
from autorubric.scoring.score import apply_conditions, entry_of, score_tree
from autorubric.scoring.votes import Decision
from autorubric.support.names import match_name
from autorubric.support.objects import Json
from autorubric.support.read import (
    TEXT_FORMATS,
    dump_structured,
    format_of,
    parse_structured,
    read_structured,
    text_or_path,
)
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, short_repr
from autorubric.support.write import write_text_atomic

if TYPE_CHECKING:
    from autorubric.scoring.reports import EnsembleEvaluationReport


_SUFFIXES: Final = {suffix: form for suffix, form in TEXT_FORMATS.items() if form != "jsonl"}


class SupportsGrade(Protocol):
    """An object that can grade a submission against a rubric."""

    async def grade(
        self,
        to_grade: Any,
        rubric: Rubric,
        query: Any = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """Grade one submission and return its report."""
        ...


class Rubric(Sequence[BaseCriterion]):
    """An immutable sequence of weighted criteria with unique names.

    Criteria can be nested in groups. The sequence contains only the criteria; `root` is the complete tree.
    """

    __slots__ = ("__weakref__", "_by_name", "_parts")

    def __init__(
        self,
        criteria: Iterable[BaseCriterion | RubricGroup | Mapping[str, Any]],
        *,
        guidelines: str | None = None,
    ) -> None:
        """Create a rubric from criteria.

        Args:
            criteria: At least one criterion or group, as objects or mappings. Unnamed criteria are named
                `criterion_<position>`, depth first.
            guidelines: Advice to judges on the rubric as a whole.

        Raises:
            RubricError: If there are no criteria, a name is not unique, conditions form a cycle or name an
                unknown criterion, or a mapping is invalid. All errors are reported.
        """
        if isinstance(criteria, (str, bytes, Mapping)) or not isinstance(criteria, Iterable):
            raise RubricError.whole(
                "Rubric",
                f"criteria must be a list; got {type(criteria).__name__}. For a mapping, use "
                "Rubric.from_dict; for a file, use Rubric.from_file",
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
        """Create a rubric from a mapping or a list, in any form allowed in a rubric file.

        The forms are a list of criteria, `{"criteria": [...]}`, `{"sections": [{"name", "criteria"}]}` and
        `{"rubric": ...}`; a mapping can also contain `guidelines` and `format`. A list of criteria can
        contain groups, `{"name", "weight", "criteria": [...]}`, nested up to 100 levels deep; a single group
        is also a valid rubric.

        Raises:
            RubricError: If the rubric is invalid; the message lists all errors.
        """
        return cls._of(_read(given, Faults("Rubric.from_dict")))

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """Read a rubric from JSON text or a file (a `Path` or a one-line string ending in `.json`).

        Raises:
            RubricError: If the rubric is invalid; the message lists all errors.
        """
        return cls._from_text(given, "json")

    @classmethod
    def from_yaml(cls, given: str | Path) -> Self:
        """Read a rubric from YAML text or a file (a `Path` or a one-line string ending in `.yaml` or `.yml`).

        Raises:
            RubricError: If the rubric is invalid; the message lists all errors.
        """
        return cls._from_text(given, "yaml")

    @classmethod
    def from_toml(cls, given: str | Path) -> Self:
        """Read a rubric from TOML text or a file (a `Path` or a one-line string ending in `.toml`).

        Raises:
            RubricError: If the rubric is invalid; the message lists all errors.
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
        """Read a rubric from a YAML, JSON or TOML file, as determined by the file's suffix.

        Besides the forms that `from_dict` accepts, two formats of other tools are supported: `[[criterion]]`
        tables whose `type` is `binary`, `likert` (`points`) or `numeric` (`min`, `max`), and criteria with
        `name`, `text`, `weight` and `choices`, where choices are labels from worst to best or map labels to
        values. In these two formats, the weight defaults to 1.

        Raises:
            RubricError: If the file cannot be read or the rubric is invalid; the message lists all errors,
                with line numbers if the format has them.
        """
        document = read_structured(path, suffixes=_SUFFIXES, error=RubricError)
        return cls._of(_read(document.data, document.faults()))

    @classmethod
    def _read_inside(cls, given: Json, faults: Faults, at: FilePath) -> Self | None:
        """Read the rubric at path `at` of another file; return None and add to `faults` if it has errors."""
        parts = read_rubric(given, faults, at)
        return None if parts is None else cls._of(parts)

    @classmethod
    def restore(cls, given: Mapping[str, Any]) -> Self:
        """Restore a rubric from the output of `snapshot`, even if its checks are not registered."""
        return cls._of(_read(given, Faults("stored rubric"), demand_checks=False))

    def to_dict(self) -> dict[str, Json]:
        """Convert the rubric to a mapping that `from_dict` can restore without loss.

        Raises:
            ArgumentError: If a check is an unregistered function, which a file cannot refer to.
        """
        for criterion in self:
            if criterion.check is not None and not is_registered(criterion.check):
                what = f"the check of {criterion.name!r}, {check_name(criterion.check)}, is not registered"
                advice = "register it with register_check(name, function)"
                raise ArgumentError(f"{what} and cannot be stored in a file; {advice}")
        return self.snapshot()

    def snapshot(self) -> dict[str, Json]:
        """Convert the rubric to a mapping for `restore`, writing unregistered checks as qualified names."""
        head: dict[str, Json] = {"format": FORMAT}
        if self.guidelines is not None:
            head["guidelines"] = self.guidelines
        if not self._parts.sections:
            return {**head, "criteria": members_to_list(self.root.criteria)}
        sections = [{"name": name, "criteria": members_to_list(own)} for name, own in self._by_section()]
        return {**head, "sections": sections}

    def to_file(self, path: str | Path) -> None:
        """Write the rubric to a YAML, JSON or TOML file, as determined by the file's suffix.

        Raises:
            ArgumentError: If a check is an unregistered function, which a file cannot refer to.
            FileError: If the file cannot be written.
        """
        form = format_of(path, suffixes=_SUFFIXES, error=RubricError)
        write_text_atomic(path, dump_structured(self.to_dict(), form))

    @staticmethod
    def json_schema() -> dict[str, Json]:
        """Return the JSON schema of rubric files, covering all currently registered kinds of criteria."""
        return rubric_json_schema()

    @property
    def guidelines(self) -> str | None:
        """Guidelines for judges on the rubric as a whole."""
        return self._parts.guidelines

    @property
    def sections(self) -> dict[str, tuple[BaseCriterion, ...]]:
        """Criteria by section, in order; empty if the rubric has no sections.

        Groups in a section are replaced by the criteria they contain. Sections do not affect the score.
        """
        return {name: RubricGroup(name, members).leaves for name, members in self._by_section()}

    def _by_section(self) -> Iterator[tuple[str, tuple[BaseCriterion | RubricGroup, ...]]]:
        start = 0
        for name, size in self._parts.sections:
            yield name, self.root.criteria[start : start + size]
            start += size

    @property
    def root(self) -> RubricGroup:
        """Root group of the rubric's tree, named `""`; in a flat rubric it contains only criteria."""
        return self._parts.root

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the criteria, in order."""
        return tuple(self._by_name)

    @property
    def total_positive_weight(self) -> float:
        """Sum of the positive weights of the root's criteria and groups, by which the raw score is divided.

        Bonuses and the weights of criteria inside groups are not included.
        """
        return sum(
            one.weight
            for one in self.root.criteria
            if one.weight > 0 and (isinstance(one, RubricGroup) or (one.measures and not one.bonus))
        )

    def by_name(self, name: str) -> BaseCriterion:
        """Return the criterion with the given name.

        Raises:
            ArgumentError: If no criterion has this name; the message suggests the closest name.
        """
        if (known := match_name(name, self._by_name)) is not None:
            return self._by_name[known]
        raise ArgumentError(f"unknown criterion {name!r}; {nearest_key(name, self.names)}")

    def compute_score(
        self,
        verdicts: Sequence[Json] | Mapping[str, Json],
        normalize: bool = True,
        cannot_assess_strategy: CannotAssessStrategy = CannotAssessStrategy.SKIP,
        partial_credit: float = 0.5,
    ) -> float | None:
        """Compute the score from one label per criterion, before any length penalty.

        Args:
            verdicts: A verdict, option label or number per criterion, in order or by name. A criterion whose
                verdict is None or missing was not judged: it is excluded from the score, and if it is a gate,
                its group has no score.
            normalize: Whether to normalize the score to [0, 1]; if False, it is Σ value × weight, where a
                group's value is its score.
            cannot_assess_strategy: How to score CANNOT_ASSESS and NA.
            partial_credit: Value in [0, 1] used by `PARTIAL`.

        Raises:
            ArgumentError: If the verdicts do not match the criteria or are not allowed for them, or if the
                strategy or the partial credit is invalid.
        """
        try:
            policy = CannotAssessConfig(strategy=cannot_assess_strategy, partial_credit=partial_credit)
        except ValidationError as error:
            raise ArgumentError(
                f"cannot_assess_strategy must be one of {', '.join(CannotAssessStrategy)}, and "
                f"partial_credit a number in [0, 1]; got {cannot_assess_strategy!r} and {partial_credit!r}"
            ) from error
        decided = {
            name: Decision(status="abstained" if answer.abstains else "answered", answer=answer)
            for name, answer in _answers(self._by_name, verdicts).items()
        }
        applied = apply_conditions(self._parts.criteria, decided, policy)
        entries = {name: entry_of(one, applied.get(name), policy) for name, one in self._by_name.items()}
        return score_tree(self.root, entries, normalize=normalize).score

    async def grade(
        self,
        to_grade: Any,
        grader: SupportsGrade,
        query: str | Sequence[Any] | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """Grade one submission and return the grader's report.

        Args:
            to_grade: Any form that `Submission.parse` takes, such as a string or a conversation.
            grader: The grader to use.
            query: The prompt that the submission responds to: a string, or content parts with images.
            reference_submission: A reference answer for comparison.
            item_id: Id of the submission, used to look up recorded votes.

        Raises:
            ArgumentError: If `grader` is not a grader.
        """
        if not hasattr(grader, "grade"):
            advice = "pass a grader, such as CriterionGrader(judges=['gpt-6-luna'])"
            raise ArgumentError(f"grader={short_repr(grader)} cannot grade; {advice}")
        return await grader.grade(
            to_grade, self, query=query, reference_submission=reference_submission, item_id=item_id
        )

    def grade_sync(
        self,
        to_grade: Any,
        grader: SupportsGrade,
        query: str | Sequence[Any] | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """Call `grade` from synchronous code, even inside a running event loop."""
        # Imported late, because most uses of a rubric need no event loop.
        from autorubric.support.concurrency import run_sync

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

    def _repr_html_(self) -> str:
        from autorubric.support.blocks import TableBlock, card

        rows = tuple((one.name, one.level, one.weight, one.requirement) for one in self)
        columns = ("criterion", "level", "weight", "requirement")
        return card([TableBlock(title=repr(self), columns=columns, rows=rows)])


def _read(given: Json, faults: Faults, *, demand_checks: bool = True) -> Parts:
    parts = read_rubric(given, faults, demand_checks=demand_checks)
    faults.raise_as(RubricError)
    assert parts is not None, "a valid rubric must have parts"
    return parts


def _answers(
    criteria: Mapping[str, BaseCriterion], labels: Sequence[Json] | Mapping[str, Json]
) -> dict[str, Answer]:
    """Convert labels, by name or in order, to answers by criterion name; missing labels are skipped."""
    if isinstance(labels, Mapping):
        if unknown := [name for name in labels if name not in criteria]:
            hint = nearest_key(str(unknown[0]), criteria)
            raise ArgumentError(f"unknown criterion {unknown[0]!r}; {hint}")
    elif isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise ArgumentError(f"labels must be a list or a mapping of names to labels; got {labels!r}")
    elif len(labels) != len(criteria):
        what = f"got {len(labels)} labels for {len(criteria)} criteria"
        raise ArgumentError(f"{what}; pass a label or None for each of: {', '.join(criteria)}")
    else:
        labels = dict(zip(criteria, labels, strict=True))
    answers, faults = {}, []
    for name, criterion in criteria.items():
        try:
            if (answer := criterion.parse_truth(labels.get(name))) is not None:
                answers[name] = answer
        except ReplyError as error:
            faults.append(str(error))
    if faults:
        raise ArgumentError("; ".join(faults))
    return answers
