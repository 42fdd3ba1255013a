"""`--judge decision:MODEL`, on the command line and in run files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autorubric import JudgeSpec, LLMConfig
from autorubric.errors import ArgumentError
from autorubric.judges.panel import named_judges
from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer


@pytest.mark.parametrize(
    ("given", "model", "transport"),
    [
        ("decision:jev-1", "jev-1", "systemone_decisions"),
        ("decision:typesafe/jev-1#systemone", "typesafe/jev-1", "systemone_decisions"),
        ("decision:gpt-6-luna#openai", "gpt-6-luna", "openai_decisions"),
    ],
)
def test_a_name_has_the_model_and_the_contract(given: str, model: str, transport: str) -> None:
    """The contract comes after a mark, as the rater of recorded votes does."""
    (judge,) = named_judges([given], api_base="http://localhost:1/v1")
    assert isinstance(judge, LLMConfig)
    assert (judge.model, judge.transport, judge.api_base) == (model, transport, "http://localhost:1/v1")
    (named,) = named_judges([f"fast={given}"])
    assert isinstance(named, JudgeSpec) and named.judge_id == "fast"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("decision:jev#rest", "must be systemone or openai; got 'rest'"),
        ("decision:jev#", "must be systemone or openai; got ''"),
        ("decision:", "not a model name"),
    ],
)
def test_a_wrong_name_is_refused(given: str, message: str) -> None:
    """With what is allowed."""
    with pytest.raises(ArgumentError, match=message):
        named_judges([given])


def test_a_dataset_is_graded_by_a_decision_model(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request an item; `show` says that there are no reasons and prints the probabilities."""
    monkeypatch.setenv("COLUMNS", "240")
    judge = ["--judge", "fast=decision:jev-1#openai", "--api-base", openai_server.api_base]
    ran = cli("eval", dataset, *judge, "--judge", "lexical", "--name", "run")
    assert ran.code == 0, ran.err
    assert [one["path"] for one in openai_server.log()] == ["/v1/decisions"] * 4
    shown = cli("show", "experiments/run", "--item", "a")
    assert "no reason given by this kind of judge" in shown.out
    table = shown.out.partition("Probabilities\n")[2]
    assert f"% (decision model, openai {openai_server.api_base})" in table
    assert {row.split()[1] for row in table.splitlines()[2:] if row} == {"fast"}
    vote = json.loads(cli("show", "experiments/run", "--item", "a", "--json").out)["report"]["criteria"][0][
        "votes"
    ][0]
    assert vote["probability_source"] == "decision_model"
    assert vote["probability_backend"] == f"openai {openai_server.api_base}"
    assert cli("report", "experiments/run", "--out", "report.html").code == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "no reason given by this kind of judge" in page


def test_values_of_soft_votes_are_shown(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """Since they do not follow from the answers, as those of hard votes do."""
    judge = ["--judge", "decision:jev-1", "--api-base", openai_server.api_base]
    for votes in ("soft", "hard"):
        assert cli("eval", dataset, *judge, "--votes", votes, "--name", votes).code == 0
        shown = cli("show", f"experiments/{votes}", "--item", "a")
        (head,) = [row for row in shown.out.splitlines() if row.startswith("criterion  weight")]
        assert ("value" in head.split()) == (votes == "soft")


def test_a_dry_run_says_what_an_estimate_cannot_know(
    cli: Cli, dataset: str, openai_server: OpenAIServer
) -> None:
    """And sends nothing."""
    judge = ["--judge", "decision:jev-1", "--api-base", openai_server.api_base]
    ran = cli("eval", dataset, *judge, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["judges"][0]["calls"] == 4
    assert "a server with lower limits" in json.dumps(ran.json["notes"])
    assert openai_server.log() == []


def test_a_setting_of_text_models_is_refused(cli: Cli, dataset: str) -> None:
    """A decision model has no temperature."""
    judge = ["--judge", "decision:jev-1", "--api-base", "http://127.0.0.1:9/v1"]
    ran = cli("eval", dataset, *judge, "--temperature", "0.5")
    assert ran.code == 2
    assert "temperature cannot be set for a decision model" in " ".join(ran.err.split())


def test_a_run_file_names_a_decision_model(
    cli: Cli, dataset: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """With the settings of any other model."""
    lines = [
        "name: filed",
        f"data: {dataset}",
        "judges:",
        "  - model: decision:jev-1",
        "    name: fast",
        f"    api_base: {openai_server.api_base}",
        "    input_cost_per_token: 0.000001",
        "    output_cost_per_token: 0",
    ]
    Path("run.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran = cli("eval", "run.yaml")
    assert ran.code == 0, ran.err
    assert [one["path"] for one in openai_server.log()] == ["/v1/systemone"] * 4


def test_a_run_file_names_the_transport_only_once(cli: Cli, tmp_path: Path) -> None:
    """A transport beside the contract would be ignored."""
    Path("run.yaml").write_text(
        "data: items.jsonl\njudges:\n  - model: decision:jev-1\n    transport: litellm\n", encoding="utf-8"
    )
    refused = cli("eval", "run.yaml")
    assert refused.code == 2
    assert "judges[0].model (line 3): omit transport='litellm'" in refused.err
