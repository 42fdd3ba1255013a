"""The work: short essays and five criteria; the library and the bare client send the same bodies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from autorubric import Criterion, CriterionGrader, JudgeSpec, LLMConfig, RubricDataset
from autorubric.judges import ModelJudge
from autorubric.llm import LLMClient, ModelReply, ModelRequest
from autorubric.llm.wire import request_body

_SENTENCE = "The river rose by a third in the week, and number {} of the stations gave a measured account. "
_REQUIREMENTS = (
    "States the main finding in the first paragraph",
    "Names the source of every figure that it quotes",
    "Is free of claims that the figures do not carry",
    "Says how certain the finding is",
    "Is written in plain words that a newcomer can follow",
)
CRITERIA = len(_REQUIREMENTS)


def dataset_of(calls: int) -> RubricDataset:
    """Return a dataset that takes at least this many judge calls, in whole items."""
    rubric = [Criterion(name=f"c{place}", requirement=text) for place, text in enumerate(_REQUIREMENTS)]
    dataset = RubricDataset(prompt="Report on the floods of the week.", rubric=rubric, name="floods")
    for number in range(calls // CRITERIA):
        dataset.add_item(submission=_SENTENCE.format(number) * 12, id=f"item-{number}")
    return dataset


def config_of(api_base: str, transport: str, parallel: int) -> LLMConfig:
    """Return the judge's config."""
    return LLMConfig.model_validate(
        {
            "model": "openai/judge",
            "api_base": api_base,
            "api_key": "none-needed-here-1",
            "temperature": 0.0,
            "transport": transport,
            "max_parallel_requests": parallel,
        }
    )


def grader_of(config: LLMConfig) -> CriterionGrader:
    """Return the grader that a user would create from it."""
    return CriterionGrader(judges=[JudgeSpec(config, "judge")])


class _Recorder:
    """A transport that records the body of each request."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, request: ModelRequest) -> ModelReply:
        self.bodies.append(request_body(request, {}))
        return ModelReply(text='{"reason": "so", "verdict": "MET"}', model=request.model)

    async def aclose(self) -> None:
        """Do nothing; nothing is open."""


def bodies_of(dataset: RubricDataset, config: LLMConfig) -> list[bytes]:
    """Return the bodies of all requests of grading the dataset."""
    recorder = _Recorder()
    client = LLMClient(config, transport=recorder)
    grader = CriterionGrader(judges=[ModelJudge(judge_id="judge", client=client)])

    async def record() -> None:
        for position, item in enumerate(dataset.items):
            await grader.grade(item.submission, dataset.get_item_rubric(position), query=dataset.prompt)

    asyncio.run(record())
    return recorder.bodies


def arguments_of(body: bytes) -> dict[str, Any]:
    """Return a body as arguments of litellm's `acompletion`, without the model."""
    arguments: dict[str, Any] = json.loads(body)
    del arguments["model"]
    return arguments
