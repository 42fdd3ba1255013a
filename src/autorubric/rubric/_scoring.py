"""Computation of a rubric's score from labels, with the same functions as the grader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autorubric._files import nearest_key
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError, ReplyError
from autorubric.scoring import apply_conditions, entry_of, score_tree
from autorubric.types import CannotAssessConfig, Decision, RubricGroup
from autorubric.values import Answer, Json


def score_labels(
    root: RubricGroup,
    labels: Sequence[Json] | Mapping[str, Json],
    policy: CannotAssessConfig,
    *,
    normalize: bool,
) -> float | None:
    """Compute the score from labels, by name or in the order of the leaves; None if nothing can be scored.

    Raises:
        ArgumentError: If the labels do not match the criteria or are not allowed for them.
    """
    criteria = root.leaves
    answers = _answers(criteria, labels_by_name(criteria, labels))
    decided = {name: _decision(answer) for name, answer in answers.items()}
    applied = apply_conditions(criteria, decided, policy)
    entries = {c.name or "": entry_of(c, applied.get(c.name or ""), policy) for c in criteria}
    return score_tree(root, entries, normalize=normalize).score


def labels_by_name(
    criteria: Sequence[BaseCriterion], labels: Sequence[Json] | Mapping[str, Json]
) -> dict[str, Json]:
    """Return the labels by criterion name, from a mapping or from a sequence in the order of the criteria.

    Raises:
        ArgumentError: If the labels do not match the criteria.
    """
    names = [criterion.name or "" for criterion in criteria]
    if isinstance(labels, Mapping):
        known = set(names)
        unknown = [name for name in labels if name not in known]
        if unknown:
            raise ArgumentError(f"unknown criterion {unknown[0]!r}; {nearest_key(str(unknown[0]), names)}")
        return dict(labels)
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise ArgumentError(f"labels must be a list or a mapping of names to labels; got {labels!r}")
    if len(labels) != len(names):
        raise ArgumentError(
            f"got {len(labels)} labels for {len(names)} criteria; pass a label or None for each of: "
            + ", ".join(names)
        )
    return dict(zip(names, labels, strict=True))


def _answers(criteria: Sequence[BaseCriterion], labels: Mapping[str, Json]) -> dict[str, Answer]:
    """Convert labels to answers by criterion name; missing labels are skipped."""
    answers, faults = {}, []
    for criterion in criteria:
        name = criterion.name or ""
        try:
            answer = criterion.parse_truth(labels.get(name))
        except ReplyError as error:
            faults.append(str(error))
            continue
        if answer is not None:
            answers[name] = answer
    if faults:
        raise ArgumentError("; ".join(faults))
    return answers


def _decision(answer: Answer) -> Decision:
    return Decision(status="abstained" if answer.abstains else "answered", answer=answer)
