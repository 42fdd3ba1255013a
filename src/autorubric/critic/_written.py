"""Critics as JSON data, where a spec is all there is to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from autorubric._files import nearest_key, shortened
from autorubric.criteria import BaseCriterion, criterion_from_dict, criterion_to_dict, is_registered, kind_of
from autorubric.errors import ArgumentError
from autorubric.llm import LLMConfig
from autorubric.values import Json

_KEYS = ("evaluator", "criterion", "prompt_template", "reference")


def written(
    evaluator: Any, criterion: BaseCriterion, prompt_template: str, reference: Any
) -> dict[str, Json]:
    """Return a critic's arguments as JSON data, without secrets and without digests of them.

    Raises:
        ArgumentError: If one of them cannot be written down.
    """
    if not isinstance(evaluator, str | LLMConfig):
        raise ArgumentError(
            f"the evaluator {shortened(evaluator)} cannot be written down; only a critic with a model's name "
            "or an LLMConfig can"
        )
    told = criterion_to_dict(criterion)
    if kind_of(told.get("type")) is not type(criterion):
        raise ArgumentError(f"{type(criterion).__name__} has no type tag; decorate it with @register_kind")
    if criterion.check is not None and not is_registered(criterion.check):
        raise ArgumentError(f"the check of {criterion.name!r} has no name; give it one with register_check")
    try:
        if json.loads(json.dumps(reference, allow_nan=False)) != reference:
            raise ValueError("it would come back as something else; give texts, numbers, lists and mappings")
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"the reference cannot be written down: {error}") from None
    return {
        # A manifest's form has digests in the place of secrets, which no config takes.
        "evaluator": evaluator.model_dump(mode="json") if isinstance(evaluator, LLMConfig) else evaluator,
        "criterion": told,
        "prompt_template": prompt_template,
        "reference": reference,
    }


def read_arguments(given: Mapping[str, Json]) -> dict[str, Any]:
    """Return a critic's arguments from what `written` gave; only those that are there.

    Raises:
        ArgumentError: If keys are unknown or missing, or their values are invalid.
    """
    for key in given:
        if key not in _KEYS:
            raise ArgumentError(f"a critic has no {key!r}; {nearest_key(str(key), _KEYS)}")
    missing = [key for key in ("evaluator", "criterion") if key not in given]
    if missing:
        raise ArgumentError(f"a critic needs {' and '.join(missing)}")
    evaluator, criterion = given["evaluator"], given["criterion"]
    if not (isinstance(evaluator, str | Mapping) and isinstance(criterion, Mapping)):
        raise ArgumentError("evaluator is a model's name or a mapping, criterion a mapping")
    try:
        who = evaluator if isinstance(evaluator, str) else LLMConfig.model_validate(dict(evaluator))
        return {**given, "evaluator": who, "criterion": criterion_from_dict(criterion)}
    except ValidationError as error:
        raise ArgumentError(str(error)) from None
