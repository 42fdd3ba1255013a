"""`autorubric redteam`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer

CALL = ("redteam", "texts.json", "--judge", "lexical")


def test_rates_and_attacks_are_shown(cli: Cli, dataset: str) -> None:
    """Figures by family and criterion, and the attacks that worked, are tables on stdout."""
    done = cli(*CALL)
    assert done.code == 0, done.err
    for shown in ("Attacks on the judges", "flip rate", "noise", "delimiters", "capital", "control"):
        assert shown in done.out


def test_json_has_every_flip(cli: Cli, dataset: str) -> None:
    """With --json every figure and every flip is in one object."""
    told = cli(*CALL, "--json").json
    assert (told["items"], told["attacks"], told["gradings"]) == (4, 40, 4 * (2 + 40 + 2 - 2))
    assert set(told["by_criterion"]) == {"capital", "rude", "form"}
    assert len(told["flips"]) == told["overall"]["counts"]["flipped"]
    assert {"item_id", "criterion", "attack", "family", "clean", "attacked"} == set(told["flips"][0])
    assert told["overall"]["noise"]["value"] == 0


def test_attacks_and_items_can_be_limited(cli: Cli, dataset: str) -> None:
    """--attacks takes families and ids, --limit the first items; the controls stay."""
    told = cli(*CALL, "--attacks", "roles, override-plain", "--limit", "2", "--json").json
    assert (told["items"], told["attacks"], told["gradings"]) == (2, 7, 2 * (2 + 7 + 2))


@pytest.mark.parametrize(("bar", "code"), [("0", 1), ("1", 0)])
def test_the_gate(cli: Cli, dataset: str, bar: str, code: int) -> None:
    """Over --fail-over the exit code is 1."""
    assert cli(*CALL, "--fail-over", bar).code == code


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--attacks", "nosuch"), "unknown attack or family 'nosuch'"),
        (("--limit", "0"), "--limit"),
        (("--fail-over", "2"), "--fail-over"),
    ],
)
def test_faulty_arguments(cli: Cli, dataset: str, more: tuple[str, ...], told: str) -> None:
    """They end with 2, and say what is wrong."""
    done = cli(*CALL, *more)
    assert done.code == 2
    assert told in done.err


def test_recorded_votes_cannot_be_attacked(cli: Cli, dataset: str, votes: str) -> None:
    """They read no text, and so a rate would say nothing."""
    done = cli("redteam", dataset, "--judge", f"recorded:{votes}#right")
    assert done.code == 2
    assert "recorded judges repeat stored votes" in done.err


def test_a_model_that_is_down_is_not_robust(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be judged, so the exit code is 3, and the reason is shown instead of a rate."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    openai_server.script({"do": "status", "status": 401}, repeat="last")
    done = cli(
        "redteam", dataset, "--judge", "hosted_vllm/m", "--api-base", openai_server.api_base,
        "--attacks", "tools", "--limit", "1", "--json",
    )  # fmt: skip
    assert done.code == 3
    assert done.out == ""
    assert "failed its test request" in done.err and "401" in done.err
    assert len(openai_server.log()) == 1


def test_a_rubric_in_place_of_the_datasets(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """--rubric judges by other criteria; labels that do not fit them are refused as for eval."""
    items = [{"id": "a", "submission": "Lyon."}]
    (tmp_path / "plain.json").write_text(json.dumps(items), encoding="utf-8")
    told = cli("redteam", "plain.json", "--rubric", "rubric.yaml", "--judge", "lexical", "--json").json
    assert told["items"] == 1
