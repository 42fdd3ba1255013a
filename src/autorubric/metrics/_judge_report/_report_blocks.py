"""Blocks of a judge report, most important first, which all renderers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autorubric._blocks import Block, Cell, TableBlock, TextBlock
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._judge_report._agreement_result import Agreement
from autorubric.metrics._judge_report._first_looks import first_looks
from autorubric.metrics._judge_report._panel_and_best import PanelAndBest
from autorubric.metrics._judge_report._rater_report import (
    HeadlineFigures,
    HumanCeilings,
    RaterReport,
    few_items_each,
)
from autorubric.metrics._judge_report._reliability import Reliability
from autorubric.metrics._judge_report._sides import AbstainMode
from autorubric.metrics._rater_figures import MET
from autorubric.metrics._rendering import TRUE_RATES_COLUMNS, TRUE_RATES_TITLE

_WORDS = {
    "f1": "F1",
    "macro_f1": "macro F1",
    "recall": "sensitivity (recall, TPR)",
    "specificity": "specificity (TNR)",
}
_SCORES = ("rmse", "mae", "pearson", "spearman", "kendall", "ccc")


def report_blocks(
    headline: Sequence[Block],
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    reliability: Mapping[str, Reliability],
    told: Sequence[str],
) -> list[Block]:
    """Return all blocks of a report, headline first. `told` contains the warnings, then the settings."""
    panel = raters["panel"]
    thin = any(few_items_each(one) is not None for one in raters.values())
    blocks = [
        *headline,
        *([_criteria_table(panel, ceiling, reliability)] if len(raters) > 1 else []),
        _true_rates_table(panel),
        _pooled_table("Panel, all cells pooled (mixes base rates; see the means first)", panel.micro),
    ]
    if len(panel.by_scale) > 1 or thin:
        blocks.append(_scales_table(raters))
    if panel.scores is not None:
        blocks.append(_scores_table(raters))
    if told[:-1]:
        blocks.append(TextBlock(title="Warnings", text="\n".join(f"- {warning}" for warning in told[:-1])))
    blocks.append(TextBlock(title="Settings", text=told[-1]))
    return _with_rows(blocks)


def headline_blocks(
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    compared: PanelAndBest | None,
    size: tuple[int, int],
    abstain: AbstainMode,
) -> list[Block]:
    """Return the blocks that summarize all criteria; `size` is `(n_items, n_cells)`, the labelled ones."""
    looks = first_looks(raters, ceiling, compared, size, abstain)
    blocks: list[Block] = [TextBlock(title="What to look at first", text="\n".join(looks))]
    if len(raters) > 1:
        if any(done for done, _ in raters["panel"].macro.defined.values()):
            blocks.append(_macro_table(raters["panel"], ceiling))
        blocks += [
            _raters_table(raters, ceiling, compared),
            *([_same_cells_table(compared)] if compared is not None else []),
            _comparisons_table(raters),
            _failures_table(raters),
        ]
    return _with_rows(blocks)


def _with_rows(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if not isinstance(block, TableBlock) or block.rows]


def _ends(found: Estimate) -> str:
    return "" if found.low is None or found.high is None else f"[{found.low:.3f}, {found.high:.3f}]"


def _words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _macro_table(panel: RaterReport, ceiling: HumanCeilings | None) -> TableBlock:
    rows: list[tuple[Cell, ...]] = []
    for name, found in panel.macro.figures().items():
        done, of = panel.macro.defined[name]
        if not of:
            continue
        row: tuple[Cell, ...] = (_words(name), found.value, _ends(found), f"{done} of {of}")
        if ceiling is not None:
            gap = getattr(ceiling.gap["panel"], name)
            row = (*row, getattr(ceiling.macro, name).value, gap.value, _ends(gap))
        rows.append(row)
    ceilings = () if ceiling is None else ("people", "panel - person", "interval of the difference")
    return TableBlock(
        title="Panel, mean over criteria",
        columns=("figure", "mean", "interval", "criteria defined", *ceilings),
        rows=tuple(rows),
    )


def _raters_table(
    raters: Mapping[str, RaterReport], ceiling: HumanCeilings | None, compared: PanelAndBest | None
) -> TableBlock:
    shown = [name for name, (_, of) in raters["panel"].macro.defined.items() if of]

    def row(who: str, macro: HeadlineFigures, coverage: float | None) -> tuple[Cell, ...]:
        found = [getattr(macro, name) for name in shown]
        leading = [_ends(found[shown.index("kappa")])] if "kappa" in shown else []
        return (who, coverage, *(one.value for one in found), *leading)

    rows = [row(who, one.macro, one.coverage) for who, one in raters.items()]
    if ceiling is not None:
        how = "each against the others" if ceiling.made_the_truth else "not comparable"
        rows.append(row(f"annotators ({how})", ceiling.macro, None))
    interval = ("interval of kappa",) if "kappa" in shown else ()
    ties = "; ties count as the conservative answer" if compared and compared.n_ties_answered else ""
    return TableBlock(
        title=f"Judges, mean over criteria, on the labelled cells that each judge answered (coverage){ties}",
        columns=("rater", "coverage", *map(_words, shown), *interval),
        rows=tuple(rows) if shown else (),
    )


def _same_cells_table(found: PanelAndBest) -> TableBlock:
    figures = {"panel": found.panel, found.judge: found.best, "panel - judge": found.difference}
    return TableBlock(
        title=f"Panel and best judge on the same cells: {_words(found.figure)}, mean over criteria",
        columns=("rater", _words(found.figure), "interval", "cells", "coverage"),
        rows=tuple(
            (who, one.value, _ends(one), found.n_cells, found.coverage) for who, one in figures.items()
        ),
    )


def _comparisons_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            who,
            name,
            found.tie_rate.n,
            found.tie_rate.value,
            found.position_consistency.n,
            found.position_consistency.value,
            _ends(found.position_consistency),
        )
        for who, one in raters.items()
        for name, found in one.comparisons.items()
    ]
    return TableBlock(
        title="Comparisons: ties and consistency across both orders of the candidates",
        columns=(
            "rater", "criterion", "decisions", "ties", "asked in both orders", "position consistency",
            "interval",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _failures_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            who,
            one.failures.n_cells,
            one.coverage,
            one.failures.abstention_rate.value,
            one.failures.failure_rate.value,
            one.failures.not_asked_rate.value,
            one.failures.undecided_rate.value,
            one.failures.not_applicable,
        )
        for who, one in raters.items()
    ]
    return TableBlock(
        title="Labelled cells without an answer",
        columns=("rater", "cells", "coverage", "abstained", "failed", "not asked", "tied", "not applicable"),
        rows=tuple(rows),
    )


def kappa_on(found: Agreement) -> Estimate:
    """Return kappa on a criterion, weighted if the criterion is ordinal."""
    return found.weighted_kappa if found.level == "ordinal" else found.kappa


def _criteria_table(
    panel: RaterReport, ceiling: HumanCeilings | None, reliability: Mapping[str, Reliability]
) -> TableBlock:
    rows: list[tuple[Cell, ...]] = []
    for name, found in panel.per_criterion.items():
        kappa = kappa_on(found)
        row: tuple[Cell, ...] = (
            name, found.level, found.n, found.accuracy.value, kappa.value, _ends(kappa), found.pearson.value,
            found.rmse.value,
        )  # fmt: skip
        if ceiling is not None:
            people = ceiling.per_criterion.get(name)
            row = (*row, people.kappa.value if people else None)
        if reliability:
            row = (*row, reliability[name].alpha.value)
        rows.append(row)
    people_too = () if ceiling is None else ("people's kappa",)
    among = ("alpha among judges",) if reliability else ()
    return TableBlock(
        title="Panel on each criterion",
        columns=(
            "criterion", "level", "n", "accuracy", "kappa", "interval", "pearson", "RMSE",
            *people_too, *among,
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _true_rates_table(panel: RaterReport) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(one.recall.value, _ends(one.recall), sum(one.table[MET])),
            *(one.specificity.value, _ends(one.specificity), one.n - sum(one.table[MET])),
        )
        for name, one in panel.per_criterion.items()
        if one.level == "binary" and one.n
    ]
    return TableBlock(title=TRUE_RATES_TITLE, columns=TRUE_RATES_COLUMNS, rows=tuple(rows))


def _pooled_table(title: str, found: HeadlineFigures) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (_words(name), one.value, _ends(one), one.n)
        for name, one in found.figures().items()
        if one.value is not None
    ]
    return TableBlock(title=title, columns=("figure", "estimate", "interval", "n"), rows=tuple(rows))


def _scales_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            who,
            scale,
            found.accuracy.n,
            found.accuracy.value,
            found.balanced_accuracy.value,
            found.kappa.value,
            _ends(found.kappa),
        )
        for who, one in raters.items()
        for scale, found in one.by_scale.items()
    ]
    return TableBlock(
        title="Cells pooled by scale",
        columns=("rater", "scale", "n", "accuracy", "balanced accuracy", "kappa", "interval"),
        rows=tuple(rows),
    )


def _scores_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            who,
            one.scores.n,
            *(getattr(one.scores, name).value for name in _SCORES),
            one.scores.bias.mean_bias,
            one.scores.bias.p_value,
        )
        for who, one in raters.items()
        if one.scores is not None
    ]
    names = ("RMSE", "MAE", *_SCORES[2:])
    return TableBlock(
        title="Item scores, without length penalty",
        columns=("rater", "n", *names, "bias (rater - truth)", "bias p"),
        rows=tuple(rows),
    )
