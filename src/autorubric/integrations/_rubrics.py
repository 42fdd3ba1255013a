"""What tests and training take as a rubric, and when a report on a text counts as a judgment of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from autorubric.errors import Fault, RubricError
from autorubric.rubric import Rubric
from autorubric.types import EnsembleCriterionReport, EvaluationReport

RubricLike: TypeAlias = "Rubric | Mapping[str, Any] | Sequence[Any]"
"""A rubric, or a mapping or list that `Rubric.from_dict` reads."""


def rubric_from(given: RubricLike | Path | str) -> Rubric:
    """The rubric itself, or that of a file, a mapping, a list of criteria, or one of these as a JSON text.

    Raises:
        RubricError: It has faults; all are reported.
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
    """The rubric in a row of a dataset: a mapping, a list of criteria, or one of these as a JSON text.

    Raises:
        RubricError: It is none of these, or has faults.
    """
    if not isinstance(given, str):
        return rubric_from(given)
    # Not `rubric_from`: a row is not to name a file.
    try:
        criteria: Any = json.loads(given)
    except ValueError as error:
        told = f"the text is not JSON ({error}); give a mapping, a list of criteria, or either as JSON"
        raise RubricError("rubric of a row", [Fault(path="", message=told)]) from None
    return Rubric.from_dict(criteria) if isinstance(criteria, Mapping) else Rubric(criteria)


def why_not_judged(report: EvaluationReport) -> str | None:
    """Why a report is not a judgment of the whole text; None where it is one.

    It is none without a score, or where on some criterion no judge gave a readable answer, or unreadable
    replies, counted as the conservative answer, decided.
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
