"""Plots of scores, judges and costs with matplotlib (extra `plots`).

Each function draws on the axes passed to it, or on new ones, and returns them. Callers show or save the
figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from autorubric.errors import ArgumentError, MissingDependencyError
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.summaries.reliability import pair_agreements

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from autorubric.metrics.core.estimate import Estimate
    from autorubric.metrics.figures.calibration import ReliabilityCurve
    from autorubric.metrics.summaries.report_result import JudgeReport
    from autorubric.metrics.summaries.results import ConfusionMatrix
    from autorubric.runs.escalation import EscalationCurve


# Blue and orange can be distinguished with every kind of colour vision (Okabe and Ito, 2008).
_INK, _BLUE, _ORANGE, _PALE = "#333333", "#0072B2", "#D55E00", "#BBBBBB"


class Scored(Protocol):
    """An object with scores, such as an `EvalResult`."""

    def get_scores(self) -> list[float | None]: ...


def plot_scores(
    scores: Scored | Iterable[float | None] | Mapping[str, Scored | Iterable[float | None]],
    *,
    bins: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Plot a histogram of scores and mark the mean; several runs are drawn as outlines."""
    ax = _axes(ax)
    given = scores if isinstance(scores, Mapping) else {"scores": scores}
    found = {name: one.get_scores() if hasattr(one, "get_scores") else [*one] for name, one in given.items()}
    known = {name: [score for score in one if score is not None] for name, one in found.items()}
    if not any(known.values()):
        raise ArgumentError("no scores to plot; see the errors of the items")
    low = min(0.0, *(min(one) for one in known.values() if one))
    high = max(1.0, *(max(one) for one in known.values() if one))
    for at, (name, one) in enumerate(known.items()):
        colour = (_BLUE, _ORANGE, _INK)[at % 3]
        missing = len(found[name]) - len(one)
        label = f"{name}, n = {len(one)}" + (f", {missing} without a score" if missing else "")
        filled: dict[str, Any] = (
            {"alpha": 0.75} if len(known) == 1 else {"histtype": "step", "linewidth": 1.8}
        )
        ax.hist(one, bins=bins, range=(low, high), color=colour, label=label, **filled)
        if one:
            ax.axvline(sum(one) / len(one), color=colour, linestyle="--", linewidth=1.2)
    ax.set_xlabel("score (dashed: mean)")
    ax.set_ylabel("items")
    ax.legend(frameon=False)
    return _plain(ax)


def plot_confusion(confusion: ConfusionMatrix, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Plot a confusion matrix (rows: ground truth, columns: judge), shaded by the proportions in each row."""
    ax = _axes(ax)
    shares = [[count / max(sum(row), 1) for count in row] for row in confusion.counts]
    _draw_shares(ax, shares, "share of the row")
    for at, row in enumerate(confusion.counts):
        for column, count in enumerate(row):
            ax.text(column, at, str(count), ha="center", va="center", color=_on(shares[at][column]))
    _ticks(ax, confusion.labels)
    ax.set_xlabel("judge")
    ax.set_ylabel("truth")
    ax.set_title(title)
    return ax


def plot_agreement_matrix(run: Scored, *, ax: Axes | None = None) -> Axes:
    """Plot pairwise agreement between a run's judges: proportion of equal decisions, kappa, number of pairs.

    A pair is a criterion of an item on which both judges gave an answer. Abstentions, failed votes and
    unreadable replies that count as an assumed answer are excluded, as in the HTML report. Kappa corrects for
    chance; it is the mean of Cohen's kappa over binary, nominal and ordinal criteria, with quadratic weights
    for ordinal criteria. `judge_report` compares each judge with the labels, and `reliability` computes
    agreement coefficients with confidence intervals.
    """
    table = table_of(run, None, scales=None)
    judges = table.judges
    if len(judges) < 2:
        raise ArgumentError(f"an agreement matrix requires at least two judges; the run has {len(judges)}")
    ax = _axes(ax)
    shares = [[float("nan")] * len(judges) for _ in judges]
    for pair in pair_agreements(table, [("judge", name) for name in judges]):
        share, kappa = pair.share.value, pair.kappa.value
        if share is None:
            continue
        shares[pair.a][pair.b] = shares[pair.b][pair.a] = share
        for at, column in ((pair.a, pair.b), (pair.b, pair.a)):
            told = f"{share:.2f}\nκ {'–' if kappa is None else f'{kappa:.2f}'}\nn = {pair.share.n}"
            ax.text(column, at, told, ha="center", va="center", color=_on(share), fontsize="small")
    _draw_shares(ax, shares, "share of equal decisions")
    _ticks(ax, judges)
    return ax


def plot_calibration(curve: ReliabilityCurve, *, ax: Axes | None = None) -> Axes:
    """Plot observed frequency against judge confidence; a calibrated judge follows the diagonal."""
    if not curve.bins:
        raise ArgumentError(f"the curve has no bins ({curve.reason})")
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color=_PALE, linestyle="--", linewidth=1)
    for one in curve.bins:
        if one.rate.low is not None and one.rate.high is not None:
            ax.plot([one.forecast] * 2, [one.rate.low, one.rate.high], color=_BLUE, linewidth=1.5)
    drawn = [(one.forecast, one.rate.value, one.n) for one in curve.bins if one.rate.value is not None]
    sizes = [20 + 180 * n / curve.n for _, _, n in drawn]
    ax.scatter([x for x, _, _ in drawn], [y for _, y, _ in drawn], s=sizes, color=_BLUE, zorder=3)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="confidence", ylabel="rate (area: count)")
    return _plain(ax)


def plot_intervals(
    estimates: Mapping[str, Estimate], *, reference: float | None = None, ax: Axes | None = None
) -> Axes:
    """Plot estimates with their intervals, one per row; undefined estimates are shown with a reason."""
    if not estimates:
        raise ArgumentError("no estimates to plot")
    ax = _axes(ax)
    names = []
    for at, (name, one) in enumerate(estimates.items()):
        names.append(name if one.value is not None else f"{name} ({one.reason})")
        if one.value is None:
            continue
        if one.low is not None and one.high is not None:
            ax.plot([one.low, one.high], [at, at], color=_BLUE, linewidth=2)
        ax.plot(one.value, at, "o", color=_BLUE)
    if reference is not None:
        ax.axvline(reference, color=_PALE, linestyle="--", linewidth=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return _plain(ax)


def plot_forest(
    report: JudgeReport, *, stat: str = "kappa", rater: str = "panel", ax: Axes | None = None
) -> Axes:
    """Plot a rater's metric and its interval for each criterion, with people if available.

    People are as far from the rater as from the rater in a person's place, compared with the other people.
    """
    raters = report.raters()
    if rater not in raters:
        raise ArgumentError(f"unknown rater {rater!r}; available: {', '.join(raters)}")
    found = {name: one.figures() for name, one in raters[rater].per_criterion.items()}
    if any(stat not in one for one in found.values()):
        known = next(iter(found.values()))
        raise ArgumentError(f"unknown metric {stat!r}; available: {', '.join(known)}")
    ax = plot_intervals({name: one[stat] for name, one in found.items()}, ax=ax)
    ceiling, drawn = report.human_ceiling, []
    for at, name in enumerate(found):
        if ceiling is not None and name in ceiling.per_criterion:
            theirs = [ceiling.per_criterion[name], ceiling.in_place_per_criterion[rater][name]]
            parts = [found[name][stat], *(one.figures()[stat] for one in theirs if stat in one.figures())]
            values = [one.value for one in parts if one.value is not None]
            if len(values) == 3:
                drawn.append((values[0] + values[1] - values[2], at))
    if drawn:
        ax.plot(*zip(*drawn, strict=True), "D", color=_ORANGE, fillstyle="none", label="people")
        ax.legend(frameon=False)
    ax.set(xlabel=f"{stat} ({rater})", ylabel="criterion")
    return ax


def plot_cost_accuracy(curve: EscalationCurve, *, ax: Axes | None = None) -> Axes:
    """Plot a cascade's accuracy against its cost at every threshold, with intervals.

    The cost is the total for both panels in US dollars if all costs are known, and otherwise the proportion
    of criteria that are escalated.
    """
    points = [one for one in curve.points if one.accuracy.value is not None]
    accuracies = [one.accuracy.value for one in points if one.accuracy.value is not None]
    if not points:
        raise ArgumentError("no point of the curve has an accuracy; calibrate with a labelled dataset")
    ax = _axes(ax)
    costs = [one.cost for one in points]
    in_dollars = None not in costs
    spent: list[Any] = costs if in_dollars else [one.escalated_share for one in points]
    ax.plot(spent, accuracies, color=_BLUE, marker="o", markersize=4)
    bounded = [
        (x, one.accuracy.low, one.accuracy.high)
        for x, one in zip(spent, points, strict=True)
        if one.accuracy.low is not None and one.accuracy.high is not None
    ]
    if bounded:
        at, low, high = zip(*bounded, strict=True)
        ax.fill_between(at, low, high, color=_BLUE, alpha=0.15, linewidth=0)
    for name, alone, style in (
        ("first judges only", curve.first_accuracy, ":"),
        ("strong panel only", curve.strong_accuracy, "--"),
    ):
        if alone.value is not None:
            ax.axhline(alone.value, color=_ORANGE, linestyle=style, linewidth=1.2, label=name)
    ax.set_xlabel("US dollars" if in_dollars else "share of criteria escalated")
    ax.set_ylabel("accuracy")
    ax.legend(frameon=False)
    return _plain(ax)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib: pip install matplotlib") from error
    return pyplot.subplots(layout="constrained")[1]


def _plain(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _draw_shares(ax: Axes, shares: list[list[float]], label: str) -> None:
    """Draw shares as shades of blue with a colour bar."""
    image = ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    ax.figure.colorbar(image, ax=ax, label=label)


def _ticks(ax: Axes, labels: Sequence[str]) -> None:
    ax.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    ax.set_yticks(range(len(labels)), labels)


def _on(share: float) -> str:
    """Return a text color that is readable on a cell of this shade."""
    return "white" if share > 0.5 else _INK
