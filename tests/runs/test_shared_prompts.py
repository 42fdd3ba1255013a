"""Votes from prompts with several criteria, which depend on the texts of all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, JudgeReply, Rubric, RubricDataset
from autorubric.errors import ProviderTimeoutError
from autorubric.judges import JudgeRequest
from autorubric.runs import estimate, merge_runs
from autorubric.support.record_log import body_of
from tests.runs.runs import CountingJudge, edit_lines, edit_manifest, run, small_dataset

NAMES = ("apple", "pear", "plum")
TEXT = "apple and pear"


class SharingJudge(CountingJudge):
    """Answers all criteria of a request, and counts how many there are in one."""

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Sequence[JudgeReply]:
        return [await self.ask(request) for request in requests]


def rubric_of(*names: str, **requirements: str) -> Rubric:
    return Rubric(
        [Criterion(name=name, requirement=requirements.get(name, f"Speaks of {name}s.")) for name in names]
    )


def judged(folder: Path, rubric: Rubric, llm_calls: Any, **options: Any) -> tuple[list[str], EvalResult]:
    """The criteria that a judge is asked about on an item, sorted, and the result."""
    judge = SharingJudge()
    options = {"on_mismatch": "rejudge", "resume": True, **options}
    grader = CriterionGrader(judges=[judge], llm_calls=llm_calls)
    result = run(folder, judge, small_dataset(TEXT, rubric=rubric), grader=grader, **options)
    assert set(judge.asked.values()) <= {1}
    return sorted(name for _, name in judge.asked), result


@pytest.mark.parametrize(
    ("llm_calls", "again"),
    [("per_item", ["apple", "pear", "plum"]), (2, ["apple", "pear"]), ("per_criterion", ["pear"])],
)
def test_a_reworded_criterion_invalidates_the_votes_of_its_prompt(
    tmp_path: Path, llm_calls: Any, again: list[str]
) -> None:
    """Its own vote, and those that the same prompt asked for; other prompts keep theirs."""
    assert judged(tmp_path, rubric_of(*NAMES), llm_calls)[0] == sorted(NAMES)
    assert judged(tmp_path, rubric_of(*NAMES), llm_calls)[0] == []
    reworded = rubric_of(*NAMES, pear="Praises pears.")
    assert judged(tmp_path, reworded, llm_calls)[0] == again
    assert judged(tmp_path, reworded, llm_calls)[0] == []


def test_the_order_of_criteria_and_their_weights_do_not_count(tmp_path: Path) -> None:
    """The judge sees them in a random order, and no weights."""
    judged(tmp_path, rubric_of(*NAMES), "per_item")
    heavy = [one.model_copy(update={"weight": 3.0}) for one in rubric_of(*NAMES[::-1])]
    assert judged(tmp_path, Rubric(heavy), "per_item")[0] == []


def test_a_criterion_that_is_added_shares_the_prompt(tmp_path: Path) -> None:
    """The vote on a criterion that was alone in its prompt is asked for again, and that on a second one."""
    judged(tmp_path, rubric_of("apple"), "per_item")
    assert judged(tmp_path, rubric_of("apple", "pear"), "per_item")[0] == ["apple", "pear"]


@dataclass
class FailingJudge(SharingJudge):
    """Has no answers about some criteria, and remembers which are asked about together."""

    failing: tuple[str, ...] = ()
    together: list[list[str]] = field(default_factory=list)

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Sequence[Any]:
        self.together.append([request.criterion.name or "" for request in requests])
        error = ProviderTimeoutError("no answer in 1 s")
        return [error if one.criterion.name in self.failing else await self.ask(one) for one in requests]


def test_votes_that_are_asked_for_again_share_a_prompt_with_none_of_another(tmp_path: Path) -> None:
    """The second of two and the first of the next two are asked about separately, as at first."""
    dataset = small_dataset(TEXT, rubric=rubric_of("apple", "pear", "plum", "quince"))
    both = [["apple", "pear"], ["plum", "quince"]]
    for failing, together in ((("pear", "plum"), both), ((), [])):
        judge = FailingJudge(failing=failing)
        run(tmp_path, judge, dataset, grader=CriterionGrader(judges=[judge], llm_calls=2))
        assert judge.together == together
    assert sorted(name for _, name in judge.asked) == ["pear", "plum"]


def of_an_earlier_version(folder: Path, llm_calls: Any = "per_item") -> None:
    """Makes `run` in a folder one whose digests have only the vote's own criterion, as they once had."""
    judged(folder, rubric_of("apple", "pear"), llm_calls)
    digests = {}
    for name in ("apple", "pear"):
        judged(folder, rubric_of(name), llm_calls, experiment_name=name)
        mark = json.loads((folder / name / "manifest.json").read_text(encoding="utf-8"))["mark"]
        (raw,) = (folder / name / "votes.jsonl").read_bytes().splitlines(keepends=True)
        body = body_of(raw, mark, is_sealed=True)
        assert body is not None
        digests[name] = json.loads(body)["digest"]

    def with_digest(body: bytes) -> bytes:
        line = json.loads(body)
        return body.replace(line["digest"].encode(), digests[line["criterion"]].encode())

    edit_lines(folder / "run" / "votes.jsonl", with_digest)
    for name in ("items.jsonl", "votes.snapshot"):
        (folder / "run" / name).unlink(missing_ok=True)

    def change(manifest: dict[str, Any]) -> None:
        del manifest["shared_prompts"], manifest["digests"]
        manifest.update(status="running", completed_at=None)
        manifest.pop("sizes", None)

    edit_manifest(folder / "run", change)


@pytest.mark.parametrize("loses_manifest", [False, True])
def test_a_run_of_an_earlier_version_keeps_its_votes(tmp_path: Path, loses_manifest: bool) -> None:
    """Nobody is asked, also if one is reworded; one notice says so, and new votes depend on all criteria."""
    of_an_earlier_version(tmp_path)
    assert EvalResult.from_experiment(tmp_path / "run").item_results.verdicts.answered == 2
    if loses_manifest:
        (tmp_path / "run" / "manifest.json").unlink()
    asked, result = judged(tmp_path, rubric_of("apple", "pear"), "per_item")
    assert asked == []
    told = [one for one in result.notices if "earlier version" in one]
    assert len(told) == (0 if loses_manifest else 1)
    asked, result = judged(tmp_path, rubric_of("apple", "pear", pear="Praises pears."), "per_item")
    assert asked == ["pear"]
    assert len([one for one in result.notices if "earlier version" in one]) == 1
    # The vote on pears is new, and depends on the other criterion.
    both = rubric_of("apple", "pear", apple="Praises apples.", pear="Praises pears.")
    assert judged(tmp_path, both, "per_item")[0] == ["apple", "pear"]


def test_an_earlier_run_is_forked_and_estimated_with_its_votes(tmp_path: Path) -> None:
    """What is kept is not paid for again."""
    of_an_earlier_version(tmp_path)
    reworded = rubric_of("apple", "pear", pear="Praises pears.")
    grader = CriterionGrader(judges=[SharingJudge()], llm_calls="per_item")
    data = small_dataset(TEXT, rubric=reworded)
    told = estimate(data, grader, experiment_name="run", experiments_dir=tmp_path)
    assert Counter({one.judge_id: one.votes for one in told.judges}) == {"counting": 1}
    asked, result = judged(tmp_path, reworded, "per_item", on_mismatch="fork")
    assert (asked, result.experiment_dir.name) == (["pear"], "run-2")


@pytest.mark.parametrize("earlier_first", [True, False])
def test_runs_of_both_versions_are_merged(tmp_path: Path, earlier_first: bool) -> None:
    """Each keeps its votes."""
    of_an_earlier_version(tmp_path)
    items = [DataItem(id="other", submission="pear")]
    other = RubricDataset(name="fruit", rubric=rubric_of("apple", "pear"), items=items)
    grader = CriterionGrader(judges=[SharingJudge()], llm_calls="per_item")
    run(tmp_path, None, other, grader=grader, experiment_name="other")
    paths = [tmp_path / "run", tmp_path / "other"]
    merged = merge_runs(paths if earlier_first else paths[::-1], tmp_path / "merged")
    assert merged.item_results.verdicts.answered == 4
