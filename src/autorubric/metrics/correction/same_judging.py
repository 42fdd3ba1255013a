"""Checks that two runs, or a run and a report, were judged alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import FingerprintedRun, SupportsGradedRun
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleEvaluationReport


def criterion_facts(criterion: BaseCriterion) -> tuple[object, ...]:
    """Return the properties that affect a criterion's score: weight, bonus, level and valued answers."""
    answers = tuple((one.label, one.value, one.na) for one in criterion.answers())
    return criterion.weight, criterion.bonus, criterion.level, answers


_BY_NAME = {"judges": "judge", "checks": "check"}


def check_same_judging(result: SupportsGradedRun, calibration: object) -> FingerprintedRun:
    """Check that both runs were judged in the same way, and return the calibration run."""
    for name, run in (("result", result), ("calibration", calibration)):
        if not isinstance(run, FingerprintedRun):
            raise ArgumentError(
                f"{name} must be an EvalResult, as returned by evaluate or EvalResult.from_experiment; "
                f"got {type(run).__name__}"
            )
    assert isinstance(result, FingerprintedRun) and isinstance(calibration, FingerprintedRun)
    differences = [*_compare_fingerprints(result.fingerprint, calibration.fingerprint)]
    own, other = _list_rubrics(result), _list_rubrics(calibration)
    # Guidelines are in every prompt.
    if {rubric.guidelines for rubric in own} != {rubric.guidelines for rubric in other}:
        differences.append("the rubrics have different guidelines")
    differences += _compare_entries("criterion", _criteria_by_name(own), _criteria_by_name(other))
    if differences:
        raise ArgumentError(
            f"calibration was not judged in the same way as result: {'; '.join(differences)}. Pass a "
            "labelled run with the same judges, prompts and criteria; otherwise, judges' errors may differ"
        )
    return calibration


def _compare_fingerprints(own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for part in dict.fromkeys([*own, *other]):
        ours, theirs = own.get(part), other.get(part)
        if part == "sampling":
            # The seed only decides the order in which options are shown.
            ours, theirs = ({**(side or {}), "seed": None} for side in (ours, theirs))
        if ours == theirs:
            continue
        if part in _BY_NAME and isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            yield from _compare_entries(_BY_NAME[part], ours, theirs)
        else:
            name = part.replace("_", " ")
            verb = "differ" if name.endswith("s") else "differs"
            yield f"{name} {verb}{_format_fields(ours, theirs)}"


def _compare_entries(kind: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*own, *other]):
        if name not in other:
            yield f"{kind} {name!r} occurs only in result"
        elif name not in own:
            yield f"{kind} {name!r} occurs only in calibration"
        elif own[name] != other[name]:
            yield f"{kind} {name!r} differs{_format_fields(own[name], other[name])}"


def _format_fields(own: object, other: object) -> str:
    """Format the fields that differ, with both values."""
    if not isinstance(own, Mapping) or not isinstance(other, Mapping):
        return ""

    def value(fields: Mapping[str, Any], name: str) -> str:
        # Fingerprints omit values equal to the default.
        return repr(fields[name]) if name in fields else "the default"

    names = [name for name in dict.fromkeys([*own, *other]) if own.get(name) != other.get(name)]
    return f" ({', '.join(f'{name}: {value(own, name)} and {value(other, name)}' for name in names[:3])})"


def _list_rubrics(run: FingerprintedRun) -> list[Rubric]:
    rubrics = (run.dataset.get_item_rubric(i) for i in range(len(run.dataset.items)))
    return list({id(rubric): rubric for rubric in rubrics}.values())


def _criteria_by_name(rubrics: Sequence[Rubric]) -> dict[str, set[str]]:
    """Return what was asked and counted under each name."""
    found: dict[str, set[str]] = {}
    for one in (one for rubric in rubrics for one in rubric):
        found.setdefault(one.name or "", set()).add(repr((one.asked(), criterion_facts(one))))
    return found


def check_same_rubric(
    own: Mapping[str, tuple[object, ...]], others: Iterable[Mapping[str, tuple[object, ...]]]
) -> None:
    for facts in others:
        names = sorted(name for name in own.keys() | facts.keys() if own.get(name) != facts.get(name))
        if names:
            raise ArgumentError(
                f"the judge_error run and the report have different criteria: {names!r} differ in name, "
                "weight or answers; pass a run with the same rubric"
            )


def report_facts(report: EnsembleEvaluationReport) -> Mapping[str, tuple[object, ...]]:
    return {one.name: criterion_facts(one.criterion) for one in report.report}


def check_same_judges(own: set[str], known: frozenset[str]) -> None:
    if own != known and own:
        raise ArgumentError(
            f"the judge_error run has the judges {sorted(known)!r} but the report has {sorted(own)!r}; pass "
            "a run of the same judges, because different judges make different errors"
        )


def judges_of(reports: Iterable[EnsembleEvaluationReport]) -> set[str]:
    return {vote.judge_id for report in reports for one in report.report for vote in one.votes}
