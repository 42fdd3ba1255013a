"""Runs over HTTP of 300 verdicts of which some are lost to 429s, or unreadable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, Rubric, RubricDataset
from autorubric.runs import evaluate_sync
from tests.faults.runs import config
from tests.servers.fixtures import OpenAIServer

N_LOST, N_ASSUMED, N_ASKED = 50, 125, 300


def rubric() -> Rubric:
    """Six criteria, `c0` to `c5`."""
    return Rubric([Criterion(name=f"c{n}", requirement=f"It says {n}.") for n in range(6)])


def dataset() -> RubricDataset:
    """Fifty items, labelled; the first fifteen have `[garbled]` in their texts."""
    labels = {f"c{n}": "MET" if n % 2 else "UNMET" for n in range(6)}
    items = [
        DataItem(
            id=f"i{n:02}",
            submission=f"Text number {n}.{' [garbled]' if n < 15 else ''}",
            ground_truth=labels if n % 3 else dict.fromkeys(labels, "MET"),
        )
        for n in range(50)
    ]
    return RubricDataset(name="missing", rubric=rubric(), items=items)


_MET = {"do": "answer", "payload": {"verdict": "MET", "reason": "It does."}}
_UNSURE = {"do": "answer", "payload": {"verdict": "CANNOT_ASSESS", "reason": "It may."}}


def lose_fifty(server: OpenAIServer) -> None:
    """Answer criterion `c0` with 429 on every item, whenever it is asked."""
    _answer_rest(server)
    server.script({"do": "status", "status": 429}, contains="It says 0.", repeat="last", anywhere=True)


def refuse_fifty(server: OpenAIServer) -> None:
    """Answer criterion `c0` with an error that is not tried again."""
    _answer_rest(server)
    fault = {"do": "status", "status": 400, "message": "No."}
    server.script(fault, contains="It says 0.", repeat="last", anywhere=True)


def garble_125(server: OpenAIServer) -> None:
    """Answer `c0` on all items, and everything on the first fifteen, with prose."""
    _answer_rest(server)
    prose = {"do": "answer", "content": "I would say that it is met."}
    server.script(prose, contains="It says 0.", repeat="last", anywhere=True)
    server.script(prose, contains="[garbled]", repeat="last", anywhere=True)


def _answer_rest(server: OpenAIServer) -> None:
    """Answer what is asked about the last item with abstentions, and all else with MET."""
    server.script(_MET, repeat="last")
    server.script(_UNSURE, contains="Text number 49.", repeat="last", anywhere=True)


def graded(
    folder: Path,
    server: OpenAIServer,
    name: str = "run",
    *,
    data: RubricDataset | None = None,
    **options: Any,
) -> EvalResult:
    """The dataset judged into a run folder, without another try of what was refused."""
    grader = CriterionGrader(judges=[config(server, max_retries=0)])
    options |= {"experiment_name": name, "experiments_dir": folder, "show_progress": False}
    return evaluate_sync(data or dataset(), grader, **options)
