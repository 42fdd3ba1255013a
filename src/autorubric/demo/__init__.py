"""Two small labelled datasets that ship with the package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from autorubric.criteria.criterion import Criterion, CriterionOption
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.judges.recorded import RecordedJudge
from autorubric.rubric.rubric import Rubric

__all__ = ["demo_dataset", "summary_dataset", "summary_judges"]

_HUMAN = "human"


def demo_dataset() -> RubricDataset:
    """Return 72 support desk replies to three messages, with human labels on nine criteria.

    All texts and labels are invented; metrics computed from them say nothing about real texts.
    """
    return RubricDataset.from_json(_read("dataset.json"))


def summary_dataset() -> RubricDataset:
    """Return 200 summaries written by language models, with coverage labels from one annotator.

    Each summary's rubric lists the insights of its subtopic: five to ten criteria, named `insight 1` and so
    on, each not (0), partly (0.5) or fully (1) covered. One annotator assigned all 1,419 labels.

    The texts and labels are a subset of SummHay (Laban et al. 2024, EMNLP,
    https://doi.org/10.18653/v1/2024.emnlp-main.552), Copyright Salesforce, Inc., Apache License 2.0. The
    license is in this package's file `LICENSE-summhay.txt`.
    """
    content = _summhay()
    rubrics = {key: _rubric(subtopic["insights"]) for key, subtopic in content["subtopics"].items()}
    items = [
        DataItem(
            id=one["id"],
            description=content["subtopics"][one["subtopic"]]["subtopic"],
            prompt=_prompt(content, one["subtopic"]),
            submission=one["text"],
            rubric=rubrics[one["subtopic"]],
            ground_truth=_labels(content, one["labels"][_HUMAN]),
            metadata={"writer": one["writer"]},
        )
        for one in content["summaries"]
    ]
    return RubricDataset(items=items, name="SummHay", metadata={"source": content["source"]})


def summary_judges() -> list[RecordedJudge]:
    """Return judges for `summary_dataset` with the recorded verdicts of six LLM judges from 2024."""
    content = _summhay()
    judges = [rater for rater in content["summaries"][0]["labels"] if rater != _HUMAN]
    return [
        RecordedJudge(
            judge_id=judge,
            votes={
                (one["id"], name, 0): (label, "", None)
                for one in content["summaries"]
                for name, label in _labels(content, one["labels"][judge]).items()
            },
        )
        for judge in judges
    ]


def _rubric(insights: list[str]) -> Rubric:
    options = [
        CriterionOption(label=label, value=value)
        for label, value in zip(_summhay()["levels"], _summhay()["values"], strict=True)
    ]
    return Rubric(
        [
            Criterion(name=f"insight {n}", weight=1.0, requirement=text, options=options)
            for n, text in enumerate(insights, 1)
        ]
    )


def _prompt(content: Any, subtopic: str) -> str:
    found = content["subtopics"][subtopic]
    return f"{content['topics'][str(found['topic'])]}\nSummarise what is said about: {found['subtopic']}"


def _labels(content: Any, levels: str) -> dict[str, str]:
    """Convert a rater's levels, one digit per insight, to labels by criterion."""
    return {f"insight {n}": content["levels"][int(level)] for n, level in enumerate(levels, 1)}


@cache
def _summhay() -> Any:
    return json.loads(_read("summhay.json"))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
