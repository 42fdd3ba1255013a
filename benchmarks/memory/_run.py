"""One run in a process of its own; prints its figures as JSON."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SENTENCE = "The river rose by a third in the week, and number {} of the stations gave a measured account. "


_TO_PARQUET = """
import sys
from autorubric import RubricDataset
RubricDataset.from_file(sys.argv[1]).to_file(sys.argv[2])
"""


def write_dataset(path: Path, items: int) -> None:
    """Write a dataset of short essays and five criteria."""
    from benchmarks.throughput._work import dataset_of

    with path.open("w", encoding="utf-8") as file:
        header = {"format": 1, "name": "floods", "prompt": "Report on the floods of the week."}
        rubric = dataset_of(0).rubric
        assert rubric is not None
        file.write(json.dumps({**header, "rubric": rubric.to_dict()}) + "\n")
        for number in range(items):
            item = {"id": f"item-{number}", "submission": _SENTENCE.format(number) * 12}
            file.write(json.dumps(item) + "\n")


def judge(request: object) -> str:
    """A judge that takes no time."""
    return "MET"


def peak() -> float:
    """Peak size of this process, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # `ru_maxrss` is at least that of the parent process.
        (line,) = (one for one in status.read_text(encoding="utf-8").splitlines() if one.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def graded(dataset: Path, folder: Path, api_base: str, *, parallel: int = 64, loaded: bool = False) -> None:
    """Runs, or goes on with a run; with the model at `api_base`, or without one a function.

    Args:
        dataset: The file.
        folder: Where the run goes.
        api_base: Where the model is asked; empty for the function.
        parallel: Requests at a time.
        loaded: Whether the whole dataset is in memory, and not streamed.
    """
    from autorubric import CriterionGrader, JudgeSpec, RubricDataset, evaluate_sync
    from benchmarks.throughput._work import config_of, dataset_of

    who = JudgeSpec(config_of(api_base, "openai_compatible", parallel), "judge") if api_base else judge
    # A table cannot contain the rubric.
    rubric = dataset_of(0).rubric if dataset.suffix == ".parquet" else None
    data = RubricDataset.from_file(dataset) if loaded else RubricDataset.stream(dataset, rubric=rubric)
    result = evaluate_sync(
        data,
        CriterionGrader(judges=[who]),
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
    )
    if result.failed_items:
        raise SystemExit(f"{result.failed_items} of {result.total_items} items have no score")


def bare(dataset: Path, api_base: str) -> None:
    """Posts as many bodies from one aiohttp session, and keeps nothing."""
    from benchmarks.throughput._runs import bare_aiohttp
    from benchmarks.throughput._work import bodies_of, config_of, dataset_of

    with dataset.open("rb") as lines:
        calls = 5 * (sum(1 for _ in lines) - 1)
    config = config_of(api_base, "openai_compatible", 64)
    body = bodies_of(dataset_of(5), config)[0]
    bare_aiohttp([body] * calls, config, asyncio.run)


def main(what: str, items: str, api_base: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        write_dataset(path, int(items))
        if what == "parquet":
            # In a separate process, so that this one contains only what streaming needs.
            call = [sys.executable, "-c", _TO_PARQUET, str(path), str(path.with_suffix(".parquet"))]
            subprocess.run(call, check=True)
            path = path.with_suffix(".parquet")
        before, clock = peak(), time.perf_counter()
        if what == "bare":
            bare(path, api_base)
        else:
            is_loaded = what == "loaded"
            graded(path, Path(folder), api_base, parallel=256 if is_loaded else 64, loaded=is_loaded)
        found = {"peak_mib": peak(), "before_mib": before, "seconds": time.perf_counter() - clock}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
