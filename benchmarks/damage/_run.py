"""The runs that are damaged, and their outcomes."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalConfig,
    EvalResult,
    EvalRunner,
    JudgeReply,
    LengthPenalty,
    LLMConfig,
    Rubric,
    RubricDataset,
)
from autorubric.cli.show import show
from autorubric.errors import AutorubricError, ProviderTimeoutError, TokenUsage
from autorubric.judges import JudgeRequest, ModelJudge
from autorubric.llm import LLMClient, ModelReply, ModelRequest
from autorubric.reports import report_html

ITEMS: Final = 8
WEIGHTS: Final = (5.0, 3.0, -2.0)
Kind: TypeAlias = Literal["complete", "streamed", "stopped", "resumed"]
"""A complete run; one on a streamed dataset; one stopped by its budget; one whose judge was down at first."""
KINDS: Final[tuple[Kind, ...]] = ("complete", "streamed", "stopped", "resumed")
_BUDGET: Final = 15
_TIMES: Final = frozenset({"seconds", "started", "latency", "latency_seconds", "duration", "notices"})
_DATA: Final = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


def dataset() -> RubricDataset:
    """Return eight items with labels, and a shared rubric with different weights."""
    rubric = Rubric(
        [
            Criterion(name=f"c{n}", requirement=f"Claim c{n}.", weight=weight)
            for n, weight in enumerate(WEIGHTS)
        ]
    )
    items = [
        DataItem(
            id=f"item-{n}",
            submission=f"Text i{n}. " + "word " * n,
            ground_truth=[
                "MET" if _drawn("truth", f"i{n}", f"c{c}") % 2 else "UNMET" for c in range(len(WEIGHTS))
            ],
        )
        for n in range(ITEMS)
    ]
    return RubricDataset(name="damage", rubric=rubric, items=items)


def _drawn(*parts: str) -> int:
    return hashlib.sha256("/".join(parts).encode("ascii")).digest()[0]


@dataclass
class Model:
    """A transport with a constant answer.

    Attributes:
        asked: Number of calls.
    """

    asked: int = 0

    async def send(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        text = "\n".join(message.content for message in request.messages)
        whose, what = re.search(r"Text (i\d+)\.", text), re.search(r"Claim (c\d+)", text)
        assert whose is not None and what is not None
        drawn = _drawn("model", whose[1], what[1])
        verdict = {"reason": f"Drawn {drawn}.", "verdict": "MET" if drawn % 2 else "UNMET"}
        usage = TokenUsage(prompt_tokens=drawn, completion_tokens=2, total_tokens=drawn + 2)
        return ModelReply(text=json.dumps(verdict), model=request.model, usage=usage, cost=drawn / 1024)

    async def aclose(self) -> None:
        """Do nothing; nothing is open."""


@dataclass
class Plain:
    """A judge without a model.

    Attributes:
        judge_id: Name of the judge.
        down: Items without a reply.
        asked: Number of calls.
    """

    judge_id: str = "plain"
    down: frozenset[str] = frozenset()
    asked: int = 0

    def describe(self) -> dict[str, str]:
        return {"judge": "plain"}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked += 1
        if request.item_id in self.down:
            raise ProviderTimeoutError("no answer in 1 s")
        drawn = _drawn("plain", request.item_id or "", request.criterion.name or "")
        return JudgeReply(answer="MET" if drawn % 3 else "UNMET", reason=f"Found {drawn}.", cost=0.01)


@dataclass
class Graded:
    """A run that was started or resumed.

    Attributes:
        asked: Number of judge calls.
        result: Its result; None if an error was raised.
        error: The error; None if there was none.
        warnings: Text written to stderr.
    """

    asked: int = 0
    result: EvalResult | None = None
    error: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def messages(self) -> str:
        """All messages to the user."""
        return "\n".join([self.error, *(self.result.notices if self.result else ()), *self.warnings])


@contextmanager
def caught(into: Graded) -> Iterator[None]:
    """Collect errors of the library and warnings."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            yield
        except AutorubricError as error:
            into.error = f"{type(error).__name__}: {error}"
    into.warnings = [str(one.message) for one in given]


def grade(
    folder: Path, kind: Kind, *, down: frozenset[str] = frozenset(), budget: int | None = None
) -> Graded:
    """Start or resume the run."""
    transport, plain, found = Model(), Plain(down=down), Graded()
    config = LLMConfig(model="openai/double", max_parallel_requests=4)
    model = ModelJudge(judge_id="model", client=LLMClient(config, transport=transport))
    data = dataset()
    if kind == "streamed":
        file = folder / "given.jsonl"
        if not file.exists():
            data.to_file(file)
        data = RubricDataset.stream(file)
    options = EvalConfig(
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
        max_concurrent_items=2,
        max_calls=budget,
    )
    penalty = LengthPenalty(free_budget=3, max_cap=10, penalty_at_cap=0.3)
    grader = CriterionGrader(judges=[model, plain], length_penalty=penalty)
    with caught(found):
        found.result = EvalRunner(data, grader, options).run_sync()
    found.asked = transport.asked + plain.asked
    return found


def make(folder: Path, kind: Kind) -> None:
    """Create a run of a kind."""
    if kind == "resumed":
        grade(folder, kind, down=frozenset({"item-2", "item-5", "item-6"}))
    found = grade(folder, kind, budget=_BUDGET if kind == "stopped" else None)
    assert not found.error, found.error


def opened(folder: Path) -> Graded:
    """Open the stored run."""
    found = Graded()
    with caught(found):
        found.result = EvalResult.from_experiment(folder / "run")
    return found


def outcome(result: EvalResult, found: Graded) -> dict[str, Any]:
    """All that a run says but for times and notices: by API, exports, figures, report and command line.

    What fails to be made, as figures of a run without scores do, is the error; warnings and errors go to
    `found` too.
    """
    makes: dict[str, Callable[[], Any]] = {
        "scores": result.get_scores,
        "scored": lambda: dict(scores_by_id(result)),
        "summary": lambda: _untimed_text(result.summary()),
        "table": lambda: _untimed_csv(result.export("csv").decode()),
        "votes": lambda: result.export("jsonl", table="votes").decode(),
        "metrics": lambda: result.compute_metrics().summary(),
        "report": lambda: _report(result),
        "show": lambda: _shown(result),
        "prompts": lambda: [repr(result.exchanges(item.id or "")) for item in result.dataset],
        "dataset": lambda: [item.snapshot() for item in result.dataset],
        "reports": lambda: [report and report.score for report in result.get_reports()],
    }
    outputs: dict[str, Any] = {}
    for name, make_it in makes.items():
        made = Graded()
        with caught(made):
            outputs[name] = make_it()
        found.warnings += made.warnings
        if made.error:
            outputs[name] = made.error
            found.error += made.error
    return outputs


def scores_by_id(result: EvalResult) -> Iterator[tuple[str, float | None]]:
    """Return the score of each item of the result."""
    ids = (result.dataset.item_id(position) for position in result.item_results.positions)
    return zip(ids, result.get_scores(), strict=True)


def _untimed_text(text: str) -> list[str]:
    lines = text.partition("Notices")[0].rstrip().splitlines()
    return [line for line in lines if not line.strip().startswith(("seconds", "folder"))]


def _untimed_csv(text: str) -> list[str]:
    rows = [line.split(",") for line in text.splitlines()]
    at = rows[0].index("seconds")
    return [",".join(row[:at] + row[at + 1 :]) for row in rows]


def _report(result: EvalResult) -> Any:
    return [_untimed(json.loads(found)) for found in _DATA.findall(report_html(result))]


def _untimed(held: Any) -> Any:
    if isinstance(held, dict):
        return {key: _untimed(value) for key, value in held.items() if key not in _TIMES}
    return [_untimed(one) for one in held] if isinstance(held, list) else held


def _shown(result: EvalResult) -> Any:
    output = StringIO()
    with redirect_stdout(output):
        try:
            command: Any = show
            command(result.experiment_dir, as_json=True)
        except BaseException as end:
            if getattr(end, "exit_code", 0):
                return "refused"
    return {
        key: value for key, value in json.loads(output.getvalue()).items() if key not in ("notices", "run")
    }
