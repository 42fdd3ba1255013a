"""The run: a small dataset, and a model that records each call before it answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalConfig,
    EvalResult,
    EvalRunner,
    JudgeSpec,
    LLMConfig,
    Rubric,
    RubricDataset,
)
from autorubric.errors import TokenUsage
from autorubric.judges import ModelJudge
from autorubric.llm import LLMClient, ModelReply, ModelRequest

ITEMS, CRITERIA, SAMPLES, PARALLEL = 24, 3, 2, 8
CALLS = ITEMS * CRITERIA * SAMPLES

Key: TypeAlias = tuple[str, str, int]
"""Item, criterion and sample of a call."""
Kind: TypeAlias = Literal["new", "streamed", "rejudge", "fork"]
"""A new run; one on a streamed dataset; one whose dataset changed, in its folder or forked from it."""
KINDS: tuple[Kind, ...] = ("new", "streamed", "rejudge", "fork")

_WHOSE = re.compile(r"Text (i\d+)\.")
_WHAT = re.compile(r"Claim (c\d+)")
_FOLDER_OF_RUN = {
    *("manifest.json", "dataset.jsonl", "dataset.sums", "votes.jsonl", "items.jsonl", "prompts.jsonl", "lock")
}


def dataset(changed: bool) -> RubricDataset:
    """The dataset; `changed` are the wording of its first criterion and the order of its items."""
    rubric = Rubric(
        [
            Criterion(
                name=f"c{n}", requirement=f"Claim c{n}{' in other words' if changed and not n else ''}."
            )
            for n in range(CRITERIA)
        ]
    )
    items = [DataItem(id=f"i{n}", submission=f"Text i{n}.") for n in range(ITEMS)]
    return RubricDataset(name="kills", rubric=rubric, items=items[::-1] if changed else items)


@dataclass
class NotingModel:
    """A transport that notes each call in a file, takes some milliseconds, and always answers it alike.

    Attributes:
        notes: The file, one call per line, which survives the process.
    """

    notes: Path
    _random: random.Random = field(default_factory=lambda: random.Random(os.getpid()))

    async def send(self, request: ModelRequest) -> ModelReply:
        text = "\n".join(message.content for message in request.messages)
        whose, what = _WHOSE.search(text), _WHAT.search(text)
        assert whose is not None and what is not None
        with self.notes.open("ab", buffering=0) as file:
            file.write(json.dumps([whose[1], what[1], request.sample]).encode("ascii") + b"\n")
        await asyncio.sleep(self._random.uniform(0.0, 0.006))
        drawn = hashlib.sha256(f"{text}{request.sample}".encode()).digest()[0]
        verdict = {"reason": f"Drawn {drawn}.", "verdict": "MET" if drawn % 2 else "UNMET"}
        usage = TokenUsage(prompt_tokens=drawn, completion_tokens=2, total_tokens=drawn + 2)
        return ModelReply(text=json.dumps(verdict), model=request.model, usage=usage, cost=drawn / 1024)

    async def aclose(self) -> None:
        """Do nothing; nothing is open."""


def grade(
    folder: Path, kind: Kind, notes: Path, *, changed: bool = True, cache: Path | None = None
) -> EvalResult:
    """The run, begun or gone on with; with a reply cache in the folder `cache` it keeps no prompts."""
    config = LLMConfig(
        model="openai/double",
        temperature=1.0,
        max_parallel_requests=PARALLEL,
        cache_enabled=cache is not None,
        cache_dir=cache or folder,
    )
    judge = ModelJudge(judge_id="model", client=LLMClient(config, transport=NotingModel(notes)))
    data = dataset(changed)
    if kind == "streamed":
        file = folder / "items.jsonl"
        if not file.exists():
            data.to_file(file)
        data = RubricDataset.stream(file)
    options = EvalConfig(
        experiment_name="run",
        experiments_dir=folder,
        show_progress=False,
        store_prompts=cache is None,
        on_mismatch=kind if kind == "rejudge" or kind == "fork" else "refuse",
    )
    grader = CriterionGrader(judges=[JudgeSpec(judge, samples=SAMPLES)])
    return EvalRunner(data, grader, options).run_sync()


def run_folder(folder: Path, kind: Kind) -> Path:
    """Where the run of a kind goes."""
    return folder / ("run-2" if kind == "fork" else "run")


def outcome(folder: Path) -> list[Any]:
    """All that a stored run says but for times: scores, reports, votes, tokens and cost."""
    stored = EvalResult.from_experiment(folder)
    found: list[Any] = []
    for item in stored.item_results:
        assert item.report is not None
        votes = [
            (
                one.criterion.name,
                vote.sample,
                vote.status,
                vote.answer,
                vote.value,
                vote.reason,
                vote.completion_cost,
            )
            for one in item.report.report
            for vote in one.votes
        ]
        usage = item.report.token_usage
        found.append([item.item.id, item.report.score, usage and usage.total_tokens, votes])
    cost, usage = stored.total_completion_cost, stored.total_token_usage
    return [*found, round(cost or 0.0, 9), usage and usage.total_tokens]


def noted(notes: Path) -> list[Key]:
    """The calls that were made, in their order."""
    if not notes.exists():
        return []
    return [tuple(json.loads(line)) for line in notes.read_text(encoding="utf-8").splitlines()]


def stored_votes(folder: Path) -> Iterator[tuple[Key, str]]:
    """The call and the digest of every vote in a run folder; what is torn is left out."""
    yield from _lines(folder / "votes.jsonl", lambda line: (line["vote"].get("sample", 0), line["digest"]))


def stored_prompts(folder: Path) -> set[Key]:
    """The calls whose prompts are in a run folder."""
    return {key for key, _ in _lines(folder / "prompts.jsonl", lambda line: (line["sample"], ""))}


def _lines(file: Path, read: Any) -> Iterator[tuple[Key, str]]:
    if not file.exists():
        return
    # Text after the last line break is incomplete, even if only the line break is missing.
    for raw in file.read_bytes().split(b"\n")[:-1]:
        try:
            line = json.loads(raw)
            sample, digest = read(line)
        except (ValueError, KeyError, TypeError):
            continue
        yield (line["item"], line["criterion"], sample), digest


def leftovers(folder: Path) -> set[str]:
    """Names in a folder of runs that no run leaves."""
    inner = {f"{run.name}/{one.name}" for run in folder.glob("run*") for one in run.iterdir()}
    return {name for name in inner if name.split("/")[1] not in _FOLDER_OF_RUN}
