"""Scoring stored votes again under another rubric's weights or other policies. No judge is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, TypedDict

from autorubric._files import nearest_key
from autorubric.aggregation import AggregationPolicy
from autorubric.errors import ArgumentError
from autorubric.eval._dataset_copy import stored_dataset
from autorubric.eval._fingerprint import digest, mapping_in
from autorubric.eval._folder import read_manifest
from autorubric.eval._reopen import StoredRun, reopen, stored_policy
from autorubric.rubric import Rubric
from autorubric.types import CannotAssessConfig
from autorubric.values import Json


class Policies(TypedDict, total=False):
    """Policies that may differ from the run's; options left out keep their values.

    Attributes:
        aggregation: Aggregation of binary criteria.
        ordinal_aggregation: Aggregation of ordered scales and numbers.
        nominal_aggregation: Aggregation of unordered choices.
        ranking_aggregation: Aggregation of compared candidates.
        on_failure: How an unreadable reply counts: `conservative` or `exclude`.
        cannot_assess_config: How criteria without a judgment count.
        normalize: Whether to scale the score to [0, 1].
        judge_weights: Weights by judge id, above 0; judges that are not named keep theirs.
    """

    aggregation: str
    ordinal_aggregation: str
    nominal_aggregation: str
    ranking_aggregation: str
    on_failure: str
    cannot_assess_config: CannotAssessConfig
    normalize: bool
    judge_weights: Mapping[str, float]


def rescore(path: Path, rubric: Rubric | None, policies: Policies) -> StoredRun:
    """Return the run in a folder under another rubric and other policies.

    Raises:
        ArgumentError: If there is no such policy, aggregation or judge, or the rubric shares no criterion
            with the run's.
        RunFormatError: If the folder is not a run, or is damaged.
    """
    unknown = set(policies) - set(Policies.__annotations__)
    if unknown:
        allowed = ", ".join(Policies.__annotations__)
        raise ArgumentError(f"no policy is called {', '.join(sorted(unknown))}; allowed: {allowed}")
    unasked = _unasked(path, rubric) if rubric is not None else []
    found = reopen(path, rubric=rubric, deciding=_deciding(path, policies))
    if not unasked:
        return found
    told = ", ".join(unasked)
    notice = f"the run's judges were not asked this, so that it is without votes: {told}"
    return replace(found, notices=(*found.notices, notice))


def _unasked(path: Path, rubric: Rubric) -> list[str]:
    """Return the names of the criteria without votes in the run, since they ask something else."""
    shared = stored_dataset(path, read_manifest(path)).dataset.rubric
    if shared is None:
        raise ArgumentError(f"{path}: each item has its own rubric, which another rubric cannot replace")
    asked = {one.name: digest([one.asked(), shared.guidelines]) for one in shared}
    unasked = [
        one.name or "" for one in rubric if asked.get(one.name) != digest([one.asked(), rubric.guidelines])
    ]
    if len(unasked) == len(rubric.names):
        raise ArgumentError(
            f"{path}: the rubric shares no criterion with the run's, so there are no votes to score; "
            "criteria are the same if their name, requirement, options and guidelines are"
        )
    return unasked


def _deciding(path: Path, policies: Policies) -> dict[str, Json]:
    """Return the policies as a manifest holds them."""
    deciding: dict[str, Json] = {}
    chosen: dict[str, Any] = {
        name: given for name, given in policies.items() if name in AggregationPolicy.model_fields
    }
    if chosen:
        before = stored_policy(path).aggregation.model_dump()
        deciding["aggregation"] = AggregationPolicy.of(**{**before, **chosen}).model_dump()
    if "cannot_assess_config" in policies:
        deciding["cannot_assess"] = policies["cannot_assess_config"].model_dump(mode="json")
    if "normalize" in policies:
        deciding["normalize"] = policies["normalize"]
    if "judge_weights" in policies:
        deciding["judge_weights"] = _weights(path, policies["judge_weights"])
    return deciding


def _weights(path: Path, given: Mapping[str, float]) -> dict[str, float]:
    manifest = read_manifest(path)
    before = dict(mapping_in(mapping_in(manifest, "deciding"), "judge_weights"))
    known = mapping_in(mapping_in(manifest, "asking"), "judges")
    for name, weight in given.items():
        if name not in known:
            raise ArgumentError(f"the run has no judge {name!r}; {nearest_key(name, list(known))}")
        if not (isfinite(weight) and weight > 0):
            raise ArgumentError(f"weight {weight!r} of judge {name!r}: give a finite number above 0")
    return {**before, **given}
