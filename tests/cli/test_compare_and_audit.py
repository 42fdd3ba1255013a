"""`autorubric judges compare` and `autorubric judges audit`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from autorubric import ComparativeCriterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge, JudgeRequest, RecordedJudge
from tests.cli.conftest import LABELS, TEXTS, Cli, write_votes


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
    # Without the cells on which the two tie, the panel is the better judge.
    assert done.json["comparison"]["panel"] is None
    assert done.json["comparison"]["panel_reason"] == "no_variance"
    shown = cli("judges", "compare", graded)
    assert shown.code == 0
    assert "Pairs of judges" in shown.out and "p (holm)" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_the_audit_says_what_to_look_at_first(cli: Cli, graded: str) -> None:
    """Tables: the report's headline, the panel's audit and the leanings."""
    shown = cli("judges", "audit", graded, "--full")
    assert shown.code == 0
    assert shown.out.startswith("What to look at first")
    for title in ("Judges, mean over criteria", "Labelled cells without an answer", "Leave one judge out"):
        assert title in shown.out, title


def test_rules_for_labels_of_people_and_abstentions(cli: Cli, graded: str) -> None:
    """--truth and --abstain reach the report, and a rule that is none is refused."""
    done = cli(
        "judges", "audit", graded, "--truth", "mode", "--abstain", "as_category", "--json", "--only", "report"
    )
    assert (done.code, done.json["report"]["abstain"]) == (0, "as_category")
    assert cli("metrics", graded, "--truth", "majority").code == 0
    assert cli("judges", "compare", graded, "--truth", "median").code == 0
    assert cli("metrics", graded, "--truth", "most").code == 2


PARTS = {
    "report",
    "reliability",
    "panel",
    "bias",
    "self_consistency",
    "item_analysis",
    "variance_components",
    "corrected_score",
    "alt_test",
}


def test_the_audit_as_json(cli: Cli, graded: str) -> None:
    """One object with every part, null and a reason for those that cannot be computed."""
    done = cli("judges", "audit", graded, "--json")
    assert (done.code, set(done.json)) == (0, {"run", "verdicts", "not_computed"} | PARTS)
    report = done.json["report"]
    assert set(report["per_judge"]) == {"right", "wrong"}
    assert report["per_judge"]["right"]["macro"]["accuracy"]["value"] == 1.0
    assert "per_criterion" not in report["panel"] and "reliability" not in report
    assert done.json["panel"]["judges"] == ["right", "wrong"]
    assert set(done.json["reliability"]) == {"capital", "rude", "form"}
    assert [one["name"] for one in done.json["item_analysis"]["criteria"]] == ["capital", "rude", "form"]
    assert done.json["variance_components"]["score"]["n_judges"] == 2
    lacking = done.json["not_computed"]
    assert set(lacking) == {"self_consistency", "corrected_score", "alt_test"}
    assert all(done.json[name] is None for name in lacking)
    assert "a question twice" in lacking["self_consistency"] and "two annotators" in lacking["alt_test"]


def test_the_audit_is_one_screen(cli: Cli, graded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default there are whole sentences and the main figures; every table and reason is in --full."""
    monkeypatch.setenv("COLUMNS", "80")
    short, full = (cli("judges", "audit", graded, *more).out for more in ((), ("--full",)))
    assert short.startswith("What to look at first\n- The panel's mean kappa is ")
    assert "Selecting the best of several overstates its quality." in " ".join(short.split())
    assert "rater  coverage  accuracy  kappa  interval of kappa\n" in short
    end = "Not computed: self_consistency, corrected_score, alt_test; use --full for the reasons."
    left = re.search(r"All tables and (\d+) more findings with --full\.$", short.strip())
    assert left is not None and end in " ".join(short.split())
    assert len(short.splitlines()) <= 32 < 60 < len(full.splitlines())
    whole = " ".join(full.split())
    shown = " ".join(short.partition("\n\n")[0].split()).split(" - ")[1:]
    assert all(line.endswith(".") and line in whole for line in shown)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(
    cli: Cli, dataset: str, graded: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a single word, such as a path, may be."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in (
        ("eval", dataset, "--judge", "lexical", "--name", "narrow"),
        ("show", graded),
        ("metrics", graded),
        ("compare", graded, graded),
        ("judges", "audit", graded),
        ("judges", "audit", graded, "--full"),
    ):
        done = cli(*command)
        lines = [*done.out.splitlines(), *done.err.splitlines()]
        assert done.code == 0 and lines
        assert not [line for line in lines if len(line) > columns and " " in line.strip()]


def test_parts_that_cannot_be_computed_say_why(cli: Cli, graded: str) -> None:
    """The last lines name each part that is not there, with its reason."""
    shown = cli("judges", "audit", graded, "--full").out
    after = shown.split("Not computed\n")[1]
    assert [line.split(":")[0] for line in after.splitlines()] == [
        "- self_consistency",
        "- corrected_score",
        "- alt_test",
    ]


def test_parts_may_be_chosen(cli: Cli, graded: str) -> None:
    """`--only` gives the named parts alone, in the audit's order; another name is refused."""
    some = ("--only", "variance_components", "--only", "panel")
    assert list(cli("judges", "audit", graded, "--json", *some).json) == [
        "run",
        "panel",
        "variance_components",
        "not_computed",
    ]
    assert cli("judges", "audit", graded, "--only", "panel").out.startswith("Panel correctness: ")
    refused = cli("judges", "audit", graded, "--only", "everything")
    assert refused.code == 2 and "variance_components" in refused.err


def test_families_are_passed(cli: Cli, dataset: str, votes: str, tmp_path: Path) -> None:
    """`--family` says which judge and which generator belong together."""
    content = json.loads((tmp_path / dataset).read_text(encoding="utf-8"))
    for item, generator in zip(content["items"], ("gen-1", "gen-1", "other", "other"), strict=True):
        item["metadata"] = {"generator": generator}
    (tmp_path / "written.json").write_text(json.dumps(content), encoding="utf-8")
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    cli("eval", "written.json", *judges, "--name", "written")
    bias = ("judges", "audit", "experiments/written", "--only", "bias", "--json")
    alone = cli(*bias).json["bias"]["per_judge"]["wrong"]
    assert (alone["family"], alone["n_own_items"]) == ("wrong", 0)
    kin = cli(*bias, "--family", "wrong=acme", "--family", "gen-1=acme").json["bias"]["per_judge"]["wrong"]
    assert (kin["family"], kin["n_own_items"]) == ("acme", 2)
    # Against `right`, capital is -1 and +1 on the own a and b, +1 and -1 on c and d: no favour.
    assert kin["self_preference"]["effect"]["value"] == pytest.approx(0.0)
    refused = cli(*bias, "--family", "acme")
    assert (refused.code, refused.out) == (2, "")
    assert "NAME=FAMILY" in refused.err


def test_labels_of_a_part_correct_the_whole(cli: Cli, rubric: str) -> None:
    """Half of the items labelled: the mean score is corrected by the errors that they show."""
    items: list[dict[str, Any]] = []
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for at in range(60):
        name, truth = f"i{at:02}", {**LABELS["abcd"[at % 4]]}
        items.append({"id": name, "submission": TEXTS["abcd"[at % 4]]})
        if at < 40:
            items[-1]["ground_truth"] = truth
        said = {**truth, "capital": "MET"} if at % 8 == 1 else truth
        rows["mild", name] = said
    content = {"name": "capitals", "rubric": rubric, "items": items}
    Path("half.json").write_text(json.dumps(content), encoding="utf-8")
    write_votes(Path("mild.csv"), rows)
    cli("eval", "half.json", "--judge", "recorded:mild.csv#mild", "--name", "half")
    done = cli("judges", "audit", "experiments/half", "--only", "corrected_score", "--json")
    found = done.json["corrected_score"]
    assert (found["n_items"], found["n_labelled"]) == (60, 40)
    capital = found["per_criterion"]["capital"]
    assert capital["raw"]["value"] > capital["value"]["value"] == pytest.approx(0.5, abs=0.03)
    shown = cli("judges", "audit", "experiments/half", "--only", "corrected_score").out
    assert "labelled items (of 60)" in shown


def test_people_let_the_panel_stand_in_or_not(cli: Cli, rubric: str) -> None:
    """Three people, who agree, on 32 items: a judge that says as they do passes on each criterion."""
    names = [f"i{at:02}" for at in range(32)]
    of = {name: LABELS["abcd"[at % 4]] for at, name in enumerate(names)}
    items = [
        {
            "id": name,
            "submission": f"{name} says so.",
            "ratings": dict.fromkeys(("ann", "bo", "cy"), of[name]),
        }
        for name in names
    ]
    Path("rated.json").write_text(
        json.dumps({"name": "capitals", "rubric": rubric, "items": items}), encoding="utf-8"
    )
    write_votes(Path("says.csv"), {("same", name): of[name] for name in names})
    cli("eval", "rated.json", "--judge", "recorded:says.csv#same", "--name", "rated")
    tests = cli("judges", "audit", "experiments/rated", "--only", "alt_test", "--json").json["alt_test"]
    assert set(tests["per_criterion"]) == {"capital", "rude", "form"}
    for one in tests["per_criterion"].values():
        assert one["passed"] is True and set(one["per_annotator"]) == {"ann", "bo", "cy"}
    shown = cli("judges", "audit", "experiments/rated", "--only", "alt_test").out
    assert shown.startswith("The panel may replace an annotator on 3 of 3 tested criteria.")


def test_one_item_is_decided(cli: Cli, graded: str) -> None:
    """`--item` with `--threshold` says PASS, FAIL or UNDECIDED, and nothing else."""
    decided = cli("judges", "audit", graded, "--item", "a", "--threshold", "0.1", "--json")
    assert (decided.code, set(decided.json)) == (0, {"run", "item", "decision"})
    made = decided.json["decision"]
    assert made["verdict"] in ("PASS", "FAIL", "UNDECIDED")
    # Three labelled items say nothing of the errors at 95 %.
    assert (made["sources"], made["reason"]) == (["judge_error"], "too_few_labels")
    # A threshold at 0 is always reached: scores lie in [0, 1].
    assert (
        cli("judges", "audit", graded, "--item", "a", "--threshold", "0", "--json").json["decision"][
            "verdict"
        ]
        == "PASS"
    )
    assert "Decision on a" in cli("judges", "audit", graded, "--item", "a", "--threshold", "0.5").out
    for wrong in (("--item", "a"), ("--threshold", "0.5"), ("--item", "zz", "--threshold", "0.5")):
        refused = cli("judges", "audit", graded, *wrong)
        assert (refused.code, refused.out) == (2, "") and "--item" in refused.err


@pytest.mark.parametrize("theirs", [True, False])
def test_people_stand_beside_the_judges(
    cli: Cli, dataset: str, votes: str, tmp_path: Path, theirs: bool
) -> None:
    """Several people are each set against the rest, and not beside the judges if the labels are others'."""
    content = json.loads((tmp_path / dataset).read_text(encoding="utf-8"))
    for item in content["items"]:
        item["ratings"] = dict.fromkeys(("ann", "bo", "cy"), LABELS[item["id"]])
        if not theirs:
            item["ground_truth"] = LABELS["abcd"["badc".index(item["id"])]]
    (tmp_path / "rated.json").write_text(json.dumps(content), encoding="utf-8")
    cli("eval", "rated.json", "--judge", f"recorded:{votes}#wrong", "--name", "rated")
    found = cli("judges", "audit", "experiments/rated", "--json").json["report"]["human_ceiling"]
    assert (found["humans"], found["made_the_truth"]) == (["ann", "bo", "cy"], theirs)
    assert found["macro"]["accuracy"]["value"] == 1.0
    assert "per_human" not in found
    shown = cli("judges", "audit", "experiments/rated").out
    assert "annotators (each against the others)" in shown
    assert ("annotators (not comparable)" in shown) is not theirs
    caveat = "The labels are not from these annotators, so do not compare the panel with them."
    assert (caveat in " ".join(shown.split())) is not theirs


@pytest.mark.parametrize("label", ["CANNOT_ASSESS", "long"])
def test_excluded_criteria_have_their_reason(cli: Cli, rubric: str, label: str) -> None:
    """Without an answer, a criterion whose options have values is excluded for that reason."""
    items = [{"id": name, "submission": TEXTS[name], "ground_truth": LABELS[name]} for name in TEXTS]
    content = {"name": "capitals", "rubric": rubric, "items": items}
    Path("texts.json").write_text(json.dumps(content), encoding="utf-8")
    said = {name: {**LABELS[name], "form": label} for name in TEXTS}
    write_votes(Path("says.csv"), {(who, name): said[name] for who in ("a", "b") for name in TEXTS})
    judges = ("--judge", "recorded:says.csv#a", "--judge", "recorded:says.csv#b")
    assert cli("eval", "texts.json", *judges, "--name", "silent").code == 0
    shown = " ".join(cli("judges", "audit", "experiments/silent", "--full").out.split())
    for reason in ("no judge answered them: form", "no vote has a numeric value: form"):
        assert (f"- criteria excluded because {reason}" in shown) is (label == "CANNOT_ASSESS")
    assert "they have no values in [0, 1]" not in shown


def test_the_same_seed_the_same_figures(cli: Cli, graded: str) -> None:
    """`--seed` decides the resampling; without it, it is 0."""
    for command in ("compare", "audit"):
        first, again = (
            cli("judges", command, graded, "--json", *more).json for more in ((), ("--seed", "0"))
        )
        assert first == again


def test_an_item_is_decided_as_its_run_scored_it(cli: Cli, votes: str, rubric: str) -> None:
    """A run whose scores were not brought to [0, 1] is decided on its own scale."""
    items = [DataItem(id=name, submission=text) for name, text in TEXTS.items()]
    dataset = RubricDataset(rubric=Rubric.from_file(rubric), items=items)
    judge = RecordedJudge.from_csv(votes, rater="right")
    evaluate_sync(
        dataset, CriterionGrader(judges=[judge], normalize=False), experiment_name="raw", show_progress=False
    )
    asked = ("--item", "a", "--threshold", "5", "--json")
    made = cli("judges", "audit", "experiments/raw", *asked).json["decision"]
    # MET × 4, no penalty, long × 2.
    assert (made["score"]["value"], made["hard_low"], made["hard_high"]) == (6.0, 6.0, 6.0)


@pytest.fixture
def unlabelled(cli: Cli, votes: str, rubric: str) -> str:
    """A run of two judges without a label; `labelled.json` has the labels."""
    items = [{"id": name, "submission": text} for name, text in TEXTS.items()]
    plain = {"name": "capitals", "rubric": rubric, "items": items}
    Path("plain.json").write_text(json.dumps(plain), encoding="utf-8")
    labelled = [item | {"ground_truth": LABELS[str(item["id"])]} for item in items]
    Path("labelled.json").write_text(json.dumps(plain | {"items": labelled}), encoding="utf-8")
    judges = ("--judge", f"recorded:{votes}#right", "--judge", f"recorded:{votes}#wrong")
    cli("eval", "plain.json", *judges, "--name", "plain")
    return "experiments/plain"


def test_without_labels_the_audit_says_what_can_be_said(cli: Cli, unlabelled: str) -> None:
    """Agreement among judges, components of variance and leanings need no label; a notice says what does."""
    done = cli("judges", "audit", unlabelled, "--json")
    assert done.code == 0 and "no labels" in done.err and "--dataset" in done.err
    assert set(done.json["not_computed"]) == {
        "report",
        "panel",
        "self_consistency",
        "corrected_score",
        "alt_test",
    }
    assert "--dataset" in done.json["not_computed"]["report"]
    # `wrong` turns capital round on every item and agrees on the rest.
    agreement = {name: one["percent_agreement"]["value"] for name, one in done.json["reliability"].items()}
    assert agreement == {"capital": 0.0, "rude": 1.0, "form": 1.0}
    shown = cli("judges", "audit", unlabelled, "--full")
    assert shown.code == 0 and "Agreement among judges" in shown.out and "Shares of variance" in shown.out
    report = cli("judges", "audit", unlabelled, "--dataset", "labelled.json", "--json").json["report"]
    assert report["n_items"] == 4


def test_without_labels_nothing_is_compared(cli: Cli, unlabelled: str) -> None:
    """An error, as for the metrics; with labels there are pairs."""
    for options in ((), ("--json",)):
        done = cli("judges", "compare", unlabelled, *options)
        assert (done.code, done.out) == (2, "") and "no labels" in done.err
        assert "autorubric labels merge" in done.err
    with_labels = cli("judges", "compare", unlabelled, "--dataset", "labelled.json", "--json")
    assert len(with_labels.json["comparison"]["judges"]) == 1


@pytest.mark.parametrize("command", ["compare", "audit"])
def test_a_folder_that_is_no_run(cli: Cli, command: str) -> None:
    """A folder without a run ends with 2 and names it."""
    done = cli("judges", command, "nowhere")
    assert (done.code, done.out) == (2, "")
    assert "nowhere" in done.err


def test_one_judge_is_compared_with_nobody(cli: Cli, dataset: str, votes: str) -> None:
    """A run of one judge says so, and is audited all the same."""
    cli("eval", dataset, "--judge", f"recorded:{votes}#wrong", "--name", "one")
    assert "fewer than two judges" in cli("judges", "compare", "experiments/one").out
    assert cli("judges", "audit", "experiments/one").code == 0


@pytest.fixture
def pairs(cli: Cli, tmp_path: Path) -> str:
    """A run of two judges on ten pairs, each in both orders, with three people's outcomes."""
    outcomes = "xxxxyyyyyy"
    people = {"ann": outcomes, "bo": "y" + outcomes[1:], "cy": outcomes}
    items = [
        DataItem(
            id=str(at),
            submission={"x": f"one {at}", "y": f"two {at}"},
            ratings={who: {"better": said[at]} for who, said in people.items()},
        )
        for at in range(len(outcomes))
    ]

    def steady(request: JudgeRequest) -> str:
        return "xxxyyyyyxy"[int(str(request.item_id))]

    def swayed(request: JudgeRequest) -> str:
        first = "x" if request.order is None else request.order[0]
        return first if int(str(request.item_id)) > 5 else outcomes[int(str(request.item_id))]

    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which is better?")])
    judges = [FunctionJudge(function=one, judge_id=one.__name__) for one in (steady, swayed)]
    return str(
        evaluate_sync(
            RubricDataset(rubric=rubric, items=items),
            CriterionGrader(judges=judges),
            experiments_dir=tmp_path / "pairs",
            show_progress=False,
        ).experiment_dir
    )


def test_the_audit_of_comparisons_is_a_full_report(cli: Cli, pairs: str) -> None:
    """Accuracy, kappa, macro figures and position consistency by judge, and what people reach."""
    shown = cli("judges", "audit", pairs, "--only", "report")
    text = " ".join(shown.out.split())
    assert shown.code == 0
    assert "No figure is defined" not in text
    for words in (
        "accuracy",
        "kappa",
        "macro precision",
        "macro recall",
        "macro F1",
        "asked in both orders",
        "position consistency",
        "steady",
        "swayed",
        "people",
    ):
        assert words.lower() in text.lower(), words
    assert "p = 0.000" not in text
    assert max(map(len, shown.out.splitlines())) <= 100
    report = cli("judges", "audit", pairs, "--only", "report", "--json").json["report"]
    means = {name: one["macro"]["accuracy"]["value"] for name, one in report["per_judge"].items()}
    assert means["steady"] == pytest.approx(0.8)
    found = report["per_judge"]["swayed"]["comparisons"]["better"]["position_consistency"]
    assert (found["value"], found["n"]) == (pytest.approx(0.6), 10)
    ceiling = report["human_ceiling"]["macro"]
    assert ceiling["accuracy"]["value"] == pytest.approx((1 + 1 + 0.9) / 3)
    assert ceiling["kappa"]["value"] is not None
