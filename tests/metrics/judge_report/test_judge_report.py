"""`judge_report`: people beside the judges, rubrics of an item's own, edges, and how it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autorubric import CriterionGrader, evaluate_sync
from autorubric.criteria import Criterion
from autorubric.datasets import DataItem, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge
from autorubric.metrics import Binary, Interval, JudgeReport, compute_metrics, human_ceiling, judge_report
from autorubric.rubric import Rubric
from autorubric.support.blocks import TableBlock
from tests.metrics.asserting import brackets, number
from tests.metrics.judge_report.tables import SCALES, drawn_table, labels
from tests.metrics.reports import BINARY, ORDINAL, Ordering, labelled, report, run


def test_people_against_people_stand_beside_the_judges() -> None:
    """On each criterion the ceiling is that of `human_ceiling`, and a gap stands beside each judge."""
    rows = drawn_table()
    found = judge_report(rows, scales=SCALES, n_resamples=300)
    ceiling = found.human_ceiling
    assert ceiling is not None and ceiling.humans == ("h0", "h1", "h2")
    for criterion, scale in SCALES.items():
        people = [
            [row["label"] for row in rows if (row["rater"], row["criterion"]) == (who, criterion)]
            for who in ceiling.humans
        ]
        table = list(zip(*people, strict=True))
        for stat in ("accuracy", "balanced_accuracy"):
            alone = human_ceiling(table, stat=stat, scale=scale, n_resamples=5)
            assert getattr(ceiling.per_criterion[criterion], stat).value == pytest.approx(number(alone.value))
            for who, one in zip(ceiling.humans, alone.per_human.values(), strict=True):
                mine = getattr(ceiling.per_human[who].per_criterion[criterion], stat)
                assert mine.value == pytest.approx(number(one.value))
        if isinstance(scale, Binary):
            kappa = human_ceiling(table, stat="kappa", scale=scale, n_resamples=5)
            assert ceiling.per_criterion[criterion].kappa.value == pytest.approx(number(kappa.value))
    for name in ("accuracy", "kappa"):
        assert brackets(getattr(ceiling.gap["a"], name))
    assert brackets(ceiling.pooled.kappa)
    text = found.summary()
    assert "people" in text and "each against the others" in text


def test_a_judge_like_a_person_is_shown_in_a_persons_place() -> None:
    """Against labels on which both people agree it looks far better; in a person's place it is like them."""
    rng = np.random.default_rng(4)
    right = rng.integers(0, 2, 600)
    people = {who: np.where(rng.random(600) < 0.75, right, 1 - right) for who in ("h0", "h1", "j")}
    rows = [
        row
        for who, said in people.items()
        for row in labels(
            "judge" if who == "j" else "human", who, "clear", np.array(["UNMET", "MET"])[said].tolist()
        )
    ]
    found = judge_report(rows, n_resamples=100)
    ceiling = found.human_ceiling
    assert ceiling is not None
    person, in_place = (number(one.kappa.value) for one in (ceiling.macro, ceiling.in_place["j"]))
    assert number(found.per_judge["j"].macro.kappa.value) - person > 0.1
    assert abs(in_place - person) < 0.05
    assert in_place - person == pytest.approx(number(ceiling.gap["j"].kappa.value))
    expected = []
    for at, who in enumerate(("h0", "h1")):
        table = list(zip(*(people["j" if one == who else one].tolist() for one in ("h0", "h1")), strict=True))
        replaced = human_ceiling(table, stat="kappa", n_resamples=5).per_human
        expected.append(number(list(replaced.values())[at].value))
    assert in_place == pytest.approx(np.mean(expected))
    assert number(ceiling.in_place_per_criterion["j"]["clear"].kappa.value) == pytest.approx(in_place)
    blocks = {block.title: block for block in found.blocks() if isinstance(block, TableBlock)}
    shown = next(block for title, block in blocks.items() if title.startswith("People and raters"))
    assert [row[0] for row in shown.rows] == ["annotators (each against the others)", "panel", "j"]
    for title, block in blocks.items():
        if block is not shown:
            assert not any("annotators" in str(row[0]) for row in block.rows), title


def test_the_mean_difference_of_scores_is_not_called_a_bias(tmp_path: Path) -> None:
    """It depends on the base rate, so a judge with symmetric errors has one."""
    rubric = Rubric([Criterion(name="clear", requirement="It is clear.")])
    items = [
        DataItem(id=str(at), submission="x", ground_truth={"clear": ("MET", "UNMET")[at % 4 == 0]})
        for at in range(20)
    ]
    grader = CriterionGrader(judges=[FunctionJudge(function=lambda request: "MET", judge_id="j")])
    graded = evaluate_sync(
        RubricDataset(rubric=rubric, items=items), grader, experiments_dir=tmp_path, show_progress=False
    )
    for made in (judge_report(graded, n_resamples=20), compute_metrics(graded, graded.dataset)):
        text = made.summary()
        assert "p of the mean difference" in text and "bias p" not in text


def test_ceiling_of_numbers_is_against_the_mean_of_the_others() -> None:
    """Of 1, 3 and 8 the first is set against 5.5, and so on; by hand the errors are 4.5, 1.5 and 6."""
    rows = [row for i, said in enumerate((1, 3, 8)) for row in labels("human", f"h{i}", "len", [said, said])]
    rows += labels("judge", "j", "len", [4, 4])
    found = judge_report(rows, scales=Interval(0, 10)).human_ceiling
    assert found is not None
    errors = [number(one.per_criterion["len"].mae.value) for one in found.per_human.values()]
    assert errors == pytest.approx([4.5, 1.5, 6.0])


def test_one_person_is_no_ceiling() -> None:
    """With one person an item there is nobody to be set against."""
    assert judge_report(drawn_table(n_people=1), scales=SCALES, n_resamples=20).human_ceiling is None


def test_people_with_few_items_are_warned_of() -> None:
    """Where people labelled few items each, the reader is pointed to their pooled figures."""
    found = judge_report(drawn_table(n_items=6), scales=SCALES, n_resamples=20)
    assert any("human_ceiling.pooled" in warning for warning in found.warnings)


def test_criteria_of_few_items_are_warned_of() -> None:
    """Kappa is lower in resamples of few items: the interval still lies around it, and the scale is named."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for i in range(300):
        truth = rng.choice(["low", "some", "high"], 3)
        judged = np.where(rng.random(3) < 0.8, truth, rng.choice(["low", "some", "high"], 3))
        for who, said in (("truth", truth), ("judge", judged)):
            rows += labels(who, who, f"c{i}", {f"{i}-{j}": str(label) for j, label in enumerate(said)})
    found = judge_report(rows, scales=SCALES["depth"], n_resamples=200)
    kappa = found.macro.kappa
    assert brackets(kappa)
    assert "smoothed bootstrap around the value" in kappa.method
    warned = [one for one in found.warnings if "few items per criterion (median 3)" in one]
    assert len(warned) == 1 and "panel, judge (2 raters)" in warned[0] and "see by_scale" in warned[0]
    pooled = found.panel.by_scale["low | some | high"].kappa
    assert brackets(pooled) and "other items" in pooled.method
    text = found.summary()
    assert "Cells pooled by scale" in text
    assert "few items per criterion (median 3)" in text.splitlines()[1]
    assert f"{pooled:.3f} on low | some | high" in text.splitlines()[1]


def test_items_with_rubrics_of_their_own() -> None:
    """Criteria are matched by name, whatever their position; those on single items are pooled by scale."""
    first, second = (Criterion(name=name, requirement="It is so.", weight=1.0) for name in ("x", "y"))
    rubrics = [Rubric([first, second]), Rubric([second, first]), Rubric([second])]
    truths = [{"x": "MET", "y": "UNMET"}, {"x": "UNMET", "y": "MET"}, {"y": "MET"}]
    items: list[Any] = [
        {"submission": f"text {i}", "rubric": rubric, "ground_truth": truth}
        for i, (rubric, truth) in enumerate(zip(rubrics, truths, strict=True))
    ]
    dataset = RubricDataset(items=items)
    result = run(
        [report(first, "MET"), report(second, "UNMET")],
        [report(second, "MET"), report(first, "UNMET")],
        [report(second, "UNMET")],
    )
    found = judge_report(result, dataset, n_resamples=50)
    assert {name: one.n for name, one in found.per_criterion.items()} == {"x": 2, "y": 3}
    assert number(found.per_criterion["x"].accuracy.value) == 1.0
    assert number(found.per_criterion["y"].accuracy.value) == pytest.approx(2 / 3)
    assert number(found.macro.accuracy.value) == pytest.approx(5 / 6)
    assert number(found.panel.by_scale["UNMET | MET"].accuracy.value) == pytest.approx(4 / 5)


def test_criteria_of_one_name_and_two_scales_stand_apart() -> None:
    """They are numbered, and each has its own figures."""
    other = Criterion(name="clear", requirement="How clear?", weight=1.0, options=ORDINAL.options)
    items: list[Any] = [
        {"submission": "a", "rubric": Rubric([BINARY]), "ground_truth": {"clear": "MET"}},
        {"submission": "b", "rubric": Rubric([other]), "ground_truth": {"clear": "low"}},
    ]
    found = judge_report(run([report(BINARY, "MET")], [report(other, "high")]), RubricDataset(items=items))
    assert {name: one.level for name, one in found.per_criterion.items()} == {
        "clear": "binary",
        "clear (2)": "ordinal",
    }


def test_how_many_criteria_are_defined_is_said() -> None:
    """A criterion of one class has no kappa: the mean is over the others, and says so."""
    rows = []
    for criterion, truth in (("one", ["MET"] * 4), ("two", ["MET", "UNMET", "MET", "UNMET"])):
        rows += labels("truth", "truth", criterion, truth) + labels("judge", "j", criterion, truth)
    found = judge_report(rows, scales=Binary(), n_resamples=50)
    assert found.macro.defined["kappa"] == (1, 2)
    assert "1 of 2 criteria defined" in found.macro.kappa.method
    assert "1 of 2 criteria defined" in found.summary()
    assert found.macro.kappa == 1.0


def test_nothing_labelled() -> None:
    """Without a truth there are no figures against it, but agreement among judges and their failures."""
    rows = labels("judge", "a", "clear", ["MET", "UNMET", "NA"]) + labels("judge", "b", "clear", ["MET"] * 3)
    found = judge_report(rows, scales=Binary(), n_resamples=20)
    assert (found.n_items, found.n_cells) == (0, 0)
    assert found.macro.accuracy.reason == "no_pairs"
    assert found.reliability["clear"].percent_agreement.is_defined
    assert number(found.failures["a"].abstention_rate.value) == pytest.approx(1 / 3)
    assert "There are no labels" in found.summary()


def test_one_judge_on_one_item() -> None:
    """There is a value and no interval; there is nobody to agree with."""
    rows = labels("truth", "truth", "clear", ["MET"]) + labels("judge", "j", "clear", ["MET"])
    found = judge_report(rows, scales=Binary())
    assert (found.macro.accuracy.value, found.macro.accuracy.reason) == (1.0, "too_few_units")
    assert found.macro.kappa.reason == "no_criterion_defined"
    assert found.reliability == {} and found.human_ceiling is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_everyone_abstains() -> None:
    """No pair is left: figures are undefined, and the abstentions are all that is said."""
    rows = labels("truth", "truth", "clear", ["MET", "UNMET"]) + labels("judge", "j", "clear", ["NA", "NA"])
    found = judge_report(rows, scales=Binary())
    assert found.macro.accuracy.reason == found.micro.accuracy.reason == "no_pairs"
    assert found.failures["j"].abstention_rate == 1.0
    assert "No metric is defined" in found.summary()


def test_no_rows_at_all() -> None:
    """An empty table gives an empty report."""
    found = judge_report([])
    assert (found.n_cells, dict(found.per_criterion)) == (0, {})
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.summary()


def test_levels_without_figures_are_named() -> None:
    """A ranking that compares nothing has no figures and stands in the warnings."""
    place = Ordering(name="place", requirement="Which place?", weight=1.0)
    dataset = labelled([BINARY, place], {"clear": "MET", "place": 1}, {"clear": "UNMET", "place": 2})
    reports = [[report(BINARY, "MET"), report(place, 1)], [report(BINARY, "UNMET"), report(place, 2)]]
    found = judge_report(run(*reports), dataset, n_resamples=20)
    assert "place" not in found.per_criterion
    assert any("place" in warning for warning in found.warnings)


def test_a_judge_called_panel() -> None:
    """It stays apart from what the judges decide together."""
    rows = labels("truth", "truth", "clear", ["MET", "UNMET"])
    rows += labels("judge", "panel", "clear", ["MET", "MET"]) + labels(
        "judge", "x", "clear", ["UNMET", "UNMET"]
    )
    found = judge_report(rows, scales=Binary(), n_resamples=20)
    assert set(found.raters()) == {"panel", "judge panel", "x"}
    assert found.panel.kind == "panel" and found.per_judge["panel"].macro.accuracy == 0.5


def test_the_same_seed_gives_the_same_report() -> None:
    """A seed decides all intervals; a generator stands for the seed that it draws."""
    rows = drawn_table(n_items=15)
    one, again, other = (
        judge_report(rows, scales=SCALES, n_resamples=50, rng=seed).to_dict() for seed in (3, 3, 4)
    )
    assert one == again
    assert one["panel"]["macro"]["kappa"]["low"] != other["panel"]["macro"]["kappa"]["low"]
    drawn = [
        judge_report(rows, scales=SCALES, n_resamples=50, rng=np.random.default_rng(1)) for _ in range(2)
    ]
    assert drawn[0].to_dict() == drawn[1].to_dict()


def test_the_order_of_rows_does_not_matter() -> None:
    """A shuffled table gives the same values."""
    rows = drawn_table(n_items=15)
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    one, other = (judge_report(table, scales=SCALES, n_resamples=20) for table in (rows, shuffled))
    for who in ("a", "b"):
        for name, figure in one.per_judge[who].macro.figures().items():
            same = getattr(other.per_judge[who].macro, name)
            assert (same.value, same.reason) == (pytest.approx(figure.value), figure.reason), name


def test_rows_of_a_frame() -> None:
    """One row a rater, criterion and figure, people included."""
    found = judge_report(drawn_table(), scales=SCALES, n_resamples=20)
    frame = found.to_dataframe()
    assert set(frame["rater"]) == {"panel", "a", "b", "h0", "h1", "h2"}
    assert set(frame["criterion"]) == {"macro", "micro", "clear", "depth"}
    at = frame[(frame["rater"] == "a") & (frame["criterion"] == "macro") & (frame["figure"] == "kappa")]
    assert at["value"].item() == found.per_judge["a"].macro.kappa.value


def test_first_looks_name_what_stands_out() -> None:
    """The headline, the best judge, the weakest criterion and who often gave no answer."""
    rows = drawn_table(n_people=1)
    rows += labels("judge", "c", "clear", ["INVALID"] * 20 + ["MET"] * 20)
    lines = judge_report(rows, scales=SCALES, n_resamples=50).summary().splitlines()
    text = "\n".join(lines[:8])
    assert lines[0] == "What to look at first"
    assert "The panel's mean kappa is" in text and "2 of 2 criteria defined" in text
    assert "single judges is clearly the best" in text and "No criterion is clearly the weakest" in text
    assert "c failed on 25.0%" in text


@pytest.mark.parametrize(
    "arguments",
    [{"abstain": "worst"}, {"confidence_level": 2.0}, {"n_resamples": 0}, {"scales": {"deep": Binary()}}],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any]) -> None:
    """Options that do not exist are refused."""
    with pytest.raises(ArgumentError):
        judge_report(drawn_table(n_items=3), **arguments)


def test_it_is_a_report() -> None:
    """The headline of the report is that of its panel."""
    found = judge_report(drawn_table(n_items=5), scales=SCALES, n_resamples=10)
    assert isinstance(found, JudgeReport)
    assert (found.macro, found.micro) == (found.panel.macro, found.panel.micro)


def test_many_criteria_and_several_people() -> None:
    """A ceiling stands beside every criterion, however many there are, in the same kind of kappa."""
    rng = np.random.default_rng(2)
    rows: list[dict[str, Any]] = []
    options = ["low", "some", "high"]
    for at in range(12):
        truth = rng.choice(options, 40)
        for who, kind, share in (("h0", "human", 0.98), ("h1", "human", 0.98), ("j", "judge", 0.3)):
            said = np.where(rng.random(40) < share, truth, rng.choice(options, 40))
            rows += labels(kind, who, f"c{at}", {str(i): str(label) for i, label in enumerate(said)})
    found = judge_report(rows, scales=SCALES["depth"], n_resamples=50)
    assert found.human_ceiling is not None
    assert len(found.human_ceiling.per_criterion) == 12
    for name, agreed in found.panel.per_criterion.items():
        assert agreed.kappa == agreed.weighted_kappa
        assert number(found.human_ceiling.per_criterion[name].kappa.value) > number(agreed.kappa.value)


def test_an_unknown_criterion_is_an_error_with_the_names() -> None:
    """`per_criterion` is a mapping whose error lists the criteria."""
    found = judge_report(drawn_table(), scales=SCALES, n_resamples=10)
    assert list(found.per_criterion) == list(SCALES)
    with pytest.raises(KeyError, match=f"zz.*available: {', '.join(SCALES)}"):
        found.per_criterion["zz"]
