"""Runs of streamed datasets, the folder's index, and executors."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    CriterionGrader,
    DataItem,
    EvalConfig,
    EvalResult,
    JudgeReply,
    JudgeRequest,
    JudgeSpec,
    RubricDataset,
)
from autorubric.errors import ArgumentError, DatasetError, RunFormatError, RunMismatchError
from autorubric.runs import GradedItem, ItemWork, grade_item
from autorubric.runs.executor import executor_of
from autorubric.support.lazy import EXECUTORS_GROUP
from tests.runs.runs import TEXTS, CountingJudge, as_if_killed, run, small_dataset, small_rubric


def streamed(folder: Path, dataset: RubricDataset | None = None, name: str = "fruit.jsonl") -> RubricDataset:
    """The dataset, written to a file and streamed from there."""
    (dataset or small_dataset(*TEXTS)).to_file(folder / name)
    return RubricDataset.stream(folder / name)


def test_a_streamed_dataset_gives_the_results_of_one_in_memory(tmp_path: Path) -> None:
    """Scores, reports, votes and the dataset of the result are the same."""
    result = run(tmp_path, CountingJudge(), streamed(tmp_path))
    other = run(tmp_path, CountingJudge(), experiment_name="other")
    assert result.get_scores() == other.get_scores()
    assert result.dataset == other.dataset
    again = EvalResult.from_experiment(result.experiment_dir)
    assert again.get_reports() == result.get_reports()
    assert again.total_completion_cost == result.total_completion_cost == pytest.approx(0.08)
    assert again.timing_stats.mean_item_duration_seconds == result.timing_stats.mean_item_duration_seconds


def test_a_streamed_run_is_gone_on_with_without_a_call(tmp_path: Path) -> None:
    """The same file again asks nobody, and neither does the same dataset in memory."""
    run(tmp_path, CountingJudge(), streamed(tmp_path))
    before = (tmp_path / "run" / "items.jsonl").read_bytes()
    for dataset in (RubricDataset.stream(tmp_path / "fruit.jsonl"), small_dataset(*TEXTS)):
        judge = CountingJudge()
        assert run(tmp_path, judge, dataset).get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]
        assert not judge.asked
    assert (tmp_path / "run" / "items.jsonl").read_bytes() == before


def test_half_a_character_in_a_reason_is_stored_and_read(tmp_path: Path) -> None:
    """A lone surrogate in what a judge says: its vote stands when reopened, and is not cast again."""

    async def ask(request: JudgeRequest) -> JudgeReply:
        asked.append(request.item_id)
        return JudgeReply(answer="MET", reason="half \ud800")

    asked: list[str] = []
    first = run(tmp_path, ask, small_dataset(*TEXTS))
    assert len(asked) == 8
    reopened = EvalResult.from_experiment(tmp_path / "run")
    reports = [report for report in reopened.get_reports() if report is not None]
    assert {vote.reason for one in reports for part in one.report for vote in part.votes} == {"half \ud800"}
    assert reopened.get_reports() == first.get_reports()
    assert not reopened.notices
    # Without the lines of items, all votes are read.
    (tmp_path / "run" / "items.jsonl").unlink()
    assert run(tmp_path, ask, small_dataset(*TEXTS)).get_scores() == [1.0] * 4
    assert len(asked) == 8


def test_a_changed_file_is_refused_and_rejudged_by_item(tmp_path: Path) -> None:
    """What changed is named; rejudging asks about it alone and takes the other lines as they are."""
    run(tmp_path, CountingJudge(), streamed(tmp_path))
    changed = streamed(tmp_path, small_dataset("only apple", *TEXTS[1:]))
    with pytest.raises(RunMismatchError, match="item i0: submission changed"):
        run(tmp_path, CountingJudge(), changed)
    assert not (tmp_path / "run" / "dataset.incoming").exists()
    judge = CountingJudge()
    result = run(tmp_path, judge, changed, on_mismatch="rejudge")
    assert set(judge.asked) == {("i0", "apple"), ("i0", "pear")}
    assert result.get_scores() == [10 / 15, 10 / 15, 5 / 15, 0.0]
    assert EvalResult.from_experiment(tmp_path / "run").get_reports() == result.get_reports()


def test_faults_in_a_streamed_file_end_it_before_anything_is_asked(tmp_path: Path) -> None:
    """All faults are reported with their lines, and no folder is left behind."""
    streamed(tmp_path)
    file = tmp_path / "fruit.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines, lines[1], "{", '{"submission": 1}']), encoding="utf-8")
    judge = CountingJudge()
    with pytest.raises(DatasetError) as refused:
        run(tmp_path / "runs", judge, RubricDataset.stream(file))
    assert [fault.line for fault in refused.value.faults] == [6, 7, 8]
    assert "ids must be unique" in str(refused.value)
    assert not judge.asked
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_streamed_item_without_a_rubric_is_refused(tmp_path: Path) -> None:
    """It is named before anything is asked."""
    (tmp_path / "bare.jsonl").write_text('{"id": "a", "submission": "x"}\n', encoding="utf-8")
    with pytest.raises(ArgumentError, match="neither item 'a' nor the dataset has a rubric"):
        run(tmp_path, CountingJudge(), RubricDataset.stream(tmp_path / "bare.jsonl"))


def test_items_with_rubrics_of_their_own_are_streamed(tmp_path: Path) -> None:
    """Each is graded by its own rubric, and nothing is asked again."""
    items = [
        DataItem(id=f"i{n}", submission=text, rubric=small_rubric(weight=float(n + 1)))
        for n, text in enumerate(TEXTS)
    ]
    result = run(tmp_path, CountingJudge(), streamed(tmp_path, RubricDataset(items=items)))
    assert result.get_scores() == [1.0, 10 / 12, 3 / 13, 0.0]
    judge = CountingJudge()
    again = run(tmp_path, judge, RubricDataset.stream(tmp_path / "fruit.jsonl"))
    assert not judge.asked
    assert again.get_reports() == result.get_reports()


def test_parquet_is_streamed(tmp_path: Path) -> None:
    """A table with a rubric beside it is graded as JSON lines are."""
    pytest.importorskip("pyarrow")
    small_dataset(*TEXTS).to_file(tmp_path / "fruit.parquet")
    dataset = RubricDataset.stream(tmp_path / "fruit.parquet", rubric=small_rubric())
    assert dataset[2].id == "i2"
    assert dataset[0].id == "i0"
    assert list(dataset) == list(RubricDataset.from_file(tmp_path / "fruit.parquet", rubric=small_rubric()))
    result = run(tmp_path, CountingJudge(), dataset)
    assert result.get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]
    judge = CountingJudge()
    run(tmp_path, judge, RubricDataset.stream(tmp_path / "fruit.parquet", rubric=small_rubric()))
    assert not judge.asked


@pytest.mark.parametrize("kept", range(9))
def test_a_run_killed_after_any_vote_repeats_none(tmp_path: Path, kept: int) -> None:
    """With the lines of items that were whole by then, every stored vote is found and no other is."""
    whole = run(tmp_path, CountingJudge(), max_concurrent_items=2).get_scores()
    votes, items = (tmp_path / "run" / name for name in ("votes.jsonl", "items.jsonl"))
    lines = votes.read_bytes().splitlines(keepends=True)
    size = len(b"".join(lines[:kept]))
    done = [
        line for line in items.read_bytes().splitlines(keepends=True) if json.loads(line)["seal"][1] <= size
    ]
    votes.write_bytes(b"".join(lines[:kept]))
    items.write_bytes(b"".join(done))
    as_if_killed(tmp_path / "run")
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.get_scores().count(None) == 0
    judge = CountingJudge()
    assert run(tmp_path, judge).get_scores() == whole
    assert sum(judge.asked.values()) == 8 - kept
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == whole


def test_items_whose_votes_were_edited_count_as_not_scored(tmp_path: Path) -> None:
    """Where the votes are not those that a line was made of, resuming asks for those again."""
    scores = run(tmp_path, CountingJudge()).get_scores()
    votes = tmp_path / "run" / "votes.jsonl"
    text = votes.read_text(encoding="utf-8")
    votes.write_text(text.replace('"UNMET"', '"MET"'), encoding="utf-8")
    with pytest.warns(RuntimeWarning, match=r"votes\.jsonl is damaged: 4 lines are damaged or missing"):
        assert EvalResult.from_experiment(tmp_path / "run").get_scores() == [1.0, None, None, None]
    judge = CountingJudge()
    with pytest.warns(RuntimeWarning, match=r"votes\.jsonl was damaged"):
        assert run(tmp_path, judge).get_scores() == scores
    assert sum(judge.asked.values()) == 4


def test_a_result_whose_folder_was_changed_says_so(tmp_path: Path) -> None:
    """Votes that are gone from where they stood never become a report without them."""
    result = run(tmp_path, CountingJudge())
    votes = tmp_path / "run" / "votes.jsonl"
    votes.write_bytes(votes.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(RunFormatError, match="changed since the run was opened"):
        list(result.get_reports())


def test_results_are_views(tmp_path: Path) -> None:
    """Sequences of results and reports take positions and slices, and say how many they are."""
    result = run(tmp_path, CountingJudge(down={"i1"}))
    assert [one.item_idx for one in result.item_results[1:3]] == [1, 2]
    assert result.item_results[-1].item.id == "i3"
    assert [one.item_idx for one in result.filter_failed()] == [1]
    assert len(result.get_reports()) == 4
    assert result.get_reports() != result.get_reports()[:2]
    assert "4 elements" in repr(result.item_results)
    with pytest.raises(IndexError):
        result.item_results[4]


def test_views_behave_as_lists_do(tmp_path: Path) -> None:
    """Reports and filtered results compare, search, reverse and count as the lists of their elements."""
    result = run(tmp_path, CountingJudge(down={"i1"}))
    for view in (result.get_reports(), result.filter_successful(), result.filter_failed()):
        listed = list(view)
        assert view == listed
        assert listed == view
        assert view != [*listed, None]
        assert list(reversed(view)) == listed[::-1]
        assert view[::-1] == listed[::-1]
        assert view[-1] == listed[-1]
        assert view[5:] == []
        assert listed[0] in view
        assert view.index(listed[-1]) == len(listed) - 1
        assert view.count(listed[0]) == 1


def _pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))  # noqa: S301


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, _pickled])
def test_views_and_results_are_copied_and_pickled(tmp_path: Path, again: Callable[[Any], Any]) -> None:
    """A copy of a view is the list of its elements; a result stays a view on its folder."""
    run(tmp_path, CountingJudge(), streamed(tmp_path))
    for result in (run(tmp_path, CountingJudge()), EvalResult.from_experiment(tmp_path / "run")):
        reports = again(result.get_reports())
        assert type(reports) is list
        assert reports == result.get_reports()
        copied = again(result)
        assert copied.get_scores() == result.get_scores()
        assert copied.item_results == result.item_results
        assert copied.summary() == result.summary()


class _Batches:
    """Grades items one after the other, through pickles, as a remote executor would."""

    def __init__(self, config: EvalConfig) -> None:
        self.config = config

    async def grade_items(
        self, work: Iterable[ItemWork], grader: Any, listener: Any
    ) -> AsyncGenerator[GradedItem, None]:
        for item in work:
            heard = _Heard()
            done = await grade_item(pickle.loads(pickle.dumps(item)), grader, heard)  # noqa: S301
            for event in pickle.loads(pickle.dumps(heard.events)):  # noqa: S301
                listener.vote_cast(event)
            yield pickle.loads(pickle.dumps(done))  # noqa: S301


class _Heard:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def vote_cast(self, event: Any) -> None:
        self.events.append(event)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution on the path whose entry points name two executors."""
    folder = tmp_path / "site" / "batches-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: batches\nVersion: 1.0\n", encoding="utf-8")
    points = f"[{EXECUTORS_GROUP}]\nbatches = {__name__}:_Batches\nbroken = no_such_module:x\n"
    (folder / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))


def test_another_executor_fills_the_same_folder(tmp_path: Path, installed: None) -> None:
    """An executor found by its entry point gives the votes of the local one, which goes on from there."""
    grader = CriterionGrader(judges=[JudgeSpec(CountingJudge(down={"i2"}))])
    first = run(tmp_path, None, grader=grader, executor="batches")
    assert first.get_scores() == [1.0, 10 / 15, None, 0.0]
    judge = CountingJudge()
    second = run(tmp_path, judge)
    assert set(judge.asked) == {("i2", "apple"), ("i2", "pear")}
    assert second.get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]


def test_an_executor_that_is_not_there_is_refused(tmp_path: Path, installed: None) -> None:
    """The message lists what is installed; one that cannot be imported says why."""
    with pytest.raises(ArgumentError, match=r"unknown executor 'slurm'; available: local, .*batches, broken"):
        executor_of(EvalConfig(executor="slurm"))
    with pytest.raises(
        ArgumentError, match=r"'broken' of the entry point group 'autorubric\.executors' cannot be loaded"
    ):
        executor_of(EvalConfig(executor="broken"))
    with pytest.raises(ArgumentError, match="slurm"):
        run(tmp_path, CountingJudge(), executor="slurm")
    assert not (tmp_path / "run").exists()
