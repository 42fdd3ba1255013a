"""`autorubric demo`."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from autorubric import DataItem, RubricDataset
from autorubric.cli.demo_figures import label_score
from autorubric.cli.runs import criterion_figure
from autorubric.demo import demo_dataset, summary_dataset, summary_judges
from tests.cli.conftest import Cli, Ran
from tests.conftest import SHARED_DATA
from tests.proof.real_data import cells, summhay
from tests.servers.fixtures import OpenAIServer

DEMO_KEYS = {"experiment_dir", "judges", "n_train", "n_test", "mean_score", "items", "metrics", "real_judges"}


def test_the_packaged_dataset_is_complete() -> None:
    """The packaged dataset has its items, its criteria and the word that it is synthetic."""
    dataset = demo_dataset()
    assert len(dataset) == 72
    assert dataset.num_criteria == 9
    assert "invented" in str(demo_dataset.__doc__) and dataset.metadata["synthetic"]


@pytest.mark.slow
def test_the_demo_does_the_main_job_offline_and_again(cli: Cli) -> None:
    """It trains, grades, measures and tells where the run lies; a second run takes what is stored."""
    first = cli("demo")
    assert first.code == 0
    assert first.err.startswith("Grading 32 replies with two offline judges …\nGrading 200 summaries")
    for word in (
        "synthetic",
        "baseline",
        "lexical",
        "supervised",
        "panel",
        "kappa",
        "experiments/demo-summaries",
    ):
        assert word in first.out
    for name in demo_dataset().criterion_names:
        assert name in first.out
    assert 'in "tomorrow", "Friday", "noon"' in " ".join(first.out.split())
    assert "\\n" not in first.out and max(map(len, first.out.splitlines())) <= 100
    votes = Path("experiments/demo/votes.jsonl").read_bytes()
    again = cli("demo")
    assert again.out == first.out
    assert Path("experiments/demo/votes.jsonl").read_bytes() == votes
    found = cli("demo", "--json").json
    assert set(found) == DEMO_KEYS
    assert found["judges"] == ["lexical", "supervised"]
    assert (found["n_train"], found["n_test"], len(found["items"])) == (40, 32, 32)
    _check_floor(found["metrics"])


@pytest.mark.slow
def test_the_demo_shows_real_judges(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six models are compared with a person: agreement, leniency, the panel, the corrected coverage."""
    done = cli("demo")
    monkeypatch.setenv("COLUMNS", "80")
    audit = ("judges", "audit", "experiments/demo-summaries")
    audited = cli(*audit).out
    assert len(audited.splitlines()) <= 38 and "\ngemini-1.5-pro  " in audited
    assert "The clearest bias is claude3-haiku's leniency" in audited
    full = " ".join(cli(*audit, "--full").out.split())
    assert "ties count as the conservative answer" in audited and "Panel accuracy" not in full
    assert "correctness breaks ties at random and counts values as 1 - absolute error." in full
    rows = [line.split() for line in done.out.split("Real judges")[1].splitlines()]
    kappas = {row[0]: float(row[1]) for row in rows if len(row) == 4 and row[3][0] in "+−"}
    assert list(kappas) == sorted(kappas, key=lambda name: -kappas[name])
    assert set(kappas) == {judge.judge_id for judge in summary_judges()}
    text = " ".join(done.out.split())
    assert "Most lenient: claude3-haiku, +0.28" in text
    assert "The panel does not beat its best member, gemini-1.5-pro" in text
    found = cli("demo", "--json").json["real_judges"]
    assert found["report"] is None
    assert found["metrics"]["n_items"] == 200
    assert sum(one["n_samples"] for one in found["metrics"]["per_criterion"]) == 1419
    corrected = found["corrected_score"]["score"]
    truth = summary_dataset()
    scores = [label_score(truth, at) for at in range(len(truth))]
    assert corrected["low"] <= sum(score or 0.0 for score in scores) / len(scores) <= corrected["high"]
    assert found["corrected_score"]["n_labelled"] == 50


@pytest.mark.slow
def test_the_report_of_the_real_judges(cli: Cli) -> None:
    """With --report the page is written into the run's folder."""
    done = cli("demo", "--report")
    page = Path("experiments/demo-summaries/report.html")
    assert str(page) in done.out
    assert "gemini-1.5-pro" in page.read_text(encoding="utf-8")


@pytest.mark.shared_data
def test_the_summaries_are_those_that_were_published() -> None:
    """Texts, insights and every label are those of the full dataset."""
    full = summhay(SHARED_DATA / "summhay")
    small = summary_dataset()
    assert [item.submission for item in small] == [item.submission for item in full]
    for at, item in enumerate(small):
        ours, theirs = small.get_item_rubric(at), full.get_item_rubric(at)
        assert [one.requirement for one in ours] == [one.requirement for one in theirs]
        truth = small.item_truth(at) or {}
        human = full[at].ratings["human"]
        assert isinstance(human, dict) and list(truth.values()) == list(human.values()), item.id
    theirs_by_judge = {rater: cells("summhay")[rater] for rater in cells("summhay") if rater != "human"}
    for judge in summary_judges():
        recorded = theirs_by_judge[judge.judge_id]
        assert [vote[0] for vote in judge.votes.values()] == list(recorded.values())


def test_the_licence_of_the_summaries_ships_with_them() -> None:
    """The package has the licence's text and the source of the data."""
    folder = files("autorubric.demo")
    assert "Apache License" in folder.joinpath("LICENSE-summhay.txt").read_text(encoding="utf-8")
    assert "salesforce/summary-of-a-haystack" in summary_dataset().metadata["source"]
    assert len(folder.joinpath("summhay.json").read_bytes()) < 400_000


def _check_floor(metrics: dict[str, Any]) -> None:
    """The supervised judge is better than chance on the whole, and nothing failed."""
    assert metrics["per_judge"]["supervised"]["mean_kappa"] > 0.2
    assert metrics["per_judge"]["lexical"]["mean_kappa"] > 0.0
    assert metrics["failure_rate"] == 0.0


@pytest.mark.slow
def test_another_seed_is_another_run(cli: Cli) -> None:
    """Another split lies in a folder of its own, where `--runs-dir` says."""
    done = cli("demo", "--seed", "1", "--runs-dir", "runs", "--json")
    assert done.code == 0
    assert Path(done.json["experiment_dir"]) == Path("runs/demo-seed1")


def asked(cli: Cli, server: OpenAIServer, *more: str) -> Ran:
    """The demo with a model at the server."""
    return cli("demo", "--model", "hosted_vllm/m1", "--api-base", server.api_base, *more)


def test_a_model_judges_alone(cli: Cli, openai_server: OpenAIServer) -> None:
    """With a model the panel is that model, in a folder of its own."""
    done = asked(cli, openai_server)
    assert done.code == 0
    assert "hosted_vllm/m1 was the only judge" in done.out
    assert "supervised" not in done.out
    assert Path("experiments/demo-hosted_vllm-m1").is_dir()
    calls = len(openai_server.log())
    found = asked(cli, openai_server, "--json").json
    assert found["judges"] == ["hosted_vllm/m1"]
    assert len(openai_server.log()) == calls >= 32 * 9


def test_the_model_may_come_from_the_environment(
    cli: Cli, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AUTORUBRIC_MODEL names the model where no flag does."""
    monkeypatch.setenv("AUTORUBRIC_MODEL", "hosted_vllm/m2")
    found = cli("demo", "--api-base", openai_server.api_base, "--json").json
    assert found["judges"] == ["hosted_vllm/m2"]


def test_a_model_that_refuses_exits_with_three(cli: Cli, openai_server: OpenAIServer) -> None:
    """Where the model answers nothing, that is said, and why."""
    openai_server.script({"do": "status", "status": 401, "message": "bad key"}, repeat="last")
    done = asked(cli, openai_server)
    assert (done.code, done.out) == (3, "")
    assert "failed its test request" in done.err and "bad key" in done.err


def test_a_reply_that_fails_is_told(cli: Cli, openai_server: OpenAIServer) -> None:
    """Where one reply cannot be judged the demo goes on with the rest and says so."""
    needle = json.dumps(demo_dataset().split_train_test(40, seed=0)[1][1].submission)[1:40]
    openai_server.script({"do": "status", "status": 400, "message": "no"}, contains=needle, repeat="last")
    done = asked(cli, openai_server)
    assert done.code == 3
    assert "1 replies could not be judged" in done.err


def test_what_has_no_label_has_no_figure() -> None:
    """Without labels there is no score of theirs, and on levels without categories no accuracy."""
    unlabelled = RubricDataset(rubric=demo_dataset().rubric, items=[DataItem(submission="text")])
    assert label_score(unlabelled, 0) is None
    assert criterion_figure(object(), "kappa") is None
