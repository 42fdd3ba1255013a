"""Scores of stored votes under other weights or policies, and HealthBench scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path
from typing import Any, Protocol, TypedDict

from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.grading.plan import check_soft_votes
from autorubric.rubric.rubric import Rubric
from autorubric.runs.dataset_copy import stored_dataset
from autorubric.runs.differences import digest, mapping_in
from autorubric.runs.items import ItemResult
from autorubric.runs.manifest import read_manifest
from autorubric.runs.reopen import StoredRun, reopen, stored_policy
from autorubric.scoring.calibration import ProbabilityCalibration, read_calibrations
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig
from autorubric.support.blocks import Block, ScalarBlock, render_text
from autorubric.support.objects import Json, is_number
from autorubric.support.reading_errors import nearest_key


class Policies(TypedDict, total=False):
    """Policies that override a run's policies; omitted options keep their values."""

    aggregation: str  # aggregation of binary criteria
    ordinal_aggregation: str  # aggregation of ordered scales and numbers
    nominal_aggregation: str  # aggregation of unordered choices
    ranking_aggregation: str  # aggregation of compared candidates
    on_failure: str  # how an unreadable reply counts: `conservative` or `exclude`
    votes: str  # whether answers (`hard`) or probabilities (`soft`) are combined
    thresholds: Mapping[str, float]  # for soft votes; see `CriterionGrader`
    calibrations: Sequence[ProbabilityCalibration | str | Path]  # for soft votes; see `CriterionGrader`
    cannot_assess_config: CannotAssessConfig  # how to count criteria that the panel could not assess
    normalize: bool  # whether to scale the score to [0, 1]
    judge_weights: Mapping[str, float]  # positive weights by judge id; omitted judges keep their weights


def rescore(path: Path, rubric: Rubric | None, policies: Policies) -> StoredRun:
    """Return the run stored in a folder, rescored under another rubric and other policies."""
    unknown = set(policies) - set(Policies.__annotations__)
    if unknown:
        allowed = ", ".join(Policies.__annotations__)
        raise ArgumentError(f"unknown policy {', '.join(sorted(unknown))}; available: {allowed}")
    new_criteria = _criteria_without_votes(path, rubric) if rubric is not None else []
    found = reopen(path, rubric=rubric, deciding=_policies_entry(path, rubric, policies))
    if not new_criteria:
        return found
    names = ", ".join(new_criteria)
    notice = f"the run has no votes on these criteria, which are new or have changed: {names}"
    return found._replace(notices=(*found.notices, notice))


def _criteria_without_votes(path: Path, rubric: Rubric) -> list[str]:
    """Return the names of the criteria that have no votes, because the run asked something else."""
    shared = stored_dataset(path, read_manifest(path)).dataset.rubric
    if shared is None:
        raise ArgumentError(
            f"{path}: each item has its own rubric, but rubric= can replace only a shared rubric"
        )
    asked = {one.name: digest([one.vote_fields(), shared.guidelines]) for one in shared}
    unasked = [
        one.name or ""
        for one in rubric
        if asked.get(one.name) != digest([one.vote_fields(), rubric.guidelines])
    ]
    if len(unasked) == len(rubric.names):
        raise ArgumentError(
            f"{path}: the rubric has no criterion in common with the run's rubric, so there are no votes to "
            "score. Criteria match if their names, requirements, options and guidelines are equal"
        )
    return unasked


def _policies_entry(path: Path, rubric: Rubric | None, policies: Policies) -> dict[str, Json]:
    """Return the policies in the form of a manifest."""
    deciding: dict[str, Json] = {}
    chosen: dict[str, Any] = {
        name: given for name, given in policies.items() if name in AggregationPolicy.model_fields
    }
    if chosen:
        before_policy = stored_policy(path)
        before = before_policy.aggregation.model_dump()
        for name in ("thresholds", "calibrations") if chosen.get("votes") == "hard" else ():
            before.pop(name, None)
        judges = mapping_in(mapping_in(read_manifest(path), "asking"), "judges")
        if "calibrations" in chosen:
            chosen["calibrations"] = read_calibrations(chosen["calibrations"], list(judges))
        policy = AggregationPolicy.of(**{**before, **chosen})
        if policy.votes == "soft" and before_policy.stop_when_decided:
            raise ArgumentError(
                f"{path}: votes='soft' needs every vote, but the run skipped votes that could not change a "
                "verdict; grade again without stop_when_decided"
            )
        if policy.votes == "soft":
            stored = stored_dataset(path, read_manifest(path)).dataset
            check_soft_votes(policy, stored.rubrics() if rubric is None else [rubric])
        deciding["aggregation"] = policy.model_dump()
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
            raise ArgumentError(f"unknown judge {name!r}; {nearest_key(name, list(known))}")
        if not (is_number(weight) and isfinite(weight) and weight > 0):
            raise ArgumentError(f"the weight of judge {name!r} must be finite and positive; got {weight!r}")
    return {**before, **given}


class HealthBenchRun(Protocol):
    """The parts of a run that `healthbench_score` needs."""

    @property
    def dataset(self) -> RubricDataset: ...
    @property
    def item_results(self) -> Sequence[ItemResult]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthBenchScore:
    """The HealthBench score of a run.

    Attributes:
        score: Mean of `items`, clipped to [0, 1]; None if no item has a score.
        items: Unclipped score by item id: points met ÷ positive points, which is negative if penalties
            outweigh the points. None if the item was not judged or has no positive points.
        n: Number of items with a score.
        n_missing: Number of items without a score.
    """

    score: float | None
    items: Mapping[str, float | None]
    n: int
    n_missing: int

    def blocks(self) -> list[Block]:
        """Return the figures as blocks for renderers."""
        figures = (("score", self.score), ("items", self.n), ("items without a score", self.n_missing))
        return [ScalarBlock(title="HealthBench score", figures=figures)]

    def summary(self) -> str:
        """Return the figures as plain text."""
        return render_text(self.blocks())


def healthbench_score(result: HealthBenchRun) -> HealthBenchScore:
    """Compute the HealthBench score of a run over a dataset from `from_healthbench`.

    An item's score is the sum of the points of its met criteria, divided by the sum of its positive points.
    The run's score is the mean of the item scores, clipped to [0, 1] (Arora et al. 2025, "HealthBench:
    Evaluating Large Language Models Towards Improved Human Health"). Only the mean is clipped, so it can
    differ from the mean of the items' `score`. Criteria that could not be judged count as not met.

    Args:
        result: The run.
    """
    found: dict[str, float | None] = {}
    for one in result.item_results:
        positive = result.dataset.get_item_rubric(one.item_idx).total_positive_weight
        points = one.report.raw_score if one.report is not None else None
        found[one.item.id or str(one.item_idx)] = (
            points / positive if positive and points is not None else None
        )
    known = [figure for figure in found.values() if figure is not None]
    score = min(max(fsum(known) / len(known), 0.0), 1.0) if known else None
    return HealthBenchScore(score=score, items=found, n=len(known), n_missing=len(found) - len(known))
