"""Metrics of one rater: per criterion, averaged over criteria, pooled over cells, and of item scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autorubric.criteria.values import NamedList
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import NumberPairs
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import TRUTH, Rater
from autorubric.metrics.core.read_votes import Cells, Column, Modes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import (
    ABSENT,
    ABSTAINED,
    ANSWERED,
    FAILED,
    NOT_APPLICABLE,
    NOT_ASKED,
    UNDECIDED,
    MeasuredCriterion,
)
from autorubric.metrics.figures.bias import ConfidenceInterval, bias_of
from autorubric.metrics.figures.correlation import mae_estimate, pearson_estimate, rmse_estimate
from autorubric.metrics.figures.kappa import kappa_of, undefined_reason
from autorubric.metrics.figures.many_raters import CountCoefficient, counts_estimate, fleiss_chance
from autorubric.metrics.figures.ranks import rank_pairs
from autorubric.metrics.summaries.criterion_figures import (
    Noted,
    OnCriterion,
    figures_on,
    linear_correlation,
    rank_correlation,
    tables_of,
    weights_on_values,
)
from autorubric.metrics.summaries.macro_bootstrap import mean_share_ends
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    CriterionMetrics,
    NaStats,
    NominalCriterionMetrics,
    OrdinalCriterionMetrics,
    PooledMetrics,
)

_CATEGORICAL = ("binary", "nominal", "ordinal")
MET = 1
"""Index of MET among the categories of a binary criterion."""
_OF_ONE_CLASS = ("precision", "recall", "sensitivity", "specificity", "f1")


def pooled_figures(
    cells: Cells, rater: Column, tables: Sequence[Array], modes: Modes
) -> tuple[PooledMetrics, dict[str, PooledMetrics]]:
    """Pool all cells, and the cells of each scale by its labels; `tables` are those returned by `tables_of`.

    Accuracy uses the cells of all categorical criteria. Metrics of a confusion table need a single scale. If
    there are several scales, they use the binary cells, or are None (`not_comparable`) if there are none.
    """
    # The value of a comparison is that of its first candidate, which differs from item to item.
    single = [place for place, one in enumerate(cells.criteria) if one.level != "ranking"]
    every = _pearson(cells, rater, single)

    def of_scale(places: Sequence[int]) -> PooledMetrics:
        linear = every if len(places) == len(single) else _pearson(cells, rater, places)
        return _of_scale(cells, tables, modes, places, linear)

    scales = _scales(cells.criteria)
    by_scale = {" | ".join(labels): of_scale(places) for labels, places in scales.items()}
    if len(scales) == 1:
        places = next(iter(scales.values()))
        return _of_scale(cells, tables, modes, places, every), by_scale
    binary = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "binary"]
    base = _of_scale(cells, tables, modes, binary, every) if binary else _without_scale(cells, every)
    noted = Noted()
    noted.reasons.update(base.reasons)
    categorical = [tables[place] for places in scales.values() for place in places]
    right, n = (sum(int(of(table)) for table in categorical) for of in (shares.hits, np.sum))
    accuracy = noted.take("accuracy", right / n if n else float("nan"), "no_pairs")
    used = n + _n_numbers(cells, rater)
    return replace(base, accuracy=accuracy, n=used, reasons=noted.reasons), by_scale


def _scales(criteria: Sequence[MeasuredCriterion]) -> dict[tuple[str, ...], list[int]]:
    """Return the positions of the categorical criteria, grouped by scale and keyed by the scale's labels."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, criterion in enumerate(criteria):
        if criterion.level in _CATEGORICAL:
            values = tuple(answer.value for answer in criterion.categories)
            found.setdefault((criterion.level, _words(criterion), values), []).append(place)
    named: dict[tuple[str, ...], list[int]] = {}
    for (level, words, _), places in found.items():
        labels = tuple(words) if isinstance(words, tuple) else ()
        # Scales with the same labels but different values or levels are kept separate.
        while labels in named:
            labels = (*labels, str(level))
        named[labels] = places
    return named


def _words(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return tuple(answer.label or str(answer.code) for answer in criterion.categories)


def _values(cells: Cells, column: Column, places: Sequence[int]) -> Array:
    if len(places) == len(cells.criteria):
        return column.value
    return np.concatenate([column.value[:0], *(column.value[cells.spans[place]] for place in places)])


def _n_numbers(cells: Cells, rater: Column) -> int:
    places = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "interval"]
    return int((~np.isnan(_values(cells, cells.truth, places) + _values(cells, rater, places))).sum())


def _pearson(cells: Cells, rater: Column, places: Sequence[int]) -> Estimate:
    """Compute Pearson's r between true and judged values of the criteria at `places`."""
    truth, judged = _values(cells, cells.truth, places), _values(cells, rater, places)
    both = ~np.isnan(truth + judged)
    pairs = NumberPairs(truth[both], judged[both], None, 0)
    return pearson_estimate(pairs, IntervalOptions(ci=None))


def _of_scale(
    cells: Cells, tables: Sequence[Array], modes: Modes, places: Sequence[int], linear: Estimate
) -> PooledMetrics:
    """Compute the metrics of the criteria at `places`, which share a scale; `linear` is Pearson's r."""
    criterion = cells.criteria[places[0]]
    labels = (*_words(criterion), *(("CANNOT_ASSESS",) if modes.has_category else ()))
    table = np.sum([tables[place] for place in places], axis=0)
    noted = Noted()
    none = table.sum() == 0
    one_class: dict[str, float | None] = dict.fromkeys(_OF_ONE_CLASS)
    if criterion.level == "binary":
        one_class = {
            "precision": noted.take(
                "precision", shares.precision_of(table, MET), "no_pairs" if none else "no_positive_in_pred"
            ),
            "recall": noted.take(
                "recall", shares.recall_of(table, MET), "no_pairs" if none else "no_positive_in_truth"
            ),
            "sensitivity": noted.take(
                "sensitivity", shares.recall_of(table, MET), "no_pairs" if none else "no_positive_in_truth"
            ),
            "specificity": noted.take(
                "specificity",
                shares.specificity_of(table, MET),
                "no_pairs" if none else "no_negative_in_truth",
            ),
            "f1": noted.take("f1", shares.f1_of(table, MET), "no_pairs" if none else "no_positive"),
        }
    else:
        for name in one_class:
            noted.refuse(name, "not_comparable")
    weighted = None
    if criterion.level == "ordinal" and not modes.has_category:
        weighted = noted.take(
            "weighted_kappa", kappa_of(table, weights_on_values(criterion)), undefined_reason(table)
        )
    return PooledMetrics(
        n=int(table.sum()),
        n_labelled=sum(int((cells.truth.status[cells.spans[place]] > 0).sum()) for place in places),
        labels=labels,
        accuracy=noted.take("accuracy", shares.accuracy_of(table), "no_pairs"),
        balanced_accuracy=noted.take(
            "balanced_accuracy", shares.balanced_accuracy_of(table), "no_pairs" if none else "single_class"
        ),
        kappa=noted.take("kappa", kappa_of(table), undefined_reason(table)),
        weighted_kappa=weighted,
        mcc=noted.take("mcc", shares.mcc_of(table), "no_pairs" if none else "no_variance"),
        pearson=noted.estimate("pearson", linear),
        reasons=noted.reasons,
        **one_class,
    )


def _without_scale(cells: Cells, linear: Estimate) -> PooledMetrics:
    noted = Noted()
    for name in (*_OF_ONE_CLASS, "balanced_accuracy", "kappa", "weighted_kappa", "mcc"):
        noted.refuse(name, "not_comparable")
    return PooledMetrics(
        n=0,
        n_labelled=int((cells.truth.status > 0).sum()),
        pearson=noted.estimate("pearson", linear),
        reasons=noted.reasons,
    )


_FLEISS = CountCoefficient("Fleiss' kappa", fleiss_chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Data shared by the metrics of all raters of a run.

    Attributes:
        cells: Truth and decisions of all raters for each combination of item and criterion.
        modes: How abstentions are counted.
        options: Interval options for correlations and bias.
        fleiss: Fleiss' kappa among the judges on each criterion; None if undefined or with only one judge.
    """

    cells: Cells
    modes: Modes
    options: IntervalOptions
    fleiss: tuple[float | None, ...]


def judges_agreement(cells: Cells, modes: Modes) -> tuple[float | None, ...]:
    """Compute Fleiss' kappa among the judges on each criterion; None if undefined or with only one judge."""
    judges = [column for (kind, _), column in cells.raters.items() if kind == "judge"]
    if len(judges) < 2:
        return (None,) * len(cells.criteria)
    plain = IntervalOptions(ci=None)
    found: list[float | None] = []
    for place, span in enumerate(cells.spans):
        if not cells.criteria[place].categories:
            found.append(None)
            continue
        size = cells.size(place, modes)
        counts = np.zeros((span.stop - span.start, size))
        for column in judges:
            codes = column.code[span]
            given = np.flatnonzero(codes >= 0)
            counts[given, codes[given]] += 1
        found.append(counts_estimate(_FLEISS, counts, np.eye(size), plain).value)
    return tuple(found)


def rater_fields(context: RunContext, rater: Rater) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all fields of a `RaterMetrics` except `bootstrap`, and the reasons for metrics that are None."""
    cells, column = context.cells, context.cells.raters[rater]
    tables = tables_of(cells, column, context.modes)
    per_criterion = _per_criterion(context, rater, tables)
    noted = Noted()
    macro, defined = _macro(per_criterion, noted)
    stats = na_stats(cells.truth, column)
    together, by_scale = pooled_figures(cells, column, tables, context.modes)
    fields = {
        **macro,
        **_true_rate_intervals(context, column),
        "defined": defined,
        "per_criterion": per_criterion,
        "pooled": together,
        "pooled_by_scale": by_scale,
        **_scores(context, rater, noted),
        "na_stats": stats,
        "coverage": sum(one.n_samples for one in per_criterion) / stats.n_cells if stats.n_cells else None,
        "abstention_rate": stats.judge_rate,
        "failure_rate": stats.failed / stats.n_cells if stats.n_cells else None,
    }
    pooled = together.reasons if together.n else {}
    reasons = {**noted.reasons, **{f"pooled.{name}": why for name, why in pooled.items()}}
    return fields, {name: str(why) for name, why in reasons.items()}


def _per_criterion(
    context: RunContext, rater: Rater, tables: Sequence[Array]
) -> NamedList[AnyCriterionMetrics]:
    cells, column = context.cells, context.cells.raters[rater]
    figures = (
        figures_on(
            OnCriterion(
                criterion=criterion,
                index=index,
                truth=cells.truth.take(span),
                rater=column.take(span),
                table=tables[index],
                modes=context.modes,
                options=context.options,
                fleiss_kappa=context.fleiss[index],
                outcomes=cells.outcomes.get(index, ()),
                positions=_positions(cells, rater, index),
            )
        )
        for index, (criterion, span) in enumerate(zip(cells.criteria, cells.spans, strict=True))
    )
    return NamedList(found for found in figures if found is not None)


def _positions(cells: Cells, rater: Rater, index: int) -> tuple[int, int]:
    samples = cells.positions[rater]
    alike = samples[samples[:, 0] == index, 2]
    return int(alike.sum()), len(alike)


def _accuracy(one: AnyCriterionMetrics) -> float | None:
    return one.accuracy if isinstance(one, CriterionMetrics) else getattr(one, "exact_accuracy", None)


def _kappa(one: AnyCriterionMetrics) -> float | None:
    if isinstance(one, OrdinalCriterionMetrics):
        return one.weighted_kappa
    return one.kappa if isinstance(one, CriterionMetrics | NominalCriterionMetrics) else None


def _macro(
    per_criterion: Sequence[AnyCriterionMetrics], noted: Noted
) -> tuple[dict[str, float | None], dict[str, tuple[int, int]]]:
    categorical = [
        one for one in per_criterion if isinstance(one, CriterionMetrics | NominalCriterionMetrics)
    ]
    binary = [one for one in per_criterion if isinstance(one, CriterionMetrics)]
    takes: dict[str, tuple[Sequence[Any], Callable[[Any], float | None]]] = {
        "criterion_accuracy": (categorical, _accuracy),
        "criterion_balanced_accuracy": (categorical, lambda one: one.balanced_accuracy),
        "criterion_precision": (binary, lambda one: one.precision),
        "criterion_recall": (binary, lambda one: one.recall),
        "criterion_sensitivity": (binary, lambda one: one.sensitivity),
        "criterion_specificity": (binary, lambda one: one.specificity),
        "criterion_f1": (binary, lambda one: one.f1),
        "mean_kappa": (categorical, _kappa),
    }
    macro: dict[str, float | None] = {}
    defined: dict[str, tuple[int, int]] = {}
    for name, (criteria, take) in takes.items():
        values = [value for one in criteria if (value := take(one)) is not None]
        macro[name] = noted.take(name, float(np.mean(values)) if values else np.nan, "no_criterion_defined")
        defined[name] = (len(values), len(criteria))
    return macro, defined


def _true_rate_intervals(context: RunContext, column: Column) -> dict[str, ConfidenceInterval | None]:
    """Compute intervals for the mean sensitivity and specificity over binary criteria, keyed by field."""
    cells = context.cells
    level = context.options.confidence_level
    binary = np.zeros(len(cells.criteria), dtype=bool)
    binary[[at for at, one in enumerate(cells.criteria) if one.level == "binary"]] = True
    criterion = np.repeat(np.arange(len(cells.spans)), [span.stop - span.start for span in cells.spans])
    pairs = (cells.truth.code >= 0) & (column.code >= 0) & binary[criterion]
    found: dict[str, ConfidenceInterval | None] = {}
    for name, positive in (("sensitivity", True), ("specificity", False)):
        mine = pairs & ((cells.truth.code == MET) == positive)
        hit = ((column.code[mine] == MET) == positive).astype(float)
        low, high, _ = mean_share_ends(cells.item[mine], criterion[mine], hit, level)
        found[f"criterion_{name}_ci"] = (
            None
            if low is None or high is None
            else ConfidenceInterval(lower=low, upper=high, confidence=level, method="logit-t over items")
        )
    return found


def _scores(context: RunContext, rater: Rater, noted: Noted) -> dict[str, Any]:
    cells = context.cells
    truth = cells.scores[TRUTH]
    judged = cells.scores.get(rater, np.full(cells.n_items, np.nan))
    both = ~np.isnan(truth + judged)
    pairs = NumberPairs(truth[both], judged[both], None, 0)
    ranked, plain = rank_pairs(pairs), IntervalOptions(ci=None)
    named = {"pearson": Noted(), "spearman": Noted(), "kendall": Noted()}
    fields = {
        "score_rmse": noted.estimate("score_rmse", rmse_estimate(pairs, plain)),
        "score_mae": noted.estimate("score_mae", mae_estimate(pairs, plain)),
        "score_pearson": linear_correlation(pairs, context.options, named["pearson"]),
        "score_spearman": rank_correlation("spearman", ranked, context.options, named["spearman"]),
        "score_kendall": rank_correlation("kendall", ranked, context.options, named["kendall"]),
        "bias": bias_of(pairs, context.options),
        "n_scores": pairs.n,
    }
    for name, one in named.items():
        noted.reasons.update({f"score_{name}": why for why in one.reasons.values()})
    return fields


def na_stats(truth: Column, rater: Column) -> NaStats:
    """Count abstentions and failures over labelled cells."""
    labelled = truth.status > 0
    left, right = truth.status[labelled], rater.status[labelled]
    n = len(left)
    voted = (right == ANSWERED) | (right == ABSTAINED)
    cells = 2 * (left[voted] == ABSTAINED) + (right[voted] == ABSTAINED)
    kappa = float(kappa_of(np.bincount(cells, minlength=4).reshape(2, 2).astype(float)))

    def count(status: int) -> int:
        return int(np.count_nonzero(right == status))

    abstained = int(np.count_nonzero(left == ABSTAINED))
    return NaStats(
        n_cells=n,
        n_answered=int(np.count_nonzero((left == ANSWERED) & (right == ANSWERED))),
        truth_abstained=abstained,
        judge_abstained=count(ABSTAINED),
        both_abstained=int(np.count_nonzero((left == ABSTAINED) & (right == ABSTAINED))),
        failed=count(FAILED),
        not_asked=count(NOT_ASKED) + count(ABSENT),
        not_applicable=count(NOT_APPLICABLE),
        undecided=count(UNDECIDED),
        truth_rate=abstained / n if n else None,
        judge_rate=count(ABSTAINED) / n if n else None,
        kappa=None if np.isnan(kappa) else kappa,
    )
