"""Converts critics to and from JSON data."""

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
    """Return a critic's arguments as JSON data, without secrets or their digests.

    Raises:
        ArgumentError: If an argument cannot be converted to JSON.
    """
    if not isinstance(evaluator, str | LLMConfig):
        raise ArgumentError(
            f"the evaluator {shortened(evaluator)} cannot be converted to JSON; use a model name or an "
            "LLMConfig"
        )
    told = criterion_to_dict(criterion)
    if kind_of(told.get("type")) is not type(criterion):
        raise ArgumentError(f"{type(criterion).__name__} has no type tag; decorate it with @register_kind")
    if criterion.check is not None and not is_registered(criterion.check):
        raise ArgumentError(f"the check of {criterion.name!r} has no name; name it with register_check")
    try:
        if json.loads(json.dumps(reference, allow_nan=False)) != reference:
            raise ValueError("its value would change; use strings, numbers, lists and mappings")
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"the reference cannot be converted to JSON: {error}") from None
    return {
        # `LLMConfig.to_dict` has digests in place of secrets, which a config does not accept.
        "evaluator": evaluator.model_dump(mode="json") if isinstance(evaluator, LLMConfig) else evaluator,
        "criterion": told,
        "prompt_template": prompt_template,
        "reference": reference,
    }


def read_arguments(given: Mapping[str, Json]) -> dict[str, Any]:
    """Return a critic's arguments from data made by `written`; missing optional ones are omitted.

    Raises:
        ArgumentError: If keys are unknown or missing, or their values are invalid.
    """
    for key in given:
        if key not in _KEYS:
            raise ArgumentError(f"unknown key {key!r} in a critic; {nearest_key(str(key), _KEYS)}")
    missing = [key for key in ("evaluator", "criterion") if key not in given]
    if missing:
        raise ArgumentError(f"a critic must have {' and '.join(missing)}")
    evaluator, criterion = given["evaluator"], given["criterion"]
    if not (isinstance(evaluator, str | Mapping) and isinstance(criterion, Mapping)):
        raise ArgumentError("evaluator must be a model name or a mapping, and criterion must be a mapping")
    try:
        who = evaluator if isinstance(evaluator, str) else LLMConfig.model_validate(dict(evaluator))
        return {**given, "evaluator": who, "criterion": criterion_from_dict(criterion)}
    except ValidationError as error:
        raise ArgumentError(str(error)) from None
