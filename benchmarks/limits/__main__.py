"""Calls a verdict against providers that do not tell their limits: `python -m benchmarks.limits`."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.servers.fixtures import OpenAIServer, serving

from autorubric import LLMConfig, RubricDataset, evaluate_sync
from benchmarks._output import markdown, print_results
from benchmarks.throughput._work import CRITERIA, bodies_of, config_of, dataset_of, grader_of

_LEARNING_SECONDS: Final = 2.0
_PARALLEL: Final = 64
_MET: Final = {"reason": "It says so.", "verdict": "MET"}


class Case(NamedTuple):
    """A provider.

    Attributes:
        name: What it allows.
        limits: The same for the server.
        allowed: Calls a second that it allows.
        verdicts: How many are asked for.
    """

    name: str
    limits: dict[str, Any]
    allowed: float
    verdicts: int


CASES: Final = (
    Case("30 a second", {"per_second": 30, "burst": 30, "seconds": 0.05}, 30, 900),
    Case(
        "30 a second, Retry-After",
        {"per_second": 30, "burst": 30, "seconds": 0.05, "retry_after": "1"},
        30,
        900,
    ),
    Case("16 at a time", {"parallel": 16, "seconds": 0.2}, 80, 1600),
    Case("16 at a time, Retry-After", {"parallel": 16, "seconds": 0.2, "retry_after": "1"}, 80, 1600),
)


_RANDOM: Final[dict[str, dict[str, Any]]] = {
    "429": {"share": 0.3, "do": "status", "status": 429},
    "500": {"share": 0.05, "do": "status", "status": 500},
    "reset": {"share": 0.05, "do": "reset"},
    "malformed": {"share": 0.05, "do": "answer", "content": '{"verdict": MET, "reason": '},
}
"""What becomes of requests, whatever their pace, to a provider without limits."""
_RANDOM_VERDICTS: Final = 2000
_RANDOM_SECONDS: Final = 0.02
_MOST_TRIES: Final = 4
_ITEMS_AT_A_TIME: Final = 64
"""As the library grades; plain back-off has as many questions open."""


def measured_random(verdicts: int, server: OpenAIServer) -> dict[str, Any]:
    """The figures where rejections have nothing to do with load: the library's, and those of plain back-off.

    Plain back-off gives up after four tries, and counts a malformed reply as lost.
    """
    dataset = dataset_of(verdicts)
    config = config_of(server.api_base, "openai_compatible", _PARALLEL)
    trouble: dict[str, Any] = {"faults": _RANDOM, "seconds": _RANDOM_SECONDS, "payload": _MET}
    server.reset()
    server.trouble(**trouble)
    began = time.monotonic()
    lost = _library(dataset, config)
    seconds = time.monotonic() - began
    calls = len(server.outcomes())
    server.reset()
    server.trouble(**trouble)
    began = time.monotonic()
    bare_lost = asyncio.run(_plain_back_off(bodies_of(dataset, config), config))
    bare_seconds = time.monotonic() - began
    return {
        "provider": "30 % random 429, 5 % each of 500, reset and malformed",
        "verdicts": verdicts,
        "calls_a_verdict": calls / verdicts,
        "seconds": seconds,
        "lost": lost,
        "bare_calls_a_verdict": len(server.outcomes()) / verdicts,
        "bare_seconds": bare_seconds,
        "bare_lost": bare_lost,
        "time_ratio": seconds / bare_seconds,
    }


async def _plain_back_off(bodies: Sequence[bytes], config: LLMConfig) -> int:
    """Ask each body up to four times, with waits of up to 1, 2 and 4 s; return how many were lost."""
    import aiohttp

    waiting, rng = iter(bodies), random.Random(0)
    async with aiohttp.ClientSession(headers={"content-type": "application/json"}) as session:

        async def is_answered(body: bytes) -> bool:
            try:
                async with session.post(f"{config.api_base}/chat/completions", data=body) as response:
                    envelope = await response.json()
                    return response.status == 200 and _is_verdict(envelope)
            except aiohttp.ClientError:
                return False

        async def worker() -> int:
            lost = 0
            for body in waiting:
                for tries in range(_MOST_TRIES):
                    if await is_answered(body):
                        break
                    if tries < _MOST_TRIES - 1:
                        await asyncio.sleep(rng.uniform(0.5, 1.0) * 2.0**tries)
                else:
                    lost += 1
            return lost

        return sum(await asyncio.gather(*(worker() for _ in range(_ITEMS_AT_A_TIME * CRITERIA))))


def _is_verdict(envelope: Any) -> bool:
    try:
        return "verdict" in json.loads(envelope["choices"][0]["message"]["content"])
    except ValueError:
        return False


def measured(case: Case, server: OpenAIServer) -> dict[str, Any]:
    """The figures of a case: the library's, and those of a loop that waits ever longer after a rejection."""
    dataset = dataset_of(case.verdicts)
    config = config_of(server.api_base, "openai_compatible", _PARALLEL)
    server.reset()
    server.trouble(payload=_MET, **case.limits)
    _library(dataset, config)
    ours = _figures(server, case)
    server.reset()
    server.trouble(payload=_MET, **case.limits)
    asyncio.run(_bare(bodies_of(dataset, config), config))
    bare = _figures(server, case)
    return {
        "provider": case.name,
        "verdicts": case.verdicts,
        **ours,
        **{f"bare_{name}": figure for name, figure in bare.items()},
    }


def _library(dataset: RubricDataset, config: LLMConfig) -> int:
    """Grade the dataset; return how many verdicts were lost."""
    with tempfile.TemporaryDirectory() as folder:
        result = evaluate_sync(dataset, grader_of(config), show_progress=False, experiments_dir=Path(folder))
        reports = [done.report for done in result.item_results if done.report is not None]
        lost = sum(
            vote.status == "failed" for one in reports for criterion in one.report for vote in criterion.votes
        )
        errors = [done.error for done in result.item_results if done.error is not None]
    if errors:
        raise SystemExit(f"{len(errors)} items were not judged: {errors[0]}")
    return lost


async def _bare(bodies: Sequence[bytes], config: LLMConfig) -> None:
    """As many workers, each of which waits for a second, two, four … after a rejection, with jitter."""
    import aiohttp

    waiting, rng = iter(bodies), random.Random(0)
    async with aiohttp.ClientSession(headers={"content-type": "application/json"}) as session:

        async def worker() -> None:
            for body in waiting:
                tries = 0
                while not await answered(body):
                    tries += 1
                    await asyncio.sleep(rng.uniform(0.5, 1.0) * min(60.0, 2.0 ** (tries - 1)))

        async def answered(body: bytes) -> bool:
            async with session.post(f"{config.api_base}/chat/completions", data=body) as response:
                await response.read()
                return response.status == 200

        await asyncio.gather(*(worker() for _ in range(_PARALLEL)))


def _figures(server: OpenAIServer, case: Case) -> dict[str, float]:
    seen = server.outcomes()
    first, last = seen[0][0], seen[-1][0]
    late = [name for at, name, _ in seen if at - first >= _LEARNING_SECONDS]
    answers = sum(name == "answered" for _, name, _ in seen)
    if answers != case.verdicts:
        raise SystemExit(f"{answers} of {case.verdicts} calls were answered")
    return {
        "calls_a_verdict": len(seen) / answers,
        "late_calls_a_verdict": len(late) / late.count("answered"),
        "share_of_allowed": answers / (last - first) / case.allowed,
    }


def table(found: Sequence[dict[str, Any]]) -> str:
    """The figures as a markdown table."""
    figures = ("calls_a_verdict", "late_calls_a_verdict", "share_of_allowed")
    heads = (
        *("provider allows", "verdicts", "calls a verdict", "after 2 s", "share of what is allowed"),
        *("bare calls a verdict", "after 2 s", "share"),
    )
    rows = [
        (
            *(one["provider"], f"{one['verdicts']:,}"),
            *(f"{one[name]:.3f}" for name in figures),
            *(f"{one[f'bare_{name}']:.3f}" for name in figures),
        )
        for one in found
    ]
    return markdown([heads, ("---", *["--:"] * (len(heads) - 1)), *rows])


def random_table(found: dict[str, Any]) -> str:
    """The figures of random rejections as a markdown table."""
    heads = ("", "calls a verdict", "lost", "seconds")
    rows = [
        (
            name,
            f"{found[f'{key}calls_a_verdict']:.3f}",
            str(found[f"{key}lost"]),
            f"{found[f'{key}seconds']:.1f}",
        )
        for name, key in (("the library", ""), ("plain back-off", "bare_"))
    ]
    return markdown([heads, ("---", "--:", "--:", "--:"), *rows])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every case; return 1 if one is worse than it may be.

    That is more than 1.05 calls a verdict after the first two seconds, or, where rejections have nothing to
    do with load, a lost verdict or more than 1.5 times the wall time of plain back-off.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the verdicts (default 1)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args(argv)
    with serving() as server:
        found = [
            measured(case._replace(verdicts=int(case.verdicts * given.share) // CRITERIA * CRITERIA), server)
            for case in CASES
        ]
        at_random = measured_random(int(_RANDOM_VERDICTS * given.share) // CRITERIA * CRITERIA, server)
    print_results(f"{table(found)}\n\n{random_table(at_random)}", [*found, at_random], given.json)
    wasteful = any(one["late_calls_a_verdict"] > 1.05 for one in found)
    return 1 if wasteful or at_random["lost"] or at_random["time_ratio"] > 1.5 else 0


if __name__ == "__main__":
    sys.exit(main())
