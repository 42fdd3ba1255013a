"""Run folders that were damaged in one place: no number of them is wrong without a word."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.damage._damage import damage_runs

from autorubric import CriterionGrader, EvalResult, JudgeReply, LengthPenalty, merge_runs
from autorubric.errors import RunFormatError, RunMismatchError
from autorubric.judges import JudgeRequest
from tests.runs.runs import TEXTS, CountingJudge, as_if_killed, run, small_dataset

FORMAT_1 = Path(__file__).parents[1] / "runs" / "data" / "format-1"

needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


@pytest.mark.slow
def test_sixty_damages(quick_path: Path) -> None:
    """Whatever is flipped, deleted, repeated, swapped or cut, it is reported or changes nothing."""
    found = damage_runs(range(60), 1, quick_path)
    assert found.faults == []
    assert found.wrong_scores == found.opened["silent"] == found.resumed["silent"] == 0
    assert found.opened["reported"] > 20 < found.resumed["identical"]
    assert found.asked_again <= found.lost


def _without_line(number: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: lines[:number] + lines[number + 1 :]


def _swapped(one: int, two: int) -> Callable[[list[bytes]], list[bytes]]:
    def change(lines: list[bytes]) -> list[bytes]:
        lines[one], lines[two] = lines[two], lines[one]
        return lines

    return change


def _replaced(number: int, pattern: bytes, by: bytes) -> Callable[[list[bytes]], list[bytes]]:
    def change(lines: list[bytes]) -> list[bytes]:
        changed = re.sub(pattern, by, lines[number], count=1)
        assert changed != lines[number]
        return [*lines[:number], changed, *lines[number + 1 :]]

    return change


CASES = {
    "a deleted vote": ("votes.jsonl", _without_line(3), ["i1"], 1),
    "a turned vote": ("votes.jsonl", _replaced(2, rb'"MET"', b'"UNMET"'), ["i1"], 1),
    "a flipped digit of a vote": ("votes.jsonl", _replaced(2, rb'"value":1', b'"value":0'), ["i1"], 1),
    "a repeated vote": ("votes.jsonl", lambda lines: [*lines, lines[0]], [], 0),
    "swapped votes": ("votes.jsonl", _swapped(0, 6), [], 0),
    "a forged score": ("items.jsonl", _replaced(1, rb'"score":[\d.]+', b'"score":0.99'), ["i1"], 0),
    "a deleted item": ("items.jsonl", _without_line(1), ["i1"], 0),
    "swapped items": ("items.jsonl", _swapped(1, 2), [], 0),
    "a changed weight": (
        *("dataset.jsonl", _replaced(0, rb'"weight":5', b'"weight":9')),
        *(["i0", "i1", "i2", "i3"], 0),
    ),
    "swapped items of the dataset": ("dataset.jsonl", _swapped(1, 4), [], 0),
    "a deleted item of the dataset": ("dataset.jsonl", _without_line(2), ["i1"], 0),
    "a changed text": ("dataset.jsonl", _replaced(3, rb"pear", b"bear"), ["i2"], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_damage_is_reported_and_repaired(case: str, tmp_path: Path) -> None:
    """Affected items count as not scored, all others keep their score, and resuming asks for what is lost."""
    file, change, affected, asked = CASES[case]
    scores = run(tmp_path, CountingJudge(), max_concurrent_items=1).get_scores()
    damaged = tmp_path / "run" / file
    damaged.write_bytes(b"".join(change(damaged.read_bytes().splitlines(keepends=True))))
    with pytest.warns(RuntimeWarning, match=f"{file} is damaged"):
        opened = EvalResult.from_experiment(tmp_path / "run")
    expected = [None if f"i{at}" in affected else score for at, score in enumerate(scores)]
    assert opened.get_scores() == expected
    assert [report and report.score for report in opened.get_reports()] == expected
    assert [item.item.id for item in opened.filter_failed()] == affected
    notice, *_ = opened.notices
    assert notice.startswith(f"{file} is damaged: ") and "resuming the run" in notice
    assert notice in opened.summary()
    judge = CountingJudge()
    with pytest.warns(RuntimeWarning, match=f"{file} was damaged"):
        resumed = run(tmp_path, judge)
    assert resumed.get_scores() == scores
    assert sum(judge.asked.values()) == asked
    repaired = EvalResult.from_experiment(tmp_path / "run")
    assert (repaired.get_scores(), repaired.notices) == (scores, ())


def test_results_are_matched_by_id_in_a_reordered_dataset(tmp_path: Path) -> None:
    """The order of the dataset as it was judged is restored, with each text beside its own score."""
    scores = run(tmp_path, CountingJudge()).get_scores()
    copy = tmp_path / "run" / "dataset.jsonl"
    header, *items = copy.read_bytes().splitlines(keepends=True)
    copy.write_bytes(header + b"".join(items[::-1]))
    with pytest.warns(RuntimeWarning, match="4 lines are out of order"):
        opened = EvalResult.from_experiment(tmp_path / "run")
    assert opened.get_scores() == scores
    assert [item.item.submission for item in opened.item_results] == list(TEXTS)


@pytest.mark.slow
def test_damage_is_on_stderr_and_in_the_report(tmp_path: Path) -> None:
    """Commands say it once on stderr, with and without --json; the HTML report has it among its notices."""
    run(tmp_path, CountingJudge())
    votes = tmp_path / "run" / "votes.jsonl"
    votes.write_bytes(votes.read_bytes().replace(b'"UNMET"', b'"UNMAT"', 1))
    told = (
        "votes.jsonl is damaged: 1 line is damaged or missing. 1 item counts as not scored; resuming the run"
    )
    for command in (["show", "run", "--json"], ["metrics", "run"], ["report", "run", "-o", "page.html"]):
        done = subprocess.run(
            [sys.executable, "-c", "from autorubric.cli import main; main()", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr.count(told) == 1, done.stderr
    assert told in (tmp_path / "page.html").read_text(encoding="utf-8")


@needs_fifos
@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize(
    "name",
    [
        *("manifest.json", "dataset.jsonl", "dataset.sums", "votes.jsonl", "items.jsonl"),
        *("prompts.jsonl", "lock"),
    ],
)
def test_a_pipe_or_a_link_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    """Nothing waits for a pipe, and nothing outside the folder is read or written."""
    run(tmp_path, CountingJudge())
    file, elsewhere = tmp_path / "run" / name, tmp_path / "elsewhere"
    elsewhere.write_bytes(file.read_bytes() if file.exists() else b"")
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(elsewhere)
    before, judge = elsewhere.read_bytes(), CountingJudge()
    for use in (
        lambda: EvalResult.from_experiment(tmp_path / "run"),
        lambda: run(tmp_path, judge),
        lambda: merge_runs([tmp_path / "run"], tmp_path / "merged"),
    ):
        with pytest.raises(RunFormatError, match=rf"{name} must be a regular file, but it is"):
            use()
    assert elsewhere.read_bytes() == before
    assert not judge.asked


def test_a_damaged_run_is_not_merged(tmp_path: Path) -> None:
    """It is to be repaired first, by resuming it."""
    run(tmp_path, CountingJudge())
    items = tmp_path / "run" / "items.jsonl"
    items.write_bytes(items.read_bytes().replace(b'"score":1.0', b'"score":0.9', 1))
    with pytest.raises(
        RunFormatError, match=r"cannot be merged until it is repaired: items\.jsonl is damaged"
    ):
        merge_runs([tmp_path / "run"], tmp_path / "merged")


def test_a_repair_that_is_cut_off_is_repaired_again(tmp_path: Path) -> None:
    """Stopped at its first call, a resumed run leaves no score that its votes do not give."""
    whole = run(tmp_path, CountingJudge(), max_concurrent_items=1).get_scores()
    votes = tmp_path / "run" / "votes.jsonl"
    lines = votes.read_bytes().splitlines(keepends=True)
    votes.write_bytes(b"".join([lines[0], *lines[2:5], *lines[6:]]))

    class Stopping(CountingJudge):
        async def ask(self, request: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning), pytest.raises(KeyboardInterrupt):
        run(tmp_path, Stopping(), max_concurrent_items=1)
    opened = EvalResult.from_experiment(tmp_path / "run")
    assert "2 of 4 items are unfinished; resume the run" in opened.notices
    judge = CountingJudge()
    assert run(tmp_path, judge).get_scores() == whole
    assert sum(judge.asked.values()) == 2
    assert (tmp_path / "run" / "votes.jsonl.damaged").exists()


def test_a_damaged_copy_is_restored_from_its_own_dataset_alone(tmp_path: Path) -> None:
    """Another dataset does not replace a damaged copy, unless it is asked to."""
    run(tmp_path, CountingJudge())
    copy = tmp_path / "run" / "dataset.jsonl"
    copy.write_bytes(copy.read_bytes().replace(b"nothing", b"nobody!", 1))
    with pytest.raises(RunMismatchError):
        run(tmp_path, CountingJudge(), small_dataset(*TEXTS[:3], "another"))
    judge = CountingJudge()
    again = run(tmp_path, judge, small_dataset(*TEXTS[:3], "another"), on_mismatch="rejudge")
    assert set(judge.asked) == {("i3", "apple"), ("i3", "pear")}
    assert any("dataset.jsonl was damaged" in told for told in again.notices)


def test_an_unfinished_item_has_no_score_where_length_counts(tmp_path: Path) -> None:
    """Its votes do not say what its length takes off, so that they are no score yet."""
    penalty = LengthPenalty(free_budget=1, max_cap=4, penalty_at_cap=0.5)
    grader = CriterionGrader(judges=[CountingJudge()], length_penalty=penalty)
    scores = run(tmp_path, None, grader=grader, max_concurrent_items=1).get_scores()
    items = tmp_path / "run" / "items.jsonl"
    items.write_bytes(b"".join(items.read_bytes().splitlines(keepends=True)[1:][:0]))
    as_if_killed(tmp_path / "run")
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == [None] * 4
    assert run(tmp_path, None, grader=grader).get_scores() == scores


class _Moody(CountingJudge):
    """The same judge on another day."""

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        reply = await super().ask(request)
        return replace(reply, answer="MET" if reply.answer == "UNMET" else "UNMET")


def _copied(files: Sequence[str]) -> Callable[[Path, Path], None]:
    def change(run: Path, other: Path) -> None:
        for file in files:
            shutil.copy(other / file, run / file)

    return change


def _appended(files: Sequence[str]) -> Callable[[Path, Path], None]:
    def change(run: Path, other: Path) -> None:
        for file in files:
            (run / file).write_bytes((run / file).read_bytes() + (other / file).read_bytes())

    return change


@pytest.mark.parametrize("files", [("votes.jsonl",), ("items.jsonl",), ("votes.jsonl", "items.jsonl")])
@pytest.mark.parametrize("mix", [_copied, _appended], ids=["copied", "appended"])
def test_lines_of_another_run_of_the_same_judges_are_damage(
    mix: Callable[[Sequence[str]], Callable[[Path, Path], None]], files: Sequence[str], tmp_path: Path
) -> None:
    """Of two runs of one dataset by one judge that answers otherwise, no vote of one counts in the other."""
    expected = run(tmp_path, CountingJudge()).get_scores()
    assert run(tmp_path, _Moody(), experiment_name="other").get_scores() != expected
    mix(files)(tmp_path / "run", tmp_path / "other")
    with pytest.warns(RuntimeWarning, match=f"{files[0]} is damaged"):
        opened = EvalResult.from_experiment(tmp_path / "run")
    for score, whole in zip(opened.get_scores(), expected, strict=True):
        assert score in (None, whole)
    with pytest.warns(RuntimeWarning, match="was damaged"):
        again = run(tmp_path, judge := CountingJudge())
    assert again.get_scores() == EvalResult.from_experiment(tmp_path / "run").get_scores() == expected
    assert judge.asked.total() == (8 if mix is _copied and "votes.jsonl" in files else 0)


@pytest.mark.parametrize("file", ["votes.jsonl", "items.jsonl"])
def test_a_zeroed_end_of_a_run_that_ended_is_damage(file: str, tmp_path: Path) -> None:
    """An item whose last line is zeroed has no score, not that of an earlier line."""
    run(tmp_path, CountingJudge(down={"i3"}))
    scores = run(tmp_path, CountingJudge()).get_scores()
    damaged = tmp_path / "run" / file
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-60] + bytes(60))
    with pytest.warns(RuntimeWarning, match=f"{file} is damaged"):
        assert EvalResult.from_experiment(tmp_path / "run").get_scores() == [*scores[:3], None]
    with pytest.warns(RuntimeWarning, match=f"{file} was damaged"):
        assert run(tmp_path, CountingJudge()).get_scores() == scores


def test_votes_are_used_again_where_the_manifest_was_removed(tmp_path: Path) -> None:
    """Without its manifest a run resumes with its dataset, and no vote is asked for again."""
    scores = run(tmp_path, CountingJudge()).get_scores()
    (tmp_path / "run" / "manifest.json").unlink()
    judge = CountingJudge()
    assert run(tmp_path, judge).get_scores() == scores
    assert not judge.asked
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == scores


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    """A run that an earlier version wrote, without checksums of lines."""
    shutil.copytree(FORMAT_1, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_of_format_1_opens_and_says_what_it_lacks(old_run: Path) -> None:
    """Its scores are read, and a notice says that changed scores would not be noticed."""
    opened = EvalResult.from_experiment(old_run)
    assert opened.get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]
    (notice,) = opened.notices
    assert "older version wrote items.jsonl without a checksum for each line" in notice
    resumed = run(old_run.parent, CountingJudge(), on_mismatch="rejudge")
    assert resumed.get_scores() == opened.get_scores()
    assert json.loads((old_run / "manifest.json").read_text(encoding="utf-8"))["format"] == 2
    assert EvalResult.from_experiment(old_run).get_scores() == opened.get_scores()


def test_a_fork_of_a_run_of_format_1_is_not_damaged_by_resuming_it(old_run: Path) -> None:
    """What a fork wrote beside the lines that it took over keeps matching its checksums."""
    dataset = small_dataset(*TEXTS[:3], "another text with a pear")
    run(old_run.parent, CountingJudge(), dataset, on_mismatch="fork", experiment_name="run")
    (fork,) = (one for one in old_run.parent.iterdir() if one.name != "run")
    expected = EvalResult.from_experiment(fork).get_scores()
    assert None not in expected
    for _ in range(2):
        judge = CountingJudge()
        again = run(old_run.parent, judge, dataset, experiment_name=fork.name)
        assert (again.get_scores(), judge.asked.total()) == (expected, 0)
        opened = EvalResult.from_experiment(fork)
        assert opened.get_scores() == expected
        assert not any("damaged" in notice for notice in opened.notices)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [("votes.jsonl", b'"UNMET"', b'"MET"'), ("dataset.jsonl", b"nothing", b"nobody!")],
)
def test_damage_of_a_run_of_format_1_is_reported(
    file: str, before: bytes, after: bytes, old_run: Path
) -> None:
    """Without checksums of lines, a file that is not what it was leaves no item with a score."""
    damaged = old_run / file
    damaged.write_bytes(damaged.read_bytes().replace(before, after, 1))
    with pytest.warns(RuntimeWarning, match=rf"{file} is damaged: the file does not match its checksum"):
        opened = EvalResult.from_experiment(old_run)
    assert opened.get_scores() == [None] * 4
    if file == "dataset.jsonl":
        return
    resumed = run(old_run.parent, CountingJudge(), on_mismatch="rejudge")
    for result in (resumed, EvalResult.from_experiment(old_run)):
        assert any("it is unknown which lines differ, so scores may be wrong" in n for n in result.notices)
