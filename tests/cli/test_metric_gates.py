"""Sensitivity and specificity on the command line: in `metrics`, in JUnit and as gates."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cli

N = 20


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> str:
    """A run on `apology` (TPR 9 of 10, TNR 6 of 10), `tone, or style` (right, nothing MET) and `depth`."""
    items, votes = [], {}
    for at in range(N):
        met, item = at % 2 == 0, f"i{at}"
        labels = {"apology": "MET" if met else "UNMET", "tone, or style": "UNMET", "depth": "low"}
        wrong = at == 0 or at in (1, 3, 5, 7)
        said = labels | ({"apology": "UNMET" if met else "MET"} if wrong else {})
        items.append({"id": item, "submission": f"text {at}", "ground_truth": labels})
        votes["judge", item] = said
    criteria = [
        {"name": "apology", "requirement": "It apologises."},
        {"name": "tone, or style", "requirement": "It is rude."},
        {
            "name": "depth",
            "requirement": "How deep?",
            "scale_type": "ordinal",
            "options": [{"label": "low", "value": 0}, {"label": "high", "value": 1}],
        },
    ]
    content = {"name": "d", "rubric": {"criteria": criteria}, "items": items}
    (tmp_path / "d.json").write_text(json.dumps(content), encoding="utf-8")
    lines = ["item_id,criterion,rater,rater_type,value"]
    lines += [
        f'{item},"{criterion}",{rater},llm,{value}'
        for (rater, item), labels in votes.items()
        for criterion, value in labels.items()
    ]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert cli("eval", "d.json", "--judge", "recorded:v.csv#judge", "--name", "r").code == 0
    return "experiments/r"


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("tpr=.9", 0),
        ("tpr=.9,tnr=.8", 0),
        ("sensitivity=.9,specificity=.81", 1),
        ("tpr=.91,tnr=.8", 1),
        ("tnr@apology=.6", 0),
        ("tnr@apology=.61", 1),
        ("tnr.low@apology=.31", 0),
        ("tnr.low@apology=.32", 1),
        ("recall.low=.42", 0),
        ("tpr.low=.89", 1),
        ("tnr@tone, or style=1,tpr=.5", 0),
        ("tpr=.5, kappa@apology=0.5, accuracy=.9", 0),
        ("spearman.low=-1", 0),
        ("tpr@tone, or style=0", 3),
        ("tpr.low@tone, or style=0", 3),
        ("tpr@depth=0.1", 3),
        ("tpr=.91,tpr@tone, or style=0", 3),
        ("tnr=85", 2),
        ("kappa.low=0", 0),
        ("kappa.low=.5", 1),
        ("accuracy.low=.5", 0),
        ("accuracy.low=.99", 1),
        ("kappa.low@apology=.5", 2),
        ("f1.low=.5", 2),
        ("tpr.high=.5", 2),
        ("tpr@=.5", 2),
        ("tpr=.5,", 2),
        ("tpr", 2),
    ],
)
def test_true_rates_are_gates(cli: Cli, run: str, gate: str, code: int) -> None:
    """Of all criteria or one, on the figure or its lower end; what is undefined never passes."""
    assert cli("metrics", run, "--fail-under", gate).code == code


def test_an_undefined_rate_says_why(cli: Cli, run: str) -> None:
    """The message names the gate and the class of labels that is missing."""
    done = cli("metrics", run, "--fail-under", "tpr@tone, or style=0")
    assert "tpr@tone, or style is undefined (no answered item is labelled MET)" in done.err
    partly = cli("metrics", run, "--fail-under", "tpr=.5")
    assert partly.code == 0
    assert "tpr is the mean over 1 of 2 criteria; it is undefined on the others" in partly.err
    scale = cli("metrics", run, "--fail-under", "tnr@depth=.5")
    assert "tnr@depth is undefined (not computed for ordinal criteria)" in scale.err


def graded(cli: Cli, folder: Path, labels: list[str], said: list[str]) -> str:
    """A run on one criterion with these labels and verdicts."""
    items = [{"id": f"i{at}", "submission": "x", "ground_truth": [one]} for at, one in enumerate(labels)]
    content = {"rubric": {"criteria": [{"name": "apology", "requirement": "It apologises."}]}, "items": items}
    (folder / "d.json").write_text(json.dumps({"name": "d", **content}), encoding="utf-8")
    rows = [f"i{at},apology,judge,llm,{one}" for at, one in enumerate(said)]
    text = "\n".join(["item_id,criterion,rater,rater_type,value", *rows])
    (folder / "v.csv").write_text(text, encoding="utf-8")
    assert cli("eval", "d.json", "--judge", "recorded:v.csv#judge", "--name", f"r{len(said)}").code == 0
    return f"experiments/r{len(said)}"


@pytest.mark.parametrize(
    ("n", "gate", "reason"),
    [
        (30, "tpr.low=.9", "tpr.low is 0.878, below 0.9; this is what a judge without errors reaches on"),
        (30, "tnr.low=.9", "; this is what a judge without errors reaches on these labels, so label more"),
        (30, "accuracy.low=.99", "; this is what a judge without errors reaches on these labels"),
        (30, "kappa.low=.999", "; this is what a judge without errors reaches on these labels"),
        (36, "tpr.low@apology=.9036", "tpr.low@apology is 0.90358, below 0.9036;"),
        (30, "tpr.low@apology=.9", "a judge without errors reaches 0.886; label at least 35 such items"),
        (30, "tpr.low@apology=1", "a judge without errors reaches 0.886\n"),
        (35, "tpr.low@apology=.9", ""),
    ],
)
def test_a_bound_that_labels_cannot_reach_says_so(
    cli: Cli, tmp_path: Path, n: int, gate: str, reason: str
) -> None:
    """Thirty positives, all right, have a lower end of .886: more labels are needed, not a better judge."""
    labels = ["MET", "UNMET"] * n
    done = cli("metrics", graded(cli, tmp_path, labels, labels), "--fail-under", gate)
    assert done.code == (1 if reason else 0)
    assert reason in done.err


def test_a_mean_that_labels_cannot_bring_above_a_bound_says_so(cli: Cli, tmp_path: Path, run: str) -> None:
    """A judge with errors on the only criterion, and one on the mean over criteria."""
    labels = ["MET", "UNMET"] * 30
    path = graded(cli, tmp_path, labels, ["UNMET", "MET", *labels[2:]])
    done = cli("metrics", path, "--fail-under", "tpr.low=.9")
    reaches = "; with 30 answered items labelled MET, a judge without errors reaches 0.878; label at least 38"
    assert done.code == 1 and reaches in done.err.replace("\n", " ")
    assert "without errors" not in cli("metrics", path, "--fail-under", "tpr.low=.87").err
    needed = cli("metrics", graded(cli, tmp_path, ["MET"] * 38, ["MET"] * 38), "--fail-under", "tpr.low=.9")
    assert needed.code == 0
    mean = cli("metrics", run, "--fail-under", "tnr.low=.99").err.replace("\n", " ")
    assert "answered items labelled UNMET, a judge without errors reaches at most 0." in mean


@pytest.mark.parametrize("gate", ["accuracy=.9", "kappa=.9", "accuracy@apology=.9", "kappa.low=.5"])
def test_gates_name_answers_to_na_labels(cli: Cli, tmp_path: Path, gate: str) -> None:
    """A judge that answers 10 of 10 cells labelled CANNOT_ASSESS is right on all others."""
    labels = ["MET"] * 15 + ["UNMET"] * 15 + ["CANNOT_ASSESS"] * 10
    said = labels[:30] + ["MET"] * 10
    done = cli("metrics", graded(cli, tmp_path, labels, said), "--fail-under", gate)
    assert done.code == 0
    assert "excludes 10 cells that the panel answered and whose label has no answer" in done.err
    assert "answered NA" in done.out and "label has no answer" in done.out


def test_metrics_shows_true_rates(cli: Cli, run: str) -> None:
    """The text has a table of both rates with intervals; JSON has them as fields."""
    shown = cli("metrics", run).out
    table = shown[shown.index("Sensitivity and specificity") :]
    row = next(line for line in table.splitlines() if line.startswith("apology"))
    assert "0.900" in row and "[0.596, 0.982]" in row and "0.600" in row and "[0.313, 0.832]" in row
    told = cli("metrics", run, "--json").json["metrics"]
    assert told["criterion_sensitivity"] == 0.9 and told["criterion_specificity"] == 0.8
    assert told["criterion_specificity_ci"]["lower"] < 0.8
    assert told["per_criterion"][1]["sensitivity"] is None
    assert told["per_criterion"][1]["reasons"]["sensitivity"] == "no_positive_in_truth"


def test_junit_has_true_rates(cli: Cli, run: str) -> None:
    """The suite's properties hold both rates, overall and by criterion, with the ends of intervals."""
    suite = ElementTree.fromstring(cli("export", run, "--format", "junit").out).find("testsuite")
    assert suite is not None and suite[0].tag == "properties"
    told = {one.get("name"): one.get("value") for one in suite[0]}
    assert (told["tpr"], told["tnr"], told["tpr@apology"]) == ("0.9", "0.8", "0.9")
    assert told["tnr.low@apology"] == "0.312674"
    assert told["tpr@tone, or style"] == "undefined (no_positive_in_truth)"
    assert not any("depth" in (name or "") for name in told)


def test_junit_without_labels_has_no_rates(cli: Cli, tmp_path: Path) -> None:
    """Nothing is measured where nothing is labelled."""
    content = {"rubric": {"criteria": [{"requirement": "It is short."}]}, "items": [{"submission": "a"}]}
    (tmp_path / "d.json").write_text(json.dumps({"name": "d", **content}), encoding="utf-8")
    assert cli("eval", "d.json", "--judge", "lexical", "--name", "r").code == 0
    out = cli("export", "experiments/r", "--format", "junit").out
    names = [one.get("name", "") for one in ElementTree.fromstring(out).iter("property")]
    assert names and not [name for name in names if name.startswith(("tpr", "tnr"))]
