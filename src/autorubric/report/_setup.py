"""Setup of a run: guidelines of the rubrics, settings of the judges, and aggregation of votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autorubric.errors import FileError, RunFormatError
from autorubric.report._encode import answer_words
from autorubric.report._view import ReadRun
from autorubric.values import Json


def setup(run: ReadRun, rubric_of: Sequence[int]) -> dict[str, Any]:
    """Return the guidelines of each rubric and the settings of each judge.

    Args:
        run: The run.
        rubric_of: For each item, the number of its rubric, from 0.
    """
    return {"guidelines": _guidelines(run, rubric_of), **_grader(run)}


def _guidelines(run: ReadRun, rubric_of: Sequence[int]) -> list[list[str]]:
    # Rubrics with the same criteria count as one rubric, which may have several guidelines.
    found: list[dict[str, None]] = [{} for _ in range(max(rubric_of, default=-1) + 1)]
    for one, rubric in zip(run.item_results, rubric_of, strict=True):
        try:
            guidelines = run.dataset.get_item_rubric(one.item_idx).guidelines
        except ValueError:
            continue
        if guidelines:
            found[rubric][guidelines] = None
    return [list(each) for each in found]


def _grader(run: ReadRun) -> dict[str, Any]:
    try:
        used = run.view.fingerprint
    except (FileError, RunFormatError) as error:
        return {"judges": [], "decisions": [], "why": str(error)}
    sampling, weights = _mapping(used.get("sampling")), _mapping(used.get("judge_weights"))
    samples = _mapping(sampling.get("samples"))
    judges = [
        {
            "name": name,
            "settings": _pairs(
                {**_mapping(settings), "samples": samples.get(name), "weight": weights.get(name)}
            ),
        }
        for name, settings in _mapping(used.get("judges")).items()
    ]
    rest = {key: value for key, value in sampling.items() if key != "samples"}
    policies = {"cannot_assess": used.get("cannot_assess"), "escalation": used.get("escalation")}
    decisions = {**_mapping(used.get("aggregation")), **policies, **rest, "few_shot": used.get("few_shot")}
    return {"judges": judges, "decisions": _pairs(decisions), "why": None}


def _mapping(given: Json) -> Mapping[str, Json]:
    return given if isinstance(given, Mapping) else {}


def _pairs(settings: Mapping[str, Json]) -> list[list[str]]:
    """Return names and values of settings as text; unset settings are skipped, except the temperature."""
    shown = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            words: str | None = ", ".join(f"{key}: {answer_words(one)}" for key, one in value.items())
        else:
            words = None if value == [] else answer_words(value)
        if words is None and name == "temperature":
            words = "the provider's default"
        if words:
            shown.append([name, words])
    return shown
