"""Lost and assumed verdicts are counted, in the same way, in every figure of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from autorubric import CriterionGrader, EvalResult
from autorubric.cli.app import app
from autorubric.criteria import VerdictCounts
from autorubric.errors import ItemFailedError, RunMismatchError
from autorubric.metrics import run_difference
from autorubric.runs import evaluate_sync
from autorubric.support.blocks import render_text
from tests.faults.missing import N_ASKED, N_ASSUMED, N_LOST, dataset, garble_125, graded, lose_fifty
from tests.faults.runs import config
from tests.servers.fixtures import OpenAIServer


@pytest.mark.slow
def test_verdicts_lost_to_429s_are_counted(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Fifty refused verdicts are lost, every item with one is partly scored, and the summary says why."""
    lose_fifty(openai_server)
    done = graded(tmp_path, openai_server)
    for result in (done, EvalResult.from_experiment(tmp_path / "run")):
        counts = result.verdicts
        assert (counts.asked, counts.answered, counts.abstained) == (N_ASKED, 245, 5)
        assert (result.n_verdicts_lost, result.n_verdicts_assumed) == (N_LOST, 0)
        assert (result.partly_scored_items, result.failed_items) == (49, 1)
        assert "50 of 300 verdicts were lost; first error: openai/judge: RateLimitError" in result.summary()
        assert "partly scored       49" in result.summary()


def test_unreadable_replies_are_counted_as_assumed(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Unreadable replies that count as the conservative answer are assumed, and the summary says so."""
    garble_125(openai_server)
    done = graded(tmp_path, openai_server)
    for result in (done, EvalResult.from_experiment(tmp_path / "run")):
        counts = result.verdicts
        assert (counts.asked, counts.answered, counts.abstained) == (N_ASKED, 170, 5)
        assert (counts.lost, counts.assumed) == (0, N_ASSUMED)
        assert (result.partly_scored_items, result.failed_items) == (0, 16)
        told = "125 of 300 verdicts were assumed: the reply could not be read and counts as the conservative "
        assert f"{told}answer; first error: openai/judge: " in result.summary()


def test_unreadable_replies_that_are_left_out_are_lost(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """The same run rescored without unreadable replies has lost them instead."""
    garble_125(openai_server)
    strict = graded(tmp_path, openai_server).rescore(on_failure="exclude")
    assert (strict.n_verdicts_lost, strict.n_verdicts_assumed) == (N_ASSUMED, 0)
    assert (strict.partly_scored_items, strict.failed_items) == (34, 16)


def test_runs_without_counts_give_the_same(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Where the lines of items have no counts, as older versions wrote them, the votes give the same."""
    lose_fifty(openai_server)
    new = graded(tmp_path, openai_server)
    file = tmp_path / "run" / "items.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = ("verdicts", "at", "crc")
    old = [json.dumps({key: value for key, value in line.items() if key not in kept}) for line in lines]
    file.write_text("\n".join(old) + "\n", encoding="utf-8")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    for key in ("crc", "sizes", "unsealed"):
        manifest.pop(key, None)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest | {"format": 1}), encoding="utf-8")
    read = EvalResult.from_experiment(tmp_path / "run")
    assert read.verdicts == new.verdicts
    assert read.partly_scored_items == new.partly_scored_items


def test_fail_fast_stops_on_a_lost_verdict(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """An item that is partly scored ends a run with `fail_fast`, and the error names the cause."""
    lose_fifty(openai_server)
    with pytest.raises(ItemFailedError, match="is only partly scored: 1 of 6 verdicts were lost"):
        graded(tmp_path, openai_server, fail_fast=True)


@pytest.mark.slow
def test_a_total_failure_is_explained(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Where every verdict is lost, the summary says why."""
    openai_server.script({"do": "status", "status": 429, "message": "Too many."}, repeat="last")
    result = graded(tmp_path, openai_server)
    assert result.failed_items == 50
    assert "300 of 300 verdicts were lost; first error: openai/judge: RateLimitError" in result.summary()
    assert "Too many." in result.summary()
    assert "No item has a score\nitem 'i00': every judgment failed" in result.summary()


def test_a_criterion_whose_only_vote_failed_has_failed(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A criterion whose one reply could not be read has the status `failed`, whatever it counts as."""
    garble_125(openai_server)
    report = graded(tmp_path, openai_server).item_results[20].report
    assert report is not None
    assert [one.status for one in report.report] == ["failed", *["answered"] * 5]
    assert report.report[0].verdicts == VerdictCounts(
        asked=1, assumed=1, assumed_cause=report.report[0].verdicts.assumed_cause
    )
    assert report.verdicts.missing_share == pytest.approx(1 / 6)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [lose_fifty, garble_125])
def test_every_surface_has_the_same_counts(
    scenario: Callable[[OpenAIServer], None], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """`show`, JSON, JUnit, `compare` and the result tell the same counts of one run."""
    scenario(openai_server)
    result = graded(tmp_path, openai_server)
    run = str(tmp_path / "run")
    counts = result.verdicts.to_dict()
    assert call("show", run, "--json").json["verdicts"] == counts
    assert call("metrics", run, "--json").json["verdicts"] == counts
    compared = call("compare", run, run, "--json").json["difference"]
    assert compared["baseline_verdicts"] == compared["run_verdicts"] == counts
    for out in (call("compare", run, run).out, render_text(run_difference(result, result).blocks())):
        for side in ("baseline", "run"):
            assert f"verdicts of the {side} {result.verdicts} " in " ".join(out.split())
    shown = " ".join(call("show", run).out.split())
    assert f"verdicts lost {result.n_verdicts_lost} verdicts assumed {result.n_verdicts_assumed}" in shown
    suite = ElementTree.fromstring(result.export("junit")).find("testsuite/properties")
    assert suite is not None
    told = {one.get("name"): one.get("value") for one in suite}
    assert told["verdicts.lost"] == str(result.n_verdicts_lost)
    assert told["verdicts.assumed"] == str(result.n_verdicts_assumed)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [lose_fifty, garble_125])
def test_gates_refuse_figures_of_too_many_missing_verdicts(
    scenario: Callable[[OpenAIServer], None], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Every gate exits with 3 above `--max-lost`, and without a limit gates see the figures alone."""
    scenario(openai_server)
    graded(tmp_path, openai_server)
    run = str(tmp_path / "run")
    gates = (
        ("metrics", run, "--fail-under", "accuracy=0"),
        ("metrics", run, "--fail-under", "accuracy@c0=0"),
        ("compare", run, run, "--fail-on-regression"),
    )
    for gate in gates:
        done = call(*gate)
        assert (done.code, "were lost or assumed, more than --max-lost 0.05" in done.err) == (3, True)
    assert call("metrics", run, "--fail-under", "accuracy@c1=0", "--max-lost", "0.5").code == 0
    assert call("metrics", run, "--fail-under", "accuracy=0", "--max-lost", "0.9").code == 0
    assert call("compare", run, run, "--fail-on-regression", "--max-lost", "1").code == 0
    assert call("metrics", run).code == 0


def test_junit_has_errors_where_verdicts_are_missing(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With `fail_under` an item is an error, not a pass, where too many of its verdicts are missing."""
    garble_125(openai_server)
    result = graded(tmp_path, openai_server)
    strict = ElementTree.fromstring(result.export("junit", fail_under=0))
    lenient = ElementTree.fromstring(result.export("junit", fail_under=0, max_lost=1.0))
    assert (strict.get("errors"), lenient.get("errors")) == ("50", "16")


def test_assumed_answers_are_marked_and_in_no_mean(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Tables, `show --json` and JUnit mark assumed answers; a page of Markdown has the means of `compare`."""
    garble_125(openai_server)
    result = graded(tmp_path, openai_server)
    table = result.scores_table()
    in_table = sum(len(json.loads(names)) for names in table["assumed"].dropna())
    assert in_table == result.n_verdicts_assumed == N_ASSUMED
    shown = call("show", str(tmp_path / "run"), "--json").json["items"]
    assert sum(len(item["assumed"]) for item in shown) == N_ASSUMED
    cases = ElementTree.fromstring(result.export("junit")).iter("property")
    assert sum((one.get("value") or "").endswith(" (assumed)") for one in cases) == N_ASSUMED
    compared = {one.name: one.run for one in run_difference(result, result).criteria}
    lines = result.export("markdown").decode("utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| c")]
    means = {cells[0].strip(): cells[3].strip() for cells in rows if cells[0].strip() in compared}
    assert means == {name: "" if mean is None else f"{mean:.3f}" for name, mean in compared.items()}


def test_every_command_counts_the_verdicts_of_items_without_a_report(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Where grading raised, `compare` and `judges audit` count what `show` counts, judges and the rest."""
    openai_server.script({"do": "answer", "payload": {"verdict": "MET", "reason": "It does."}}, repeat="last")
    prose = {"do": "answer", "content": "I would say that it is met."}
    openai_server.script(prose, contains="[garbled]", repeat="last", anywhere=True)
    grader = CriterionGrader(judges=[config(openai_server, max_retries=0)], on_failure="raise")
    result = evaluate_sync(
        dataset(), grader, experiment_name="run", experiments_dir=tmp_path, show_progress=False
    )
    run = str(tmp_path / "run")
    counts = call("show", run, "--json").json["verdicts"]
    assert counts == result.verdicts.to_dict() and counts["lost"] > 0
    assert call("compare", run, run, "--json").json["difference"]["run_verdicts"] == counts
    audited = call("judges", "audit", run, "--only", "report", "--json").json["verdicts"]
    panel = audited.pop("panel")
    assert panel == counts
    for name in ("asked", "answered", "lost"):
        assert sum(one[name] for one in audited.values()) == panel[name]


def test_eval_exits_with_3_at_its_gate(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """`eval --fail-under` exits with 3 above `--max-lost`, which `--on-failure` does not change."""
    garble_125(openai_server)
    data = tmp_path / "data.json"
    dataset().subset(range(15, 49)).to_file(data)
    base = (
        *("eval", str(data), "--judge", "openai/judge", "--api-base", openai_server.api_base),
        *("--runs-dir", str(tmp_path), "--no-progress", "--no-preflight", "--json"),
    )
    done = call(*base, "--name", "a", "--fail-under", "0")
    assert (done.code, done.json["verdicts"]["assumed"]) == (3, 34)
    assert call(*base, "--name", "a", "--fail-under", "0", "--max-lost", "0.2").code == 0
    done = call(*base, "--name", "b", "--fail-under", "0", "--on-failure", "exclude")
    counts = done.json["verdicts"]
    assert (done.code, counts["assumed"], counts["lost"]) == (3, 0, 34)
    assert done.json["partly_scored_items"] == 34


def test_a_run_without_a_reply_does_not_block_its_name(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """After nothing but 401s the same name starts with other settings; once a reply came it does not."""
    openai_server.script({"do": "status", "status": 401, "message": "No such key."}, repeat="last")
    assert graded(tmp_path, openai_server).successful_items == 0
    openai_server.reset()
    other = CriterionGrader(judges=[config(openai_server, model="another")])
    options: dict[str, Any] = {"experiment_name": "run", "experiments_dir": tmp_path, "show_progress": False}
    result = evaluate_sync(dataset(), other, **options)
    assert result.failed_items == 0
    assert not any("depend" in notice for notice in result.notices)
    third = CriterionGrader(judges=[config(openai_server, model="third")])
    with pytest.raises(RunMismatchError):
        evaluate_sync(dataset(), third, **options)


@dataclass(frozen=True)
class Called:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on stdout."""
        return json.loads(self.out)


def call(*arguments: str) -> Called:
    """Calls the command line, 120 columns wide."""
    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, list(arguments))
    return Called(done.exit_code, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [lose_fifty, garble_125])
def test_the_audit_counts_all_cells(
    scenario: Callable[[OpenAIServer], None], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """`judges audit` counts verdicts on all cells, by judge and of the panel."""
    scenario(openai_server)
    result = graded(tmp_path, openai_server)
    found = call("judges", "audit", str(tmp_path / "run"), "--only", "report", "--json").json["verdicts"]
    assert found["panel"] == result.verdicts.to_dict()
    assert {key: found["openai/judge"][key] for key in ("asked", "lost", "assumed")} == {
        "asked": N_ASKED,
        "lost": result.n_verdicts_lost,
        "assumed": result.n_verdicts_assumed,
    }
