"""One run of each client: wall seconds, and CPU seconds of this process."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autorubric import LLMConfig, RubricDataset, evaluate_sync
from benchmarks.throughput._work import CRITERIA, arguments_of, grader_of


@dataclass(kw_only=True)
class Measurement:
    """Time and calls of a run."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def _time_calls() -> Iterator[Measurement]:
    gc.collect()
    taken, wall, cpu = Measurement(), time.perf_counter(), time.process_time()
    yield taken
    taken.wall, taken.cpu = time.perf_counter() - wall, time.process_time() - cpu


def library(dataset: RubricDataset, config: LLMConfig) -> Measurement:
    """Evaluate into a run folder, as users do."""
    calls = len(dataset.items) * CRITERIA
    with tempfile.TemporaryDirectory() as folder:
        with _time_calls() as taken:
            result = evaluate_sync(
                dataset, grader_of(config), show_progress=False, experiments_dir=Path(folder)
            )
        answered = sum(
            vote.status == "answered"
            for done in result.item_results
            if done.report is not None
            for criterion in done.report.report
            for vote in criterion.votes
        )
    if answered != calls:
        raise SystemExit(f"{answered} of {calls} calls were answered")
    return taken


def bare_aiohttp(bodies: Sequence[bytes], config: LLMConfig, run: Callable[..., Any]) -> Measurement:
    """Post the bodies from one session, a limited number at a time."""
    import aiohttp

    url, parallel = f"{config.api_base}/chat/completions", config.max_parallel_requests or 1

    async def work() -> None:
        headers = {"content-type": "application/json", "authorization": "Bearer none"}
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def post(body: bytes) -> None:
                async with session.post(url, data=body) as response:
                    await response.read()

            await _each(bodies, post, parallel)

    with _time_calls() as taken:
        run(work())
    return taken


def bare_litellm(bodies: Sequence[bytes], config: LLMConfig, run: Callable[..., Any]) -> Measurement:
    """Call `acompletion`, a limited number at a time."""
    # litellm would otherwise download prices when it is imported.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    parallel = config.max_parallel_requests or 1
    arguments = [arguments_of(body) for body in bodies]

    async def ask(one: dict[str, Any]) -> None:
        await litellm.acompletion(
            model=config.model,
            api_base=config.api_base,
            api_key="none",
            num_retries=0,
            max_retries=0,
            timeout=65.0,
            **one,
        )

    with _time_calls() as taken:
        run(_each(arguments, ask, parallel))
    return taken


async def _each(given: Sequence[Any], ask: Callable[[Any], Awaitable[None]], parallel: int) -> None:
    waiting = iter(given)

    async def worker() -> None:
        for one in waiting:
            await ask(one)

    await asyncio.gather(*(worker() for _ in range(parallel)))
