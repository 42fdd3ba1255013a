"""From what a user writes in `judges=[...]` to seats."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from autorubric.errors import ArgumentError
from autorubric.judges import ClosableJudge, FunctionJudge, Judge, JudgeReply, JudgeRequest, JudgeSpec
from autorubric.judges.panel import Seat, seat_judges
from autorubric.llm import LLMConfig
from tests.doubles import TableJudge, binary, model_judge, request_for


def always_met(request: JudgeRequest) -> str:
    return "MET"


async def async_judge(request: JudgeRequest) -> str:
    return "MET"


def seat(given: Any, **fields: Any) -> Seat:
    return seat_judges([given], **fields)[0]


def test_every_form_takes_a_seat() -> None:
    """Names of models, configs, judges, functions, and specs of any of these."""
    table = TableJudge({})
    forms: list[Any] = [
        "openai/gpt-x",
        LLMConfig(model="openai/gpt-y"),
        table,
        always_met,
        JudgeSpec(async_judge, weight=2.0, samples=3),
        JudgeSpec("openai/gpt-x", "twin"),
        JudgeSpec(replace(table), "second table"),
    ]
    seats = seat_judges(forms)
    assert [one.judge_id for one in seats] == [
        *("openai/gpt-x", "openai/gpt-y", "table", "always_met", "async_judge", "twin", "second table")
    ]
    assert [(one.weight, one.samples) for one in seats[3:5]] == [(1.0, 1), (2.0, 3)]
    assert seats[0].config == LLMConfig(model="openai/gpt-x")
    assert seats[2].judge is table
    assert isinstance(table, Judge)


def test_callables_are_named() -> None:
    """A function by its name, an object by its class, any of them by the spec's id."""
    assert seat(partial(always_met)).judge_id == "partial"
    assert seat(JudgeSpec(always_met, "kind")).judge_id == "kind"
    assert isinstance(seat(always_met).judge, FunctionJudge)


@pytest.mark.parametrize("wrong", [5, None, {"model": "gpt"}, TableJudge, object()])
def test_what_is_no_judge_is_told(wrong: Any) -> None:
    """The error names the forms allowed."""
    with pytest.raises(ArgumentError, match="is not a judge; pass a model name, an LLMConfig"):
        seat(wrong)


@pytest.mark.parametrize("wrong", ["gpt", JudgeSpec("gpt"), LLMConfig(model="gpt"), 5])
def test_judges_are_a_list(wrong: Any) -> None:
    """A single model is not read letter by letter."""
    with pytest.raises(
        ArgumentError, match=r"judges must be a list; got .*Pass a single model as llm_config"
    ):
        seat_judges(wrong)


def test_ids_are_unique_and_not_reserved() -> None:
    """Duplicates and the id of checks are refused, an empty panel too."""
    with pytest.raises(ArgumentError, match="judge names must be unique; repeated: always_met"):
        seat_judges([always_met, always_met])
    with pytest.raises(ArgumentError, match="'check' is reserved for a criterion's own check"):
        seat_judges([JudgeSpec(always_met, "check")])
    with pytest.raises(ArgumentError, match="empty; pass at least one judge"):
        seat_judges([])


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weights_are_numbers_from_zero_up(weight: float) -> None:
    """Others are refused where the spec is made."""
    with pytest.raises(ArgumentError, match="weight"):
        JudgeSpec("gpt", weight=weight)


@pytest.mark.parametrize("samples", [0, -1, 1.5])
def test_samples_are_whole_numbers_from_one_up(samples: Any) -> None:
    """Others are refused where the spec is made."""
    with pytest.raises(ArgumentError, match="samples"):
        JudgeSpec("gpt", samples=samples)


def test_what_identifies_a_seat() -> None:
    """A model by its config, a function by its name, any other judge by its class; nothing secret."""
    config = LLMConfig(
        model="openai/gpt-x", temperature=0.5, api_key="sk-secret", extra_headers={"X": "hush"}
    )
    said = seat(config).to_dict()
    assert (said["model"], said["temperature"], said["judge_id"]) == ("openai/gpt-x", 0.5, "openai/gpt-x")
    assert "secret" not in json.dumps(said)
    assert "hush" not in json.dumps(said)
    assert seat(always_met).to_dict()["function"] == f"{__name__}:always_met"
    assert seat(TableJudge({})).to_dict()["judge"] == "tests.doubles:TableJudge"


def test_a_model_judge_of_ones_own_is_described_like_a_config() -> None:
    """What it answers depends on its model and prompts, wherever they were given."""
    judge, _ = model_judge([], temperature=0.2)
    other, _ = model_judge([], temperature=0.3)
    assert seat(judge).config == judge.client.config
    assert seat(judge).to_dict()["temperature"] == 0.2
    assert seat(judge).to_dict() != seat(other).to_dict()
    assert seat(replace(judge, system_prompt="Else.")).to_dict() != seat(judge).to_dict()


@pytest.mark.parametrize(
    ("fields", "matters"),
    [
        ({"temperature": 0.7}, True),
        ({"seed": 4}, True),
        ({"api_base": "http://localhost:1/v1"}, True),
        ({"fallbacks": ("openai/other",)}, True),
        ({"truncate": "end"}, True),
        ({"max_retries": 9, "timeout": 5.0, "retry_max_wait": 99.0}, False),
        ({"requests_per_minute": 5, "tokens_per_minute": 5, "max_parallel_requests": 2}, False),
        ({"cache_enabled": True, "cache_dir": "elsewhere", "cache_ttl": 5.0}, False),
    ],
)
def test_pace_and_caching_do_not_identify_a_model(fields: dict[str, Any], matters: bool) -> None:
    """A run may be gone on with under other limits, not with another sampling."""
    config = LLMConfig(model="openai/gpt-x")
    assert (seat(config.model_copy(update=fields)).to_dict() != seat(config).to_dict()) == matters


def test_nested_fallbacks_are_identified_without_their_pace() -> None:
    """A fallback's config is described like the first model's."""
    slow, fast, other = (
        LLMConfig(model="openai/a", fallbacks=(LLMConfig(model=model, timeout=seconds),))
        for model, seconds in (("openai/b", 99.0), ("openai/b", 1.0), ("openai/c", 1.0))
    )
    assert seat(slow).to_dict() == seat(fast).to_dict() != seat(other).to_dict()


def test_a_seat_closes_its_model() -> None:
    """Connections are released; a judge without any is left alone."""
    judge, transport = model_judge([{"verdict": "MET", "reason": "r"}])

    async def use() -> JudgeReply:
        reply = await judge.ask(request_for(binary()))
        await seat(judge).aclose()
        await seat(always_met).aclose()
        return reply

    assert asyncio.run(use()).answer.code == "MET"
    assert transport.closed == 1


@dataclass
class Holding:
    """A judge of one's own that holds something open."""

    judge_id: str = "holding"
    closed: int = 0

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(answer="MET")

    async def aclose(self) -> None:
        self.closed += 1


def test_a_seat_closes_whatever_judge_can_be_closed() -> None:
    """Also one that is no model."""
    judge = Holding()
    assert isinstance(judge, ClosableJudge)
    asyncio.run(seat(JudgeSpec(judge, weight=2.0)).aclose())
    assert judge.closed == 1


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_a_blank_reference_is_none(blank: str) -> None:
    """No judge is to compare with nothing, and no model is sent empty delimiters."""
    judge, transport = model_judge([{"verdict": "MET", "reason": "r"}])
    request = request_for(binary(), reference_submission=blank)
    assert request.reference_submission is None
    asyncio.run(judge.ask(request))
    assert "<reference-" not in transport.prompts[0]


def test_prompts_of_the_panel_reach_its_models() -> None:
    """System prompts are the grader's to give."""
    one = seat("openai/gpt-x", system_prompt="A", multi_choice_system_prompt="B").judge
    assert (getattr(one, "system_prompt", None), getattr(one, "multi_choice_system_prompt", None)) == (
        "A",
        "B",
    )
