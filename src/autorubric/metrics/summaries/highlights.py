"""Findings about raters and warnings about data, settings and undefined metrics, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from autorubric.datasets.item import TruthRule
from autorubric.metrics.core.estimate import Estimate, Reason, is_rounding
from autorubric.metrics.core.item_scores import PANEL, Rater
from autorubric.metrics.core.read_votes import Cells, Modes
from autorubric.metrics.core.resampling import Resampling
from autorubric.metrics.core.result import format_estimate
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.core.wording import answered_in_words, compare_in_words, difference_of, side_of, widen
from autorubric.metrics.summaries.compared_raters import ComparedRater
from autorubric.metrics.summaries.item_resampling import resample
from autorubric.metrics.summaries.rater_report import (
    HumanCeilings,
    RaterFailures,
    RaterReport,
    few_items_each,
    metric_on,
)
from autorubric.metrics.summaries.results import CriterionMetrics, NaStats, RaterMetrics
from autorubric.metrics.summaries.sides import AbstainMode
from autorubric.metrics.summaries.table_metrics import FEW_OF_A_CLASS, layout_of

HeadlineName: TypeAlias = Literal["kappa", "pearson", "accuracy"]
"""Metric that summarizes a rater, which is the first of these metrics that is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAndBest:
    """Comparison of the panel with the best single judge on the labelled cells that both answered.

    Cells (pairs of item and criterion) on which the judges' votes tie are excluded, even if a run's panel
    answers them, so a run and a label table with the same votes have the same metrics.

    Attributes:
        judge: Id of the best judge. It is selected on the same items, which overstates its quality.
        figure: Name of the compared metric, a mean over criteria.
        panel: The panel's value of the metric.
        best: The best judge's value of the metric.
        difference: Panel minus judge, from paired resamples of items.
        n_cells: Number of compared cells, whose labels have an answer that counts.
        coverage: Compared cells as a fraction of the labelled cells, in [0, 1].
        n_ties: Number of labelled cells on which the judges' votes tie.
        n_ties_answered: Number of tied cells that the panel still answers and that its other metrics include.
    """

    judge: str
    figure: HeadlineName
    panel: Estimate
    best: Estimate
    difference: Estimate
    n_cells: int
    coverage: float
    n_ties: int
    n_ties_answered: int


def headline_name(rater: RaterReport) -> HeadlineName | None:
    """Return the name of the metric that summarizes a rater; None if all candidates are undefined."""
    return next((one for one in get_args(HeadlineName) if rater.macro.defined[one][0]), None)


def rank_judges(judges: Mapping[str, RaterReport], figure: HeadlineName) -> list[str]:
    """Return the judges for which the mean metric is defined, best first; on common cells if some abstain."""
    alone = {
        who: one.value
        for who, rater in judges.items()
        if (one := _ranked_figure(rater, figure)).value is not None
    }
    return sorted(alone, key=lambda who: -alone[who])


def _ranked_figure(rater: RaterReport, figure: HeadlineName) -> Estimate:
    common: Estimate | None = getattr(rater.on_common_cells, figure, None)
    alone: Estimate = getattr(rater.macro, figure)
    return alone if common is None or common.value is None else common


def panel_and_best(
    cells: Cells, modes: Modes, panel: RaterReport, judges: Mapping[str, RaterReport], resampling: Resampling
) -> PanelAndBest | None:
    """Compare the panel with the best of two or more judges; None if no metric or cell can be compared."""
    figure = headline_name(panel)
    ranked = rank_judges(judges, figure) if figure else []
    labelled = cells.truth.status > 0
    if figure is None or len(judges) < 2 or not ranked or not labelled.any():
        return None
    raters: list[Rater] = [PANEL, ("judge", ranked[0])]
    columns = [cells.raters[one] for one in raters]
    comparable = labelled & cells.truth.answered
    both = comparable & columns[0].answered & columns[1].answered & ~cells.tied
    if not both.any():
        return None
    first = ComparedRater(rater=raters[0], kind="panel", cells=cells, column=columns[0].only(both))
    second = ComparedRater(rater=raters[1], kind="judge", cells=cells, column=columns[1].only(both))
    # The judge is treated as a person, so that the panel's gap is the panel minus the judge.
    resampled = resample([first], [second], [first], layout_of(cells, modes), resampling)
    difference: Estimate = getattr(resampled.of_people("gap", (0,)), figure)
    words = f"{figure}, panel minus judge, mean over criteria"
    method = "; ".join([words, *difference.method.split("; ")[1:]])
    if difference.value == 0 and np.array_equal(first.column.code, second.column.code):
        difference = Estimate(0.0, n=difference.n, reason="no_variance")
    tied = comparable & cells.tied
    return PanelAndBest(
        judge=ranked[0],
        figure=figure,
        panel=getattr(resampled.macro(0), figure),
        best=getattr(resampled.macro(1), figure),
        difference=replace(difference, method=method),
        n_cells=int(np.count_nonzero(both)),
        coverage=float(np.count_nonzero(both) / np.count_nonzero(labelled)),
        n_ties=int(np.count_nonzero(tied)),
        n_ties_answered=int(np.count_nonzero(tied & columns[0].answered)),
    )


_MANY = 0.05
"""Minimum proportion of cells without an answer that is worth mentioning."""


def highlight_sentences(
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    compared: PanelAndBest | None,
    size: tuple[int, int],
    abstain: AbstainMode,
) -> list[str]:
    """Describe the headline metric, annotators, best judge, weakest criterion and missing answers."""
    n_items, n_cells = size
    found = []
    if len(raters) == 1:
        found = [f"There are no judges to compare with the {n_cells} labels."]
    elif not n_cells:
        found = ["There are no labels, so this report only describes how the judges agree with each other."]
    else:
        found = _headline_sentences(raters, ceiling, compared, n_items) or [
            f"No metric is defined on any criterion ({n_items} items, {n_cells} labels)."
        ]
        found += _missing_answers(raters)
    found += _position_sentences(raters["panel"])
    if abstain != "exclude":
        found.insert(1, f"Abstentions are counted {_COUNTED[abstain]} (abstain={abstain!r}).")
    return [f"- {one}" for one in found]


_COUNTED = {"as_negative": "as the lowest answer", "as_category": "as a separate category"}


def _headline_sentences(
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    compared: PanelAndBest | None,
    n_items: int,
) -> list[str]:
    panel, name = raters["panel"], headline_name(raters["panel"])
    if name is None:
        return _judges_sentences(raters, n_items)
    headline: Estimate = getattr(panel.macro, name)
    done, of = panel.macro.defined[name]
    found = [
        f"The panel's mean {name} is {format_estimate(headline)} over criteria ({done} of {of} criteria "
        f"defined, {n_items} items, {_percentage(panel.coverage)} of the labelled cells)"
        f"{_mixed_levels_note(panel, name)}{_few_items_note(panel)}."
    ]
    if ceiling is not None:
        for each in dict.fromkeys((name, "accuracy")):
            found += _people_sentences(ceiling, each)
        if not ceiling.made_the_truth:
            found.append("The labels are not from these annotators, so do not compare the panel with them.")
    found += _best_judge_sentences(raters, name, n_items)
    found += _same_cells_sentences(compared)
    on_each = {
        criterion: one
        for criterion, agreed in panel.per_criterion.items()
        if (one := metric_on(agreed, name)).value is not None and one.low is not None
    }
    # A criterion without an interval has too few labels to be called the weakest.
    if len(on_each) > 1:
        weakest, following = sorted(on_each, key=lambda criterion: float(on_each[criterion]))[:2]
        figures = f"{name} {format_estimate(on_each[weakest])}"
        told = compare_in_words(
            difference_of(on_each[following], on_each[weakest]),
            above=f"The weakest criterion is {weakest}: {figures}",
            otherwise=f"No criterion is clearly the weakest: {weakest} has {figures}, not distinguishable "
            f"from {following}",
            quantity=f"{following} minus {weakest}",
        )
        found.append(f"{told}.")
    return found


def _mixed_levels_note(rater: RaterReport, name: str) -> str:
    """Describe the levels that a mean kappa combines and its ordinal weights; empty if none is ordinal."""
    if name != "kappa":
        return ""
    levels = [one.level for one in rater.per_criterion.values() if metric_on(one, name).value is not None]
    if "ordinal" not in levels:
        return ""
    counts = [
        f"{levels.count(level)} {level}" for level in ("binary", "nominal", "ordinal") if level in levels
    ]
    listed = " and ".join([", ".join(counts[:-1]), counts[-1]])
    mixed = f"; the mean combines {listed} criteria" if len(counts) > 1 else ""
    return f"{mixed}; kappa uses quadratic weights on ordinal criteria"


def _few_items_note(rater: RaterReport) -> str:
    """Return a warning that the mean kappa is biased if criteria have few items each; otherwise empty."""
    median = few_items_each(rater)
    if median is None:
        return ""
    pooled = [
        f"{found.kappa:.3f} on {scale}"
        for scale, found in rater.by_scale.items()
        if found.kappa.value is not None
    ]
    instead = f"; pooling the cells of each scale gives {', '.join(pooled)}" if pooled else ""
    return (
        f"; there are few items per criterion (median {median:g}), which biases the kappas and therefore the "
        f"mean{instead}"
    )


def _judges_sentences(raters: Mapping[str, RaterReport], n_items: int) -> list[str]:
    """Describe the judges that have defined metrics, for reports in which the panel has none."""
    found = []
    for who, rater in raters.items():
        name = headline_name(rater)
        if name is not None:
            done, of = rater.macro.defined[name]
            found.append(
                f"{who}: mean {name} {format_estimate(getattr(rater.macro, name))} over criteria "
                f"({done} of {of} defined, {n_items} items, "
                f"{_percentage(rater.coverage)} of the labelled cells)"
                f"{_few_items_note(rater)}."
            )
    return found


def _best_judge_sentences(raters: Mapping[str, RaterReport], name: HeadlineName, n_items: int) -> list[str]:
    """Describe the best single judge if it is better than the others."""
    ranked = rank_judges({who: one for who, one in raters.items() if who != "panel"}, name)
    if len(ranked) < 2 or n_items < 2:
        return []
    best, second = (_ranked_figure(raters[who], name) for who in ranked[:2])
    if is_rounding(float(best) - float(second)):
        return []
    difference = difference_of(best, second)
    bounds = [raters[who].abstention_bounds for who in ranked[:2]]
    cells = f" on {_percentage(raters[ranked[0]].coverage)} of the labelled cells"
    common = [getattr(raters[who].on_common_cells, name, best) for who in ranked[:2]]
    if any(one.value is None for one in common):
        difference = replace(difference, low=None, high=None, reason="no_interval")
    elif raters[ranked[0]].on_common_cells is not None:
        cells = answered_in_words(best.n, raters[ranked[0]].failures.n_cells, "cells", "that all judges")
    if bounds[0] and bounds[1]:
        (worst, most), (least, other) = (
            [getattr(one, name) for one in pair] for pair in bounds if pair is not None
        )
        difference = widen(difference, difference_of(worst, other), difference_of(most, least))
        alone = f"{_format_value(getattr(raters[ranked[0]].macro, name))} on all the cells it answered"
        if worst.value != most.value:
            alone = f"with its abstentions and failures as errors {_format_value(worst)}, as right answers "
            alone += _format_value(most)
        cells += f" ({alone}; the interval of the difference includes both cases of all judges)"
    mean = f"mean {name} of {format_estimate(best)}{cells}"
    told = compare_in_words(
        difference,
        above=f"The best of {len(ranked)} single judges is {ranked[0]}, with a {mean}",
        otherwise=f"None of the {len(ranked)} single judges is clearly the best: {ranked[0]} has a {mean}, "
        f"not distinguishable from {ranked[1]}",
        quantity=f"{ranked[0]} minus {ranked[1]}",
    )
    return [f"{told}. Selecting the best of several overstates its quality."]


def _same_cells_sentences(compared: PanelAndBest | None) -> list[str]:
    """Compare the panel and the best judge on the cells that both answered."""
    if compared is None:
        return []
    told = (
        f"the mean {compared.figure} is {_format_value(compared.panel)} for the panel and "
        f"{_format_value(compared.best)} for {compared.judge}{_difference_clause(compared.difference)}"
    )
    if compared.difference.reason == "no_variance":
        told = f"the panel has the answers of {compared.judge}, so they are not compared"
    found = [
        f"On the {compared.n_cells} labelled cells that both the panel and {compared.judge} answered "
        f"({_percentage(compared.coverage)}), {told}."
    ]
    if compared.n_ties:
        tied = "all" if compared.n_ties_answered == compared.n_ties else str(compared.n_ties_answered)
        found.append(
            f"The judges' votes tie on {compared.n_ties} labelled cells, which this comparison excludes"
            + (
                f"; on {tied} of them the panel gives the conservative answer, which "
                "counts in its other metrics."
                if compared.n_ties_answered
                else "; the panel has no answer on these cells."
            )
        )
    return found


def _difference_clause(difference: Estimate) -> str:
    if difference.value is None:
        return ""
    if difference.low is None or difference.high is None:
        return f", a difference of {difference.value:+.3f}"
    told = ", which is not distinguishable from 0" if side_of(difference) == "not shown" else ""
    ends = f"[{difference.low:+.3f}, {difference.high:+.3f}]"
    return f", a difference of {difference.value:+.3f} {ends}{told}"


def _format_value(found: Estimate) -> str:
    return "undefined" if found.value is None else f"{found.value:.3f}"


def _percentage(coverage: float | None) -> str:
    return "none" if coverage is None else f"{coverage:.1%}"


def _people_sentences(ceiling: HumanCeilings, name: str) -> list[str]:
    people, gap = getattr(ceiling.macro, name), getattr(ceiling.gap["panel"], name)
    if people.value is None or (ceiling.made_the_truth and gap.value is None):
        return []
    theirs = f"The mean {name} between an annotator and the others is {format_estimate(people)}"
    if not ceiling.made_the_truth:
        return [f"{theirs}."]
    condition, cases = answered_in_words(*ceiling.answered, "cells"), ""
    if ceiling.gap_bounds is not None:
        worst, best = (getattr(one, name) for one in ceiling.gap_bounds)
        gap = best if worst == best else widen(gap, worst, best)
        if worst != best:
            cases = (
                f"; the interval includes the differences with its abstentions and failures as errors "
                f"({_format_value(worst)}) and as right answers ({_format_value(best)})"
            )
    verdict = compare_in_words(
        gap,
        above=f"the panel outperforms an annotator{condition}",
        below=f"the panel falls short of an annotator{condition}",
        otherwise=f"the panel is not distinguishable from an annotator{condition}",
    )
    return [f"{theirs}. Against the same annotators, {verdict}{cases}."]


def _position_sentences(panel: RaterReport) -> list[str]:
    """Describe how often comparisons have the same outcome in both orders of the candidates."""
    return [
        f"On {name}, the proportion of samples with the same outcome in both orders of the candidates is "
        f"{format_estimate(consistent)} ({consistent.n} samples)."
        for name, one in panel.comparisons.items()
        if (consistent := one.position_consistency).value is not None
    ]


def _missing_answers(raters: Mapping[str, RaterReport]) -> list[str]:
    found = []
    for who, rater in raters.items():
        told = [
            f"{words} {one:.1%}"
            for words, one in (
                ("abstained on", rater.failures.abstention_rate),
                ("failed on", rater.failures.failure_rate),
                ("was not asked on", rater.failures.not_asked_rate),
                ("was tied on", rater.failures.undecided_rate),
            )
            if one.value is not None and one.value >= _MANY
        ]
        who = "The panel" if who == "panel" else who
        if told:
            found.append(f"{who} {', '.join(told)} of {rater.failures.n_cells} cells.")
        if rater.failures.answered_na:
            found.append(f"{who} {answered_na_text(rater.failures)}.")
    return found


def answered_na_text(counts: NaStats | RaterFailures) -> str:
    """Describe the cells without a true answer that a rater answered; no metric counts these answers."""
    return (
        f"answered {counts.answered_na} of {counts.label_unanswered} cells whose label has no answer (NA or "
        "CANNOT_ASSESS), which accuracy, kappa and all other metrics exclude"
    )


FEW_ITEMS = 50
"""Number of items below which intervals are wide and their coverage is below the confidence level."""

_NAMES_SHOWN = 5


def metric_warnings(
    criteria: Sequence[MeasuredCriterion],
    modes: Modes,
    found: Mapping[Rater, tuple[RaterMetrics, Mapping[str, Reason]]],
    n_items: int,
    *,
    has_scores: bool = True,
    has_probabilities: bool = False,
) -> list[str]:
    """Return warnings about the data, failures and undefined metrics, from the results of `rater_metrics`."""
    texts = []
    for (kind, name), (metrics, reasons) in found.items():
        if kind == "panel":
            texts += _run_warnings(criteria, modes, metrics, n_items)
        shown = {x: why for x, why in reasons.items() if has_scores or not x.startswith("score_")}
        who = "panel" if kind == "panel" else f"judge {name}"
        texts += _rater_warnings(who, metrics, shown)
        texts += _no_better_than_constant(who, metrics) if has_probabilities else []
    return texts


def _no_better_than_constant(who: str, rater: RaterMetrics) -> list[str]:
    """Warn of binary criteria on which a judge that always gives the same answer is at least as accurate."""
    binary = [one for one in rater.per_criterion if isinstance(one, CriterionMetrics)]
    return [
        f"{who}: on {one.name}, a judge that {does} would reach the same accuracy or a higher one: "
        f"{right / one.n_samples:.3f}, compared with {one.accuracy:.3f} (sensitivity "
        + ", specificity ".join("-" if x is None else f"{x:.3f}" for x in (one.sensitivity, one.specificity))
        + ")"
        for one in binary
        # To pass a penalty is to answer UNMET; the metrics do not know which criteria are penalties.
        for does, right in (
            ("passes everything", one.support_true),
            ("answers UNMET to everything", one.n_samples - one.support_true),
        )
        if one.accuracy is not None and one.accuracy * one.n_samples <= right + 1e-9
    ]


def _run_warnings(
    criteria: Sequence[MeasuredCriterion], modes: Modes, panel: RaterMetrics, n_items: int
) -> list[str]:
    found = []
    if not panel.na_stats.n_cells:
        found.append("no item has a label, so the judges cannot be compared with the truth (no_pairs)")
    elif n_items < FEW_ITEMS:
        found.append(
            f"only {n_items} items: with fewer than about {FEW_ITEMS}, intervals are wide and unreliable"
        )
    thin = [
        one.name
        for one in panel.per_criterion
        if isinstance(one, CriterionMetrics)
        and 0 < min(one.support_true, one.n_samples - one.support_true) < FEW_OF_A_CLASS
    ]
    if thin:
        found.append(
            f"criteria with fewer than {FEW_OF_A_CLASS} labels of the rarer class: {join_names(thin)}"
        )
    repeated = [name for name, n in Counter(one.name for one in criteria).items() if n > 1]
    if repeated:
        found.append(
            f"scales differ between items for {join_names(repeated)}; each scale is reported separately"
        )
    figured = {one.name for one in panel.per_criterion}
    without = [
        one.name
        for one in criteria
        if one.level == "text" or (one.level == "ranking" and one.name not in figured)
    ]
    if without:
        found.append(
            f"no metrics are computed for these criteria (free text or rankings): {join_names(without)}"
        )
    if modes.cannot_assess != "exclude":
        found.append(f"CANNOT_ASSESS is counted {modes.cannot_assess.replace('_', ' ')}")
    if modes.na != "exclude":
        found.append(f"NA is counted {modes.na.replace('_', ' ')}")
    return found


def tied_labels_text(rule: TruthRule | None, n_tied: int) -> str:
    """Describe how several annotators' labels were combined and how many cells have no ground truth."""
    how = (
        "the median on ordinal scales, the mean of numbers, and otherwise the mode"
        if rule is None
        else "the label that more than half of them chose"
        if rule == "majority"
        else f"the {rule} of their labels"
    )
    cells = "cell has" if n_tied == 1 else "cells have"
    return f"If several annotators label a cell, its label is {how}; {n_tied} {cells} no label due to ties."


def fold_warnings(warnings: Iterable[str]) -> list[str]:
    """Merge identical warnings about several raters into one line that names and counts them."""
    raters: dict[str, list[str]] = {}
    for one in warnings:
        who, _, text = one.partition(": ")
        known = text and (who == "panel" or who.startswith("judge ") or " " not in who)
        raters.setdefault(text if known else one, []).extend([who] if known else [])
    return [
        text
        if not who
        else f"{who[0]}: {text}"
        if len(who) == 1
        else f"{', '.join(who)} ({len(who)} raters): {text}"
        for text, who in raters.items()
    ]


def _rater_warnings(who: str, rater: RaterMetrics, reasons: Mapping[str, Reason]) -> list[str]:
    found = []
    stats = rater.na_stats
    if stats.failed:
        found.append(
            f"{who}: failed on {stats.failed} of {stats.n_cells} labelled cells, which all metrics exclude"
        )
    if stats.not_asked:
        found.append(f"{who}: has no vote on {stats.not_asked} of {stats.n_cells} labelled cells")
    if stats.answered_na:
        found.append(f"{who}: {answered_na_text(stats)}")
        tables = [getattr(one, "confusion_matrix", None) for one in rater.per_criterion]
        if all(tables):
            right = sum(row[at] for one in tables if one for at, row in enumerate(one.counts))
            n = stats.n_answered + stats.answered_na + stats.judge_abstained
            accuracy = (right + stats.both_abstained) / n
            found[-1] += f"; if NA counts as an answer, the accuracy over all cells is {accuracy:.4f}"
    by_reason: dict[Reason, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    found += [f"{who}: undefined ({reason}): {join_names(names)}" for reason, names in by_reason.items()]
    on: dict[tuple[str, Reason], list[str]] = {}
    for one in rater.per_criterion:
        for name, reason in one.reasons.items():
            on.setdefault((name, reason), []).append(one.name)
    groups: dict[tuple[Reason, tuple[str, ...]], list[str]] = {}
    for (name, reason), names in on.items():
        groups.setdefault((reason, tuple(names)), []).append(name)
    total = len(rater.per_criterion)
    for (reason, where), figures in groups.items():
        what = f"{', '.join(figures)} {'is' if len(figures) == 1 else 'are'} undefined ({reason})"
        found.append(f"{who}: {what} on {len(where)} of {total} criteria: {join_names(where)}")
    return found


def join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more
