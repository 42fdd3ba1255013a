"""`autorubric grade`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, Cli, write_votes
from tests.servers.fixtures import OpenAIServer

TEXT = "Paris is the capital of France."
CRITERION_KEYS = {
    *("name", "weight", "status", "answer", "value", "reason", "agreement", "tie", "error", "votes")
}
VOTE_KEYS = {
    "judge",
    "sample",
    "status",
    "answer",
    "value",
    "reason",
    "confidence",
    "probabilities",
    "probability_source",
    "probability_backend",
    "probability_reason",
    "error",
}
REPORT_KEYS = {
    *("truth", "metadata", "score", "raw_score", "error", "node_scores", "judge_scores", "mean_agreement"),
    *("cannot_assess_count", "verdicts", "tokens", "cost", "criteria"),
}


def test_a_text_is_graded_into_a_table(cli: Cli, rubric: str) -> None:
    """The table names each criterion with its weight, answer and evidence, and the score stands below."""
    done = cli("grade", TEXT, "--rubric", rubric, "--judge", "lexical")
    assert (done.code, done.err) == (0, "")
    row = next(line for line in done.out.splitlines() if line.startswith("capital"))
    assert row.split()[1:3] == ["4", "MET"]
    assert '"paris"' in row
    assert "\nscore" in done.out


def test_groups_are_listed_with_their_scores(cli: Cli, tmp_path: Path) -> None:
    """A nested rubric has a second table."""
    criteria = [{"name": "capital", "requirement": "It names Paris."}]
    nested = {"criteria": [{"name": "facts", "criteria": criteria}]}
    (tmp_path / "nested.json").write_text(json.dumps(nested), encoding="utf-8")
    done = cli("grade", TEXT, "--rubric", "nested.json", "--judge", "lexical")
    assert "\nfacts " in done.out
    as_json = cli("grade", TEXT, "--rubric", "nested.json", "--judge", "lexical", "--json").json
    assert list(as_json["node_scores"]) == ["", "facts"]


def test_json_is_one_object_with_stable_keys(cli: Cli, rubric: str) -> None:
    """`--json` prints one object, with the documented keys on every level."""
    done = cli("grade", TEXT, "--rubric", rubric, "--judge", "lexical", "--json")
    assert set(done.json) == REPORT_KEYS
    assert [set(one) for one in done.json["criteria"]] == [CRITERION_KEYS] * 3
    assert {frozenset(vote) for one in done.json["criteria"] for vote in one["votes"]} == {
        frozenset(VOTE_KEYS)
    }
    assert done.json["judge_scores"] == {"lexical": done.json["score"]}


def test_the_text_may_come_from_a_file_or_standard_input(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """An argument, a file and standard input give the same report."""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    judged = ("--rubric", rubric, "--judge", "lexical", "--json")
    wanted = cli("grade", TEXT, *judged).json
    assert cli("grade", "--file", "text.txt", *judged).json == wanted
    assert cli("grade", "--file", "-", *judged, given=TEXT).json == wanted
    assert cli("grade", "-", *judged, given=TEXT).json == wanted


def test_a_panel_shows_agreement_and_each_judges_score(cli: Cli, rubric: str, votes: str) -> None:
    """Two recorded judges that contradict each other tie, and both scores are told."""
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    done = cli("grade", TEXT, "--rubric", rubric, *judges, "--item-id", "a")
    assert done.code == 0
    assert "agreement" in done.out
    assert "UNMET (tie)" in done.out
    assert "score by right  1.000" in done.out
    assert "mean agreement  0.833" in done.out


def test_query_and_reference_reach_the_judge(cli: Cli, rubric: str, openai_server: OpenAIServer) -> None:
    """A model is asked at `--api-base` and shown the query and the reference; tokens are counted."""
    done = cli(
        *(
            "grade",
            TEXT,
            "--rubric",
            rubric,
            "--judge",
            "hosted_vllm/m1",
            "--api-base",
            openai_server.api_base,
        ),
        *("--query", "Which capital?", "--reference", "It is Paris."),
    )
    assert done.code == 0
    asked = str(openai_server.log()[0]["body"]["messages"])
    assert "Which capital?" in asked and "It is Paris." in asked
    assert "tokens" in done.out


@pytest.mark.parametrize(("least", "code"), [("0.99", 0), ("1.0", 0), ("1.01", 2)])
def test_a_score_below_the_least_exits_with_one(
    cli: Cli, rubric: str, votes: str, least: str, code: int
) -> None:
    """A score of 1 is not below `--fail-under` up to 1; more than 1 is refused."""
    judge = f"recorded:{votes}#right"
    done = cli("grade", TEXT, "--rubric", rubric, "--judge", judge, "--item-id", "a", "--fail-under", least)
    assert done.code == code


def test_an_abstention_is_told_in_words(cli: Cli, rubric: str, dataset: str, tmp_path: Path) -> None:
    """`grade` and `show` say `abstained` where the panel did, and nowhere null."""
    write_votes(tmp_path / "open.csv", {("one", "a"): {**LABELS["a"], "rude": "CANNOT_ASSESS"}})
    judge = ("--judge", "recorded:open.csv")
    graded = cli("grade", TEXT, "--rubric", rubric, *judge, "--item-id", "a").out
    cli("eval", dataset, *judge, "--name", "run")
    shown = cli("show", "experiments/run", "--item", "a").out
    listed = cli("show", "experiments/run").out
    for out in (graded, shown):
        assert next(line for line in out.splitlines() if line.startswith("rude")).split()[2] == "abstained"
    assert next(line for line in listed.splitlines() if line.startswith("a ")).split()[3] == "abstained"
    assert "null" not in graded + shown + listed


def test_what_no_judge_knows_exits_with_three(cli: Cli, rubric: str, votes: str) -> None:
    """Without a vote there is no score, and stderr says why; the JSON has null for it."""
    call = ("grade", TEXT, "--rubric", rubric, "--judge", f"recorded:{votes}#right")
    done = cli(*call, "--json")
    assert done.code == 3
    assert done.json["score"] is None
    assert "No score: " in done.err
    assert "not asked" in cli(*call).out


def test_a_criterion_that_failed_is_told_beside_the_score(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """Where a part could not be judged there is a score, and a warning."""
    write_votes(tmp_path / "some.csv", {("one", "a"): {**LABELS["a"], "rude": "INVALID"}})
    done = cli("grade", TEXT, "--rubric", rubric, "--judge", "recorded:some.csv", "--item-id", "a")
    assert done.code == 0
    assert "no readable vote" in done.out.replace("\n", " ")
    assert "Warning: 1 of 3 criteria could not be judged" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["text", "--rubric", "nope.yaml", "--judge", "lexical"], "nope.yaml"),
        (["--file", "nope.txt", "--rubric", "rubric.yaml", "--judge", "lexical"], "nope.txt"),
        (["--file", "latin.txt", "--rubric", "rubric.yaml", "--judge", "lexical"], "latin.txt"),
        (["--rubric", "rubric.yaml", "--judge", "lexical"], "--file"),
        (["text", "--file", "x", "--rubric", "rubric.yaml", "--judge", "lexical"], "--file"),
        (["text", "--rubric", "bad.yaml", "--judge", "lexical"], "bad.yaml"),
        (["text", "--rubric", "rubric.yaml", "--judge", "lexical", "--judge", "lexical"], "lexical"),
    ],
)
def test_faulty_input_exits_with_two_and_is_named(
    cli: Cli, rubric: str, tmp_path: Path, arguments: list[str], told: str
) -> None:
    """What is wrong with the command line or a file is named on stderr; stdout stays empty."""
    (tmp_path / "latin.txt").write_bytes("Österreich".encode("latin-1"))
    (tmp_path / "bad.yaml").write_text("criteria:\n  - {requirement: r, weigth: 3}\n", encoding="utf-8")
    done = cli("grade", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_texts_cannot_steer_the_terminal(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """Escape sequences in a reason are written out, and markup in it is text."""
    write_votes(
        tmp_path / "sly.csv", {("one", "a"): LABELS["a"]}, reason="\x1b[2J\x9b31m [red]b[/red] \u202e"
    )
    done = cli("grade", TEXT, "--rubric", rubric, "--judge", "recorded:sly.csv", "--item-id", "a")
    assert done.code == 0
    assert "\x1b" not in done.out and "\x9b" not in done.out and "\u202e" not in done.out
    assert r"\x1b[2J\x9b31m [red]b[/red] \u202e" in done.out
