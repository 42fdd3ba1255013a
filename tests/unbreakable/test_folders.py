"""Run folders that are damaged, newer, held by another process, or older than the clock says."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric import CriterionGrader, EvalConfig, EvalResult, merge_runs
from autorubric.errors import RunFormatError, RunLockedError, RunWriteError
from autorubric.runs.open import open_run
from autorubric.support.write import FileLock
from tests.doubles import model_judge
from tests.runs.runs import TEXTS, CountingJudge, edit_manifest, run, small_dataset, small_rubric
from tests.unbreakable.children import forked_hanging


def _contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name != "lock"}


def _newer(manifest: bytes) -> bytes:
    return manifest.replace(b'"format": 2', b'"format": 3')


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_newer, "has format 3, but this version reads only formats up to 2; install a newer"),
        (lambda whole: whole.replace(b'"normalize": true', b'"normalize": null'), "not match its checksum"),
        (lambda _: b"", "cannot be read"),
        (lambda whole: whole[: len(whole) // 2], "cannot be read"),
        (lambda whole: bytes(len(whole)), "cannot be read"),
        (lambda _: b"\xff\xfe", "cannot be read"),
        (lambda _: b"[" * 100_000, "cannot be read"),
        (lambda _: b"[]", "has no format number"),
        (lambda _: b'{"format": "1"}', "has no format number"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused_and_nothing_is_touched(
    damage: Callable[[bytes], bytes], told: str, tmp_path: Path
) -> None:
    """Newer, empty, cut, zeroed or otherwise damaged: an error that names the file, before a call."""
    run(tmp_path, CountingJudge())
    manifest = tmp_path / "run" / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(damage(whole))
    before, judge = _contents(tmp_path / "run"), CountingJudge()
    for use in (lambda: run(tmp_path, judge), lambda: EvalResult.from_experiment(tmp_path / "run")):
        with pytest.raises(RunFormatError, match=r"manifest\.json") as raised:
            use()
        assert told in str(raised.value)
        assert ("or delete it and resume" in str(raised.value)) == ("format 3" not in told)
    assert _contents(tmp_path / "run") == before
    assert not judge.asked
    manifest.write_bytes(whole)
    run(tmp_path, judge)
    assert not judge.asked


def test_a_run_without_its_damaged_manifest_resumes_from_its_votes(tmp_path: Path) -> None:
    """What the error says to do restores the run: the same scores, and no judge is asked."""
    scores = run(tmp_path, CountingJudge()).get_scores()
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_bytes(b"{")
    with pytest.raises(
        RunFormatError, match=r"manifest\.json from a backup, or delete it and resume the run with the same"
    ):
        run(tmp_path, CountingJudge())
    manifest.unlink()
    judge = CountingJudge()
    assert run(tmp_path, judge).get_scores() == scores
    assert not judge.asked
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == scores


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("asking",), None),
        (("asking", "checks"), True),
        (("asking", "sampling", "samples", "counting"), None),
        (("deciding",), None),
        (("deciding", "judge_weights", "counting"), "1"),
        (("dataset",), []),
        (("started_at",), 0),
        (("completed_at",), {}),
        (("shard",), True),
        (("shard",), [0, 2]),
        (("shard",), [2, 2, ""]),
        (("missing",), 1),
    ],
)
def test_a_manifest_whose_parts_are_of_another_kind_is_refused(
    place: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    """Opening, going on and merging say that it is damaged."""
    run(tmp_path, CountingJudge())
    folder = tmp_path / "run"

    def change(held: dict[str, Any]) -> None:
        for key in place[:-1]:
            held = held[key]
        held[place[-1]] = value

    edit_manifest(folder, change)
    for use in (
        lambda: run(tmp_path, CountingJudge()),
        lambda: EvalResult.from_experiment(folder),
        lambda: merge_runs([folder], tmp_path / "merged"),
    ):
        with pytest.raises(RunFormatError, match=r"manifest\.json is damaged: "):
            use()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", 10**400),
        ("cost", float("nan")),
        ("duration_seconds", float("inf")),
        ("position", -1),
        ("votes", [[]]),
        ("tokens", {"total_tokens": 0.5}),
        ("seal", [0, 0, 0]),
        ("unknown", 1),
    ],
)
def test_an_item_whose_line_cannot_be_counts_as_not_scored(name: str, value: Any, tmp_path: Path) -> None:
    """Forged with or without its checksum: no number of it is reported, and resuming asks nobody."""
    whole = run(tmp_path, CountingJudge()).get_scores()
    file = tmp_path / "run" / "items.jsonl"
    first, *rest = file.read_text(encoding="utf-8").splitlines()
    damaged = json.dumps({**json.loads(first), name: value})
    file.write_text("\n".join([damaged, *rest, ""]), encoding="utf-8")
    with pytest.warns(RuntimeWarning, match=r"items\.jsonl is damaged"):
        opened = EvalResult.from_experiment(tmp_path / "run")
    position = json.loads(first)["position"]
    assert opened.get_scores() == [None if at == position else score for at, score in enumerate(whole)]
    assert "1 item counts as not scored" in opened.notices[0]
    assert "resume the run" in str(opened.item_results[position].error)
    judge = CountingJudge()
    with pytest.warns(RuntimeWarning, match=r"items\.jsonl was damaged"):
        assert run(tmp_path, judge).get_scores() == whole
    assert not judge.asked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", 10**400),
        ("completion_cost", float("nan")),
        ("latency_seconds", float("inf")),
        ("sample", -1),
        ("status", "certain"),
        ("order", [{}]),
        ("token_usage", {"total_tokens": []}),
        ("answer", 10**400),
    ],
)
def test_a_vote_that_cannot_be_is_asked_for_again(name: str, value: Any, tmp_path: Path) -> None:
    """Its item counts as not scored, with a notice, and only it is asked for again."""
    whole = run(tmp_path, CountingJudge()).get_scores()
    file = tmp_path / "run" / "votes.jsonl"
    first, *rest = file.read_text(encoding="utf-8").splitlines()
    line = json.loads(first)
    line["vote"][name] = value
    file.write_text("\n".join([json.dumps(line), *rest, ""]), encoding="utf-8")
    with pytest.warns(RuntimeWarning, match=r"votes\.jsonl is damaged: 1 line is damaged or missing"):
        opened = EvalResult.from_experiment(tmp_path / "run")
    assert [one.item.id for one in opened.filter_failed()] == [line["item"]]
    judge = CountingJudge()
    with pytest.warns(RuntimeWarning, match=r"votes\.jsonl was damaged"):
        assert run(tmp_path, judge).get_scores() == whole
    assert list(judge.asked) == [(line["item"], line["criterion"])]


def test_however_much_is_damaged_it_is_one_notice_a_file(tmp_path: Path) -> None:
    """A file has one notice, with the number of its lines; what is lost is asked for again, once."""
    data = small_dataset(*["apple"] * 40)
    whole = run(tmp_path, CountingJudge(), data).get_scores()
    votes, items = (tmp_path / "run" / name for name in ("votes.jsonl", "items.jsonl"))
    lines = votes.read_text(encoding="utf-8").replace('"answer":"MET"', '"answer":"HUH"').splitlines()
    votes.write_text("\n".join([*lines, *["{"] * 300, ""]), encoding="utf-8")
    items.write_text("\n".join(["{"] * 300), encoding="utf-8")
    with pytest.warns(RuntimeWarning):
        opened = EvalResult.from_experiment(tmp_path / "run")
    assert [told.partition(" is damaged: ")[0] for told in opened.notices] == ["votes.jsonl", "items.jsonl"]
    assert "340 lines are damaged or missing" in opened.notices[0]
    assert opened.get_scores() == [None] * 40
    judge = CountingJudge()
    with pytest.warns(RuntimeWarning):
        repaired = run(tmp_path, judge, data)
    assert repaired.get_scores() == whole
    assert sum(judge.asked.values()) == 40
    assert not EvalResult.from_experiment(tmp_path / "run").notices


def test_votes_outlive_their_manifest(tmp_path: Path) -> None:
    """Without a manifest, votes on the same dataset are used again; those on another are left alone."""
    scores = run(tmp_path, CountingJudge()).get_scores()
    (tmp_path / "run" / "manifest.json").unlink()
    before = _contents(tmp_path / "run")
    with pytest.raises(RunFormatError, match="not a run folder: it has no manifest"):
        EvalResult.from_experiment(tmp_path / "run")
    with pytest.raises(RunFormatError, match=r"has no manifest\.json, and its votes belong to another"):
        run(tmp_path, CountingJudge(), small_dataset("another"))
    assert _contents(tmp_path / "run") == before
    judge = CountingJudge()
    assert run(tmp_path, judge).get_scores() == scores
    assert not judge.asked


def test_another_process_is_named_and_its_end_frees_the_folder(tmp_path: Path) -> None:
    """While one process writes, another is refused with its number; once it is killed, the run goes on."""
    other = forked_hanging(tmp_path)
    try:
        votes = tmp_path / "run" / "votes.jsonl"
        deadline = time.monotonic() + 300
        while not votes.exists() or votes.read_bytes().count(b"\n") < 6:
            assert time.monotonic() < deadline and other.is_alive()
            time.sleep(0.01)
        with pytest.raises(RunLockedError) as raised:
            run(tmp_path, CountingJudge())
        assert f"another process ({other.pid}) is writing to {tmp_path / 'run'}" in str(raised.value)
        assert "wait, or choose another experiment_name" in str(raised.value)
        # Reading needs no lock.
        assert EvalResult.from_experiment(tmp_path / "run").total_items == 3
    finally:
        assert other.pid is not None
        os.kill(other.pid, signal.SIGKILL)
        other.join()
    judge = CountingJudge()
    assert run(tmp_path, judge).total_items == 4
    assert set(judge.asked) == {("i2", "apple"), ("i2", "pear")}


def test_a_lock_that_was_removed_keeps_nobody_out(tmp_path: Path) -> None:
    """Whoever locked a file that is gone does not believe to hold the one that is there now."""
    first, second = FileLock(tmp_path / "runs" / "lock"), FileLock(tmp_path / "runs" / "lock")
    assert first.acquire()
    assert second.holder() == "another run in this process"
    (tmp_path / "runs" / "lock").unlink()
    assert second.acquire()
    first.release()
    assert not first.acquire()
    (tmp_path / "runs" / "lock").write_bytes(b"\xff")
    assert first.holder() == "another process"
    second.release()


@settings(max_examples=50)
@given(started=st.integers(-10_000, 10_000), ended=st.integers(-10_000, 10_000) | st.none())
def test_a_clock_that_was_set_back_makes_no_time_negative(
    started: int, ended: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever times a manifest tells, a run ends after its start, and goes on."""
    folder = tmp_path_factory.mktemp("clock")
    run(folder, CountingJudge(), small_dataset(*TEXTS[:1]))
    now = datetime.now(UTC)
    times = {
        "started_at": (now + timedelta(seconds=started)).isoformat(),
        "completed_at": None if ended is None else (now + timedelta(seconds=ended)).isoformat(),
    }
    edit_manifest(folder / "run", lambda manifest: manifest.update(times))
    again = run(folder, CountingJudge(), small_dataset(*TEXTS[:1]))
    for result in (again, EvalResult.from_experiment(folder / "run")):
        assert result.completed_at >= result.started_at
        assert result.timing_stats.total_duration_seconds >= 0
        assert (result.timing_stats.items_per_second or 0.0) >= 0
        assert all(one.duration_seconds >= 0 for one in result.item_results)


def test_a_file_that_cannot_be_opened_ends_the_run(tmp_path: Path) -> None:
    """Where votes can be stored and their prompts cannot, the run ends; no item is told to have failed."""
    (tmp_path / "run" / "prompts.jsonl").mkdir(parents=True)
    model, transport = model_judge(lambda _: {"reason": "Read.", "verdict": "MET"})
    with pytest.raises(RunWriteError, match=r"prompts\.jsonl cannot be written: Is a directory") as raised:
        run(tmp_path, None, grader=CriterionGrader(judges=[model]))
    assert raised.value.begun
    (tmp_path / "run" / "prompts.jsonl").rmdir()
    stored = sum(1 for _ in (tmp_path / "run" / "votes.jsonl").open("rb"))
    asked = len(transport.requests)
    result = run(tmp_path, None, grader=CriterionGrader(judges=[model]))
    assert result.failed_items == 0
    assert len(transport.requests) - asked == 8 - stored


def test_a_fork_that_was_killed_while_it_began_is_gone_on_with(tmp_path: Path) -> None:
    """Its folder, without a manifest yet, is taken for the fork, so that there is one fork and not many."""
    run(tmp_path, CountingJudge())
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "votes.jsonl").write_bytes((tmp_path / "run" / "votes.jsonl").read_bytes())
    changed = small_dataset(*TEXTS, rubric=small_rubric(requirement="Names a pear."))
    for asked in (4, 0):
        judge = CountingJudge()
        result = run(tmp_path, judge, changed, on_mismatch="fork")
        assert (result.experiment_name, sum(judge.asked.values())) == ("run-2", asked)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "run-2"]


def test_a_dataset_in_another_order_keeps_its_votes_through_a_kill(tmp_path: Path) -> None:
    """Killed just after the new order was written, the run finds the votes of each item all the same."""
    first = run(tmp_path, CountingJudge())
    turned = first.dataset.with_items(first.dataset.items[::-1])
    judge = CountingJudge()
    grader = CriterionGrader(judges=[judge])
    options = EvalConfig(experiment_name="run", experiments_dir=tmp_path, on_mismatch="rejudge")
    open_run(turned, grader, options).store.close()
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == first.get_scores()[::-1]
    assert run(tmp_path, judge, turned).get_scores() == first.get_scores()[::-1]
    assert not judge.asked
