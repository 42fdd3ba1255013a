"""A process that evaluates in batches and kills itself at a line.

Lines are counted where batches are recorded and sent, so every pair of steps has lines between them. The
exit code is 4 while replies are outstanding, and 0 once the run is finished.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import autorubric.llm.batches  # noqa: F401 - a forked process need not import it
from autorubric import Criterion, CriterionGrader, DataItem, LLMConfig, Rubric, RubricDataset
from autorubric.runs import evaluate_sync

_TRACED = tuple(str(Path("llm", name)) for name in ("batches.py", "batch_client.py"))


def dataset(count: int = 3) -> RubricDataset:
    """Items with different texts."""
    criteria = [Criterion(name=name, requirement=f"Speaks of {name}.") for name in ("apple", "pear")]
    items = [DataItem(id=f"i{n}", submission=f"text number {n}") for n in range(count)]
    return RubricDataset(name="fruit", rubric=Rubric(criteria), items=items)


def model(kind: str, url: str) -> LLMConfig:
    """A model of either protocol at the test server."""
    if kind == "anthropic":
        return LLMConfig(model="anthropic/claude-haiku-4-5", api_base=url, api_key="sk-test-key")
    return LLMConfig(model="m", api_base=f"{url}/v1", api_key="sk-test-key")


def _kill_at(line: int) -> None:
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(_TRACED):
            return None
        left -= event == "line"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def evaluate_and_die(folder: str, url: str, kind: str, line: int) -> None:
    """Evaluate once and exit; without a line (0), to the end."""
    if line:
        _kill_at(line)
    result = evaluate_sync(
        dataset(),
        CriterionGrader(judges=[model(kind, url)]),
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
        batch=True,
    )
    sys.exit(4 if result.stopped == "batch" else 0)
