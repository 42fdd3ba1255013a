"""What is computed once for a run, or once an item, however many calls there are."""

from __future__ import annotations

import cProfile
import pstats
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import aiohttp

from autorubric import CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import Criterion
from autorubric.criteria.declaration import object_schema
from autorubric.judges import prompts as _prompts
from autorubric.llm import LLMClient, budget as _budget, names as _names, wire as _wire
from tests.faults.runs import config
from tests.servers.fixtures import OpenAIServer

CRITERIA = 5

ONCE_A_RUN: tuple[Callable[..., Any], ...] = (
    aiohttp.ClientSession.__init__,
    aiohttp.TCPConnector.__init__,
    LLMClient.__init__,
    threading.Thread.start,
    object_schema,
    _wire.response_format,
    _budget.own_price,
    _budget.pricing_of,
    _names.completions_url,
)


def _graded(folder: Path, server: OpenAIServer, items: int, name: str) -> dict[Callable[..., Any], int]:
    """A run with a budget, profiled: how often each of the functions was called."""
    rubric = Rubric([Criterion(name=f"c{n}", requirement=f"{name}: it says {n}.") for n in range(CRITERIA)])
    texts = [DataItem(submission=f"{name}: text {n}.") for n in range(items)]
    data = RubricDataset(name=name, rubric=rubric, items=texts)
    judge = config(server, input_cost_per_token=1e-6, output_cost_per_token=1e-6, max_parallel_requests=4)
    profile = cProfile.Profile()
    profile.enable()
    evaluate_sync(
        data,
        CriterionGrader(judges=[judge]),
        experiment_name=name,
        experiments_dir=folder,
        show_progress=False,
        max_cost=100.0,
    )
    profile.disable()
    counted = vars(pstats.Stats(profile))["stats"]
    return {one: counted.get(_place(one), (0, 0))[1] for one in (*ONCE_A_RUN, _prompts._compose_shared)}


def _place(function: Callable[..., Any]) -> tuple[str, int, str]:
    assert isinstance(function, FunctionType)
    code = function.__code__
    return code.co_filename, code.co_firstlineno, code.co_name


def test_what_calls_share_is_computed_once(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Forty items take as many sessions, threads, schemas and prices as ten; a prompt's start one an item."""
    # What a process computes once is behind it then.
    _graded(tmp_path, openai_server, 2, "first")
    few, many = (_graded(tmp_path, openai_server, items, f"of {items}") for items in (10, 40))
    assert many.pop(_prompts._compose_shared) - few.pop(_prompts._compose_shared) == 40 - 10
    assert few == many
    assert few[aiohttp.ClientSession.__init__] == few[LLMClient.__init__] == 1
    assert few[_budget.pricing_of] >= 1
    asked = openai_server.log()
    assert len(asked) == (2 + 10 + 40) * CRITERIA
    assert len({one["connection"] for one in asked}) <= 3 * 4
