"""Runs: stored as they go, gone on with, refused where something changed."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from autorubric import (
    BaseCriterion,
    Criterion,
    CriterionGrader,
    CriterionOption,
    DataItem,
    EvalConfig,
    EvalResult,
    EvalRunner,
    JudgeReply,
    JudgeSpec,
    LengthPenalty,
    NarrativeCriterion,
    Rubric,
    RubricDataset,
    evaluate,
    evaluate_sync,
    fill_ground_truth_sync,
)
from autorubric.criteria import BoundInt
from autorubric.errors import (
    ArgumentError,
    ItemFailedError,
    RunError,
    RunFormatError,
    RunLockedError,
    RunMismatchError,
)
from autorubric.judges import JudgeRequest
from autorubric.runs.config import EvalOptions
from autorubric.runs.manifest import manifest_text
from autorubric.runs.open import create_run_folder
from tests.doubles import until
from tests.runs.runs import TEXTS, CountingJudge, as_if_killed, edit_lines, run, small_dataset, small_rubric


def test_every_item_is_graded_in_order(tmp_path: Path) -> None:
    """Results stand in the dataset's order with scores, cost and a folder."""
    result = run(tmp_path, CountingJudge())
    assert result.get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]
    assert [done.item_idx for done in result.item_results] == [0, 1, 2, 3]
    assert (result.total_items, result.successful_items, result.failed_items) == (4, 4, 0)
    assert result.total_completion_cost == pytest.approx(0.08)
    assert result.experiment_dir == tmp_path / "run"
    assert "mean score" in result.summary()


def test_a_rerun_asks_nothing(tmp_path: Path) -> None:
    """A run that is complete is read, not judged again."""
    first, second = CountingJudge(), CountingJudge()
    before = run(tmp_path, first)
    after = run(tmp_path, second)
    assert sum(first.asked.values()) == 8
    assert not second.asked
    assert after.get_scores() == before.get_scores()
    assert [r.duration_seconds for r in after.item_results] == [
        r.duration_seconds for r in before.item_results
    ]


def test_a_stored_run_reopens_without_a_judge(tmp_path: Path) -> None:
    """Reports computed anew from the stored votes equal those of the run."""
    result = run(tmp_path, CountingJudge())
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.get_scores() == result.get_scores()
    assert [r.to_dict() for r in reopened.get_reports() if r] == [
        r.to_dict() for r in result.get_reports() if r
    ]


def test_a_length_penalty_survives_reopening(tmp_path: Path) -> None:
    """What a count function took off is stored, since the function cannot be."""
    penalty = LengthPenalty(free_budget=1, max_cap=9, penalty_at_cap=0.5, count_fn=len)
    grader = CriterionGrader(judges=[CountingJudge()], length_penalty=penalty)
    result = run(tmp_path, None, grader=grader)
    assert result.get_scores()[0] == 0.5
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == result.get_scores()


@pytest.mark.parametrize(
    ("dataset", "named"),
    [
        (small_dataset("apple and plum", *TEXTS[1:]), "item i0: submission changed"),
        (small_dataset(*TEXTS, prompt="Which fruit?"), "item i0: prompt changed"),
        (small_dataset(*TEXTS[:3]), "item i3 was removed"),
        (
            small_dataset(*TEXTS, rubric=small_rubric(requirement="Praises pears.")),
            "criterion pear: requirement",
        ),
        (small_dataset(*TEXTS, rubric=small_rubric(name="plum")), "criterion plum was added"),
        (
            small_dataset(*TEXTS, rubric=Rubric(list(small_rubric()), guidelines="Be kind.")),
            "rubric: guidelines changed",
        ),
    ],
)
def test_a_changed_dataset_is_refused_by_name(tmp_path: Path, dataset: RubricDataset, named: str) -> None:
    """Going on with other texts or requirements is refused, and the message says what changed."""
    run(tmp_path, CountingJudge())
    judge = CountingJudge()
    with pytest.raises(RunMismatchError) as refused:
        run(tmp_path, judge, dataset)
    assert any(named in line for line in refused.value.differences)
    assert named in str(refused.value)
    assert not judge.asked


@pytest.mark.parametrize(
    ("grader", "named"),
    [
        (CriterionGrader(judges=[CountingJudge(version="2")]), "judge counting changed: version '1' → '2'"),
        (CriterionGrader(judges=[CountingJudge("other")]), "judge other was added"),
        (CriterionGrader(judges=[CountingJudge()], seed=3), "sampling seed changed: 0 → 3"),
        (CriterionGrader(judges=[JudgeSpec(CountingJudge(), samples=2)]), "sampling samples changed"),
        (CriterionGrader(judges=[CountingJudge()], system_prompt="Judge."), "prompts changed"),
        (
            CriterionGrader(
                judges=[CountingJudge()],
                training_data=RubricDataset(
                    rubric=small_rubric(),
                    items=[DataItem(id="t", submission="pear", ground_truth=["UNMET", "MET"])],
                ),
            ),
            "few-shot changed",
        ),
    ],
)
def test_a_changed_grader_is_refused_by_name(tmp_path: Path, grader: CriterionGrader, named: str) -> None:
    """Going on with another judge, prompt or sampling is refused, and the message says what changed."""
    run(tmp_path, CountingJudge())
    with pytest.raises(RunMismatchError, match="Choose another experiment_name") as refused:
        run(tmp_path, None, grader=grader)
    assert any(named in line for line in refused.value.differences)


def test_rejudging_asks_only_for_what_changed(tmp_path: Path) -> None:
    """Votes whose item and criterion are the same are kept; nothing stored is deleted."""
    run(tmp_path, CountingJudge())
    lines = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    judge = CountingJudge()
    changed = small_dataset("only apple", *TEXTS[1:])
    result = run(tmp_path, judge, changed, on_mismatch="rejudge")
    assert set(judge.asked) == {("i0", "apple"), ("i0", "pear")}
    assert result.get_scores()[0] == 10 / 15
    assert any("item i0" in notice for notice in result.notices)
    after = (tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert after[: len(lines)] == lines
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == result.get_scores()


def test_a_judge_added_to_a_panel_is_the_only_one_asked(tmp_path: Path) -> None:
    """Rejudging with a larger panel keeps the votes of the judges that were there."""
    run(tmp_path, CountingJudge())
    old, new = CountingJudge(), CountingJudge("second")
    grader = CriterionGrader(judges=[old, new])
    result = run(tmp_path, None, grader=grader, on_mismatch="rejudge")
    assert not old.asked
    assert sum(new.asked.values()) == 8
    report = result.get_reports()[0]
    assert report is not None
    assert report.judge_scores == {"counting": 1.0, "second": 1.0}


def test_a_fork_leaves_the_old_run_as_it_was(tmp_path: Path) -> None:
    """Forking goes on in a new folder, with the votes that still hold."""
    run(tmp_path, CountingJudge())
    before = {f.name: f.read_bytes() for f in (tmp_path / "run").iterdir()}
    judge = CountingJudge()
    result = run(tmp_path, judge, small_dataset("only apple", *TEXTS[1:]), on_mismatch="fork")
    assert result.experiment_name == "run-2"
    assert set(judge.asked) == {("i0", "apple"), ("i0", "pear")}
    assert {f.name: f.read_bytes() for f in (tmp_path / "run").iterdir()} == before
    assert EvalResult.from_experiment(tmp_path / "run-2").get_scores() == result.get_scores()


@pytest.mark.parametrize(
    ("grader", "rubric", "first_score", "named"),
    [
        (CriterionGrader(judges=[CountingJudge()]), small_rubric(weight=30.0), 10 / 40, "weight 5 → 30"),
        (
            CriterionGrader(judges=[CountingJudge()], normalize=False),
            small_rubric(),
            10.0,
            "policy normalize",
        ),
        (
            CriterionGrader(judges=[JudgeSpec(CountingJudge(), weight=2.0)]),
            small_rubric(),
            10 / 15,
            "policy judge_weights",
        ),
    ],
)
def test_weights_and_policies_rescore_without_a_call(
    tmp_path: Path, grader: CriterionGrader, rubric: Rubric, first_score: float, named: str
) -> None:
    """What is done with votes may change; the stored votes are scored again and nobody is asked."""
    run(tmp_path, CountingJudge())
    judge = grader.members[0].judge
    result = run(tmp_path, None, small_dataset(*TEXTS, rubric=rubric), grader=grader)
    assert isinstance(judge, CountingJudge)
    assert not judge.asked
    assert result.get_scores()[1] == first_score
    assert any(named in notice for notice in result.notices)
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == result.get_scores()


def test_option_values_rescore_without_a_call(tmp_path: Path) -> None:
    """A judge sees labels and not values, so other values score old votes anew."""

    def rubric(worth: float) -> Rubric:
        options = (CriterionOption(label="low", value=0.0), CriterionOption(label="high", value=worth))
        return Rubric([Criterion(name="ripe", requirement="How ripe?", options=options)])

    def judge(request: object) -> str:
        return "high"

    run(tmp_path, judge, small_dataset("x", rubric=rubric(1.0)))
    result = run(tmp_path, judge, small_dataset("x", rubric=rubric(0.25)))
    assert result.get_scores() == [0.25]


def test_failed_requests_are_asked_again_and_answered_ones_are_not(tmp_path: Path) -> None:
    """Going on after an outage asks for the votes that are missing and no others."""
    first = run(tmp_path, CountingJudge(down={"i1"}))
    assert first.failed_items == 1
    assert first.filter_failed()[0].error is not None
    assert first.errors[0][0] == 1
    judge = CountingJudge()
    second = run(tmp_path, judge)
    assert set(judge.asked) == {("i1", "apple"), ("i1", "pear")}
    assert second.failed_items == 0
    assert len(second.filter_successful()) == 4


@pytest.mark.parametrize("name", ["votes.jsonl", "items.jsonl"])
def test_a_torn_last_line_is_passed_over_at_every_byte(tmp_path: Path, name: str) -> None:
    """Wherever a killed process tore the last line, the run is resumed and says so."""
    whole = run(tmp_path, CountingJudge(), max_concurrent_items=1).get_scores()
    as_if_killed(tmp_path / "run")
    manifest = (tmp_path / "run" / "manifest.json").read_bytes()
    before = {one: (tmp_path / "run" / one).read_bytes() for one in ("votes.jsonl", "items.jsonl")}
    if name == "votes.jsonl":
        # A line of an item is never written before its votes.
        before["items.jsonl"] = b"".join(before["items.jsonl"].splitlines(keepends=True)[:-1])
    content = before.pop(name)
    file = tmp_path / "run" / name
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last, len(content) - 1, 7):
        file.write_bytes(content[:cut])
        (tmp_path / "run" / "manifest.json").write_bytes(manifest)
        for other, kept in before.items():
            (tmp_path / "run" / other).write_bytes(kept)
        judge = CountingJudge()
        result = run(tmp_path, judge)
        assert result.get_scores() == whole
        assert sum(judge.asked.values()) <= 1
        assert cut == last or any("was skipped" in notice for notice in result.notices)


def test_an_unfinished_run_reopens_with_what_is_there(tmp_path: Path) -> None:
    """Items without votes are left out of the result, and a notice counts them."""
    run(tmp_path, CountingJudge(), max_concurrent_items=1)
    for name in ("votes.jsonl", "items.jsonl"):
        edit_lines(tmp_path / "run" / name, lambda line: None if b'"i3"' in line else line)
    as_if_killed(tmp_path / "run")
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.total_items == 3
    assert "1 of 4 items are unfinished; resume the run" in reopened.notices


def test_keywords_of_a_run_are_the_fields_of_its_config(tmp_path: Path) -> None:
    """`evaluate` accepts every option of `EvalConfig` that users set; another one is an error with a hint."""
    keywords = get_type_hints(EvalOptions)
    assert set(keywords) == set(EvalConfig.model_fields) - {"shard", "run_file"}
    fields = get_type_hints(EvalConfig)
    assert {name for name in keywords if keywords[name] != fields[name]} == {"experiments_dir"}
    grader = CriterionGrader(judges=[lambda request: "MET"])
    wrong: dict[str, Any] = {"max_calls": 0, "resumee": True}
    with pytest.raises(ArgumentError, match=r"max_calls: .*equal to 1; got 0; .*did you mean 'resume'\?"):
        evaluate_sync(small_dataset("apple"), grader, experiments_dir=tmp_path, **wrong)


def test_two_writers_are_kept_apart(tmp_path: Path) -> None:
    """A folder that another run writes to is refused with a clear message."""

    async def both() -> None:
        started, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: object) -> str:
            started.set()
            await go_on.wait()
            return "MET"

        def runner() -> EvalRunner:
            config = EvalConfig(experiment_name="run", experiments_dir=tmp_path, show_progress=False)
            return EvalRunner(small_dataset(*TEXTS), CriterionGrader(judges=[slow]), config)

        first = asyncio.ensure_future(runner().run())
        await started.wait()
        with pytest.raises(RunLockedError, match="another run in this process is writing"):
            await runner().run()
        go_on.set()
        assert (await first).total_items == 4

    asyncio.run(both())


def test_a_cancelled_run_can_be_gone_on_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Cancelling stores what was judged, says how to go on, and leaves nothing running."""

    async def cancelled() -> None:
        seen = asyncio.Event()

        async def judge(request: object) -> str:
            if request.item_id == "i2":  # type: ignore[attr-defined]
                seen.set()
                await asyncio.Event().wait()
            return "MET"

        grader = CriterionGrader(judges=[JudgeSpec(judge, "counting")])
        started = evaluate(
            small_dataset(*TEXTS),
            grader,
            experiment_name="run",
            experiments_dir=tmp_path,
            show_progress=False,
        )
        task = asyncio.ensure_future(started)
        await seen.wait()
        votes = tmp_path / "run" / "votes.jsonl"
        await until(lambda: votes.exists() and votes.read_bytes().count(b"\n") == 6)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    with caplog.at_level(logging.WARNING):
        asyncio.run(cancelled())
    assert "run again with experiment_name='run'" in caplog.text
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "stopped"
    assert len((tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_an_interrupt_leaves_a_resumable_run(tmp_path: Path) -> None:
    """Ctrl-C in a real process keeps the votes cast, and names the run to go on with."""
    program = textwrap.dedent(
        f"""
        import os, signal, asyncio
        from pathlib import Path
        from autorubric import CriterionGrader, evaluate_sync
        from tests.runs.runs import small_dataset

        votes = Path({str(tmp_path)!r}) / "run" / "votes.jsonl"

        async def judge(request):
            if request.item_id == "i3":
                while not (votes.exists() and len(votes.read_bytes().splitlines()) == 6):
                    await asyncio.sleep(0.01)
                if request.criterion.name == "apple":
                    os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            return "MET"

        evaluate_sync(small_dataset("a", "b", "c", "d"), CriterionGrader(judges=[judge]),
                      experiment_name="run", experiments_dir={str(tmp_path)!r}, show_progress=False)
        """
    )
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode != 0
    assert "KeyboardInterrupt" in ended.stderr
    assert "run again with experiment_name='run'" in ended.stderr
    assert len((tmp_path / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_fail_fast_ends_the_run_with_the_item_named(tmp_path: Path) -> None:
    """The first failed item ends the run; what was judged is stored."""
    with pytest.raises(ItemFailedError, match="item 'i1' failed: every judgment failed"):
        run(tmp_path, CountingJudge(down={"i1"}), fail_fast=True, max_concurrent_items=1)
    assert (tmp_path / "run" / "votes.jsonl").exists()


def test_a_bug_in_a_grader_is_not_swallowed(tmp_path: Path) -> None:
    """An exception that is not the library's propagates; the run folder stays usable."""

    class Broken(CriterionGrader):
        def aggregate(self, *_: object, **__: object) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, None, grader=Broken(judges=[CountingJudge()]))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "failed"


def test_errors_of_one_item_do_not_end_the_run(tmp_path: Path) -> None:
    """With on_failure="raise" the failing item has an error and no report; the others are graded."""
    grader = CriterionGrader(judges=[CountingJudge(down={"i2"})], on_failure="raise")
    result = run(tmp_path, None, grader=grader)
    assert result.item_results[2].report is None
    assert "ProviderTimeoutError" in (result.item_results[2].error or "")
    assert result.get_scores()[2] is None
    assert result.successful_items == 3
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.item_results[2].error == result.item_results[2].error


def test_prompts_are_kept_beside_votes_unless_not_wanted(tmp_path: Path) -> None:
    """Function judges have no prompts, so no file of them appears."""
    run(tmp_path, CountingJudge())
    assert not (tmp_path / "run" / "prompts.jsonl").exists()


@pytest.mark.parametrize("name", ["../out", "a/b", "", ".hidden", "a\x00b", "x" * 200, "dot."])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """A run's name is a plain name inside the folder of runs."""
    with pytest.raises(ArgumentError, match="experiment_name"):
        run(tmp_path, CountingJudge(), experiment_name=name)


def test_a_nameless_run_gets_a_name(tmp_path: Path) -> None:
    """The name is made of the dataset's and the time, and is free."""
    first = run(tmp_path, CountingJudge(), experiment_name=None)
    second = run(tmp_path, CountingJudge(), experiment_name=None)
    assert first.experiment_name.startswith("fruit-")
    assert first.experiment_name != second.experiment_name
    long = small_dataset(*TEXTS).to_dict() | {"name": "fruit" * 100}
    assert run(tmp_path, CountingJudge(), RubricDataset.from_dict(long), experiment_name=None).total_items


def test_a_name_is_taken_as_soon_as_it_is_made(tmp_path: Path) -> None:
    """Whoever makes another in the same second has another, which sorts after it."""
    names = [create_run_folder(small_dataset(*TEXTS), tmp_path / "runs") for _ in range(12)]
    assert len(set(names)) == 12
    assert names == sorted(names)
    assert all(re.fullmatch(r"fruit-\d{8}-\d{6}(-\d\d)?", name) for name in names)


def test_nameless_runs_that_begin_at_once_do_not_meet(tmp_path: Path) -> None:
    """Each has a folder of its own, and finishes in it."""
    together = threading.Barrier(8)

    def begun() -> EvalResult:
        together.wait()
        return run(tmp_path / "runs", CountingJudge(), experiment_name=None)

    with ThreadPoolExecutor(8) as pool:
        results = [one.result() for one in [pool.submit(begun) for _ in range(8)]]
    names = sorted(result.experiment_name for result in results)
    assert names == sorted(one.name for one in (tmp_path / "runs").iterdir())
    for result in results:
        assert EvalResult.from_experiment(result.experiment_dir).get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]


def test_resume_off_refuses_a_folder_that_is_there(tmp_path: Path) -> None:
    """Without resume a run never touches an older one."""
    run(tmp_path, CountingJudge())
    with pytest.raises(RunError, match="already exists"):
        run(tmp_path, CountingJudge(), resume=False)


def test_newer_and_damaged_manifests_are_refused(tmp_path: Path) -> None:
    """A newer format says to upgrade; a damaged manifest and a folder without one say what they are."""
    run(tmp_path, CountingJudge())
    manifest = tmp_path / "run" / "manifest.json"
    whole = json.loads(manifest.read_text(encoding="utf-8"))
    for content, message in [
        (json.dumps({**whole, "format": 99}), "install a newer version of autorubric"),
        ("{", "cannot be read"),
        ("[]", "has no format number"),
        (json.dumps(whole), "does not match its checksum"),
        (manifest_text({**whole, "deciding": {"normalize": "perhaps"}}), "grading policy is damaged"),
        (manifest_text({**whole, "dataset": {**whole["dataset"], "earlier": {"1f": 3}}}), "dataset.earlier"),
    ]:
        manifest.write_text(content, encoding="utf-8")
        with pytest.raises(RunFormatError, match=message):
            EvalResult.from_experiment(tmp_path / "run")
    manifest.write_text(manifest_text(whole), encoding="utf-8")
    (tmp_path / "run" / "dataset.jsonl").unlink()
    with pytest.raises(RunFormatError, match=r"has no dataset\.jsonl"):
        EvalResult.from_experiment(tmp_path / "run")
    with pytest.raises(RunFormatError, match="is not a run folder"):
        EvalResult.from_experiment(tmp_path)


def test_a_dataset_without_items_or_rubric_is_refused(tmp_path: Path) -> None:
    """What cannot be graded is refused before a folder is made."""
    with pytest.raises(ArgumentError, match="no items"):
        run(tmp_path, CountingJudge(), RubricDataset(rubric=small_rubric(), items=[]))
    with pytest.raises(ArgumentError, match="rubric"):
        run(tmp_path, CountingJudge(), RubricDataset(items=[DataItem(submission="x")]))
    assert not list(tmp_path.iterdir())


def test_another_dataset_is_no_truth_for_a_run(tmp_path: Path) -> None:
    """Metrics against items that were not graded are refused."""
    result = run(tmp_path, CountingJudge())
    with pytest.raises(ArgumentError, match="pass the dataset that"):
        result.compute_metrics(small_dataset("x"))


def test_fill_ground_truth_labels_what_has_none(tmp_path: Path) -> None:
    """Labels that are there stay unless forced; what cannot be judged stays without one."""
    dataset = RubricDataset(
        rubric=small_rubric(),
        items=[
            DataItem(id="i0", submission="apple", ground_truth={"apple": "UNMET"}),
            DataItem(id="i1", submission="pear", ground_truth=["MET", "MET"]),
            DataItem(id="i2", submission="pear"),
        ],
    )
    judge = CountingJudge(down={"i2"})
    filled = fill_ground_truth_sync(dataset, CriterionGrader(judges=[judge]))
    assert filled.item_truth(0) == {"apple": "UNMET", "pear": "UNMET"}
    assert filled.item_truth(1) == {"apple": "MET", "pear": "MET"}
    assert filled.item_truth(2) is None
    assert ("i1", "apple") not in judge.asked
    forced = fill_ground_truth_sync(dataset, CriterionGrader(judges=[CountingJudge()]), force=True)
    assert forced.item_truth(0) == {"apple": "MET", "pear": "UNMET"}


def test_items_are_bounded(tmp_path: Path) -> None:
    """No more items than asked for are under way at a time."""
    under_way: set[str] = set()
    most = 0

    async def judge(request: object) -> str:
        nonlocal most
        item_id: str = request.item_id  # type: ignore[attr-defined]
        under_way.add(item_id)
        most = max(most, len(under_way))
        await asyncio.sleep(0.01)
        under_way.discard(item_id)
        return "MET"

    run(tmp_path, judge, small_dataset(*"abcdefgh"), max_concurrent_items=2)
    assert most == 2


def test_a_check_need_not_be_registered_to_run_or_reopen(tmp_path: Path) -> None:
    """A plain function as a check is stored by its name; reopening needs no such function."""

    def short(text: str) -> tuple[bool, str]:
        return len(text) < 6, f"{len(text)} characters"

    rubric = Rubric([Criterion(name="short", requirement="It is short.", check=short)])
    dataset = small_dataset(*TEXTS, rubric=rubric)
    result = run(tmp_path, CountingJudge(), dataset)
    assert result.get_scores() == [0.0, 1.0, 1.0, 0.0]
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.get_scores() == result.get_scores()
    second = reopened.get_reports()[1]
    assert second is not None
    assert second.report[0].final_reason == "5 characters"
    assert run(tmp_path, CountingJudge(), dataset).get_scores() == result.get_scores()


def test_a_damaged_copy_of_the_dataset_says_so(tmp_path: Path) -> None:
    """A copy that is no dataset any more is a typed error."""
    run(tmp_path, CountingJudge())
    for content in ("{", "{}", '{"format": 99, "items": []}', '{"items": [1]}'):
        (tmp_path / "run" / "dataset.jsonl").write_text(content, encoding="utf-8")
        with pytest.raises(RunFormatError):
            EvalResult.from_experiment(tmp_path / "run")


def test_reopening_leaves_out_votes_that_no_longer_stand(tmp_path: Path) -> None:
    """A judge that left the panel, a dropped sample and an old text have no say in a reopened run."""
    texts = ("nothing", *TEXTS[1:])
    larger = CriterionGrader(judges=[JudgeSpec(CountingJudge(), samples=2), CountingJudge("leaver")])
    run(tmp_path, None, small_dataset(*texts), grader=larger)
    result = run(tmp_path, CountingJudge(), on_mismatch="rejudge")
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert reopened.get_scores() == result.get_scores()
    assert [r.to_dict() for r in reopened.get_reports() if r] == [
        r.to_dict() for r in result.get_reports() if r
    ]


def test_truth_is_matched_by_id(tmp_path: Path) -> None:
    """A dataset in another order gives the same figures; one with another text under an id is refused."""
    items = [
        DataItem(id=f"i{n}", submission=text, ground_truth=["MET" if "apple" in text else "UNMET", "MET"])
        for n, text in enumerate(TEXTS)
    ]
    dataset = RubricDataset(rubric=small_rubric(), items=items)
    result = run(tmp_path, CountingJudge(), dataset)
    reordered = dataset.with_items([items[k] for k in (2, 0, 3, 1)])
    pooled, again = result.compute_metrics(dataset).pooled, result.compute_metrics(reordered).pooled
    # Sums in another order may differ in the last digit.
    assert again.pearson == pytest.approx(pooled.pearson)
    assert replace(again, pearson=pooled.pearson) == pooled
    swapped = [items[0].model_copy(update={"submission": "plum"}), *items[1:]]
    with pytest.raises(ArgumentError, match="differs from the one graded"):
        result.compute_metrics(dataset.with_items(swapped))


def test_a_changed_function_or_check_is_refused(tmp_path: Path) -> None:
    """What a function does is part of what a vote depends on, not its name alone."""

    def made(verdict: str) -> Any:
        def judge(request: object) -> str:
            return verdict

        return judge

    run(tmp_path, made("MET"))
    with pytest.raises(RunMismatchError, match="judge judge changed: code"):
        run(tmp_path, made("UNMET"))

    def checked(answer: bool) -> RubricDataset:
        rubric = Rubric([Criterion(name="c", requirement="r", check=lambda text: answer)])
        return small_dataset(*TEXTS, rubric=rubric)

    run(tmp_path, CountingJudge(), checked(True), experiment_name="checks")
    assert run(tmp_path, CountingJudge(), checked(True), experiment_name="checks").get_scores() == [1.0] * 4
    with pytest.raises(RunMismatchError, match=r"check .* changed"):
        run(tmp_path, CountingJudge(), checked(False), experiment_name="checks")


def test_votes_of_a_judge_that_cannot_describe_itself_are_used_with_a_notice(tmp_path: Path) -> None:
    """A change in the state of an object cannot be seen; that the votes were used again is said."""

    class Loose:
        judge_id = "loose"

        async def ask(self, request: object) -> JudgeReply:
            return JudgeReply(answer="MET")

    run(tmp_path, Loose())
    again = run(tmp_path, Loose())
    assert any("'loose' has no describe()" in notice for notice in again.notices)


def test_a_fork_is_gone_on_with(tmp_path: Path) -> None:
    """The same call again goes on in the fork that is there, and asks nothing."""
    run(tmp_path, CountingJudge())
    changed = small_dataset("only apple", *TEXTS[1:])
    first = run(tmp_path, CountingJudge(), changed, on_mismatch="fork")
    judge = CountingJudge()
    again = run(tmp_path, judge, changed, on_mismatch="fork")
    assert again.experiment_name == first.experiment_name == "run-2"
    assert not judge.asked
    other = run(tmp_path, CountingJudge(), small_dataset("plum", *TEXTS[1:]), on_mismatch="fork")
    assert other.experiment_name == "run-3"


def test_a_damaged_answer_is_passed_over(tmp_path: Path) -> None:
    """A stored answer that is not one of its criterion's costs that vote and is reported.

    The run had not ended, so the item lacks a criterion and has no result until the run is resumed.
    """
    run(tmp_path, CountingJudge())
    votes = tmp_path / "run" / "votes.jsonl"
    edit_lines(votes, lambda line: line.replace(b'"MET"', b'"PERHAPS"', b'"i1"' in line))
    (tmp_path / "run" / "items.jsonl").unlink()
    as_if_killed(tmp_path / "run")
    reopened = EvalResult.from_experiment(tmp_path / "run")
    assert any("'PERHAPS'" in notice for notice in reopened.notices)
    assert reopened.total_items == 3


def test_an_item_that_was_not_finished_is_in_no_mean(tmp_path: Path) -> None:
    """A run stopped within an item has no score of it, neither when it ends nor when it is opened again."""
    rubric = Rubric([Criterion(name=name, requirement="r") for name in ("a", "b")])
    data = RubricDataset(rubric=rubric, items=[DataItem(id=name, submission="x") for name in ("i", "j")])
    stopped = run(tmp_path, CountingJudge(), data, max_calls=1)
    reopened = EvalResult.from_experiment(tmp_path / "run")
    for result in (stopped, reopened):
        assert (result.total_items, result.successful_items) == (0, 0)


def test_unreadable_replies_decide_no_figure(tmp_path: Path) -> None:
    """Where they make the answer, it counts in the score as the conservative one and in figures as failed."""

    def judge(request: JudgeRequest) -> str:
        return "MET" if request.sample == 0 else "garbage"

    rubric = Rubric([Criterion(name="c", requirement="r")])
    items = [DataItem(id="a", submission="x", ground_truth=["UNMET"])]
    grader = CriterionGrader(judges=[JudgeSpec(judge, "j", samples=3)])
    result = run(tmp_path, None, RubricDataset(rubric=rubric, items=items), grader=grader)
    report = result.get_reports()[0]
    assert report is not None
    assert (report.score, report.report[0].decision.swayed) == (0.0, True)
    assert "counted as the conservative answer, decided c" in (report.error or "")
    metrics = result.compute_metrics(per_judge=True)
    assert metrics.pooled.accuracy is None
    assert metrics.per_judge["j"].pooled.n == 0


def test_a_reopened_run_has_its_votes_in_the_order_of_the_panel(tmp_path: Path) -> None:
    """Whoever answered first, reports, texts and scores of judges are those of the run."""

    async def slow(request: JudgeRequest) -> str:
        await asyncio.sleep(0.05)
        return "from slow"

    async def fast(request: JudgeRequest) -> str:
        return "from fast"

    rubric = Rubric([NarrativeCriterion(name="note", requirement="Say something.")])
    result = run(
        tmp_path,
        None,
        small_dataset("a", "b", rubric=rubric),
        grader=CriterionGrader(judges=[JudgeSpec(slow, samples=2), JudgeSpec(fast, samples=2)]),
    )
    again = EvalResult.from_experiment(result.experiment_dir)
    assert again.get_reports() == result.get_reports()
    report = again.get_reports()[0]
    assert report is not None
    assert [vote.judge_id for vote in report.report[0].votes] == ["slow", "slow", "fast", "fast"]


def test_a_rubric_that_cannot_be_stored_leaves_no_folder(tmp_path: Path) -> None:
    """It is refused before anything is asked or written."""

    class Untagged(BaseCriterion):
        mark: BoundInt = BoundInt(min_val=0, max_val=10)

    judge = CountingJudge()
    with pytest.raises(ArgumentError, match="Untagged has no type tag"):
        run(tmp_path, judge, small_dataset("a", rubric=Rubric([Untagged(name="mark", requirement="r")])))
    assert list(tmp_path.iterdir()) == []
    assert not judge.asked


def test_an_answer_that_could_not_be_read_is_kept(tmp_path: Path) -> None:
    """What a function gave stands beside its failed vote, in lines of the same keys as a model's."""

    def perhaps(request: JudgeRequest) -> str:
        return "Perhaps."

    run(tmp_path, None, small_dataset("a"), grader=CriterionGrader(judges=[perhaps]))
    text = (tmp_path / "run" / "prompts.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == len(small_rubric())
    keys = {"item", "criterion", "judge_id", "sample", "messages", "replies", "dropped_params", "at", "crc"}
    for line in lines:
        assert set(line) == keys and (line["messages"], line["replies"]) == ([], ["Perhaps."])
    kept = EvalResult.from_experiment(tmp_path / "run").exchanges(lines[0]["item"])
    assert [one.exchanged.replies for one in kept] == [("Perhaps.",)] * len(lines)


def test_items_begin_although_none_has_been_judged(tmp_path: Path) -> None:
    """Their number grows in steps, long before a slow first reply would arrive."""
    begun: list[str] = []
    everything = asyncio.Event()

    async def judge(request: JudgeRequest) -> str:
        begun.append(request.item_id)
        if len(set(begun)) == 8:
            everything.set()
        await everything.wait()
        return "MET"

    started = time.monotonic()
    result = run(tmp_path, judge, small_dataset(*("apple" for _ in range(8))))
    assert len(result.item_results) == 8
    assert time.monotonic() - started < 5
