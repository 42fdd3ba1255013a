"""What a reader of a judge report should look at first, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from autorubric.metrics._estimate import Estimate
from autorubric.metrics._judge_report._agreement_result import Agreement
from autorubric.metrics._judge_report._rater_report import HumanCeilings, RaterReport

_MANY = 0.05
"""From this share on cells without an answer are worth a sentence."""


def first_looks(
    raters: Mapping[str, RaterReport], ceiling: HumanCeilings | None, size: tuple[int, int]
) -> list[str]:
    """The headline, people beside it, the best judge, the weakest criterion, and cells without an answer."""
    panel = raters["panel"]
    n_items, n_cells = size
    if not n_cells:
        return ["- Nothing is labelled: this report says how the judges agree among themselves, no more."]
    name = next((one for one in ("kappa", "pearson", "accuracy") if panel.macro.defined[one][0]), None)
    if name is None:
        return [f"- No figure is defined on any criterion ({n_items} items, {n_cells} labelled cells)."]
    return [f"- {one}" for one in _sentences(raters, ceiling, name, n_items)]


def _sentences(
    raters: Mapping[str, RaterReport], ceiling: HumanCeilings | None, name: str, n_items: int
) -> list[str]:
    panel = raters["panel"]
    headline: Estimate = getattr(panel.macro, name)
    done, of = panel.macro.defined[name]
    found = [
        f"The panel's mean {name} is {_said(headline)} over criteria: {done} of {of} criteria defined, "
        f"{n_items} items."
    ]
    if ceiling is not None:
        found += _beside_people(getattr(ceiling.macro, name), getattr(ceiling.gap["panel"], name))
    alone = {
        who: one.value
        for who, rater in raters.items()
        if who != "panel" and (one := getattr(rater.macro, name)).value is not None
    }
    if len(alone) > 1:
        best = max(alone, key=lambda who: alone[who])
        found.append(
            f"Of {len(alone)} judges {best} does best alone: mean {name} "
            f"{_said(getattr(raters[best].macro, name))}; the best of several looks better than it is."
        )
    on_each = {
        criterion: one
        for criterion, agreed in panel.per_criterion.items()
        if (one := _on(agreed, name)).value is not None
    }
    if len(on_each) > 1:
        weakest = min(on_each, key=lambda criterion: float(on_each[criterion]))
        found.append(f"The weakest criterion is {weakest}: {name} {_said(on_each[weakest])}.")
    return found + _without_answer(raters)


def _on(agreed: Agreement, name: str) -> Estimate:
    ordinal = name == "kappa" and agreed.level == "ordinal"
    found: Estimate = getattr(agreed, "weighted_kappa" if ordinal else name)
    return found


def _said(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return f"{found:.3f}"
    return f"{found:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _beside_people(people: Estimate, gap: Estimate) -> list[str]:
    if people.value is None or gap.value is None:
        return []
    if gap.low is None or gap.high is None:
        verdict = f"the panel differs from them by {gap:+.3f}"
    elif gap.low > 0:
        verdict = f"the panel agrees with the truth more than they do with each other, by {_said(gap)}"
    elif gap.high < 0:
        verdict = f"the panel falls short of them, by {_said(gap)}"
    else:
        verdict = f"these items cannot tell the panel from them: {_said(gap)}"
    return [f"People, each against the rest, reach {_said(people)}; {verdict}."]


def _without_answer(raters: Mapping[str, RaterReport]) -> list[str]:
    found = []
    for who, rater in raters.items():
        told = [
            f"{words} {one:.1%}"
            for words, one in (
                ("abstained on", rater.failures.abstention_rate),
                ("failed on", rater.failures.failure_rate),
                ("was not asked", rater.failures.not_asked_rate),
            )
            if one.value is not None and one.value >= _MANY
        ]
        if told:
            found.append(f"{who} {', '.join(told)} of {rater.failures.n_cells} cells.")
    return found
