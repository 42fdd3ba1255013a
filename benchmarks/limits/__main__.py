"""Calls a verdict against providers that do not tell their limits: `python -m benchmarks.limits`."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.servers.fixtures import OpenAIServer, serving

from autorubric import LLMConfig, RubricDataset, evaluate_sync
from benchmarks._told import markdown, tell
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


def _library(dataset: RubricDataset, config: LLMConfig) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = evaluate_sync(dataset, grader_of(config), show_progress=False, experiments_dir=Path(folder))
        errors = [done.error for done in result.item_results if done.error is not None]
    if errors:
        raise SystemExit(f"{len(errors)} items were not judged: {errors[0]}")


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


def main(argv: Sequence[str] | None = None) -> int:
    """Measures every case; 1 where more than 1.05 calls a verdict were made after the first two seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the verdicts (default 1)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args(argv)
    with serving() as server:
        found = [
            measured(case._replace(verdicts=int(case.verdicts * given.share) // CRITERIA * CRITERIA), server)
            for case in CASES
        ]
    tell(table(found), found, given.json)
    return 1 if any(one["late_calls_a_verdict"] > 1.05 for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
