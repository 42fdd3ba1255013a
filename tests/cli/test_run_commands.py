"""`autorubric show`, `compare`, `score`, `rejudge`, and the gates on trust of `metrics`."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import accumulate
from pathlib import Path

import pytest

from autorubric.reports import report_html
from tests.cli.conftest import RUBRIC, Cli, write_votes
from tests.reports.runs import graded as graded_into, kinds_dataset, panel
from tests.servers.fixtures import OpenAIServer


@pytest.fixture
def graded(cli: Cli, dataset: str, votes: str) -> str:
    """A run of two recorded judges, of which one turns `capital` round: `capital` is a tie everywhere."""
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    assert cli("eval", dataset, *judges, "--name", "two").code == 0
    return "experiments/two"


@pytest.fixture
def right(cli: Cli, dataset: str, votes: str) -> str:
    """A run of the recorded judge that gives the labels."""
    assert cli("eval", dataset, "--judge", f"recorded:{votes}#right", "--name", "right").code == 0
    return "experiments/right"


def content_of(folder: str) -> dict[str, str]:
    """Digests of the files in a folder."""
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in Path(folder).iterdir()}


def test_a_run_is_shown(cli: Cli, graded: str) -> None:
    """Its figures, and a row an item with each criterion's answer; votes that differ are marked."""
    shown = cli("show", graded)
    assert shown.code == 0
    assert "Run two" in shown.out and "Items" in shown.out
    row = next(line for line in shown.out.splitlines() if line.startswith("a "))
    assert row.split()[:2] == ["a", "0.333"]
    assert "UNMET (tie)" in shown.out


def test_items_are_chosen_and_sorted(cli: Cli, graded: str, right: str) -> None:
    """Split and wrong items are found, none of a judge that gives the labels; low scores come first."""
    assert [one["id"] for one in cli("show", graded, "--only", "split", "--json").json["items"]] == [*"abcd"]
    assert [one["id"] for one in cli("show", graded, "--only", "wrong", "--json").json["items"]] == ["a", "d"]
    for which in ("failed", "split", "abstained", "wrong"):
        assert cli("show", right, "--only", which, "--json").json["items"] == [], which
    by_score = cli("show", right, "--sort", "score", "--json").json["items"]
    assert [one["id"] for one in by_score] == ["b", "c", "a", "d"]
    cut = cli("show", right, "--limit", "1")
    assert "and 3 more" in cut.out


@pytest.mark.slow
def test_what_is_chosen_is_what_a_report_marks(cli: Cli) -> None:
    """Wrong, split, abstained and failed mean what they do in a report; items without a score come last."""
    run = graded_into(Path("experiments"), kinds_dataset(), panel())
    told = json.loads(re.findall(r'id="data">(.*?)</script>', report_html(run))[0])
    items, flags = told["items"], told["cells"]["flags"]
    spans = [len(items["rubrics"][rubric]) for rubric in items["rubric"]]
    ends = [0, *accumulate(spans)]
    for which, flag in (("wrong", 1), ("split", 2), ("abstained", 4), ("failed", 8)):
        wanted = {
            one
            for one, first, last, score in zip(items["id"], ends, ends[1:], items["score"], strict=False)
            if any(cell & flag for cell in flags[first:last]) or (which == "failed" and score is None)
        }
        found = cli("show", "experiments/parcels", "--only", which, "--json").json["items"]
        assert {one["id"] for one in found} == wanted, which
        assert told["counts"][which]["items"] == len(wanted), which
    by_score = cli("show", "experiments/parcels", "--sort", "score", "--json").json["items"]
    scores = [one["score"] for one in by_score]
    known = [one for one in scores if one is not None]
    assert None in scores and scores == sorted(known) + [None] * (len(scores) - len(known))


def test_an_item_is_shown_with_its_votes(cli: Cli, graded: str) -> None:
    """Its text, each vote and the label; a slip in the id names the nearest."""
    shown = cli("show", graded, "--item", "a")
    assert shown.code == 0
    assert "Paris is the capital of France." in shown.out
    votes = shown.out.partition("Votes")[2]
    rows = [line.split()[:4] for line in votes.splitlines() if line.startswith("capital")]
    assert rows == [
        ["capital", "label", "MET"],
        ["capital", "right", "0", "MET"],
        ["capital", "wrong", "0", "UNMET"],
    ]
    told = cli("show", graded, "--item", "a", "--json").json
    assert set(told) == {"run", "id", "submission", "error", "report", "labels"}
    missing = cli("show", graded, "--item", "aa")
    assert missing.code == 2 and "'aa'" in missing.err and "did you mean 'a'" in missing.err


def test_prompts_are_shown(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """What a model was asked and answered stands below the item; without --item, or a model, it is told."""
    base = ("--api-base", openai_server.api_base)
    assert cli("eval", dataset, "--judge", "openai/double", *base, "--name", "asked").code == 0
    shown = cli("show", "experiments/asked", "--item", "a", "--prompts")
    assert shown.code == 0
    assert "capital, judge " in shown.out and "[system]" in shown.out and "[reply]" in shown.out
    told = cli("show", "experiments/asked", "--item", "a", "--prompts", "--json").json["exchanges"]
    assert sorted(one["criterion"] for one in told) == ["capital", "form", "rude"]
    assert all("Paris is the capital of France." in one["messages"][1]["content"] for one in told)
    refused = cli("show", "experiments/asked", "--prompts")
    assert refused.code == 2 and "--item" in refused.err


def test_no_prompts_are_told(cli: Cli, right: str) -> None:
    """A judge that is no model was sent nothing."""
    done = cli("show", right, "--item", "a", "--prompts")
    assert done.code == 0 and "No prompts are stored" in done.err


def test_runs_are_compared(cli: Cli, graded: str, right: str) -> None:
    """The mean difference with its interval; the gate tells a lower run from a higher one."""
    found = cli("compare", graded, right, "--json")
    assert found.code == 0 and set(found.json) == {"baseline", "run", "regressed", "difference"}
    score = found.json["difference"]["score"]
    assert (score["baseline"], score["run"]) == pytest.approx((1 / 6, 1 / 2))
    assert score["difference"]["mean_bias"] == pytest.approx(1 / 3)
    assert found.json["difference"]["right"]["run"] == 1.0
    shown = cli("compare", graded, right)
    assert "Run against baseline" in shown.out and "capital" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


@pytest.mark.parametrize(("fallen", "code"), [("abcd", 1), ("abc", 0), ("", 0)])
def test_a_regression_is_a_gate(cli: Cli, dataset: str, tmp_path: Path, fallen: str, code: int) -> None:
    """Where every item falls by the same amount it is one; three of four may be chance, none is none."""
    good = {"capital": "MET", "rude": "UNMET", "form": "long"}
    votes = {("good", item): good for item in "abcd"}
    votes |= {("bad", item): {**good, "capital": "UNMET"} if item in fallen else good for item in "abcd"}
    write_votes(tmp_path / "both.csv", votes)
    for rater in ("good", "bad"):
        assert cli("eval", dataset, "--judge", f"recorded:both.csv#{rater}", "--name", rater).code == 0
    assert cli("compare", "experiments/good", "experiments/bad", "--fail-on-regression").code == code
    assert cli("compare", "experiments/bad", "experiments/good", "--fail-on-regression").code == 0


def test_runs_without_common_items_are_refused(cli: Cli, right: str, rubric: str, tmp_path: Path) -> None:
    """Items are matched by id."""
    other = {"rubric": rubric, "items": [{"id": "z", "submission": "Paris"}]}
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    assert cli("eval", "other.json", "--judge", "lexical", "--name", "other").code == 0
    done = cli("compare", right, "experiments/other")
    assert done.code == 2 and "no items in common" in done.err


def test_votes_are_scored_under_other_weights(cli: Cli, graded: str, tmp_path: Path) -> None:
    """With `form` alone of weight, the score is that of `form`; the folder stays as it was."""
    before = content_of(graded)
    text = RUBRIC.replace("weight: 4", "weight: 0").replace("weight: -2", "weight: 0")
    (tmp_path / "new.yaml").write_text(text, encoding="utf-8")
    done = cli("score", graded, "--rubric", "new.yaml", "--json")
    assert done.code == 0
    assert {one["id"]: one["score"] for one in done.json["items"]} == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.0}
    assert done.json["mean_score"] == 0.75 and done.json["mean_score_before"] == pytest.approx(1 / 6)
    shown = cli("score", graded, "--rubric", "new.yaml", "--fail-under", "0.8")
    assert shown.code == 1 and "changed scores" in shown.out
    assert content_of(graded) == before


def test_votes_are_scored_under_other_policies(cli: Cli, graded: str) -> None:
    """One MET is enough under `any`; weights break the tie; what is no policy is refused."""
    found = cli("score", graded, "--aggregation", "any", "--json").json
    assert [one["score"] for one in found["items"]] == pytest.approx([1, 2 / 3, 2 / 3, 1])
    weighted = cli("score", graded, "--aggregation", "weighted", "--weight", "right=3", "--json").json
    assert [one["score"] for one in weighted["items"]] == pytest.approx([1, 0, 0, 1])
    for faulty, told in [
        (("--aggregation", "most"), "'most'"),
        (("--weight", "rigth=2"), "did you mean 'right'"),
        (("--weight", "right=-1"), "finite and positive"),
        (("--weight", "right"), "JUDGE=W"),
        (("--cannot-assess", "never"), "'skip', 'zero', 'partial', 'fail'"),
        ((), "nothing to change"),
    ]:
        refused = cli("score", graded, *faulty)
        assert refused.code == 2 and told in refused.err, faulty


def test_what_was_not_asked_has_no_votes(cli: Cli, graded: str, tmp_path: Path) -> None:
    """A criterion in other words is named and left out; a rubric without a common one is refused."""
    (tmp_path / "new.yaml").write_text(RUBRIC.replace("insults", "praises"), encoding="utf-8")
    done = cli("score", graded, "--rubric", "new.yaml", "--json")
    assert "rude" in done.err and "capital" not in done.err
    (tmp_path / "else.yaml").write_text("- name: x\n  requirement: Something else.\n", encoding="utf-8")
    refused = cli("score", graded, "--rubric", "else.yaml")
    assert refused.code == 2 and "has no criterion in common" in refused.err


def test_other_judges_grade_the_same(cli: Cli, right: str) -> None:
    """A new run beside the old one, compared with it; started again under its name it asks nobody."""
    before = content_of(right)
    done = cli("rejudge", right, "--judge", "lexical", "--name", "again", "--json", "--no-progress")
    assert done.code == 0 and set(done.json) == {"run", "rejudged", "regressed", "difference"}
    assert done.json["difference"]["n_items"] == 4
    assert Path("experiments/again/manifest.json").exists()
    assert cli("metrics", "experiments/again").code == 0
    assert content_of(right) == before
    shown = cli("rejudge", right, "--judge", "lexical", "--name", "again", "--no-progress")
    assert shown.code == 0 and "Run against baseline" in shown.out


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("kappa=0.2", 0),
        ("kappa=0.99", 1),
        ("accuracy@capital=0.5", 0),
        ("accuracy@capital=0.51", 1),
        ("kappa@form=1", 0),
        ("precision@form=0.1", 3),
        ("kapa=1", 2),
        ("kappa@capitol=1", 2),
        ("kappa", 2),
        ("kappa=nan", 2),
        ("spearman@form=1", 2),
    ],
)
def test_trust_is_a_gate(cli: Cli, graded: str, gate: str, code: int) -> None:
    """Figures of the panel, of all criteria or one; undefined ones pass no gate, unknown ones are usage."""
    assert cli("metrics", graded, "--fail-under", gate).code == code


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("essay-10", "did you mean 'essay-100' or 'essay-101' or 'essay-102'?"), ("zzz", "150 items:")],
)
def test_an_unknown_item_is_answered_with_near_ids(cli: Cli, tmp_path: Path, wanted: str, said: str) -> None:
    """Never with the ids of all items."""
    items = [{"id": f"essay-{n}", "submission": "x"} for n in range(100, 250)]
    content = {"name": "d", "rubric": {"criteria": [{"requirement": "It is short."}]}, "items": items}
    (tmp_path / "d.json").write_text(json.dumps(content), encoding="utf-8")
    assert cli("eval", "d.json", "--judge", "lexical", "--name", "r").code == 0
    done = cli("show", "experiments/r", "--item", wanted)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert done.err.count("essay-") <= 4


def test_damage_is_reported_once_and_names_a_missing_file(cli: Cli, graded: str, right: str) -> None:
    """`score` and `compare` say once that items.jsonl is missing; `compare` says in which run."""
    (Path(graded) / "items.jsonl").unlink()
    told = "items.jsonl is damaged: the file is missing. 4 items count as not scored"
    for command in (("score", graded, "--aggregation", "any"), ("compare", graded, right)):
        done = cli(*command)
        assert done.err.count("items.jsonl is damaged") == 1, done.err
        assert told in done.err and "1 line" not in done.err
    assert f"two: {told}" in done.err
