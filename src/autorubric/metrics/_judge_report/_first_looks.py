"""Sentences that summarize the most important findings of a judge report."""

from __future__ import annotations

from collections.abc import Mapping

from autorubric.metrics._audit._findings import said
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._judge_report._agreement_result import Agreement
from autorubric.metrics._judge_report._panel_and_best import (
    HeadlineName,
    PanelAndBest,
    best_alone,
    headline_name,
)
from autorubric.metrics._judge_report._rater_report import HumanCeilings, RaterReport, few_items_each
from autorubric.metrics._judge_report._sides import AbstainMode
from autorubric.metrics._rounding import is_rounding

_MANY = 0.05
"""Minimum proportion of cells without an answer that is worth mentioning."""


def first_looks(
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
        found = _headline(raters, ceiling, compared, n_items) or [
            f"No metric is defined on any criterion ({n_items} items, {n_cells} labels)."
        ]
        found += _without_answer(raters)
    found += _in_both_orders(raters["panel"])
    if abstain != "exclude":
        found.insert(1, f"Abstentions are counted {_COUNTED[abstain]} (abstain={abstain!r}).")
    return [f"- {one}" for one in found]


_COUNTED = {"as_negative": "as the lowest answer", "as_category": "as a separate category"}


def _headline(
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    compared: PanelAndBest | None,
    n_items: int,
) -> list[str]:
    panel, name = raters["panel"], headline_name(raters["panel"])
    if name is None:
        return _judges_lead(raters, n_items)
    headline: Estimate = getattr(panel.macro, name)
    done, of = panel.macro.defined[name]
    found = [
        f"The panel's mean {name} is {said(headline)} over criteria ({done} of {of} criteria defined, "
        f"{n_items} items, {_share(panel.coverage)} of the labelled cells)"
        f"{_mixture(panel, name)}{_caveat(panel)}."
    ]
    if ceiling is not None:
        for each in dict.fromkeys((name, "accuracy")):
            found += _beside_people(ceiling, each)
        if not ceiling.made_the_truth:
            found.append("The labels are not from these annotators, so do not compare the panel with them.")
    found += _best_alone(raters, name, n_items)
    found += _on_the_same_cells(compared)
    on_each = {
        criterion: one
        for criterion, agreed in panel.per_criterion.items()
        if (one := _on(agreed, name)).value is not None and one.low is not None
    }
    # A criterion without an interval has too few labels to be called the weakest.
    if len(on_each) > 1:
        weakest = min(on_each, key=lambda criterion: float(on_each[criterion]))
        found.append(f"The weakest criterion is {weakest}: {name} {said(on_each[weakest])}.")
    return found


def _mixture(rater: RaterReport, name: str) -> str:
    """Describe the levels that a mean kappa combines and its ordinal weights; empty if none is ordinal."""
    if name != "kappa":
        return ""
    levels = [one.level for one in rater.per_criterion.values() if _on(one, name).value is not None]
    if "ordinal" not in levels:
        return ""
    counts = [
        f"{levels.count(level)} {level}" for level in ("binary", "nominal", "ordinal") if level in levels
    ]
    mixed = f"; the mean combines {' and '.join(counts)} criteria" if len(counts) > 1 else ""
    return f"{mixed}; kappa uses quadratic weights on ordinal criteria"


def _caveat(rater: RaterReport) -> str:
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


def _judges_lead(raters: Mapping[str, RaterReport], n_items: int) -> list[str]:
    """Describe the judges that have defined metrics, for reports in which the panel has none."""
    found = []
    for who, rater in raters.items():
        name = headline_name(rater)
        if name is not None:
            done, of = rater.macro.defined[name]
            found.append(
                f"{who}: mean {name} {said(getattr(rater.macro, name))} over criteria ({done} of {of} "
                f"defined, {n_items} items, {_share(rater.coverage)} of the labelled cells){_caveat(rater)}."
            )
    return found


def _best_alone(raters: Mapping[str, RaterReport], name: HeadlineName, n_items: int) -> list[str]:
    """Describe the best single judge if it is better than the others."""
    ranked = best_alone({who: one for who, one in raters.items() if who != "panel"}, name)
    if len(ranked) < 2 or n_items < 2:
        return []
    best, second = (getattr(raters[who].macro, name) for who in ranked[:2])
    if is_rounding(float(best) - float(second)):
        return []
    return [
        f"The best of {len(ranked)} single judges is {ranked[0]}, with a mean {name} of {said(best)} on "
        f"{_share(raters[ranked[0]].coverage)} of the labelled cells. Selecting the best of several "
        "overstates its quality."
    ]


def _on_the_same_cells(compared: PanelAndBest | None) -> list[str]:
    """Compare the panel and the best judge on the cells that both answered."""
    if compared is None:
        return []
    found = [
        f"On the {compared.n_cells} labelled cells that both the panel and {compared.judge} answered "
        f"({_share(compared.coverage)}), the mean {compared.figure} is {_number(compared.panel)} for the "
        f"panel and {_number(compared.best)} for {compared.judge}{_gap(compared.difference)}."
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


def _gap(difference: Estimate) -> str:
    if difference.value is None:
        return ""
    if difference.low is None or difference.high is None:
        return f", a difference of {difference.value:+.3f}"
    told = "" if difference.low > 0 or difference.high < 0 else ", which is not distinguishable from 0"
    ends = f"[{difference.low:+.3f}, {difference.high:+.3f}]"
    return f", a difference of {difference.value:+.3f} {ends}{told}"


def _number(found: Estimate) -> str:
    return "undefined" if found.value is None else f"{found.value:.3f}"


def _share(coverage: float | None) -> str:
    return "none" if coverage is None else f"{coverage:.1%}"


def _on(agreed: Agreement, name: str) -> Estimate:
    ordinal = name == "kappa" and agreed.level == "ordinal"
    found: Estimate = getattr(agreed, "weighted_kappa" if ordinal else name)
    return found


def _beside_people(ceiling: HumanCeilings, name: str) -> list[str]:
    people, gap = getattr(ceiling.macro, name), getattr(ceiling.gap["panel"], name)
    if people.value is None or (ceiling.made_the_truth and gap.value is None):
        return []
    theirs = f"The mean {name} between an annotator and the others is {said(people)}"
    if not ceiling.made_the_truth:
        return [f"{theirs}."]
    if gap.low is None or gap.high is None:
        verdict = f"the panel differs from an annotator by {gap:+.3f}"
    elif gap.low > 0:
        verdict = f"the panel outperforms an annotator by {said(gap)}"
    elif gap.high < 0:
        verdict = f"the panel falls short of an annotator by {said(gap)}"
    else:
        verdict = f"the panel is not distinguishable from an annotator (difference {said(gap)})"
    return [f"{theirs}. Against the same annotators, {verdict}."]


def _in_both_orders(panel: RaterReport) -> list[str]:
    """Describe how often comparisons have the same outcome in both orders of the candidates."""
    return [
        f"On {name}, the proportion of samples with the same outcome in both orders of the candidates is "
        f"{said(consistent)} ({consistent.n} samples)."
        for name, one in panel.comparisons.items()
        if (consistent := one.position_consistency).value is not None
    ]


def _without_answer(raters: Mapping[str, RaterReport]) -> list[str]:
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
        if told:
            found.append(f"{who} {', '.join(told)} of {rater.failures.n_cells} cells.")
    return found
