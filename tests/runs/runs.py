"""Small datasets and judges for tests of runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, JudgeReply, Rubric, RubricDataset
from autorubric.errors import ProviderTimeoutError
from autorubric.judges import JudgeRequest
from autorubric.runs import evaluate_sync
from autorubric.runs.manifest import manifest_text
from autorubric.support.record_log import body_of, seal_line


@dataclass
class CountingJudge:
    """Says MET where the text has the criterion's name in it, and counts what it is asked.

    `down` names items for which it has no reply, as if its provider were down.
    """

    judge_id: str = "counting"
    version: str = "1"
    down: set[str] = field(default_factory=set)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def describe(self) -> dict[str, str]:
        return {"judge": "counting", "version": self.version}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        name = request.criterion.name or ""
        self.asked[request.item_id, name] += 1
        if request.item_id in self.down:
            raise ProviderTimeoutError("no answer in 1 s")
        found = name in (request.submission.text or "")
        return JudgeReply(answer="MET" if found else "UNMET", reason=f"{name} found: {found}", cost=0.01)


def small_rubric(**changes: Any) -> Rubric:
    """Two criteria, `apple` and `pear`; `changes` replace fields of `pear`."""
    pear = {"name": "pear", "requirement": "Speaks of pears.", "weight": 5.0, **changes}
    return Rubric([Criterion(name="apple", requirement="Speaks of apples."), Criterion(**pear)])


def small_dataset(*texts: str, rubric: Rubric | None = None, prompt: str | None = None) -> RubricDataset:
    """Items `i0`, `i1`, … with these texts."""
    items = [DataItem(id=f"i{n}", submission=text) for n, text in enumerate(texts)]
    return RubricDataset(name="fruit", prompt=prompt, rubric=rubric or small_rubric(), items=items)


TEXTS = ("apple and pear", "apple", "pear", "nothing")


def run(
    folder: Path, judge: Any, dataset: RubricDataset | None = None, *, grader: Any = None, **options: Any
) -> EvalResult:
    """Runs under the name `run` in a folder."""
    return evaluate_sync(
        small_dataset(*TEXTS) if dataset is None else dataset,
        grader or CriterionGrader(judges=[judge]),
        experiment_name=options.pop("experiment_name", "run"),
        experiments_dir=folder,
        show_progress=False,
        **options,
    )


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the manifest in a run folder, and its checksum with it."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    change(manifest)
    file.write_text(manifest_text(manifest), encoding="utf-8")


def as_if_killed(folder: Path) -> None:
    """Makes the manifest of a run that has ended that of one whose process was killed."""

    def change(manifest: dict[str, Any]) -> None:
        manifest.update(status="running", completed_at=None)
        manifest.pop("sizes", None)

    edit_manifest(folder, change)


def edit_lines(file: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Changes the JSON objects of a log, None leaving one out, and their checksums with them."""
    mark = json.loads((file.parent / "manifest.json").read_text(encoding="utf-8"))["mark"]
    lines = b""
    for raw in file.read_bytes().splitlines(keepends=True):
        body = body_of(raw, mark, is_sealed=True)
        changed = None if body is None else change(body)
        if changed is not None:
            lines += seal_line(changed, len(lines), mark)
    file.write_bytes(lines)
