"""What is missing is seen: unfinished items, cells without a vote, and abstentions, on the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalConfig,
    EvalResult,
    EvalRunner,
    JudgeError,
    JudgeReply,
    JudgeSpec,
    Rubric,
    RubricDataset,
)
from autorubric.cli.view_server import RunPage
from autorubric.judges import JudgeRequest
from autorubric.runs import run_shard
from tests.cli.conftest import Cli, write_votes
from tests.doubles import until

N, N_FINISHED = 20, 4
NAMES = ("apple", "pear")


@dataclass
class _Judge:
    """Says MET; from item `stops_at` on it has not answered yet."""

    judge_id: str
    stops_at: int = N
    asked: set[str] = field(default_factory=set)

    def describe(self) -> dict[str, str]:
        return {"judge": self.judge_id}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.add(request.item_id)
        if int(request.item_id[1:]) >= self.stops_at:
            await asyncio.Event().wait()
        return JudgeReply(answer="MET")


def _dataset(n_items: int = N) -> RubricDataset:
    labels = ["MET"] * len(NAMES)
    items = [DataItem(id=f"i{at}", submission=f"text {at}", ground_truth=labels) for at in range(n_items)]
    return RubricDataset(
        rubric=Rubric([Criterion(name=name, requirement="r") for name in NAMES]), items=items
    )


def _runner(name: str, judges: list[_Judge], dataset: RubricDataset, **options: Any) -> EvalRunner:
    grader = CriterionGrader(judges=[JudgeSpec(one, one.judge_id) for one in judges])
    return EvalRunner(dataset, grader, EvalConfig(experiment_name=name, show_progress=False, **options))


def _stop(name: str, judges: list[_Judge], n_lines: int, **options: Any) -> None:
    """Stops a run when all items have been asked for, and the log of items has as many lines."""
    log, runner = Path("experiments") / name / "items.jsonl", _runner(name, judges, _dataset(), **options)

    async def stop() -> None:
        task = asyncio.create_task(runner.run())
        await until(lambda: len(judges[-1].asked) == N)
        await until(lambda: n_lines == (log.read_bytes().count(b"\n") if log.exists() else 0))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(stop())


@pytest.fixture
def stopped(cli: Cli) -> str:
    """A run that was stopped while a judge of two had voted on all items, and the other on four."""
    _stop("cut", [_Judge("one"), _Judge("two", N_FINISHED)], N_FINISHED)
    return "experiments/cut"


HEADLINE = "4 items finished, 16 unfinished"


def test_unfinished_items_are_no_results(cli: Cli, stopped: str) -> None:
    """Figures, lists and exports have finished items alone, and begin with the number of the others."""
    assert HEADLINE in cli("show", stopped).out.splitlines()[0]
    told = cli("show", stopped, "--json").json
    assert (told["total_items"], told["unfinished_items"], len(told["items"])) == (4, 16, 4)
    assert told["mean_score"] == 1.0
    assert (told["verdicts"]["asked"], told["verdicts"]["not_judged"]) == (16, 64)
    assert HEADLINE in cli("export", stopped, "--format", "markdown").out.splitlines()[0]
    assert len(cli("export", stopped, "--format", "csv").out.splitlines()) == 1 + 4
    votes = cli("export", stopped, "--format", "jsonl", "--table", "votes").out.splitlines()
    voted = {line["item_id"] for line in map(json.loads, votes) if line["sample"] is not None}
    assert voted == {"i0", "i1", "i2", "i3"}
    assert HEADLINE in cli("score", stopped, "--aggregation", "any").out.splitlines()[0]
    rescored = cli("score", stopped, "--aggregation", "any", "--json").json
    assert (rescored["total_items"], rescored["unfinished_items"]) == (4, 16)
    assert cli("report", stopped, "-o", "page.html").code == 0
    assert f"<title>cut: {HEADLINE} · " in Path("page.html").read_text(encoding="utf-8")
    assert cli("show", stopped, "--item", "i3").code == 0
    unfinished = cli("show", stopped, "--item", "i4")
    assert unfinished.code == 2 and "item 'i4' is unfinished; resume the run" in unfinished.err
    state = RunPage(Path(stopped), None, {}, "viewer").state()
    assert (state["done"], state["total"]) == (4, 20)
    audited = cli("judges", "audit", stopped, "--only", "report", "--json").json["verdicts"]
    counts = {judge: (one["asked"], one["not_judged"]) for judge, one in audited.items()}
    assert counts == {"panel": (16, 64), "one": (8, 32), "two": (8, 32)}


def test_junit_counts_unfinished_items(cli: Cli, stopped: str) -> None:
    """Beside the tests; more unfinished items than allowed are an error."""
    for options, (tests, errors) in {
        (): (5, 1),
        ("--max-lost", ".9"): (4, 0),
        ("--fail-under", ".5"): (5, 1),
        ("--fail-under", ".5", "--max-lost", ".9"): (4, 0),
    }.items():
        root = ElementTree.fromstring(cli("export", stopped, "--format", "junit", *options).out)
        assert HEADLINE in root.get("name", "")
        assert (root.get("tests"), root.get("errors")) == (str(tests), str(errors))
        assert len(list(root.iter("testcase"))) == tests


@pytest.mark.parametrize(
    ("command", "due"),
    [
        (("metrics", "experiments/cut", "--fail-under", "accuracy=.5"), "64 of 80"),
        (("metrics", "experiments/cut", "--fail-under", "accuracy@pear=.5"), "pear: 32 of 40"),
        (("compare", "experiments/whole", "experiments/cut", "--fail-on-regression"), "the run: 64 of 80"),
        (("compare", "experiments/cut", "experiments/whole", "--fail-on-regression"), "baseline: 64 of 80"),
        (("score", "experiments/cut", "--aggregation", "unanimous", "--fail-under", ".5"), "64 of 80"),
    ],
)
def test_gates_divide_by_the_verdicts_that_were_due(
    cli: Cli, stopped: str, command: tuple[str, ...], due: str
) -> None:
    """What was not judged counts as what was lost."""
    _runner("whole", [_Judge("one"), _Judge("two")], _dataset()).run_sync()
    done = cli(*command)
    assert done.code == 3
    assert f"{due} verdicts (80.0%) were lost, assumed or not judged, more than --max-lost 0.05" in done.err
    assert cli(*command, "--max-lost", ".9").code == 0


@pytest.mark.parametrize("order", [("whole", "part"), ("part", "whole")])
def test_a_comparison_counts_the_items_that_a_side_lacks(cli: Cli, order: tuple[str, str]) -> None:
    """Its own dataset may be whole, but what the other side has was not judged there."""
    for name, n_items in {"whole": 20, "part": 12}.items():
        _runner(name, [_Judge("one"), _Judge("two")], _dataset(n_items)).run_sync()
    done = cli("compare", *(f"experiments/{name}" for name in order), "--fail-on-regression", "--json")
    assert done.code == 3 and "32 of 80 verdicts (40.0%)" in done.err
    sides = ("baseline_verdicts", "run_verdicts")
    counts = {name: done.json["difference"][side] for name, side in zip(order, sides, strict=True)}
    assert [counts[name]["not_judged"] for name in ("whole", "part")] == [0, 32]


@pytest.mark.parametrize("order", [("whole", "shard-1-of-4"), ("shard-1-of-4", "whole")])
def test_the_other_items_of_a_shard_are_not_due(cli: Cli, order: tuple[str, str]) -> None:
    """Another run grades them."""
    grader = CriterionGrader(judges=[_Judge("one")])
    _runner("whole", [_Judge("one")], _dataset()).run_sync()
    assert run_shard(_dataset(), grader, 1, 4, experiment_name="shard").total_items == 5
    done = cli("compare", *(f"experiments/{name}" for name in order), "--fail-on-regression", "--json")
    assert done.code == 0
    counts = [done.json["difference"][side] for side in ("baseline_verdicts", "run_verdicts")]
    assert [one["not_judged"] for one in counts] == [0, 0]


def test_a_run_without_a_finished_item_is_not_compared(cli: Cli) -> None:
    """The items are the same, so the message asks to resume the run."""
    _runner("whole", [_Judge("one"), _Judge("two")], _dataset()).run_sync()
    _stop("part", [_Judge("one"), _Judge("two", 0)], 0)
    done = cli("compare", "experiments/whole", "experiments/part", "--fail-on-regression")
    assert (done.code, done.err.splitlines()[-1]) == (3, "part has no finished item; resume the run first.")


def test_items_that_are_being_judged_again_are_unfinished(cli: Cli) -> None:
    """Their lines are those of judges that have changed since."""
    _runner("again", [_Judge("one"), _Judge("two")], _dataset()).run_sync()
    other = _Judge("two", N_FINISHED)
    other.describe = lambda: {"judge": "other"}  # type: ignore[method-assign]
    _stop("again", [_Judge("one"), other], N + N_FINISHED, on_mismatch="rejudge")
    result = EvalResult.from_experiment("experiments/again")
    assert (result.total_items, result.unfinished_items, result.verdicts.not_judged) == (4, 16, 64)
    rescored = result.rescore(aggregation="any")
    assert (rescored.total_items, rescored.unfinished_items) == (4, 16)


def _recorded(cli: Cli, votes: Mapping[tuple[str, str], dict[str, Any]], name: str, **changes: Any) -> str:
    """Runs recorded judges on ten items with two criteria, and returns the folder."""
    labels = dict.fromkeys(NAMES, "MET")
    items = [{"id": f"i{at}", "submission": "x", "ground_truth": labels} for at in range(10)]
    criteria = [{"name": one, "requirement": "r", **changes.get(one, {})} for one in NAMES]
    Path("d.json").write_text(
        json.dumps({"rubric": {"criteria": criteria}, "items": items}), encoding="utf-8"
    )
    write_votes(Path("v.csv"), dict(votes))
    judges = [
        part
        for rater in dict.fromkeys(who for who, _ in votes)
        for part in ("--judge", f"recorded:v.csv#{rater}")
    ]
    cli("eval", "d.json", *judges, "--name", name)
    return f"experiments/{name}"


BOTH = {"apple": "MET", "pear": "MET"}
FIRST = {"apple": "MET"}


@pytest.mark.parametrize(
    ("votes", "missing"),
    [
        # A panel: nobody of two voted on six cells.
        ({("a", "i0"): BOTH, **{("b", f"i{at}"): BOTH if at < 7 else {} for at in range(10)}}, "12 of 28"),
        # The only judge is due on every item.
        ({("a", f"i{at}"): BOTH if at < 7 else FIRST for at in range(10)}, "3 of 20"),
    ],
)
def test_cells_without_any_vote_are_lost(
    cli: Cli, votes: Mapping[tuple[str, str], dict[str, Any]], missing: str
) -> None:
    """A recorded judge may lack rows where another one of the panel has them, but nobody may not."""
    folder = _recorded(cli, votes, "gaps")
    whole = _recorded(cli, {("a", f"i{at}"): BOTH for at in range(10)}, "whole")
    measured = cli("metrics", folder, "--fail-under", "accuracy=.5")
    assert measured.code == 3 and f"{missing} verdicts" in measured.err
    compared = cli("compare", whole, folder, "--fail-on-regression")
    assert compared.code == 3 and f"the run: {missing} verdicts" in compared.err
    told = cli("show", folder, "--json").json["verdicts"]
    assert told["lost_cause"] == "no judge voted on this criterion"
    audited = cli("judges", "audit", folder, "--only", "report", "--json").json["verdicts"]
    assert audited.pop("panel")["lost"] == sum(one["lost"] for one in audited.values())


class _Failing(_Judge):
    """Fails on the items from `stops_at` on."""

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        if int(request.item_id[1:]) >= self.stops_at:
            raise JudgeError("no answer")
        return JudgeReply(answer="MET")


def test_verdicts_without_votes_count_once_per_judge(cli: Cli) -> None:
    """As on unfinished items: two judges owe two verdicts on a changed criterion, and on a failed item."""
    _runner("whole", [_Judge("one"), _Judge("two")], _dataset()).run_sync()
    changed = Rubric([Criterion(name="apple", requirement="r"), Criterion(name="pear", requirement="s")])
    rescored = EvalResult.from_experiment("experiments/whole").rescore(changed)
    assert (rescored.verdicts.asked, rescored.verdicts.lost) == (80, 40)
    report = rescored.item_results[0].report
    assert report is not None and report.verdicts.lost == 2
    grader = CriterionGrader(judges=[_Judge("one"), _Failing("two", 15)], on_failure="raise")
    config = EvalConfig(experiment_name="failed", show_progress=False)
    failed = EvalRunner(_dataset(), grader, config).run_sync()
    assert (failed.failed_items, failed.verdicts.asked, failed.verdicts.lost) == (5, 80, 20)
    measured = cli("metrics", "experiments/failed", "--fail-under", "accuracy=.5")
    assert measured.code == 3 and "20 of 80 verdicts (25.0%)" in measured.err


def test_a_judge_of_a_panel_need_not_vote_everywhere(cli: Cli) -> None:
    """Votes that were not asked for are not due where another judge votes."""
    votes = {("a", f"i{at}"): BOTH for at in range(10)} | {("b", "i0"): BOTH}
    done = cli("metrics", _recorded(cli, votes, "panel"), "--fail-under", "accuracy=.5", "--json")
    assert done.code == 0
    assert (done.json["verdicts"]["asked"], done.json["verdicts"]["lost"]) == (22, 0)


def test_criteria_that_do_not_apply_are_not_due(cli: Cli) -> None:
    """A gate on the others neither fails because of them nor divides by them."""
    votes = {("a", f"i{at}"): BOTH if at < 5 else {"apple": "UNMET"} for at in range(10)}
    folder = _recorded(cli, votes, "when", pear={"when": "apple"})
    verdicts = cli("show", folder, "--json").json["verdicts"]
    assert (verdicts["asked"], verdicts["answered"], verdicts["lost"]) == (15, 15, 0)
    assert cli("metrics", folder, "--max-lost", "0").code == 0


@pytest.mark.parametrize(
    ("n_abstained", "options", "code", "told"),
    [
        (2, (), 0, ""),
        (6, (), 0, "6 of 20 verdicts (30.0%) abstained; --max-abstained sets a limit"),
        (6, ("--max-abstained", ".3"), 0, "6 of 20 verdicts (30.0%) abstained"),
        (2, ("--max-abstained", ".05"), 3, "(10.0%) abstained, more than --max-abstained 0.05"),
    ],
)
def test_abstentions_have_a_limit(
    cli: Cli, n_abstained: int, options: tuple[str, ...], code: int, told: str
) -> None:
    """It is off by default; the output of a gate names abstentions above a quarter."""
    gone = {"apple": "MET", "pear": "CANNOT_ASSESS"}
    votes = {("a", f"i{at}"): gone if at < n_abstained else BOTH for at in range(10)}
    folder = _recorded(cli, votes, "unsure")
    again = _recorded(cli, votes, "again")
    for command in (
        ("metrics", folder, "--fail-under", "accuracy=.5"),
        ("compare", folder, again, "--max-lost", ".5"),
        ("score", folder, "--aggregation", "unanimous", "--fail-under", ".1"),
        ("eval", "d.json", "--judge", "recorded:v.csv#a", "--name", "gated", "--fail-under", ".1"),
    ):
        done = cli(*command, *options)
        assert (done.code, told in done.err) == (code, True)
        assert bool(told) == ("abstained" in done.err)
