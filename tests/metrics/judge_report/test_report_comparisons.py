"""Judge reports on pairwise comparisons, and what the opening sentences of a report say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from autorubric import (
    ComparativeCriterion,
    CriterionGrader,
    DataItem,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import JudgeReport, accuracy, cohen_kappa, judge_report
from tests.metrics.judge_report.tables import SCALES, drawn_table

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
    assert "No figure is defined" not in report.summary()


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
    assert "the mean mixes 1 binary and 1 ordinal criteria; kappa has quadratic weights" in summary
    assert "have a mean kappa of" in summary and "have a mean accuracy of" in summary
