"""A check that two runs were judged in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics._correction._score_columns import criterion_facts
from autorubric.metrics._run_protocols import FingerprintedRun, GradedRun
from autorubric.rubric import Rubric

_BY_NAME = {"judges": "judge", "checks": "check"}


def demand_same_judges(result: GradedRun, calibration: object) -> FingerprintedRun:
    """Check that both runs were judged in the same way, and return the calibration run.

    Raises:
        ArgumentError: If either is not a run with a fingerprint, or they differ in judges, prompts, sampling,
            vote combination or criteria. The message names every difference.
    """
    for name, run in (("result", result), ("calibration", calibration)):
        if not isinstance(run, FingerprintedRun):
            raise ArgumentError(
                f"{name} must be an EvalResult, as returned by evaluate or EvalResult.from_experiment, which "
                f"records how it was judged; got {type(run).__name__}"
            )
    assert isinstance(result, FingerprintedRun) and isinstance(calibration, FingerprintedRun)
    differences = [
        *_judging(result.fingerprint, calibration.fingerprint),
        *_guidelines(_rubrics_of(result), _rubrics_of(calibration)),
        *_criteria(_criteria_of(result), _criteria_of(calibration)),
    ]
    if differences:
        raise ArgumentError(
            f"calibration was not judged in the same way as result: {'; '.join(differences)}. The judges may "
            "make other errors there; pass a labelled run with the same judges, prompts and criteria"
        )
    return calibration


def _judging(own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for part in dict.fromkeys([*own, *other]):
        ours, theirs = own.get(part), other.get(part)
        if part == "sampling":
            # The seed only decides the order in which options are shown.
            ours, theirs = ({**(side or {}), "seed": None} for side in (ours, theirs))
        if ours == theirs:
            continue
        if part in _BY_NAME and isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            yield from _entries(_BY_NAME[part], ours, theirs)
        else:
            name = part.replace("_", " ")
            verb = "differ" if name.endswith("s") else "differs"
            yield f"{name} {verb}{_fields(ours, theirs)}"


def _entries(kind: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*own, *other]):
        if name not in other:
            yield f"{kind} {name!r} occurs only in result"
        elif name not in own:
            yield f"{kind} {name!r} occurs only in calibration"
        elif own[name] != other[name]:
            yield f"{kind} {name!r} differs{_fields(own[name], other[name])}"


def _fields(own: object, other: object) -> str:
    """Format the fields that differ, with both values."""
    if not isinstance(own, Mapping) or not isinstance(other, Mapping):
        return ""
    names = [name for name in dict.fromkeys([*own, *other]) if own.get(name) != other.get(name)]
    return f" ({', '.join(f'{name}: {_shown(own, name)} and {_shown(other, name)}' for name in names[:3])})"


def _shown(fields: Mapping[str, Any], name: str) -> str:
    """Format a value; fingerprints omit values equal to the default."""
    return repr(fields[name]) if name in fields else "the default"


def _rubrics_of(run: FingerprintedRun) -> list[Rubric]:
    rubrics = (run.dataset.get_item_rubric(i) for i in range(len(run.dataset.items)))
    return list({id(rubric): rubric for rubric in rubrics}.values())


def _guidelines(own: Sequence[Rubric], other: Sequence[Rubric]) -> Iterator[str]:
    """Yield a message if the rubrics' guidelines, which are in every prompt, differ."""
    if {rubric.guidelines for rubric in own} != {rubric.guidelines for rubric in other}:
        yield "the guidelines of the rubric differ"


def _criteria_of(run: FingerprintedRun) -> dict[str, list[BaseCriterion]]:
    found: dict[str, list[BaseCriterion]] = {}
    for rubric in _rubrics_of(run):
        for one in rubric:
            found.setdefault(one.name or "", []).append(one)
    return found


def _criteria(
    own: Mapping[str, list[BaseCriterion]], other: Mapping[str, list[BaseCriterion]]
) -> Iterator[str]:
    for name in dict.fromkeys([*own, *other]):
        if name not in other:
            yield f"criterion {name!r} occurs only in result"
        elif name not in own:
            yield f"criterion {name!r} occurs only in calibration"
        else:
            ours, theirs = (
                {repr((one.asked(), criterion_facts(one))) for one in side[name]} for side in (own, other)
            )
            if ours != theirs:
                yield f"criterion {name!r} differs"
