"""Warnings about the data, the settings and undefined metrics, which all reports on raters share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from autorubric.datasets.item import TruthRule
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.item_scores import Rater
from autorubric.metrics.core.read_votes import Modes
from autorubric.metrics.core.votes_table import MeasuredCriterion
from autorubric.metrics.summaries.results import AnyCriterionMetrics, CriterionMetrics, RaterMetrics
from autorubric.metrics.summaries.table_metrics import FEW_OF_A_CLASS

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
) -> list[str]:
    """Return warnings about the data, and about the raters' failures and undefined metrics, panel first.

    `found` is the result of `rater_metrics` by rater. Without item scores, their metrics are not mentioned.
    """
    texts = []
    for (kind, name), (metrics, reasons) in found.items():
        if kind == "panel":
            texts += _run_warnings(criteria, modes, metrics, n_items)
        shown = {x: why for x, why in reasons.items() if has_scores or not x.startswith("score_")}
        texts += _rater_warnings("panel" if kind == "panel" else f"judge {name}", metrics, shown)
    return texts


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
    found += _thin_classes(panel.per_criterion)
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
    by_reason: dict[Reason, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    found += [f"{who}: undefined ({reason}): {join_names(names)}" for reason, names in by_reason.items()]
    on: dict[tuple[str, Reason], list[str]] = {}
    for one in rater.per_criterion:
        for name, reason in one.reasons.items():
            on.setdefault((name, reason), []).append(one.name)
    total = len(rater.per_criterion)
    for (name, reason), names in on.items():
        found.append(
            f"{who}: {name} is undefined ({reason}) on {len(names)} of {total} criteria: {join_names(names)}"
        )
    return found


def _thin_classes(per_criterion: Sequence[AnyCriterionMetrics]) -> list[str]:
    thin = [
        one.name
        for one in per_criterion
        if isinstance(one, CriterionMetrics)
        and 0 < min(one.support_true, one.n_samples - one.support_true) < FEW_OF_A_CLASS
    ]
    if not thin:
        return []
    return [f"criteria with fewer than {FEW_OF_A_CLASS} labels of the rarer class: {join_names(thin)}"]


def join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more
