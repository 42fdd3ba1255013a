"""Judge reports on pairwise comparisons, and what the opening sentences of a report say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from autorubric import (
    ComparativeCriterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import JudgeReport, accuracy, cohen_kappa, judge_report
from autorubric.reports import report_html
from tests.metrics.judge_report.tables import SCALES, drawn_table
from tests.reports.test_report_data import held

N = 60


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[JudgeReport, list[str], dict[str, list[str]]]:
    """Three judges on pairs, with the preferred candidates."""
    draw = random.Random(1)
    truth = [draw.choice("xy") for _ in range(N)]
    answers = {
        name: [one if draw.random() < right else "xy"[one == "x"] for one in truth]
        for name, right in (("a", 0.9), ("b", 0.7), ("c", 0.6))
    }

    def judge(name: str) -> FunctionJudge:
        def prefers(request: JudgeRequest) -> str:
            return answers[name][int(str(request.item_id))]

        return FunctionJudge(function=prefers, judge_id=name)

    items = [
        DataItem(id=str(at), submission={"x": f"one {at}", "y": f"two {at}"}, ground_truth={"better": best})
        for at, best in enumerate(truth)
    ]
    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which is better?")])
    folder: Path = tmp_path_factory.mktemp("runs")
    result = evaluate_sync(
        RubricDataset(rubric=rubric, items=items),
        CriterionGrader(judges=[judge(name) for name in answers]),
        experiments_dir=folder,
        show_progress=False,
    )
    return judge_report(result, n_resamples=100), truth, answers


def test_comparisons_have_headlines_of_the_panel_and_each_judge(
    compared: tuple[JudgeReport, list[str], dict[str, list[str]]],
) -> None:
    """Accuracy and kappa over comparisons are those of the labels, judge by judge, with intervals."""
    report, truth, answers = compared
    for name, said in answers.items():
        macro = report.per_judge[name].macro
        assert float(macro.accuracy) == pytest.approx(float(accuracy(truth, said)))
        assert float(macro.kappa) == pytest.approx(float(cohen_kappa(truth, said)))
        assert macro.kappa.low is not None
    assert report.macro.kappa.value is not None
    opening = report.summary().splitlines()[1]
    assert opening.startswith("- The panel's mean kappa is")
    assert "No metric is defined" not in report.summary()


def test_equal_warnings_of_several_raters_are_one_line(
    compared: tuple[JudgeReport, list[str], dict[str, list[str]]],
) -> None:
    """What is said of the panel and of each judge is said once, with their number."""
    report, _, _ = compared
    texts = [one.partition(": ")[2] for one in report.warnings]
    assert len(set(texts)) == len(texts)
    assert any("(4 raters)" in one for one in report.warnings)


def test_the_opening_says_what_the_mean_mixes_and_looks_at_accuracy_too() -> None:
    """Quadratic kappa and the levels in the mean are named; people are compared on kappa and accuracy."""
    summary = judge_report(drawn_table(), scales=SCALES, n_resamples=100).summary()
    assert "the mean combines 1 binary and 1 ordinal criteria; kappa uses quadratic weights" in summary
    for name in ("kappa", "accuracy"):
        assert f"The mean {name} between an annotator and the others is" in summary


OUTCOMES = ["x", "x", "x", "x", "y", "y", "y", "y", "y", "y"]
IN_ONE_ORDER = ["x", "x", "x", "y", "y", "y", "y", "y", "x", "x"]
IN_THE_OTHER = ["x", "x", "x", "y", "y", "y", "y", "y", "y", "y"]
PEOPLE = {"ann": OUTCOMES, "bo": ["y", *OUTCOMES[1:]], "cy": OUTCOMES}


@pytest.fixture(scope="module")
def asked_twice(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A judge that contradicts itself on two of ten pairs when the order changes, and three people."""
    items = [
        DataItem(
            id=str(at),
            submission={"x": f"one {at}", "y": f"two {at}"},
            ratings={who: {"better": said[at]} for who, said in PEOPLE.items()},
        )
        for at in range(len(OUTCOMES))
    ]

    def prefers(request: JudgeRequest) -> str:
        swapped = request.order is not None and list(request.order) == ["y", "x"]
        return (IN_THE_OTHER if swapped else IN_ONE_ORDER)[int(str(request.item_id))]

    return evaluate_sync(
        RubricDataset(
            rubric=Rubric([ComparativeCriterion(name="better", requirement="Which is better?")]), items=items
        ),
        CriterionGrader(judges=[FunctionJudge(function=prefers, judge_id="one")]),
        experiments_dir=tmp_path_factory.mktemp("runs"),
        show_progress=False,
    )


def test_macro_figures_are_means_over_outcomes(asked_twice: EvalResult) -> None:
    """Precision, recall and F1 by hand: x 3 of 3 and 3 of 4, y 4 of 5 and 4 of 6, two wrong ties."""
    report = judge_report(asked_twice, n_resamples=100)
    for macro in (report.macro, report.per_judge["one"].macro, report.micro):
        assert float(macro.accuracy) == pytest.approx(7 / 10)
        assert float(macro.macro_precision) == pytest.approx((3 / 3 + 4 / 5 + 0 / 2) / 3)
        assert float(macro.macro_recall) == pytest.approx((3 / 4 + 4 / 6) / 2)
        assert float(macro.macro_f1) == pytest.approx((6 / 7 + 8 / 11 + 0) / 3)
        for found in (macro.macro_precision, macro.macro_recall, macro.macro_f1):
            assert found.low is not None and found.high is not None
            assert found.low < float(found) < found.high
    agreed = report.per_criterion["better"]
    assert float(agreed.macro_precision) == pytest.approx(0.6)
    assert float(agreed.macro_recall) == pytest.approx(17 / 24)
    assert "2 of 3 classes occur in the truth" in agreed.macro_recall.method


def test_position_consistency_and_ties_are_reported(asked_twice: EvalResult) -> None:
    """Eight of ten pairs keep their outcome when the order changes; the other two are ties of the panel."""
    report = judge_report(asked_twice, n_resamples=100)
    for one in (report.panel, report.per_judge["one"]):
        found = one.comparisons["better"]
        assert float(found.position_consistency) == pytest.approx(0.8)
        assert (found.position_consistency.n, found.position_consistency.low is None) == (10, False)
        assert float(found.tie_rate) == pytest.approx(0.2)
    text = report.summary()
    assert "On better, the proportion" in text and "is 0.800 [" in text and "(10 samples)" in text
    assert "asked in both orders" in text and "macro F1" in text


def test_people_are_the_ceiling_of_comparisons(asked_twice: EvalResult) -> None:
    """Ann and Cy agree with the rest wherever it is not tied, Bo on nine of ten pairs."""
    ceiling = judge_report(asked_twice, n_resamples=100).human_ceiling
    assert ceiling is not None
    on = ceiling.per_criterion["better"]
    assert float(ceiling.macro.accuracy) == pytest.approx((1 + 1 + 0.9) / 3)
    assert float(on.accuracy) == pytest.approx((1 + 1 + 0.9) / 3)
    assert on.macro_f1.value is not None and ceiling.gap["panel"].macro_f1.value is not None
    assert ceiling.per_human["bo"].comparisons["better"].position_consistency.reason == "no_pairs"


def test_comparisons_with_one_outcome_have_an_accuracy() -> None:
    """Where everyone always prefers the first there is no kappa, but an accuracy of 1."""
    items = [
        DataItem(id=str(at), submission={"x": "1", "y": "2"}, ground_truth={"better": "x"}) for at in range(5)
    ]
    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which is better?")])
    judge = FunctionJudge(function=lambda request: "x", judge_id="one")
    run = evaluate_sync(
        RubricDataset(rubric=rubric, items=items), CriterionGrader(judges=[judge]), show_progress=False
    )
    report = judge_report(run, n_resamples=50)
    assert float(report.macro.accuracy) == 1.0 and report.macro.kappa.reason is not None
    assert "No metric is defined" not in report.summary()


def test_the_page_and_the_audit_show_comparisons(asked_twice: EvalResult) -> None:
    """The HTML report holds the figures of the judge report; the audit's opening blocks hold them too."""
    report = judge_report(asked_twice)
    told = held(report_html(asked_twice))["data"]
    row = next(one for one in told["judges"]["rows"] if one["name"] == "one")
    for name in ("macro_precision", "macro_recall", "macro_f1"):
        assert row["metrics"][name]["v"] == pytest.approx(float(getattr(report.macro, name)), abs=1e-5)
    shown = told["criteria"][0]["comparisons"]
    assert [one["name"] for one in shown] == ["panel", "one"]
    assert shown[1]["consistency"]["v"] == pytest.approx(0.8, abs=1e-5)
    assert shown[1]["consistency"]["n"] == 10
    titles = [getattr(block, "title", "") for block in report.headline_blocks()]
    assert any("both orders" in str(title) for title in titles)
