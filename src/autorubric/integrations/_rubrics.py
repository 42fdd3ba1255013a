"""Parsing of rubric arguments, and the check whether a report is a full judgment of a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from autorubric.errors import Fault, RubricError
from autorubric.rubric import Rubric
from autorubric.types import EnsembleCriterionReport, EvaluationReport

RubricLike: TypeAlias = "Rubric | Mapping[str, Any] | Sequence[Any]"
"""A rubric, or a mapping or list accepted by `Rubric.from_dict`."""


def rubric_from(given: RubricLike | Path | str) -> Rubric:
    """Return a rubric unchanged, or read it from a file, a mapping, a list of criteria, or JSON.

    Raises:
        RubricError: If the rubric has errors; the message lists all of them.
    """
    if isinstance(given, Rubric):
        return given
    if isinstance(given, Path):
        return Rubric.from_file(given)
    if isinstance(given, str):
        return Rubric.from_json(given) if given.lstrip().startswith(("{", "[")) else Rubric.from_file(given)
    if isinstance(given, Mapping):
        return Rubric.from_dict(given)
    criteria: Any = given
    return Rubric(criteria)


def rubric_of_row(given: RubricLike | str) -> Rubric:
    """Read the rubric of a dataset row from a mapping, a list of criteria, or JSON.

    Raises:
        RubricError: If the value is not a rubric or the rubric has errors.
    """
    if not isinstance(given, str):
        return rubric_from(given)
    # Not `rubric_from`: a row must not refer to a file.
    try:
        criteria: Any = json.loads(given)
    except ValueError as error:
        told = f"invalid JSON ({error}); the rubric must be a mapping or a list of criteria, or JSON text"
        raise RubricError("rubric of a row", [Fault(path="", message=told)]) from None
    return Rubric.from_dict(criteria) if isinstance(criteria, Mapping) else Rubric(criteria)


def why_not_judged(report: EvaluationReport) -> str | None:
    """Return the reason why a report is not a full judgment of the text; None if the judgment is full.

    A judgment is not full if there is no score, if no judge gave a readable answer on a criterion, or if a
    criterion was decided by unreadable replies, which count as the conservative answer.
    """
    lost = [one for one in report.report if _is_lost(one)]
    if lost:
        return "; ".join(f"{one.name}: {_why(one)}" for one in lost)
    return (report.error or "there is nothing to score") if report.score is None else None


def _is_lost(criterion: EnsembleCriterionReport) -> bool:
    decision = criterion.decision
    return decision.status == "failed" or decision.assumed or decision.swayed


def _why(criterion: EnsembleCriterionReport) -> str:
    errors = [f"{vote.judge_id}: {vote.error}" for vote in criterion.votes if vote.status == "failed"]
    return "; ".join(dict.fromkeys(errors)) or criterion.error or "no judge answered"
