"""`autorubric demo`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import DataItem, RubricDataset
from autorubric.cli._demo_blocks import accuracy_and_kappa, label_score
from autorubric.demo import demo_dataset
from tests.cli.conftest import Cli, Ran
from tests.servers.fixtures import OpenAIServer

DEMO_KEYS = {"experiment_dir", "judges", "n_train", "n_test", "mean_score", "items", "metrics"}


def test_the_packaged_dataset_is_complete() -> None:
    """The packaged dataset has its items, its criteria and the word that it is synthetic."""
    dataset = demo_dataset()
    assert len(dataset) == 72
    assert dataset.num_criteria == 9
    assert "made up" in str(demo_dataset.__doc__) and dataset.metadata["synthetic"]


def test_the_demo_does_the_main_job_offline_and_again(cli: Cli) -> None:
    """It trains, grades, measures and tells where the run lies; a second run takes what is stored."""
    first = cli("demo")
    assert (first.code, first.err) == (0, "")
    for word in ("synthetic", "floor", "lexical", "supervised", "panel", "kappa", "experiments/demo"):
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


def _check_floor(metrics: dict[str, Any]) -> None:
    """The supervised judge is better than chance on the whole, and nothing failed."""
    assert metrics["per_judge"]["supervised"]["mean_kappa"] > 0.2
    assert metrics["per_judge"]["lexical"]["mean_kappa"] > 0.0
    assert metrics["failure_rate"] == 0.0


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
    assert "hosted_vllm/m1 judged alone" in done.out
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
    assert "No reply could be judged" in done.err and "bad key" in done.err


def test_a_reply_that_fails_is_told(cli: Cli, openai_server: OpenAIServer) -> None:
    """Where one reply cannot be judged the demo goes on with the rest and says so."""
    needle = json.dumps(demo_dataset().split_train_test(40, seed=0)[1][0].submission)[1:40]
    openai_server.script({"do": "status", "status": 400, "message": "no"}, contains=needle, repeat="last")
    done = asked(cli, openai_server)
    assert done.code == 3
    assert "1 replies could not be judged" in done.err


def test_what_has_no_label_has_no_figure() -> None:
    """Without labels there is no score of theirs, and on levels without categories no accuracy."""
    unlabelled = RubricDataset(rubric=demo_dataset().rubric, items=[DataItem(submission="text")])
    assert label_score(unlabelled, 0) is None
    assert accuracy_and_kappa(object()) == (None, None)
