"""Draws the pictures of the reference pages: `python docs/pictures.py [NAME …]`, needs the `plots` extra.

What is drawn is computed with `autorubric` itself from seeded data. The same matplotlib gives the same bytes:
no date, a fixed salt for ids, text as text. Colours are of middling lightness and the ground is transparent,
so that the pictures can be read on white and on black.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autorubric import (
    AnalyticRubricCriterion,
    ChecklistCriterion,
    ComparativeCriterion,
    Criterion,
    CriterionGrader,
    DataItem,
    HolisticRubricCriterion,
    JudgeRequest,
    LikertCriterion,
    LikertItem,
    NarrativeCriterion,
    NumericalRatingCriterion,
    PassFailCriterion,
    Rubric,
    RubricDataset,
    RubricDimension,
    RubricLevel,
    evaluate_sync,
    metrics,
)
from autorubric.criteria import BaseCriterion
from autorubric.judges import FunctionJudge

ASSETS = Path(__file__).parent / "assets"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "autorubric",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.0,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "path.simplify_threshold": 0.5,
}
INK, BLUE, ORANGE, GREEN, PALE = "#808080", "#2f8fd0", "#e0761a", "#1fa37e", "#a9a9a9"
COLOURS = (BLUE, ORANGE, GREEN)
RATES = np.linspace(0.02, 0.98, 49)
PICTURES: dict[str, Callable[[], Figure]] = {}


def picture(name: str) -> Callable[[Callable[[], Figure]], Callable[[], Figure]]:
    """A decorator that makes the function draw the picture of that name, `kinds/…` or `metrics/…`."""

    def keep(draw: Callable[[], Figure]) -> Callable[[], Figure]:
        PICTURES[name] = draw
        return draw

    return keep


def written(name: str, folder: Path = ASSETS) -> Path:
    """Draws one picture and gives the file that it is in."""
    path = folder / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    ink = dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
        ),
        INK,
    )
    with mpl.rc_context({**STYLE, **ink}):
        figure = PICTURES[name]()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawn = io.StringIO()
        figure.savefig(
            drawn,
            format="svg",
            transparent=True,
            bbox_inches="tight",
            metadata=nothing,
        )
        plt.close(figure)
    # A hundredth of a point is finer than any screen, and neither it nor indents are worth their bytes.
    lean = re.sub(r"\n\s+", "\n", re.sub(r"(\d\.\d\d)\d+", r"\1", drawn.getvalue()))
    path.write_text(lean, encoding="utf-8", newline="\n")
    return path


def _axes(
    columns: int = 1, *, width: float = 0.0, height: float = 2.5
) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(
        1,
        columns,
        figsize=(width or (4.6 if columns == 1 else 2.9 * columns), height),
    )
    figure.subplots_adjust(wspace=0.45)
    return figure, list(np.atleast_1d(axes))


def _lines(
    x: Sequence[float] | np.ndarray,
    curves: dict[str, Iterable[float]],
    labels: tuple[str, str],
    *,
    limits: tuple[float, float] | None = None,
    at: str | tuple[float, float] = "best",
) -> Figure:
    figure, (axes,) = _axes()
    for (name, values), colour in zip(curves.items(), COLOURS, strict=False):
        axes.plot(x, list(values), color=colour, label=name)
    if limits:
        axes.set_ylim(*limits)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    axes.legend(loc=at)
    return figure


def _bars(
    axes: Axes,
    heights: dict[str, float],
    label: str,
    *,
    colours: Sequence[str] = (BLUE,),
) -> None:
    used = [colours[at % len(colours)] for at in range(len(heights))]
    found = axes.bar(list(heights), list(heights.values()), color=used, width=0.6)
    axes.bar_label(
        found,
        labels=[f"{height:.2f}" for height in heights.values()],
        color=INK,
        padding=2,
    )
    axes.set_ylabel(label)


def _table(axes: Axes, table: Sequence[Sequence[int]], title: str) -> None:
    most = max(max(row) for row in table)
    for row, counts in enumerate(table):
        for column, count in enumerate(counts):
            shade = plt.Rectangle(
                (column, 1 - row),
                1,
                1,
                facecolor=BLUE,
                alpha=0.08 + 0.32 * count / most,
            )
            axes.add_patch(shade)
            axes.text(
                column + 0.5,
                1.5 - row,
                str(count),
                ha="center",
                va="center",
                fontsize=11,
                weight="bold",
            )
    axes.set(
        xlim=(0, 2),
        ylim=(0, 2),
        xticks=(0.5, 1.5),
        yticks=(0.5, 1.5),
        xlabel="judge",
        ylabel="label",
    )
    axes.set_xticklabels(("UNMET", "MET"))
    axes.set_yticklabels(("MET", "UNMET"))
    axes.set_title(title)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _judged(
    rate: float, *, recall: float = 0.9, specificity: float = 0.85, n: int = 10_000
) -> list[list[int]]:
    """The expected table of such a judge at that share of MET; UNMET first, rows the truth."""
    met = round(n * rate)
    found, kept = round(met * recall), round((n - met) * specificity)
    return [[kept, n - met - kept], [met - found, found]]


def _even(rate: float, right: float = 0.9) -> list[list[int]]:
    """A table of that share of MET on both sides, with that accuracy."""
    apart = (1 - right) / 2
    cells = [[1 - rate - apart, apart], [apart, rate - apart]]
    return [[round(10_000 * max(cell, 0.0)) for cell in row] for row in cells]


def _threshold_tables(shift: float = 1.6) -> list[list[list[int]]]:
    """Tables of one judge over its thresholds, from the strictest; half of the texts are MET."""
    draw = np.random.default_rng(4)
    truth = np.arange(2000) % 2
    scores = draw.normal(truth * shift, 1.0)
    tables = []
    for cut in np.quantile(scores, np.linspace(0.99, 0.01, 50)):
        said = scores > cut
        tables.append(
            [
                [int(((truth == row) & (said == column)).sum()) for column in (0, 1)]
                for row in (0, 1)
            ]
        )
    return tables


def _value(figure: metrics.Estimate) -> float:
    return float("nan") if figure.value is None else figure.value


def _says(truth: np.ndarray, right: float, draw: np.random.Generator) -> np.ndarray:
    """Binary labels that are right with that probability."""
    return np.where(draw.random(len(truth)) < right, truth, 1 - truth)


def _cumulative(
    axes: Axes, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    where = np.sort(np.concatenate([first, second]))
    heights = [
        np.searchsorted(np.sort(sample), where, side="right") / len(sample)
        for sample in (first, second)
    ]
    for height, name, colour in zip(
        heights, ("people", "judge"), COLOURS, strict=False
    ):
        axes.step(where, height, where="post", color=colour, label=name)
    axes.set(xlabel="score", ylabel="cumulative proportion")
    return where, heights[0], heights[1]


# Kinds


def _places(
    axes: Axes, points: dict[str, float], title: str, colour: str = BLUE
) -> None:
    """Answers where their values are on the line from 0 to 1."""
    axes.hlines(0, 0, 1, color=PALE, linewidth=1)
    axes.plot(list(points.values()), [0] * len(points), "o", color=colour)
    for at, (name, value) in enumerate(points.items()):
        up = at % 2 == 0
        axes.annotate(
            f"{name}\n{value:.2f}", (value, 0), (0, 9 if up else -9), textcoords="offset points", ha="center",
            va="bottom" if up else "top", color=INK,
        )  # fmt: skip
    axes.set(
        xlim=(-0.12, 1.12),
        ylim=(-1, 1),
        xlabel="value",
        yticks=(),
        xticks=(0, 0.5, 1),
    )
    axes.set_title(title)
    axes.spines["left"].set_visible(False)


def _worth(criterion: BaseCriterion, answers: dict[str, object]) -> dict[str, float]:
    return {
        name: float(criterion.read(answer).value or 0.0)
        for name, answer in answers.items()
    }


@picture("kinds/plain")
def _plain() -> Figure:
    figure, axes = _axes(2, width=7.5, height=1.7)
    met = Criterion(name="refund", requirement="It offers a refund.")
    options = [("none", 0.0), ("some", 0.7), ("most", 0.85), ("full", 1.0)]
    given = [{"label": label, "value": value} for label, value in options]
    steps = Criterion(name="steps", requirement="It explains.", options=given)
    _places(axes[0], _worth(met, {"UNMET": "UNMET", "MET": "MET"}), "without options")
    _places(
        axes[1],
        _worth(steps, {label: label for label, _ in options}),
        "with options",
        ORANGE,
    )
    return figure


@picture("kinds/pass_fail")
def _pass_fail() -> Figure:
    criterion = PassFailCriterion(
        name="safe", description="Is it safe?", passing_criteria="No names."
    )
    quality = np.linspace(0, 1, 41)
    values = [
        criterion.read({"passed": bool(one >= 0.6), "reason": ""}).value
        for one in quality
    ]
    figure, (axes,) = _axes()
    axes.step(quality, values, where="post", color=BLUE)
    axes.axvline(0.6, color=PALE, linestyle=":")
    axes.annotate("standard", (0.6, 0.5), (5, 0), textcoords="offset points")
    axes.set(xlabel="quality of the text", ylabel="value", xticks=())
    return figure


@picture("kinds/likert")
def _likert() -> Figure:
    words = ("useless", "poor", "fair", "good", "excellent")
    scale = [LikertItem(val=at, description=word) for at, word in enumerate(words, 1)]
    criterion = LikertCriterion(
        name="helpful", description="How helpful?", scale=scale
    )
    figure, (axes,) = _axes(height=1.7)
    answers = {
        f"{at} {word}": {"rating": at, "explanation": ""}
        for at, word in enumerate(words, 1)
    }
    _places(axes, _worth(criterion, answers), "equal steps, whatever the words say")
    return figure


@picture("kinds/numerical_rating")
def _numerical_rating() -> Figure:
    figure, (axes,) = _axes()
    for (low, high), colour in zip(
        ((0, 100), (1, 10), (0, 40)), COLOURS, strict=True
    ):
        criterion = NumericalRatingCriterion(
            name="n", description="n", min_value=low, max_value=high
        )
        numbers = np.linspace(low, high, 10)
        values = [
            criterion.read({"score": float(one), "explanation": ""}).value
            for one in numbers
        ]
        axes.plot(numbers, values, color=colour, marker=".", label=f"{low} to {high}")
    axes.set(xlabel="rating", ylabel="value")
    axes.legend()
    return figure


@picture("kinds/checklist")
def _checklist() -> Figure:
    keys = ("docstring", "errors", "tests", "style")
    criterion = ChecklistCriterion(name="code", items={key: key for key in keys})
    figure, (axes,) = _axes(height=1.9)
    for row, there in enumerate(
        ((True, True, False, False), (False, False, True, True))
    ):
        value = criterion.read(dict(zip(keys, there, strict=True))).value
        for column, one in enumerate(there):
            axes.plot(
                column,
                row,
                "o",
                markersize=11,
                color=BLUE,
                fillstyle="full" if one else "none",
            )
        axes.annotate(f"value {value:.2f}", (3.5, row), va="center")
    axes.set(
        xticks=range(4),
        yticks=(0, 1),
        xlim=(-0.5, 4.6),
        ylim=(-0.6, 1.6),
        xlabel="item (filled: present)",
    )
    axes.set_xticklabels(keys)
    axes.set_yticklabels(("text A", "text B"))
    return figure


@picture("kinds/analytic_rubric")
def _analytic_rubric() -> Figure:
    parts = {"content": 2.0, "style": 1.0, "order": 1.0}
    dimensions = {
        key: RubricDimension(description=key, min_score=0, max_score=4, weight=weight)
        for key, weight in parts.items()
    }
    criterion = AnalyticRubricCriterion(name="essay", dimensions=dimensions)
    figure, (axes,) = _axes()
    for at, (name, scores) in enumerate(
        {"rich and stiff": (4, 1, 1), "thin and lively": (1, 4, 4)}.items()
    ):
        given = {
            f"{key}_score": score for key, score in zip(parts, scores, strict=True)
        }
        value = criterion.read(
            {**given, **{f"{key}_explanation": "" for key in parts}}
        ).value
        places = np.arange(3) + (at - 0.5) * 0.36
        axes.bar(
            places,
            scores,
            0.34,
            color=COLOURS[at],
            label=f"{name}: value {value:.3f}",
        )
    axes.set(xticks=range(3), ylabel="score of 4", xlabel="dimension", ylim=(0, 6))
    axes.set_xticklabels(
        [f"{key}, weight {weight:.0f}" for key, weight in parts.items()]
    )
    axes.legend(loc="upper center")
    return figure


@picture("kinds/holistic_rubric")
def _holistic_rubric() -> Figure:
    names = ("Beginning", "Developing", "Proficient", "Distinguished")
    figure, axes = _axes(2, width=8.6, height=1.7)
    for panel, count, colour in zip(axes, (3, 4), COLOURS, strict=False):
        levels = [
            RubricLevel(name=name, index=at, description=name)
            for at, name in enumerate(names[:count], 1)
        ]
        criterion = HolisticRubricCriterion(name="quality", levels=levels)
        _places(
            panel,
            _worth(criterion, {name: name for name in names[:count]}),
            f"{count} levels",
            colour,
        )
    return figure


@picture("kinds/narrative")
def _narrative() -> Figure:
    right = Criterion(name="right", requirement="It is right.")
    short = Criterion(name="short", requirement="It is short.")
    words = NarrativeCriterion(name="feedback", weight=5)

    def clerk(request: JudgeRequest) -> str:
        return {"right": "MET", "short": "UNMET"}.get(
            request.criterion.name, "Well done."
        )

    grader = CriterionGrader(judges=[FunctionJudge(function=clerk, judge_id="clerk")])
    scores = {
        name: Rubric(criteria).grade_sync("A text.", grader).score or 0.0
        for name, criteria in {
            "without narrative": [right, short],
            "with narrative": [right, short, words],
        }.items()
    }
    figure, (axes,) = _axes(width=3.6)
    _bars(axes, scores, "score", colours=COLOURS)
    axes.set_ylim(0, 1)
    return figure


@picture("kinds/comparative")
def _comparative() -> Figure:
    figure, axes = _axes(2, width=7.2)
    answers = {"a": "one", "b": "two"}
    rubric = Rubric([ComparativeCriterion(name="c", requirement="Which is better?")])
    said = ("a", "tie", "b")
    for row, swapped in enumerate(said):
        for column, declared in enumerate(said):

            def clerk(
                request: JudgeRequest, first: str = declared, second: str = swapped
            ) -> str:
                return first if request.order[0] == "a" else second

            grader = CriterionGrader(
                judges=[FunctionJudge(function=clerk, judge_id="clerk")]
            )
            value = rubric.grade_sync(answers, grader).report[0].score_value
            axes[0].add_patch(
                plt.Rectangle(
                    (column, row),
                    1,
                    1,
                    facecolor=BLUE,
                    alpha=0.06 + 0.34 * (value or 0),
                )
            )
            axes[0].text(
                column + 0.5,
                row + 0.5,
                f"{value:g}",
                ha="center",
                va="center",
                weight="bold",
            )
    axes[0].set(
        xlim=(0, 3),
        ylim=(0, 3),
        xlabel="better text, order a, b",
        ylabel="better text, order b, a",
    )
    axes[0].set(
        xticks=(0.5, 1.5, 2.5),
        yticks=(0.5, 1.5, 2.5),
        xticklabels=said,
        yticklabels=said,
    )
    axes[0].set_title("value of a, one judge")
    graded = Rubric([ComparativeCriterion(name="c", margin=2)])
    steps, values = [-2, -1, 0, 1, 2], []
    for step in steps:
        judge = FunctionJudge(
            function=lambda request, step=step: step, judge_id="clerk"
        )
        values.append(
            graded.grade_sync(answers, CriterionGrader(judges=[judge]))
            .report[0]
            .score_value
        )
    axes[1].plot(steps, values, "o-", color=ORANGE)
    axes[1].set(xlabel="preference, margin 2", ylabel="value of a", xticks=steps)
    axes[1].set_title("to the right, b is better")
    return figure


# Two raters


@picture("metrics/accuracy")
def _accuracy() -> Figure:
    curves = {
        "a judge: recall .9, specificity .85": [
            _value(metrics.accuracy(table=_judged(rate), ci=None)) for rate in RATES
        ],
        "always the commoner answer": [max(rate, 1 - rate) for rate in RATES],
    }
    return _lines(
        RATES,
        curves,
        ("proportion of MET labels", "accuracy"),
        limits=(0.1, 1.02),
        at="lower center",
    )


@picture("metrics/precision")
def _precision() -> Figure:
    tables = [_judged(rate, recall=0.9, specificity=0.9) for rate in RATES]
    curves = {
        "precision": [
            _value(metrics.precision(table=table, ci=None)) for table in tables
        ],
        "recall": [_value(metrics.recall(table=table, ci=None)) for table in tables],
    }
    return _lines(
        RATES,
        curves,
        ("proportion of MET labels", "value for the same judge"),
        limits=(0, 1.02),
    )


@picture("metrics/recall")
def _recall() -> Figure:
    tables = _threshold_tables()
    said = [(table[0][1] + table[1][1]) / 2000 for table in tables]
    curves = {
        "recall": [_value(metrics.recall(table=table, ci=None)) for table in tables],
        "precision": [
            _value(metrics.precision(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        said,
        curves,
        ("proportion that the judge calls MET", "value"),
        limits=(0, 1.02),
        at="lower center",
    )


@picture("metrics/specificity")
def _specificity() -> Figure:
    figure, (axes,) = _axes(width=3.4, height=2.8)
    for shift, name, colour in ((1.6, "a fair judge", BLUE), (0.0, "a coin", PALE)):
        tables = _threshold_tables(shift)
        recalls = [_value(metrics.recall(table=table, ci=None)) for table in tables]
        axes.plot(
            recalls,
            [_value(metrics.specificity(table=table, ci=None)) for table in tables],
            color=colour,
            label=name,
        )
    axes.set(xlabel="recall", ylabel="specificity")
    axes.legend(loc="lower left")
    return figure


@picture("metrics/f1")
def _f1() -> Figure:
    added = np.arange(0, 400, 10)
    tables = [[[int(more), 10], [10, 30]] for more in added]
    curves = {
        "accuracy": [
            _value(metrics.accuracy(table=table, ci=None)) for table in tables
        ],
        "F1": [_value(metrics.f1(table=table, ci=None)) for table in tables],
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        added, curves, ("true negatives, with TP 30, FP 10, FN 10", "value")
    )


@picture("metrics/macro_f1")
def _macro_f1() -> Figure:
    table = np.array([[50, 4, 0], [4, 38, 0], [2, 2, 0]])
    each = {}
    for at, name in enumerate(("refund", "repair", "other")):
        hit, rest = (
            table[at, at],
            table[at].sum() + table[:, at].sum() - 2 * table[at, at],
        )
        alone = [
            [int(table.sum() - hit - rest), int(table[:, at].sum() - hit)],
            [int(table[at].sum() - hit), int(hit)],
        ]
        each[f"F1 {name}"] = _value(metrics.f1(table=alone, ci=None))
    each["macro F1"] = _value(metrics.macro_f1(table=table, ci=None))
    each["accuracy"] = _value(metrics.accuracy(table=table, ci=None))
    figure, (axes,) = _axes(width=5.0)
    _bars(axes, each, "value", colours=(BLUE, BLUE, BLUE, ORANGE, GREEN))
    axes.set_ylim(0, 1.1)
    return figure


@picture("metrics/balanced_accuracy")
def _balanced_accuracy() -> Figure:
    tables = [
        [[1000 - round(1000 * rate), 0], [round(1000 * rate), 0]] for rate in RATES
    ]
    curves = {
        "accuracy": [
            _value(metrics.accuracy(table=table, ci=None)) for table in tables
        ],
        "balanced accuracy": [
            _value(metrics.balanced_accuracy(table=table, ci=None))
            for table in tables
        ],
    }
    return _lines(
        RATES,
        curves,
        ("proportion of MET labels", "judge that says UNMET"),
        limits=(0, 1.02),
    )


@picture("metrics/positive_agreement")
def _positive_agreement() -> Figure:
    rates = np.linspace(0.05, 0.95, 46)
    tables = [_even(rate) for rate in rates]
    curves = {
        "positive agreement": [
            _value(metrics.positive_agreement(table=table, ci=None))
            for table in tables
        ],
        "negative agreement": [
            _value(metrics.negative_agreement(table=table, ci=None))
            for table in tables
        ],
        "accuracy": [
            _value(metrics.accuracy(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        rates,
        curves,
        ("proportion of MET on both sides", "value"),
        limits=(0, 1.02),
        at="lower center",
    )


@picture("metrics/negative_agreement")
def _negative_agreement() -> Figure:
    figure, axes = _axes(2, width=6.4, height=2.3)
    for panel, table in zip(
        axes, ([[85, 5], [5, 5]], [[5, 5], [5, 85]]), strict=True
    ):
        found = [
            metrics.positive_agreement,
            metrics.negative_agreement,
            metrics.cohen_kappa,
        ]
        positive, negative, kappa = (
            _value(one(table=table, ci=None)) for one in found
        )
        _table(
            panel,
            table,
            f"positive {positive:.2f}, negative {negative:.2f}, kappa {kappa:.2f}",
        )
    return figure


@picture("metrics/adjacent_accuracy")
def _adjacent_accuracy() -> Figure:
    options = range(2, 11)
    chance = []
    for count in options:
        table = np.ones((count, count), dtype=int)
        scale = metrics.Ordinal([str(at) for at in range(count)])
        chance.append(
            _value(metrics.adjacent_accuracy(table=table, scale=scale, ci=None))
        )
    figure, (axes,) = _axes()
    axes.plot(list(options), chance, "o-", color=BLUE)
    axes.set(
        xlabel="equally common options",
        ylabel="adjacent accuracy by chance",
        ylim=(0, 1.05),
    )
    return figure


@picture("metrics/cohen_kappa")
def _cohen_kappa() -> Figure:
    tables = [_judged(rate) for rate in RATES]
    curves = {
        "accuracy": [
            _value(metrics.accuracy(table=table, ci=None)) for table in tables
        ],
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        RATES,
        curves,
        ("proportion of MET labels", "value for the same judge"),
        limits=(0, 1.02),
        at="lower center",
    )


@picture("metrics/scott_pi")
def _scott_pi() -> Figure:
    tables = [[[round(5000 * (1 - rate)), round(5000 * rate)]] * 2 for rate in RATES]
    curves = {
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
        "Scott's pi": [
            _value(metrics.scott_pi(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        RATES,
        curves,
        ("proportion of MET among the judge's answers (labels: .5)", "value"),
        limits=(-0.5, 0.3),
    )


@picture("metrics/brennan_prediger")
def _brennan_prediger() -> Figure:
    used = np.array([[30, 5, 3], [5, 25, 4], [2, 6, 20]])
    options = range(3, 11)
    tables = [np.pad(used, (0, count - 3)) for count in options]
    curves = {
        "Brennan-Prediger": [
            _value(metrics.brennan_prediger(table=table, ci=None)) for table in tables
        ],
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        list(options), curves, ("declared options, three of them used", "value")
    )


@picture("metrics/gwet_ac")
def _gwet_ac() -> Figure:
    rates = np.linspace(0.05, 0.95, 46)
    tables = [_even(rate) for rate in rates]
    curves = {
        "AC1": [_value(metrics.gwet_ac(table=table, ci=None)) for table in tables],
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        rates,
        curves,
        ("proportion of MET on both sides, accuracy .9", "value"),
        limits=(-0.1, 1.02),
        at="lower center",
    )


@picture("metrics/mcc")
def _mcc() -> Figure:
    tables = _threshold_tables()
    said = [(table[0][1] + table[1][1]) / 2000 for table in tables]
    curves = {
        "Matthews' correlation": [
            _value(metrics.mcc(table=table, ci=None)) for table in tables
        ],
        "Cohen's kappa": [
            _value(metrics.cohen_kappa(table=table, ci=None)) for table in tables
        ],
    }
    return _lines(
        said,
        curves,
        ("proportion that the judge calls MET (labels: .5)", "value"),
        at="lower center",
    )


# Many raters


@picture("metrics/percent_agreement")
def _percent_agreement() -> Figure:
    draw = np.random.default_rng(1)
    rates = np.linspace(0.05, 0.95, 31)
    tossed = [(draw.random((2000, 3)) < rate).astype(int).tolist() for rate in rates]
    curves = {
        "percent agreement": [
            _value(metrics.percent_agreement(one, ci=None)) for one in tossed
        ],
        "Krippendorff's alpha": [
            _value(metrics.krippendorff_alpha(one, ci=None)) for one in tossed
        ],
    }
    return _lines(
        rates,
        curves,
        ("probability of MET of three coins", "value"),
        limits=(-0.1, 1.02),
        at=(0.27, 0.2),
    )


@picture("metrics/fleiss_kappa")
def _fleiss_kappa() -> Figure:
    draw = np.random.default_rng(2)
    truth = np.arange(4000) % 2
    counts = list(range(3, 16, 2))
    kappas, right = [], []
    for count in counts:
        ratings = np.column_stack([_says(truth, 0.75, draw) for _ in range(count)])
        kappas.append(_value(metrics.fleiss_kappa(ratings.tolist(), ci=None)))
        voted = metrics.majority_vote(ratings, labels=2)
        right.append(_value(metrics.accuracy(truth.tolist(), voted, ci=None)))
    labels = ("raters, each 75% accurate", "value")
    return _lines(
        counts,
        {"accuracy of the majority": right, "Fleiss' kappa": kappas},
        labels,
        limits=(0, 1.02),
        at="center",
    )


@picture("metrics/conger_kappa")
def _conger_kappa() -> Figure:
    draw = np.random.default_rng(5)
    rates = np.linspace(0.5, 0.98, 17)
    drawn = draw.random((20_000, 3))
    tossed = [
        (drawn < np.array([0.5, 0.5, rate])).astype(int).tolist() for rate in rates
    ]
    curves = {
        "Conger's kappa": [
            _value(metrics.conger_kappa(one, ci=None)) for one in tossed
        ],
        "Fleiss' kappa": [
            _value(metrics.fleiss_kappa(one, ci=None)) for one in tossed
        ],
    }
    return _lines(
        rates,
        curves,
        ("probability of MET of the third of three coins", "value"),
        limits=(-0.2, 0.1),
    )


@picture("metrics/krippendorff_alpha")
def _krippendorff_alpha() -> Figure:
    sure = [[at, at] for at in (1, 2, 3, 4, 5)] * 4
    near, far = [[1, 2], [3, 2], [4, 5], [3, 4]], [[1, 5], [5, 1], [1, 5], [5, 1]]
    figure, (axes,) = _axes()
    for at, (name, apart) in enumerate(
        {"misses by one place": near, "misses by four": far}.items()
    ):
        found = [
            _value(metrics.krippendorff_alpha(sure + apart, level=level, ci=None))
            for level in ("nominal", "ordinal", "interval")
        ]
        bars = axes.bar(
            np.arange(3) + (at - 0.5) * 0.36,
            found,
            0.34,
            color=COLOURS[at],
            label=name,
        )
        axes.bar_label(
            bars, labels=[f"{one:.2f}" for one in found], color=INK, padding=2
        )
    axes.set(
        xticks=range(3), ylabel="Krippendorff's alpha", ylim=(0, 1.4), xlabel="level"
    )
    axes.set_xticklabels(("nominal", "ordinal", "interval"))
    axes.legend(loc="upper center", ncols=2)
    return figure


@picture("metrics/icc")
def _icc() -> Figure:
    draw = np.random.default_rng(6)
    base = draw.normal(0, 1, (200, 1)) + draw.normal(0, 0.5, (200, 3))
    shifts = np.linspace(0, 3, 31)
    shifted = [base - np.array([0, 0, shift]) for shift in shifts]
    curves = {
        form: [_value(metrics.icc(one, form=form, ci=None)) for one in shifted]
        for form in ("ICC(3,1)", "ICC(2,1)", "ICC(1,1)")
    }
    return _lines(
        shifts, curves, ("severity of the third rater (SD of items: 1)", "value")
    )


@picture("metrics/cronbach_alpha")
def _cronbach_alpha() -> Figure:
    draw = np.random.default_rng(7)
    counts = list(range(2, 31))
    figure, (axes,) = _axes()
    for shared, colour in ((0.5, BLUE), (0.2, ORANGE), (0.0, GREEN)):
        columns = np.sqrt(shared) * draw.normal(size=(4000, 1)) + np.sqrt(
            1 - shared
        ) * draw.normal(size=(4000, 30))
        found = [
            _value(metrics.cronbach_alpha(columns[:, :count], ci=None))
            for count in counts
        ]
        axes.plot(
            counts, found, color=colour, label=f"correlation of columns {shared:g}"
        )
    axes.set(xlabel="number of columns", ylabel="Cronbach's alpha")
    axes.legend(loc="center right")
    return figure


@picture("metrics/kendall_w")
def _kendall_w() -> Figure:
    draw = np.random.default_rng(8)
    counts = list(range(2, 13))
    means = [
        np.mean(
            [
                _value(metrics.kendall_w(draw.random((20, count)), ci=None))
                for _ in range(60)
            ]
        )
        for count in counts
    ]
    figure, (axes,) = _axes()
    axes.plot(counts, means, "o", color=BLUE, label="random rankings")
    axes.plot(
        counts,
        [1 / count for count in counts],
        color=PALE,
        linestyle=":",
        label="1 / m",
    )
    axes.set(xlabel="number of raters m", ylabel="Kendall's W", ylim=(0, 1))
    axes.legend()
    return figure


# Numbers


def _scatter(
    axes: Axes, x: np.ndarray, y: np.ndarray, title: str, *, line: bool = True
) -> None:
    ends = (min(x.min(), y.min()), max(x.max(), y.max()))
    if line:
        axes.plot(ends, ends, color=PALE, linestyle=":", linewidth=1)
    axes.plot(x, y, "o", color=BLUE, markersize=3.5)
    axes.set(xlabel="label", ylabel="judge")
    axes.set_title(title)


@picture("metrics/pearson")
def _pearson() -> Figure:
    draw = np.random.default_rng(9)
    x, y = draw.normal(0.4, 0.08, (2, 30))
    figure, axes = _axes(2, width=6.2)
    for panel, left, right in (
        (axes[0], x, y),
        (axes[1], np.append(x, 1.1), np.append(y, 1.1)),
    ):
        _scatter(
            panel,
            left,
            right,
            f"r = {_value(metrics.pearson(left, right, ci=None)):.2f}",
            line=False,
        )
        panel.set(xlim=(0, 1.2), ylim=(0, 1.2))
    return figure


@picture("metrics/spearman")
def _spearman() -> Figure:
    x = np.linspace(0, 1, 25)
    y = np.exp(5 * x) / np.exp(5)
    r, rho = (
        _value(one(x, y, ci=None)) for one in (metrics.pearson, metrics.spearman)
    )
    figure, (axes,) = _axes(width=3.4, height=2.8)
    _scatter(axes, x, y, f"Pearson's r = {r:.2f}, rho = {rho:.2f}", line=False)
    return figure


@picture("metrics/kendall_tau_b")
def _kendall_tau_b() -> Figure:
    draw = np.random.default_rng(10)
    truth, noise = draw.normal(size=(2, 400))
    spreads = np.linspace(0, 3, 31)
    curves = {
        "Spearman's rho": [
            _value(metrics.spearman(truth, truth + spread * noise, ci=None))
            for spread in spreads
        ],
        "Kendall's tau-b": [
            _value(metrics.kendall_tau_b(truth, truth + spread * noise, ci=None))
            for spread in spreads
        ],
    }
    return _lines(
        spreads,
        curves,
        ("noise of the judge (SD of the labels: 1)", "value"),
        limits=(0, 1.02),
    )


@picture("metrics/lin_ccc")
def _lin_ccc() -> Figure:
    draw = np.random.default_rng(11)
    truth = draw.random(18)
    judge = truth + draw.normal(0, 0.06, 18)
    figure, axes = _axes(3, width=8.6)
    shown = {
        "right": judge,
        "too strict": judge - 0.3,
        "too narrow": 0.5 + 0.35 * (judge - 0.5),
    }
    for panel, (name, given) in zip(axes, shown.items(), strict=True):
        r, ccc = (
            _value(one(truth, given, ci=None))
            for one in (metrics.pearson, metrics.lin_ccc)
        )
        _scatter(panel, truth, given, f"{name}: r = {r:.2f}, ccc = {ccc:.2f}")
        panel.set(ylim=(-0.45, 1.15))
    return figure


@picture("metrics/mae")
def _mae() -> Figure:
    draw = np.random.default_rng(12)
    truth = draw.random(20)
    figure, axes = _axes(2, width=6.4)
    signs = np.where(np.arange(20) % 2, 1, -1)
    for panel, (name, given) in zip(
        axes,
        {"always too low": truth - 0.2, "either way": truth + 0.2 * signs}.items(),
        strict=True,
    ):
        panel.vlines(range(20), 0, given - truth, color=BLUE)
        panel.axhline(0, color=PALE, linewidth=1)
        error, lean = (
            metrics.mae(truth, given, ci=None),
            metrics.bias(truth, given, ci=None),
        )
        panel.set_title(
            f"{name}: MAE {_value(error):.2f}, bias {lean.mean_bias + 0.0:.2f}"
        )
        panel.set(ylim=(-0.3, 0.3), xlabel="text", ylabel="judge - label")
    return figure


@picture("metrics/rmse")
def _rmse() -> Figure:
    greatest = np.linspace(0.1, 3, 30)
    errors = [np.append(np.full(19, 0.1), one) for one in greatest]
    curves = {
        "RMSE": [_value(metrics.rmse(np.zeros(20), one, ci=None)) for one in errors],
        "MAE": [_value(metrics.mae(np.zeros(20), one, ci=None)) for one in errors],
    }
    return _lines(
        greatest, curves, ("one of twenty errors; the others are .1", "value")
    )


@picture("metrics/bias")
def _bias() -> Figure:
    draw = np.random.default_rng(13)
    truth = draw.random(50)
    judge = truth - 0.1 + draw.normal(0, 0.12, 50)
    found = metrics.bias(truth, judge)
    figure, (axes,) = _axes()
    axes.plot((truth + judge) / 2, judge - truth, "o", color=BLUE, markersize=3.5)
    axes.axhline(0, color=PALE, linestyle=":")
    axes.axhline(found.mean_bias or 0.0, color=ORANGE)
    for limit in (found.lower_limit, found.upper_limit):
        axes.axhline(limit or 0.0, color=ORANGE, linestyle="--", linewidth=1)
    axes.set(xlabel="mean of judge and label", ylabel="judge - label")
    axes.set_title(
        f"bias {found.mean_bias:.2f}, limits {found.lower_limit:.2f} to {found.upper_limit:.2f}"
    )
    return figure


# Distributions


@picture("metrics/wasserstein_distance")
def _wasserstein_distance() -> Figure:
    draw = np.random.default_rng(14)
    people, judge = draw.beta(2, 1.5, 40), draw.beta(4, 5, 40)
    figure, (axes,) = _axes()
    where, first, second = _cumulative(axes, people, judge)
    axes.fill_between(
        where, first, second, step="post", color=PALE, alpha=0.4, linewidth=0
    )
    axes.set_title(
        f"distance {_value(metrics.wasserstein_distance(people, judge, ci=None)):.2f}"
    )
    axes.legend()
    return figure


@picture("metrics/ks_test")
def _ks_test() -> Figure:
    draw = np.random.default_rng(15)
    people, judge = draw.beta(2, 1.5, 40), draw.beta(4, 5, 40)
    figure, (axes,) = _axes()
    where, first, second = _cumulative(axes, people, judge)
    at = int(np.argmax(np.abs(first - second)))
    axes.vlines(
        where[at],
        first[at],
        second[at],
        color=GREEN,
        linewidth=2.5,
        label="largest gap",
    )
    found = metrics.ks_test(people, judge)
    axes.set_title(f"D = {found.statistic:.2f}, p = {found.p_value:.3f}")
    axes.legend()
    return figure


@picture("metrics/score_distribution")
def _score_distribution() -> Figure:
    draw = np.random.default_rng(16)
    plain = np.clip(draw.normal(0.5, 0.2, 200), 0, 1)
    two = np.concatenate([draw.normal(0.3, 0.04, 100), draw.normal(0.7, 0.04, 100)])
    figure, axes = _axes(2, width=6.4)
    for panel, scores in zip(axes, (plain, two), strict=True):
        found = metrics.score_distribution(
            scores, bins=20, scale=metrics.Interval(0, 1)
        )
        edges = np.array(found.bin_edges)
        panel.bar(
            edges[:-1], found.bin_counts, np.diff(edges), align="edge", color=BLUE
        )
        panel.set_title(f"mean {found.mean:.2f}, sd {found.std:.2f}")
        panel.set(xlabel="score", ylabel="texts", xlim=(0, 1))
    return figure


# Probabilities


def _forecasts(seed: int, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities of MET, and what happened."""
    draw = np.random.default_rng(seed)
    prob = draw.beta(1, 1, n)
    return (draw.random(n) < prob).astype(int), prob


def _surer(prob: np.ndarray, by: float) -> np.ndarray:
    """The probabilities with their log odds multiplied."""
    odds = (prob / (1 - prob)) ** by
    return odds / (1 + odds)


@picture("metrics/brier")
def _brier() -> Figure:
    said = np.linspace(0, 1, 41)
    curves = {}
    for rate in (0.5, 0.9):
        truth = [1] * round(100 * rate) + [0] * round(100 * (1 - rate))
        curves[f"{100 * rate:.0f}% of the truth is MET"] = [
            _value(metrics.brier(truth, [p] * 100, ci=None)) for p in said
        ]
    return _lines(
        said,
        curves,
        ("probability given to every text", "Brier score"),
        at="upper right",
    )


@picture("metrics/brier_parts")
def _brier_parts() -> Figure:
    truth, prob = _forecasts(17)
    judges = {
        "calibrated": prob,
        "too sure": _surer(prob, 3.0),
        "constant": np.full(len(prob), truth.mean()),
    }
    figure, (axes,) = _axes()
    for at, part in enumerate(("reliability", "resolution", "uncertainty")):
        found = [
            _value(getattr(metrics.brier_parts(truth, given, bins=10, ci=None), part))
            for given in judges.values()
        ]
        axes.bar(
            np.arange(3) + (at - 1) * 0.26, found, 0.24, color=COLOURS[at], label=part
        )
    scores = [
        _value(metrics.brier(truth, given, ci=None)) for given in judges.values()
    ]
    axes.set(xticks=range(3), ylabel="component of the score", ylim=(0, 0.4))
    axes.set_xticklabels(
        [
            f"{name}\nBrier {score:.2f}"
            for name, score in zip(judges, scores, strict=True)
        ]
    )
    axes.legend(loc="upper center", ncols=3, columnspacing=1.0)
    return figure


@picture("metrics/log_loss")
def _log_loss() -> Figure:
    said = np.linspace(0.01, 1, 60)
    curves = {
        "log loss": [
            _value(metrics.log_loss([1, 0], [p, 1 - p], ci=None)) for p in said
        ],
        "Brier": [_value(metrics.brier([1, 0], [p, 1 - p], ci=None)) for p in said],
    }
    return _lines(
        said, curves, ("probability of what happened", "cost"), limits=(0, 4.8)
    )


@picture("metrics/ece")
def _ece() -> Figure:
    sizes = [30, 50, 100, 200, 400, 800, 1600]
    plain, debiased = [], []
    for size in sizes:
        drawn = [_forecasts(seed, size) for seed in range(40)]
        plain.append(
            float(np.mean([_value(metrics.ece(*one, ci=None)) for one in drawn]))
        )
        debiased.append(
            float(
                np.mean(
                    [
                        _value(metrics.ece(*one, debiased=True, ci=None))
                        for one in drawn
                    ]
                )
            )
        )
    labels = ("items, forecasts calibrated", "ECE, 10 bins")
    figure = _lines(
        sizes, {"plain": plain, "debiased": debiased}, labels, limits=(0, 0.2)
    )
    figure.axes[0].set_xscale("log")
    figure.axes[0].minorticks_off()
    figure.axes[0].set_xticks(sizes[::2], [str(size) for size in sizes[::2]])
    return figure


@picture("metrics/auroc")
def _auroc() -> Figure:
    figure, (axes,) = _axes(width=3.6, height=2.9)
    draw = np.random.default_rng(18)
    truth = np.arange(600) % 2
    prob = 1 / (1 + np.exp(-draw.normal(1.6 * truth - 0.8, 1.0)))
    pressed = 0.4 + 0.2 * prob
    for given, name, colour, dash in (
        (prob, "as given", BLUE, "-"),
        (pressed, "pressed to .4 to .6", ORANGE, ":"),
    ):
        cuts = np.quantile(given, np.linspace(0, 1, 60))
        points = [
            ((given[truth == 0] >= cut).mean(), (given[truth == 1] >= cut).mean())
            for cut in cuts
        ]
        area = _value(metrics.auroc(truth, given, ci=None))
        x, y = zip(*points, strict=True)
        axes.plot(
            x,
            y,
            dash,
            color=colour,
            label=f"{name}: {area:.2f}",
            linewidth=1.4 if dash == "-" else 3,
        )
    axes.plot((0, 1), (0, 1), color=PALE, linewidth=1)
    axes.set(
        xlabel="proportion of UNMET above the threshold",
        ylabel="proportion of MET above",
    )
    axes.legend(loc="lower right")
    return figure


@picture("metrics/reliability_curve")
def _reliability_curve() -> Figure:
    truth, prob = _forecasts(19, 1500)
    figure, (axes,) = _axes(width=3.6, height=2.9)
    axes.plot((0, 1), (0, 1), color=PALE, linewidth=1)
    for given, name, colour in (
        (prob, "calibrated", BLUE),
        (_surer(prob, 3.0), "too sure", ORANGE),
    ):
        bins = metrics.reliability_curve(truth, given, bins=8).bins
        places, rates = (
            [one.forecast for one in bins],
            [_value(one.rate) for one in bins],
        )
        reach = np.abs(
            np.array([(one.rate.low, one.rate.high) for one in bins], dtype=float).T
            - rates
        )
        axes.errorbar(
            places,
            rates,
            reach,
            color=colour,
            marker="o",
            markersize=3.5,
            label=name,
            elinewidth=0.8,
        )
    axes.set(xlabel="forecast", ylabel="observed frequency")
    axes.legend()
    return figure


@picture("metrics/accuracy_at_coverage")
def _accuracy_at_coverage() -> Figure:
    draw = np.random.default_rng(20)
    truth = np.arange(800) % 2
    sure = 0.5 + 0.5 * draw.random(800)
    judge = np.where(draw.random(800) < sure, truth, 1 - truth)
    shares = [at / 40 for at in range(2, 41)]
    curves = {}
    for name, confidence in (
        ("confidence that tells", sure),
        ("confidence that does not", draw.random(800)),
    ):
        found = metrics.accuracy_at_coverage(
            truth.tolist(), judge.tolist(), confidence, coverages=shares, ci=None
        )
        curves[f"{name}, AURC {_value(found.aurc):.2f}"] = [
            _value(one.accuracy) for one in found.points
        ]
    return _lines(
        shares,
        curves,
        ("coverage, the surest first", "accuracy"),
        limits=(0.5, 1.02),
        at="lower left",
    )


# Preferences


@picture("metrics/pairwise_accuracy")
def _pairwise_accuracy() -> Figure:
    people, judge = [4, 3, 3, 2, 1], [0.9, 0.8, 0.7, 0.6, 0.65]
    figure, (axes,) = _axes(width=3.2, height=2.9)
    for row in range(5):
        for column in range(row):
            gold, said = (
                np.sign(people[row] - people[column]),
                np.sign(judge[row] - judge[column]),
            )
            mark, colour = (
                ("right", BLUE)
                if gold == said
                else ("tie", PALE)
                if gold == 0
                else ("wrong", ORANGE)
            )
            axes.add_patch(
                plt.Rectangle((column, row - 1), 1, 1, facecolor=colour, alpha=0.25)
            )
            axes.text(
                column + 0.5,
                row - 0.5,
                mark,
                ha="center",
                va="center",
                fontsize=8,
                weight="bold",
            )
    names = [f"{score}" for score in people]
    axes.set(
        xlim=(0, 4), ylim=(4, 0), xticks=np.arange(4) + 0.5, yticks=np.arange(4) + 0.5
    )
    axes.set(
        xlabel="text, ordered by human score", ylabel="text, ordered by human score"
    )
    axes.set_xticklabels(names[:4])
    axes.set_yticklabels(names[1:])
    axes.set_title(
        f"pairwise accuracy {_value(metrics.pairwise_accuracy(people, judge, ci=None)):.1f}"
    )
    return figure


def _games() -> list[tuple[str, str, str | None]]:
    draw = np.random.default_rng(22)
    strong = {"new": 0.9, "old": 0.2, "base": -0.4, "tiny": -0.7}
    pairs = (
        [("new", "old")] * 16
        + [("old", "base")] * 14
        + [("new", "base")] * 6
        + [("base", "tiny")] * 4
    )
    games: list[tuple[str, str, str | None]] = []
    for left, right in pairs:
        chance = 1 / (1 + np.exp(strong[right] - strong[left]))
        games.append((left, right, left if draw.random() < chance else right))
    return games


@picture("metrics/bradley_terry")
def _bradley_terry() -> Figure:
    found = metrics.bradley_terry(_games(), prior=0.5)
    figure, (axes,) = _axes(height=2.2)
    for at, (name, one) in enumerate(
        found.estimates.items() if found.estimates else ()
    ):
        axes.plot((one.low or 0.0, one.high or 0.0), (at, at), color=BLUE)
        axes.plot(_value(one), at, "o", color=BLUE)
        axes.annotate(
            name, (_value(one), at), (0, 5), textcoords="offset points", ha="center"
        )
    axes.axvline(0, color=PALE, linestyle=":")
    axes.set(
        yticks=(), xlabel="strength, 95% interval", ylabel="system", ylim=(-0.5, 3.7)
    )
    return figure


@picture("metrics/position_consistency")
def _position_consistency() -> Figure:
    draw = np.random.default_rng(24)
    longer = draw.random(400) < 0.5
    coins = draw.random((2, 400)) < 0.5
    good = np.array([_says(longer.astype(int), 0.9, draw) for _ in range(2)])
    judges = {
        "always the\nfirst": (np.zeros(400), np.ones(400)),
        "a coin": (coins[0], coins[1]),
        "a good judge": (good[0], good[1]),
        "always the\nlonger": (longer, longer),
    }
    found = {
        name: _value(
            metrics.position_consistency(
                first.astype(int), second.astype(int), ci=None
            )
        )
        for name, (first, second) in judges.items()
    }
    figure, (axes,) = _axes()
    _bars(axes, found, "position consistency")
    axes.set_ylim(0, 1.15)
    return figure


# From votes to a truth


@picture("metrics/majority_vote")
def _majority_vote() -> Figure:
    draw = np.random.default_rng(25)
    truth = np.arange(4000) % 2
    counts = list(range(1, 12))
    curves = {}
    for right in (0.8, 0.6, 0.45):
        columns = np.column_stack([_says(truth, right, draw) for _ in counts])
        shares = []
        for count in counts:
            labels = metrics.majority_vote(columns[:, :count], labels=2)
            shares.append(
                float(
                    np.mean(
                        [
                            0.5 if one is None else one == true
                            for one, true in zip(labels, truth, strict=True)
                        ]
                    )
                )
            )
        curves[f"each right in {100 * right:.0f}%"] = shares
    return _lines(
        counts,
        curves,
        ("raters", "accuracy of the majority"),
        limits=(0, 1.02),
        at="lower left",
    )


@picture("metrics/dawid_skene")
def _dawid_skene() -> Figure:
    draw = np.random.default_rng(26)
    truth = np.arange(400) % 2
    good, poor = (
        [_says(truth, right, draw) for right in (0.9, 0.85)],
        _says(truth, 0.6, draw),
    )
    copies = list(range(1, 6))
    modelled, counted = [], []
    for count in copies:
        table = np.column_stack([*good, *[poor] * count])
        modelled.append(metrics.dawid_skene(table, labels=2).labels)
        counted.append(metrics.majority_vote(table, labels=2))
    curves = {
        name: [
            float(
                np.mean(
                    [
                        0.5 if one is None else one == true
                        for one, true in zip(labels, truth, strict=True)
                    ]
                )
            )
            for labels in all_labels
        ]
        for name, all_labels in (("Dawid-Skene", modelled), ("majority", counted))
    }
    figure = _lines(
        copies,
        curves,
        ("copies of the poor rater, beside two good ones", "accuracy"),
        limits=(0.5, 1.0),
    )
    figure.axes[0].set_xticks(copies)
    return figure


# Correcting


@picture("metrics/corrected_rate")
def _corrected_rate() -> Figure:
    labels = [1] * 100 + [0] * 100
    said = [1] * 90 + [0] * 10 + [1] * 30 + [0] * 70
    rates = np.linspace(0.1, 0.9, 9)
    passed = [round(1000 * (0.9 * rate + 0.3 * (1 - rate))) for rate in rates]
    found = [
        metrics.corrected_rate([1] * count + [0] * (1000 - count), labels, said)
        for count in passed
    ]
    figure, (axes,) = _axes(width=3.8, height=2.9)
    axes.plot((0, 1), (0, 1), color=PALE, linewidth=1)
    axes.plot(
        rates,
        [_value(one.raw) for one in found],
        "o-",
        color=ORANGE,
        markersize=3.5,
        label="judge",
    )
    values = np.array([_value(one) for one in found])
    reach = np.abs(
        np.array([(one.low, one.high) for one in found], dtype=float).T - values
    )
    axes.errorbar(
        rates,
        values,
        reach,
        color=BLUE,
        marker="o",
        markersize=3.5,
        label="corrected",
        elinewidth=0.8,
    )
    axes.set(xlabel="true pass rate", ylabel="pass rate", ylim=(0, 1))
    axes.legend()
    return figure


def _labelled_run(folder: Path) -> tuple[object, dict[str, float]]:
    """A run whose judge is lenient on one criterion, half of it labelled; the true mean values and score."""
    draw = np.random.default_rng(27)
    rates = {"apology": 0.4, "refund": 0.7}
    truth = {name: draw.random(240) < rate for name, rate in rates.items()}
    errs = {"apology": draw.random(240) < 0.4, "refund": draw.random(240) < 0.05}
    rubric = Rubric(
        [
            Criterion(name=name, requirement=f"It has: {name}.", weight=at + 1)
            for at, name in enumerate(rates)
        ]
    )

    def says(request: JudgeRequest) -> str:
        name, at = request.criterion.name, int(request.submission.text)
        met = (
            truth[name][at] or errs[name][at]
            if name == "apology"
            else truth[name][at] and not errs[name][at]
        )
        return "MET" if met else "UNMET"

    items = [
        DataItem(
            id=str(at), submission=str(at),
            ground_truth={name: "MET" if truth[name][at] else "UNMET" for name in rates} if at % 2 else None,
        )
        for at in range(240)
    ]  # fmt: skip
    grader = CriterionGrader(judges=[FunctionJudge(function=says, judge_id="judge")])
    dataset = RubricDataset(name="half", rubric=rubric, items=items)
    result = evaluate_sync(
        dataset, grader, experiments_dir=folder, show_progress=False
    )
    true = {name: float(truth[name].mean()) for name in rates}
    return result, {**true, "score": (true["apology"] + 2 * true["refund"]) / 3}


@picture("metrics/corrected_score")
def _corrected_score() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        result, true = _labelled_run(Path(folder))
        found = metrics.corrected_score(result)
    rows = {
        name: (one.raw, one.value) for name, one in found.per_criterion.items()
    } | {"score": (found.raw, found.score)}
    figure, (axes,) = _axes(height=2.2)
    for at, (raw, corrected) in enumerate(rows.values()):
        axes.plot(
            _value(raw), at, "s", color=ORANGE, label="judge" if at == 0 else None
        )
        axes.plot((corrected.low or 0.0, corrected.high or 0.0), (at, at), color=BLUE)
        axes.plot(
            _value(corrected),
            at,
            "o",
            color=BLUE,
            label="corrected" if at == 0 else None,
        )
    axes.plot(
        [true[name] for name in rows],
        range(3),
        "|",
        color=GREEN,
        markersize=18,
        label="true",
    )
    axes.set(yticks=range(3), xlabel="mean value", ylim=(-0.5, 3.3), xlim=(0, 1))
    axes.set_yticklabels(list(rows))
    axes.legend(loc="upper left", ncols=3)
    return figure


@picture("metrics/decision")
def _decision() -> Figure:
    names = [f"c{at}" for at in range(6)]
    rubric = Rubric(
        [Criterion(name=name, requirement=f"It has: {name}.") for name in names]
    )
    figure, (axes,) = _axes(height=2.2)
    # How many of five judges say MET to each criterion.
    for at, yes in enumerate(
        ((5, 5, 5, 5, 5, 0), (3, 3, 3, 3, 2, 2), (2, 1, 0, 0, 1, 0))
    ):

        def judge(place: int, yes: tuple[int, ...] = yes) -> FunctionJudge:
            def says(request: JudgeRequest) -> str:
                at = names.index(request.criterion.name)
                return "MET" if (place + at) % 5 < yes[at] else "UNMET"

            return FunctionJudge(function=says, judge_id=f"j{place}")

        report = rubric.grade_sync(
            "A text.", CriterionGrader(judges=[judge(place) for place in range(5)])
        )
        found = metrics.decision(report, threshold=0.6)
        axes.plot((found.low or 0.0, found.high or 0.0), (at, at), color=BLUE)
        axes.plot(found.score or 0.0, at, "o", color=BLUE)
        axes.annotate(found.verdict, (1.05, at), va="center", annotation_clip=False)
    axes.axvline(0.6, color=ORANGE, linestyle="--", linewidth=1)
    axes.set(
        yticks=range(3),
        xlabel="score, with bootstrap interval",
        ylim=(-0.5, 2.5),
        xlim=(-0.02, 1.0),
    )
    axes.set_yticklabels(("text A", "text B", "text C"))
    return figure


# Against people


@picture("metrics/alt_test")
def _alt_test() -> Figure:
    draw = np.random.default_rng(28)
    truth = np.arange(150) % 2
    humans = np.column_stack([_says(truth, 0.85, draw) for _ in range(3)])
    levels = np.linspace(0.5, 1.0, 21)
    uniform = draw.random(150)
    tested = [
        metrics.alt_test(
            np.where(uniform < level, truth, 1 - truth), humans, epsilon=0.15, ci=None
        )
        for level in levels
    ]
    curves = {
        "winning rate ω": [
            _value(one.winning_rate)
            if isinstance(one.winning_rate, metrics.Estimate)
            else one.winning_rate
            for one in tested
        ],
        "advantage ρ": [_value(one.advantage) for one in tested],
    }
    return _lines(
        levels,
        curves,
        ("accuracy of the judge (annotators: .85), ε = .15", "value"),
        limits=(-0.03, 1.03),
    )


@picture("metrics/human_ceiling")
def _human_ceiling() -> Figure:
    draw = np.random.default_rng(29)
    truth = np.arange(3000) % 2
    levels = np.linspace(0.65, 0.98, 12)
    ceilings, kappas = [], []
    for level in levels:
        people = np.column_stack([_says(truth, level, draw) for _ in range(3)])
        ceilings.append(
            _value(metrics.human_ceiling(people, scale=metrics.Binary(), ci=None))
        )
        voted = metrics.majority_vote(people, labels=2)
        kappas.append(
            _value(
                metrics.cohen_kappa(
                    voted, _says(truth, level, draw).tolist(), ci=None
                )
            )
        )
    curves = {"human ceiling": ceilings, "judge against the majority": kappas}
    return _lines(
        levels,
        curves,
        ("accuracy of each person and of the judge", "Cohen's kappa"),
        limits=(0, 1),
    )


# Intervals and comparisons


@picture("metrics/wilson")
def _wilson() -> Figure:
    figure, (axes,) = _axes()
    for count in range(0, 21, 2):
        found, p = metrics.wilson(count, 20), count / 20
        half = 1.96 * (p * (1 - p) / 20) ** 0.5
        axes.plot(
            (count - 0.25,) * 2,
            (found.low or 0.0, found.high or 0.0),
            color=BLUE,
            label=None if count else "Wilson",
        )
        axes.plot(
            (count + 0.25,) * 2,
            (p - half, p + half),
            color=ORANGE,
            label=None if count else "Wald",
        )
        axes.plot(count, p, ".", color=INK)
    axes.set(
        xlabel="successes of 20",
        ylabel="proportion, 95% interval",
        xticks=range(0, 21, 4),
    )
    axes.legend()
    return figure


@picture("metrics/clustered_se")
def _clustered_se() -> Figure:
    draw = np.random.default_rng(30)
    clusters = np.repeat(np.arange(15), 4)
    shared, own = draw.normal(size=(200, 15)), draw.normal(size=(200, 60))
    alike = np.linspace(0, 1, 11)
    curves: dict[str, list[float]] = {"with clusters": [], "without": []}
    for one in alike:
        values = np.sqrt(one) * shared[:, clusters] + np.sqrt(1 - one) * own
        curves["with clusters"].append(
            float(
                np.mean(
                    [
                        metrics.clustered_se(row, clusters, ci=None).se
                        for row in values
                    ]
                )
            )
        )
        curves["without"].append(
            float(np.mean([metrics.clustered_se(row, ci=None).se for row in values]))
        )
    return _lines(
        alike,
        curves,
        ("correlation of the values of a cluster", "standard error"),
        limits=(0, 0.3),
    )


@picture("metrics/compare_judges")
def _compare_judges() -> Figure:
    draw = np.random.default_rng(31)
    truth = np.arange(120) % 2
    worse = _says(truth, 0.75, draw)
    better = np.where((worse != truth) & (draw.random(120) < 0.4), truth, worse)
    found = metrics.compare_judges(
        truth.tolist(), better.tolist(), worse.tolist(), stat="accuracy"
    )
    rows = {
        "judge a": metrics.accuracy(truth.tolist(), better.tolist()),
        "judge b": metrics.accuracy(truth.tolist(), worse.tolist()),
        "a - b, paired": found.difference,
    }
    figure, (axes,) = _axes(height=1.9)
    for at, one in enumerate(rows.values()):
        colour = ORANGE if at == 2 else BLUE
        axes.plot((one.low or 0.0, one.high or 0.0), (2 - at, 2 - at), color=colour)
        axes.plot(_value(one), 2 - at, "o", color=colour)
    axes.axvline(0, color=PALE, linestyle=":")
    axes.set(yticks=(2, 1, 0), xlabel="accuracy, 95% interval", ylim=(-0.5, 2.5))
    axes.set_yticklabels(list(rows))
    return figure


@picture("metrics/adjust_pvalues")
def _adjust_pvalues() -> Figure:
    draw = np.random.default_rng(32)
    raw = np.sort(np.concatenate([draw.random(6) * 0.012, draw.random(14)]))
    figure, (axes,) = _axes()
    ranks = range(1, 21)
    axes.plot(ranks, raw, ".", color=INK, label="raw")
    for method, colour in zip(("bh", "by", "holm"), COLOURS, strict=True):
        axes.plot(
            ranks,
            metrics.adjust_pvalues(raw.tolist(), method),
            color=colour,
            label=method,
        )
    axes.axhline(0.05, color=PALE, linestyle=":")
    axes.set(xlabel="rank of the p-value", ylabel="p", xticks=range(2, 21, 3))
    axes.legend()
    return figure


@picture("metrics/sample_size")
def _sample_size() -> Figure:
    targets = np.linspace(0.5, 0.9, 21)
    curves = {
        "Donner and Eliasziw, two-sided": [
            _value(metrics.sample_size.kappa(0.4, one, method="donner-eliasziw"))
            for one in targets
        ],
        "Cantor, one-sided": [
            _value(metrics.sample_size.kappa(0.4, one, method="cantor"))
            for one in targets
        ],
    }
    return _lines(
        targets, curves, ("kappa that is to be told from .4", "items, power .8")
    )


@picture("metrics/run_difference")
def _run_difference() -> Figure:
    draw = np.random.default_rng(33)
    names = [f"c{at}" for at in range(8)]
    ability = draw.random(24)
    noise = draw.random((24, 8))
    rubric = Rubric(
        [Criterion(name=name, requirement=f"It has: {name}.") for name in names]
    )
    items = [DataItem(id=str(at), submission=str(at)) for at in range(24)]
    dataset = RubricDataset(name="pairs", rubric=rubric, items=items)

    def run(name: str, gain: float, folder: str) -> object:
        def says(request: JudgeRequest) -> str:
            at, criterion = (
                int(request.submission.text),
                names.index(request.criterion.name),
            )
            return "MET" if noise[at, criterion] < ability[at] + gain else "UNMET"

        grader = CriterionGrader(
            judges=[FunctionJudge(function=says, judge_id="judge")]
        )
        return evaluate_sync(
            dataset,
            grader,
            experiment_name=name,
            experiments_dir=folder,
            show_progress=False,
        )

    with tempfile.TemporaryDirectory() as folder:
        before, after = run("before", 0.0, folder), run("after", 0.08, folder)
        found = metrics.run_difference(before, after).score.difference
        scores = [one.get_scores() for one in (before, after)]
    figure, (axes,) = _axes(width=3.6, height=2.8)
    for pair in zip(*scores, strict=True):
        axes.plot(
            (0, 1), pair, "o-", color=BLUE, alpha=0.5, markersize=3, linewidth=0.8
        )
    interval = f"{found.ci.lower:.2f} to {found.ci.upper:.2f}" if found.ci else ""
    axes.set_title(f"mean difference {found.mean_bias:.2f}, {interval}")
    axes.set(xticks=(0, 1), ylabel="score", xlim=(-0.2, 1.2))
    axes.set_xticklabels(("baseline", "run"))
    return figure


# Audits


def _rows(
    criterion: str, rater: str, labels: Iterable[object]
) -> list[dict[str, object]]:
    """Rows of a long table: binary labels of one rater on one criterion."""
    kind = "truth" if rater == "truth" else "llm"
    return [
        {
            "item_id": f"i{at}",
            "criterion": criterion,
            "rater": rater,
            "rater_type": kind,
            "label": "MET" if met else "UNMET",
        }
        for at, met in enumerate(labels)
    ]


@picture("metrics/self_consistency")
def _self_consistency() -> Figure:
    draw = np.random.default_rng(34)
    truth = np.arange(1500) % 2
    repeats = np.column_stack([_says(truth, 0.9, draw) for _ in range(10)])
    counts = list(range(2, 11))
    found = [
        metrics.self_consistency(
            repeats[:, :count].astype(str).tolist(), n_resamples=10
        )
        for count in counts
    ]
    curves = {
        "pairwise agreement": [_value(one.pairwise_agreement) for one in found],
        "flip rate": [_value(one.flip_rate) for one in found],
    }
    return _lines(
        counts,
        curves,
        ("repeats of a judge with 10% errors", "value"),
        limits=(0, 1.02),
    )


@picture("metrics/pass_at_k")
def _pass_at_k() -> Figure:
    draw = np.random.default_rng(36)
    steady = {task: [task < 60] * 10 for task in range(100)}
    erratic = {task: (draw.random(10) < 0.6).tolist() for task in range(100)}
    counts = list(range(1, 9))
    curves = {}
    for name, trials in (("erratic", erratic), ("steady", steady)):
        found = [metrics.pass_at_k(trials, k, ci=None) for k in counts]
        if name == "erratic":
            curves["pass@k, erratic"] = [_value(one.pass_at_k) for one in found]
            curves["pass^k, erratic"] = [_value(one.pass_hat_k) for one in found]
        else:
            curves["both, steady"] = [_value(one.pass_at_k) for one in found]
    labels = ("number of trials k", "value")
    return _lines(counts, curves, labels, limits=(0, 1.02), at=(0.6, 0.64))


@picture("metrics/variance_components")
def _variance_components() -> Figure:
    draw = np.random.default_rng(35)
    good = draw.normal(0, 1, 60)
    levels = np.array([-1.6, 0.0, 1.5, -0.9, 0.8, -1.3, 1.4, 0.1])
    votes = good[:, None] + levels + draw.normal(0, 0.9, (60, 8))
    rows = [
        row
        for judge in range(8)
        for row in _rows("c", f"j{judge}", votes[:, judge] > 0)
    ]
    study = metrics.variance_components(rows, n_resamples=10).score
    part = {one.source: _value(one.variance) for one in study.components}
    counts = np.arange(1, 13)
    noise = part["residual"] / counts
    curves = {
        "G, the order": part["item"] / (part["item"] + noise),
        "Φ, the values": part["item"]
        / (part["item"] + noise + part["judge"] / counts),
    }
    return _lines(
        counts,
        curves,
        ("judges, one vote each", "reliability"),
        limits=(0, 1.02),
        at="lower right",
    )


@picture("metrics/item_analysis")
def _item_analysis() -> Figure:
    draw = np.random.default_rng(36)
    trait = draw.normal(size=200)
    rows: list[dict[str, object]] = []
    for name, load in (
        ("refund", 2.0),
        ("steps", 1.5),
        ("apology", 1.2),
        ("tone", 0.8),
        ("spelling", 0.0),
        ("delay", -1.0),
    ):
        rows += _rows(name, "judge", load * trait + draw.normal(size=200) > 0)
    found = metrics.item_analysis(rows, n_draws=5)
    figure, (axes,) = _axes()
    heights = {one.name: _value(one.discrimination) for one in found.criteria}
    _bars(
        axes,
        heights,
        "discrimination",
        colours=[ORANGE if one < 0 else BLUE for one in heights.values()],
    )
    axes.axhline(0, color=PALE, linewidth=1)
    axes.set_ylim(-0.6, 0.7)
    return figure


@picture("metrics/panel_audit")
def _panel_audit() -> Figure:
    draw = np.random.default_rng(37)
    n = 1200
    counts = list(range(2, 8))
    figure, (axes,) = _axes()
    common, alone = draw.random(n) < 0.2, draw.random((n, 7)) < 0.2
    for share, colour in ((0.0, BLUE), (0.5, ORANGE), (1.0, GREEN)):
        copied = draw.random((n, 7)) < share**0.5
        errors = np.where(copied, common[:, None], alone)
        found = []
        for count in counts:
            rows = _rows("c", "truth", np.ones(n))
            for judge in range(count):
                rows += _rows("c", f"j{judge}", ~errors[:, judge])
            found.append(
                _value(metrics.panel_audit(rows, n_resamples=2).effective_judges)
            )
        axes.plot(
            counts,
            found,
            "o-",
            color=colour,
            markersize=3.5,
            label=f"correlation of errors {share:g}",
        )
    axes.set(
        xlabel="number of judges", ylabel="effective number of judges", ylim=(0, 8)
    )
    axes.legend(loc="upper left")
    return figure


@picture("metrics/bias_report")
def _bias_report() -> Figure:
    draw = np.random.default_rng(38)
    words = draw.integers(10, 120, 120)
    truth = draw.random(120) < 0.5
    rubric = Rubric([Criterion(name="right", requirement="It is right.")])
    said = {
        "fair": np.where(draw.random(120) < 0.85, truth, ~truth),
        "lenient": truth | (draw.random(120) < 0.4),
        "wordy": np.where(draw.random(120) < 0.5, truth, words > 65),
    }
    items = [
        DataItem(
            id=str(at),
            submission="word " * int(count),
            ground_truth={"right": "MET" if truth[at] else "UNMET"},
            metadata={"at": at},
        )
        for at, count in enumerate(words)
    ]
    places = {item.id: at for at, item in enumerate(items)}

    def judge(name: str) -> FunctionJudge:
        def says(request: JudgeRequest) -> str:
            return "MET" if said[name][places[str(request.item_id)]] else "UNMET"

        return FunctionJudge(function=says, judge_id=name)

    with tempfile.TemporaryDirectory() as folder:
        dataset = RubricDataset(name="leanings", rubric=rubric, items=items)
        grader = CriterionGrader(judges=[judge(name) for name in said])
        found = metrics.bias_report(
            evaluate_sync(
                dataset, grader, experiments_dir=folder, show_progress=False
            )
        )
    figure, axes = _axes(2, width=6.4, height=2.1)
    for panel, part in zip(axes, ("leniency", "length_lean"), strict=True):
        for at, name in enumerate(said):
            one = getattr(found.per_judge[name], part).effect
            panel.plot((one.low, one.high), (at, at), color=BLUE)
            panel.plot(_value(one), at, "o", color=BLUE)
        panel.axvline(0, color=PALE, linestyle=":")
        panel.set(yticks=range(3), xlabel=part.replace("_", " "), ylim=(-0.5, 2.5))
        panel.set_yticklabels(list(said))
    return figure


def main() -> None:
    """Draws the pictures that are named, or all of them."""
    for name in sys.argv[1:] or PICTURES:
        path = written(name)
        sys.stdout.write(
            f"{path.relative_to(ASSETS.parent)} {path.stat().st_size / 1000:.1f} kB\n"
        )


if __name__ == "__main__":
    main()
