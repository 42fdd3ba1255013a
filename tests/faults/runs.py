"""What the fault suite has in common: a dataset, a judge with short waits, and a run over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, LLMConfig, Rubric, RubricDataset
from autorubric.runs import evaluate_sync
from autorubric.scoring import JudgeVote
from tests.servers.fixtures import OpenAIServer


def config(server: OpenAIServer, model: str = "judge", **options: Any) -> LLMConfig:
    """A judge on the server, with the settings of a user who set none, but for waits between tries."""
    given: dict[str, Any] = {
        "model": f"openai/{model}",
        "api_base": server.api_base,
        "transport": "openai_compatible",
        "retry_min_wait": 0.01,
    }
    return LLMConfig(**(given | options))


def dataset(items: int, criteria: int = 5) -> RubricDataset:
    """So many items under so many criteria; no two questions are the same."""
    rubric = Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(criteria)])
    texts = [DataItem(id=f"i{n}", submission=f"Text number {n}.") for n in range(items)]
    return RubricDataset(name="faults", rubric=rubric, items=texts)


def run(folder: Path, judges: Sequence[LLMConfig], data: RubricDataset) -> EvalResult:
    """The dataset judged into a run folder."""
    grader = CriterionGrader(judges=list(judges))
    return evaluate_sync(data, grader, experiment_name="run", experiments_dir=folder, show_progress=False)


def votes_of(result: EvalResult) -> list[JudgeVote]:
    """Every vote of a run."""
    return [
        vote
        for item in result.item_results
        if item.report is not None
        for criterion in item.report.report
        for vote in criterion.votes
    ]
