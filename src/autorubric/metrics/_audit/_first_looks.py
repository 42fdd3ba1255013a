"""One-sentence summaries of the most important finding of each audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autorubric._blocks import p_text
from autorubric.metrics._estimate import Estimate

if TYPE_CHECKING:
    from autorubric.metrics._audit._bias_results import BiasReport, TestedBias
    from autorubric.metrics._audit._components_results import VarianceComponents
    from autorubric.metrics._audit._item_results import ItemAnalysis
    from autorubric.metrics._audit._panel_results import PanelAudit
    from autorubric.metrics._audit._self_consistency import SelfConsistency

SURE = 0.05
"""A bias is reported as significant if its adjusted p-value is below this level."""

WEAK = 0.2
"""A criterion is reported as weak if its correlation with the others is below this level."""

_UNLIKE = "Unlike accuracy, correctness breaks ties at random and counts values as 1 - absolute error."


def said(found: Estimate) -> str:
    """Format an estimate with its interval, if it has one."""
    if found.low is None or found.high is None:
        return f"{found:.3f}"
    return f"{found:.3f} [{found.low:.3f}, {found.high:.3f}]"


def panel_sentence(audit: PanelAudit) -> str:
    """Summarise the panel's correctness and the effective number of its judges."""
    k = len(audit.judges)
    if audit.panel.value is None:
        return f"The correctness of the panel of {k} judges is undefined ({audit.panel.reason})."
    share = "" if audit.coverage is None else f" ({audit.coverage:.1%} of the labelled cells)"
    figure = f"{said(audit.panel)}, mean over criteria, on {audit.n_complete} cells{share}"
    if k < 2:
        return f"Correctness of the single judge: {figure}. {_UNLIKE} A panel needs at least two judges."
    if audit.effective_judges.value is None:
        worth = f"the effective number of its {k} judges is undefined ({audit.effective_judges.reason})"
    else:
        worth = f"effective number of judges: {said(audit.effective_judges)} of {k}"
        if float(audit.effective_judges) > k:
            worth += f" (above {k} because the judges' errors are negatively correlated)"
    return f"Panel correctness: {figure}; {worth}{_beside_best(audit)}. {_UNLIKE}"


def _beside_best(audit: PanelAudit) -> str:
    best = audit.best_single
    if best.difference.value is None or not best.judges:
        return ""
    ahead = float(best.difference)
    how = (
        "as good as" if abs(ahead) < 0.0005 else f"{abs(ahead):.3f} {'better' if ahead > 0 else 'worse'} than"
    )
    return f". The panel is {how} its best single judge, {best.judges[0]}"


def consistency_sentence(found: SelfConsistency) -> str:
    """Summarise how often repeated answers differ."""
    if found.flip_rate.value is None:
        return "Self-consistency is undefined: no question was asked twice."
    return (
        f"Flip rate: {said(found.flip_rate)} over {found.n_units} units with up to {found.n_repeats} answers "
        "each. The flip rate does not show whether the answers are right."
    )


def leaning_sentence(report: BiasReport, kinds: dict[str, str]) -> str:
    """Summarise the most significant bias, by the p-value adjusted over all judges and kinds of bias."""
    tested: list[tuple[float, str, str, TestedBias]] = []
    for judge, one in report.per_judge.items():
        for kind in kinds:
            bias: TestedBias = getattr(one, kind)
            if bias.adjusted_p_value is not None:
                tested.append((bias.adjusted_p_value, judge, kind, bias))
    if not tested:
        return "No bias could be tested; the tables give the reasons."
    # Unadjusted p-values break ties between adjusted ones.
    p, judge, kind, bias = min(tested, key=lambda one: (one[0], one[3].p_value or 0.0))
    words = kinds[kind].split(" (")[0]
    over = f"adjusted p {p_text(p)} (Holm, {len(tested)} tests over judges and kinds of bias)"
    if p >= SURE:
        return (
            f"No bias is significant. The smallest p-value is for {judge}'s {words}: "
            f"{said(bias.effect)}, {over}."
        )
    return f"The clearest bias is {judge}'s {words}: {said(bias.effect)}, {over}."


def rubric_sentence(found: ItemAnalysis) -> str:
    """Summarise the criterion that most needs attention."""
    if not found.n_items:
        return f"No item analysis is possible: the rater {found.rater!r} has no values."
    if found.dead:
        return f"First check the criteria that never vary or were never answered: {', '.join(found.dead)}."
    if found.redundant:
        pair = found.redundant[0]
        both = f"{pair.first} and {pair.second}"
        return f"Check {both} first: they are redundant, r = {said(pair.correlation)}."
    known = [one for one in found.criteria if one.discrimination.value is not None]
    if not known:
        return "No criterion can be compared with others: there is only one, or there are too few items."
    weakest = min(known, key=lambda one: float(one.discrimination))
    figure = f"r = {said(weakest.discrimination)}"
    if float(weakest.discrimination) < WEAK:
        return f"Check {weakest.name} first: it has the weakest correlation with the rest, {figure}."
    return f"Every criterion correlates with the rest; {weakest.name} correlates least, {figure}."


def variance_sentence(found: VarianceComponents) -> str:
    """Summarise the reliability of the item scores, and the votes needed for the target."""
    study = found.score
    if study.phi.value is None:
        return f"The reliability of item scores is undefined ({study.phi.reason})."
    plan = study.plan
    if plan.judges is None:
        then = f"no known plan reaches {found.target:g} ({plan.reason})"
    else:
        samples = "1 sample" if plan.samples == 1 else f"{plan.samples} samples"
        judges = "1 judge" if plan.judges == 1 else f"{plan.judges} judges"
        then = f"{judges} with {samples} per judge would reach {found.target:g}"
    return f"Reliability of the item scores: Φ = {said(study.phi)}; {then}."
