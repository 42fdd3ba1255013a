"""`autorubric judges compare` and `autorubric judges audit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, TEXTS, Cli


@pytest.fixture
def graded(cli: Cli, dataset: str, votes: str) -> str:
    """A run of two recorded judges."""
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    assert cli("eval", dataset, *judges, "--name", "two").code == 0
    return "experiments/two"


def test_every_two_judges_are_compared(cli: Cli, graded: str) -> None:
    """`right` gives all labels and `wrong` 8 of 12: a gap of a third, with an adjusted p."""
    done = cli("judges", "compare", graded, "--json")
    assert (done.code, set(done.json)) == (0, {"run", "comparison"})
    (pair,) = done.json["comparison"]["judges"]
    assert (pair["a"], pair["b"]) == ("right", "wrong")
    assert pair["comparison"]["difference"]["value"] == pytest.approx(1 / 3)
    assert pair["adjusted_p"] >= pair["comparison"]["p_value"]
    assert done.json["comparison"]["panel"]["b"] == "right"
    shown = cli("judges", "compare", graded)
    assert shown.code == 0
    assert "Every two judges" in shown.out and "p (holm)" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_the_audit_says_what_to_look_at_first(cli: Cli, graded: str) -> None:
    """Tables: the report's headline, the panel's audit and the leanings."""
    shown = cli("judges", "audit", graded)
    assert shown.code == 0
    assert shown.out.startswith("What to look at first")
    for title in ("Judges, mean over criteria", "Cells without an answer", "Leave one judge out"):
        assert title in shown.out, title


def test_the_audit_as_json(cli: Cli, graded: str) -> None:
    """One object with the report's headline and both audits; criteria are left to Python."""
    done = cli("judges", "audit", graded, "--json")
    assert (done.code, set(done.json)) == (0, {"run", "report", "panel", "bias"})
    report = done.json["report"]
    assert set(report["per_judge"]) == {"right", "wrong"}
    assert report["per_judge"]["right"]["macro"]["accuracy"]["value"] == 1.0
    assert "per_criterion" not in report["panel"] and "reliability" not in report
    assert done.json["panel"]["judges"] == ["right", "wrong"]


def test_people_stand_beside_the_judges(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """Where several people labelled an item, the audit sets each against the rest."""
    content = json.loads((tmp_path / dataset).read_text(encoding="utf-8"))
    for item in content["items"]:
        item["ratings"] = dict.fromkeys(("ann", "bo", "cy"), LABELS[item["id"]])
    (tmp_path / "rated.json").write_text(json.dumps(content), encoding="utf-8")
    cli("eval", "rated.json", "--judge", f"recorded:{votes}#wrong", "--name", "rated")
    found = cli("judges", "audit", "experiments/rated", "--json").json["report"]["human_ceiling"]
    assert found["humans"] == ["ann", "bo", "cy"]
    assert found["macro"]["accuracy"]["value"] == 1.0
    assert "per_human" not in found
    assert "people (each against the rest)" in cli("judges", "audit", "experiments/rated").out


def test_the_same_seed_the_same_figures(cli: Cli, graded: str) -> None:
    """`--seed` decides the resampling; without it, it is 0."""
    for command in ("compare", "audit"):
        first, again = (
            cli("judges", command, graded, "--json", *more).json for more in ((), ("--seed", "0"))
        )
        assert first == again


@pytest.mark.parametrize("command", ["compare", "audit"])
def test_a_run_without_labels_needs_a_dataset(cli: Cli, votes: str, rubric: str, command: str) -> None:
    """Unlabelled runs are refused, and measured with the labels that `--dataset` brings."""
    items = [{"id": name, "submission": text} for name, text in TEXTS.items()]
    plain = {"name": "capitals", "rubric": rubric, "items": items}
    Path("plain.json").write_text(json.dumps(plain), encoding="utf-8")
    labelled = [item | {"ground_truth": LABELS[str(item["id"])]} for item in items]
    Path("labelled.json").write_text(json.dumps(plain | {"items": labelled}), encoding="utf-8")
    cli("eval", "plain.json", "--judge", f"recorded:{votes}#right", "--name", "plain")
    refused = cli("judges", command, "experiments/plain")
    assert (refused.code, refused.out) == (2, "")
    assert "--dataset" in refused.err
    assert cli("judges", command, "experiments/plain", "--dataset", "labelled.json").code == 0


@pytest.mark.parametrize("command", ["compare", "audit"])
def test_a_folder_that_is_no_run(cli: Cli, command: str) -> None:
    """A folder without a run ends with 2 and names it."""
    done = cli("judges", command, "nowhere")
    assert (done.code, done.out) == (2, "")
    assert "nowhere" in done.err


def test_one_judge_is_compared_with_nobody(cli: Cli, dataset: str, votes: str) -> None:
    """A run of one judge says so, and is audited all the same."""
    cli("eval", dataset, "--judge", f"recorded:{votes}#wrong", "--name", "one")
    assert "one judge" in cli("judges", "compare", "experiments/one").out
    assert cli("judges", "audit", "experiments/one").code == 0
