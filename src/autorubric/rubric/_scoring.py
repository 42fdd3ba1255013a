"""A rubric's score from labels, by the core that the grader uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autorubric._files import nearest_key
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError, ReplyError
from autorubric.scoring import entering_value, score_values
from autorubric.types import CannotAssessConfig, Decision
from autorubric.values import Answer, Json


def score_labels(
    criteria: Sequence[BaseCriterion],
    labels: Sequence[Json] | Mapping[str, Json],
    policy: CannotAssessConfig,
    *,
    normalize: bool,
) -> float | None:
    """The score of labels in the order of the criteria, or by name; None where nothing is left to score.

    Raises:
        ArgumentError: Labels are too few or too many, of no criterion, or not among those allowed.
    """
    answers = _answers(criteria, labels_by_name(criteria, labels))
    values = [
        entering_value(criterion, _decision(answer), policy)
        for criterion, answer in zip(criteria, answers, strict=True)
    ]
    return score_values(criteria, values, normalize=normalize).score


def labels_by_name(
    criteria: Sequence[BaseCriterion], labels: Sequence[Json] | Mapping[str, Json]
) -> dict[str, Json]:
    """Labels by criterion name, given so or in the order of the criteria.

    Raises:
        ArgumentError: They do not fit the criteria.
    """
    names = [criterion.name or "" for criterion in criteria]
    if isinstance(labels, Mapping):
        unknown = [name for name in labels if name not in names]
        if unknown:
            raise ArgumentError(f"no criterion {unknown[0]!r}; {nearest_key(str(unknown[0]), names)}")
        return dict(labels)
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise ArgumentError(f"{labels!r} is neither a list of labels nor a mapping of names to labels")
    if len(labels) != len(names):
        raise ArgumentError(
            f"{len(labels)} labels for {len(names)} criteria; give one each, None where there is none: "
            + ", ".join(names)
        )
    return dict(zip(names, labels, strict=True))


def _answers(criteria: Sequence[BaseCriterion], labels: Mapping[str, Json]) -> list[Answer | None]:
    answers, faults = [], []
    for criterion in criteria:
        try:
            answers.append(criterion.parse_truth(labels.get(criterion.name or "")))
        except ReplyError as error:
            faults.append(str(error))
    if faults:
        raise ArgumentError("; ".join(faults))
    return answers


def _decision(answer: Answer | None) -> Decision | None:
    if answer is None:
        return None
    return Decision(status="abstained" if answer.abstains else "answered", answer=answer)
