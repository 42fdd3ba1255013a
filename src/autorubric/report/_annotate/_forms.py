"""Forms in which a person labels a criterion, by its measurement level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from autorubric.criteria import BaseCriterion
from autorubric.errors import ReplyError
from autorubric.values import Json

_MOST_BUTTONS: Final = 12
"""Maximum number of answers shown as buttons; with more, the rater types a number."""


def form_of(criterion: BaseCriterion, candidates: Mapping[str, str]) -> dict[str, Json]:
    """Return the form of a criterion applied to its item.

    The kinds are `choice` (`choices`: `code`, `label`), `number` (`min`, `max`, `whole`), `texts` (`keys`;
    `bare`: the answer is the one text), `compare` (`choices`: `code`, `standing`), `ranking` (`names`),
    `parts` (`parts`: `key`, `title`, `form`; the answer is a mapping) and `json`. The form's value is a label
    that the criterion can read.

    Args:
        criterion: The criterion, applied to the submission.
        candidates: The named candidates of the submission; empty if there are none.
    """
    if criterion.part_fields:
        return {
            "kind": "parts",
            "parts": [
                {"key": key, "title": part.requirement or key, "form": form_of(part, {})}
                for key, part in criterion.part_fields.items()
            ],
        }
    if criterion.level == "text":
        return _texts(criterion)
    answers = criterion.answers()
    if criterion.level == "ranking":
        if not answers:
            return {"kind": "ranking", "names": list(candidates)}
        standings = [{"code": one.code, "standing": list(criterion.standing(one))} for one in answers]
        return {"kind": "compare", "choices": standings[::-1]}
    if answers and len(answers) <= _MOST_BUTTONS:
        # The better of two answers comes first, as people expect; scales ascend.
        ordered = answers[::-1] if criterion.level == "binary" else answers
        return {
            "kind": "choice",
            "choices": [{"code": one.code, "label": one.label or str(one.code)} for one in ordered],
        }
    ends = (answers[0].code, answers[-1].code) if answers else _ends(criterion)
    if all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends):
        return {"kind": "number", "min": ends[0], "max": ends[1], "whole": bool(answers)}
    return _schema_form(criterion)


def _ends(criterion: BaseCriterion) -> tuple[Json, Json]:
    return criterion.answer_at(0.0).code, criterion.answer_at(1.0).code


def _properties(criterion: BaseCriterion) -> dict[str, Any]:
    found: dict[str, Any] = criterion.evaluation_schema.model_json_schema()["properties"]
    return {key: spec for key, spec in found.items() if key in criterion.eval_fields}


def _texts(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a form with one text, or one text per section."""
    keys = list(_properties(criterion))
    try:
        answer = criterion.parse_truth("x")
    except ReplyError:
        answer = None
    return {"kind": "texts", "keys": keys, "bare": answer is not None and isinstance(answer.code, str)}


def _schema_form(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a form with one part per measuring field, from the values that the evaluation allows."""
    parts = []
    for key, spec in _properties(criterion).items():
        if form := _field_form(spec):
            parts.append({"key": key, "title": spec.get("description") or key, "form": form})
    return {"kind": "parts", "parts": parts}


def _field_form(spec: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the form of one field; None for a text field, which labels do not need."""
    if "enum" in spec or "const" in spec:
        choices = spec.get("enum") or [spec["const"]]
        return {"kind": "choice", "choices": [{"code": one, "label": str(one)} for one in choices]}
    match spec.get("type"):
        case "boolean":
            return {
                "kind": "choice",
                "choices": [{"code": True, "label": "yes"}, {"code": False, "label": "no"}],
            }
        case "integer" | "number":
            whole = spec["type"] == "integer"
            return {"kind": "number", "min": spec.get("minimum"), "max": spec.get("maximum"), "whole": whole}
        case "string":
            return None
        case _:
            return {"kind": "json"}
