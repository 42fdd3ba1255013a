"""Every gate ends with 3 where too many of the verdicts behind its figure were lost or assumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from autorubric import EvalResult
from autorubric.metrics import RunDifference, run_difference
from autorubric.runs import merge_runs
from tests.faults.missing import N_ASKED, dataset, garble_125, graded, lose_fifty, refuse_fifty, rubric
from tests.faults.test_missing_verdicts import Called, call
from tests.servers.fixtures import OpenAIServer

Scenario = Callable[[OpenAIServer], None]
SCENARIOS = pytest.mark.parametrize("scenario", [lose_fifty, garble_125])
TOO_MANY = "were lost or assumed, more than --max-lost"


@pytest.mark.slow
@SCENARIOS
def test_score(scenario: Scenario, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """`score --fail-under` keeps the run's counts, and ends with 3 above `--max-lost`."""
    scenario(openai_server)
    # The last item has no score, which is an exit code of 3 of its own.
    data = dataset().subset(range(15, 49))
    run = graded(tmp_path, openai_server, data=data)
    asked = ("score", str(tmp_path / "run"), "--aggregation", "unanimous", "--json")
    done = call(*asked, "--fail-under", "0")
    assert (done.code, TOO_MANY in done.err) == (3, True)
    assert done.json["verdicts"] == run.verdicts.to_dict()
    assert call(*asked, "--fail-under", "0", "--max-lost", "0.5").code == 0
    assert call(*asked).code == 0


@pytest.mark.parametrize("scenario", [refuse_fifty, garble_125])
def test_grade(scenario: Scenario, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """`grade --fail-under` counts the verdicts on its one text."""
    scenario(openai_server)
    file = tmp_path / "rubric.yaml"
    rubric().to_file(file)
    asked = (
        *("grade", "Text number 20.", "--rubric", str(file), "--judge", "hosted_vllm/judge"),
        *("--api-base", openai_server.api_base, "--json", "--no-preflight"),
    )
    done = call(*asked, "--fail-under", "0")
    assert (done.code, "1 of 6 verdicts (16.7%) were lost or assumed" in done.err) == (3, True)
    assert call(*asked, "--fail-under", "0", "--max-lost", "0.2").code == 0
    assert call(*asked).code == 0


@pytest.mark.parametrize(
    ("on_failure", "counts"), [("conservative", "0 lost, 34"), ("exclude", "34 lost, 0")]
)
def test_eval_without_a_gate(
    on_failure: str, counts: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Without a gate the exit code is 0; the counts are shown, and stderr says that they are in no gate."""
    garble_125(openai_server)
    file = tmp_path / "data.json"
    dataset().subset(range(15, 49)).to_file(file)
    asked = (
        *("eval", str(file), "--judge", "hosted_vllm/judge", "--api-base", openai_server.api_base),
        *("--runs-dir", str(tmp_path), "--no-progress", "--no-preflight", "--name", "a"),
        *("--on-failure", on_failure),
    )
    done = call(*asked)
    assert done.code == 0
    assert "verdicts requested  204" in done.out
    assert f"34 of 204 verdicts were lost or assumed ({counts} assumed)" in done.err
    assert "pass --max-lost or --fail-under" in done.err
    assert "34 of 204 verdicts were lost or assumed (" in call(*asked, "--json").err
    assert call(*asked, "--max-lost", "0.1").code == 3


@pytest.mark.slow
@SCENARIOS
def test_merge(scenario: Scenario, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A merged run has the sum of the counts, and so have its `show`, `metrics` and gates."""
    scenario(openai_server)
    whole = graded(tmp_path, openai_server, name="whole")
    parts = {"first": range(20), "second": range(20, 50)}
    shards = [graded(tmp_path, openai_server, name, data=dataset().subset(at)) for name, at in parts.items()]
    folders = [str(one.experiment_dir) for one in shards]
    done = call("merge", *folders, "--out", str(tmp_path / "merged"), "--json")
    merged = EvalResult.from_experiment(tmp_path / "merged").verdicts
    assert done.json["verdicts"] == merged.to_dict()
    for name in ("asked", "answered", "abstained", "lost", "assumed"):
        counts = [getattr(one.verdicts, name) for one in shards]
        assert getattr(merged, name) == sum(counts) == getattr(whole.verdicts, name)
    assert merged.asked == N_ASKED
    gate = call("metrics", str(tmp_path / "merged"), "--fail-under", "accuracy=0")
    assert (gate.code, TOO_MANY in gate.err) == (3, True)
    assert merge_runs(folders, tmp_path / "again").verdicts == merged


@pytest.mark.slow
@SCENARIOS
def test_judges_audit(scenario: Scenario, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """The text of `judges audit` has the counts of all cells, by judge."""
    scenario(openai_server)
    counts = graded(tmp_path, openai_server).verdicts
    out = " ".join(call("judges", "audit", str(tmp_path / "run"), "--only", "report").out.split())
    told = f"{counts.asked} {counts.answered} {counts.abstained} {counts.lost} {counts.assumed}"
    assert f"openai/judge {told}" in out


def test_redteam(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """`redteam --fail-over` ends with 3 above `--max-lost`, and without a gate at any missing verdict."""
    unmet = {"do": "answer", "payload": {"verdict": "UNMET", "reason": "No."}}
    openai_server.script(unmet, repeat="last")
    lose_one = {"do": "status", "status": 400, "message": "No."}
    openai_server.script(lose_one, contains="It says 0.", repeat="last", anywhere=True)
    file = tmp_path / "data.json"
    dataset().subset(range(1)).to_file(file)
    asked = (
        *("redteam", str(file), "--judge", "hosted_vllm/judge", "--api-base", openai_server.api_base),
        *("--attacks", "override-plain", "--json", "--no-preflight"),
    )
    assert call(*asked).code == 3
    assert call(*asked, "--fail-over", "1").code == 3
    assert call(*asked, "--fail-over", "1", "--max-lost", "0.9").code == 0


def test_compare_tells_assumed_answers_apart(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Scores count assumed answers; a row of its own has the items without any."""
    openai_server.script({"do": "answer", "payload": {"verdict": "MET", "reason": "Yes."}}, repeat="last")
    before = graded(tmp_path, openai_server, name="before")
    prose = {"do": "answer", "content": "I would say that it is met."}
    openai_server.script(prose, contains="It says 0.", repeat="last", anywhere=True)
    after = graded(tmp_path, openai_server, name="after")
    found: RunDifference = run_difference(before, after)
    assert found.score.difference.n_samples == 50
    assert found.score.run == pytest.approx(5 / 6)
    answered = found.score_answered
    assert answered is not None
    assert (answered.difference.n_samples, answered.baseline, answered.run) == (0, None, None)
    assert run_difference(before, before).score_answered is None
    shown = call("compare", str(tmp_path / "before"), str(tmp_path / "after"))
    assert "score without assumed answers" in shown.out
    told: Called = call("compare", str(tmp_path / "before"), str(tmp_path / "after"), "--json")
    assert json.loads(told.out)["difference"]["score_answered"]["difference"]["n_samples"] == 0
