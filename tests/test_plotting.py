"""Plots: what stands on the axes; they take axes and return them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra plots is not installed")

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes

from autorubric import (
    CriterionGrader,
    EscalationConfig,
    EvalResult,
    LexicalJudge,
    cohen_kappa,
    evaluate_sync,
    plotting,
)
from autorubric.demo import demo_dataset
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeReply, JudgeRequest
from autorubric.metrics import CriterionMetrics, judge_report, reliability_curve
from autorubric.runs import calibrate_escalation


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    pyplot.close("all")
    matplotlib.use(before)


@pytest.fixture
def ax() -> Axes:
    """Axes of the test's own."""
    return pyplot.subplots()[1]


def strict(request: JudgeRequest) -> JudgeReply:
    """Says UNMET, or the first option, to everything, a little unsure on short texts."""
    answer = request.criterion.answers()[0].code
    sure = len(request.submission.text or "") % 10 / 10
    return JudgeReply(answer=answer, reason="", confidence=sure)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """The demo dataset graded by two judges."""
    grader = CriterionGrader(judges=[LexicalJudge(), FunctionJudge(function=strict, judge_id="strict")])
    folder = tmp_path_factory.mktemp("runs")
    return evaluate_sync(demo_dataset(), grader, experiments_dir=folder, show_progress=False)


def texts(ax: Axes) -> list[str]:
    """What is written on the axes, the legend apart."""
    return [text.get_text() for text in ax.texts]


def legend(ax: Axes) -> list[str]:
    """The lines of the legend."""
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def test_scores_of_a_run_and_of_numbers(run: EvalResult, ax: Axes) -> None:
    """The bars hold every score once; what has none is counted in the legend; several stand side by side."""
    assert plotting.plot_scores(run, ax=ax) is ax
    assert sum(bar.get_height() for bar in ax.patches) == len(run.get_scores())  # type: ignore[attr-defined]
    numbers = plotting.plot_scores([0.1, None, 1.0])
    assert legend(numbers) == ["scores, n = 2, 1 without a score"]
    both = plotting.plot_scores({"before": [0.1, 0.2], "after": [0.3]})
    assert legend(both) == ["before, n = 2", "after, n = 1"]
    with pytest.raises(ArgumentError, match="no score"):
        plotting.plot_scores([None])


def test_raw_scores_are_not_cut(ax: Axes) -> None:
    """Scores outside [0, 1] are in the picture."""
    plotting.plot_scores([-3.0, 8.0], ax=ax)
    assert sum(bar.get_height() for bar in ax.patches) == 2  # type: ignore[attr-defined]


def test_confusion(run: EvalResult, ax: Axes) -> None:
    """Every count is written in its place."""
    figures = run.compute_metrics().per_criterion[0]
    assert isinstance(figures, CriterionMetrics) and figures.confusion_matrix is not None
    confusion = figures.confusion_matrix
    assert plotting.plot_confusion(confusion, title="apology", ax=ax) is ax
    assert texts(ax) == [str(count) for row in confusion.counts for count in row]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(confusion.labels)


def test_agreement_matrix(run: EvalResult, ax: Axes, tmp_path: Path) -> None:
    """Both halves say the share, kappa and how many; one judge has nobody to agree with."""
    plotting.plot_agreement_matrix(run, ax=ax)
    first, second = texts(ax)
    assert first == second and "n = " in first and 0 <= float(first.split()[0]) <= 1
    # One of the two says the same of every text, which chance explains in full.
    assert first.split("\n")[1] == "κ 0.00"
    alone = evaluate_sync(
        demo_dataset(),
        CriterionGrader(judges=[LexicalJudge()]),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    with pytest.raises(ArgumentError, match="requires at least two judges; the run has 1"):
        plotting.plot_agreement_matrix(alone)


def test_calibration(ax: Axes) -> None:
    """A point a bin at its rate; without bins the reason is told."""
    curve = reliability_curve([0, 0, 1, 1, 1, 0, 1, 1], [0.1, 0.2, 0.8, 0.9, 0.7, 0.6, 0.95, 0.3], bins=4)
    plotting.plot_calibration(curve, ax=ax)
    points: Any = ax.collections[0].get_offsets()
    for point, one in zip(points, curve.bins, strict=True):
        assert tuple(point) == pytest.approx((one.forecast, one.rate.value))
    with pytest.raises(ArgumentError, match="no_pairs"):
        plotting.plot_calibration(reliability_curve([], []))


def test_intervals(ax: Axes) -> None:
    """A row an estimate; an undefined one is named with its reason and has no point."""
    defined = cohen_kappa([0, 1, 1, 0, 1, 0], [0, 1, 1, 0, 0, 0])
    undefined = cohen_kappa([1, 1], [1, 1])
    plotting.plot_intervals({"a": defined, "b": undefined}, reference=0.0, ax=ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", f"b ({undefined.reason})"]
    with pytest.raises(ArgumentError, match="no estimate"):
        plotting.plot_intervals({})


def test_cost_and_accuracy(ax: Axes, tmp_path: Path) -> None:
    """A point a threshold, by the share escalated where nothing is known to cost anything."""
    cascade = EscalationConfig(judges=[LexicalJudge()], threshold=1.0)
    first = FunctionJudge(function=strict, judge_id="strict")
    grader = CriterionGrader(judges=[first], escalation=cascade)
    found = evaluate_sync(demo_dataset(), grader, experiments_dir=tmp_path, show_progress=False)
    curve = calibrate_escalation(found, demo_dataset())
    plotting.plot_cost_accuracy(curve, ax=ax)
    assert ax.get_xlabel() == "share of criteria escalated"
    assert len(ax.lines[0].get_xdata()) == len(curve.points)  # type: ignore[arg-type]
    assert legend(ax) == ["first judges only", "strong panel only"]


def test_a_forest_has_a_row_a_criterion_and_the_ceiling(ax: Axes) -> None:
    """Estimates with intervals by criterion, people as diamonds, labelled axes; unknown names are refused."""
    people = ("ann", "bo", "cy")
    rows = [
        {"item_id": f"i{at}", "criterion": name, "rater": who, "rater_kind": kind, "label": "MU"[at % 2]}
        for at in range(12)
        for name in ("clear", "kind")
        for who, kind in ((*((one, "human") for one in people), ("j1", "judge")))
    ]
    report = judge_report(rows)
    drawn = plotting.plot_forest(report, rater="j1", ax=ax)
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["clear", "kind"]
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("kappa (j1)", "criterion")
    legend = drawn.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["people"]
    with pytest.raises(ArgumentError, match="unknown rater 'j2'; available:"):
        plotting.plot_forest(report, rater="j2")
    with pytest.raises(ArgumentError, match="unknown metric 'kapa'; available:"):
        plotting.plot_forest(report, rater="j1", stat="kapa")


def test_matrices_have_a_colour_bar(run: EvalResult, ax: Axes) -> None:
    """A shade can be read off."""
    plotting.plot_agreement_matrix(run, ax=ax)
    figure = ax.get_figure()
    assert figure is not None
    assert "share of equal decisions" in [one.get_ylabel() for one in figure.axes]


def test_result_tables_are_latex(run: EvalResult) -> None:
    """Every table is a tabular of as many columns, with special characters escaped."""
    text = judge_report(run).to_latex()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 2
    for table in text.split("\n\n"):
        n_columns = len(table.split(r"\begin{tabular}{")[1].split("}")[0])
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert rows and {line.replace(r"\&", "").count("&") + 1 for line in rows} == {n_columns}
    assert r"names\_stake" in text and "names_stake" not in text
    assert r"\toprule" in run.compute_metrics().to_latex()
