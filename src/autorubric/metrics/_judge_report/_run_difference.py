"""Differences in scores between two runs on the same items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias, Unpack

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock, p_cell
from autorubric.errors import ArgumentError
from autorubric.metrics._audit._findings import Findings
from autorubric.metrics._bias import BiasResult, bias
from autorubric.metrics._judge_comparison._stats import adjust_pvalues
from autorubric.metrics._options import ResamplingArguments
from autorubric.metrics._run_protocols import CountedRun, LabelledDataset, OwnedRun
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Json, VerdictCounts

_Values: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Paired comparison of an item-level metric between two runs.

    Attributes:
        name: Name of the metric, such as `score` or `share right`, or of a criterion.
        baseline: Mean in the baseline over items with a value in both runs; None if no item has both.
        run: Mean in the other run over the same items; None if no item has both values.
        difference: Mean of run minus baseline, with a paired t interval and tests that use items as units.
        adjusted_p: P-value of the sign-flip test, Holm-adjusted for the number of criteria; None if the
            p-value is undefined or the metric does not belong to a criterion.
    """

    name: str
    baseline: float | None
    run: float | None
    difference: BiasResult
    adjusted_p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference(Findings):
    """Comparison of two runs on the same items.

    Attributes:
        n_items: Number of items that are in both runs, matched by id.
        n_only_baseline: Number of items that are only in the baseline.
        n_only_run: Number of items that are only in the other run.
        score: Comparison of item scores, including scores with assumed answers.
        score_answered: Comparison of item scores, excluding items with an assumed answer in either run; None
            if there are no assumed answers.
        right: Comparison of each item's proportion of correct decisions, over the labelled criteria that both
            runs decided; None if there are none.
        criteria: Comparison, per criterion, of the values in [0, 1] that it contributes to the score. Pairs
            with an answer that was assumed because no reply was readable are excluded.
        baseline_verdicts: Verdict counts of the baseline.
        run_verdicts: Verdict counts of the other run.
    """

    n_items: int
    n_only_baseline: int
    n_only_run: int
    score: PairedDifference
    score_answered: PairedDifference | None
    right: PairedDifference | None
    criteria: tuple[PairedDifference, ...]
    baseline_verdicts: VerdictCounts
    run_verdicts: VerdictCounts

    @property
    def regressed(self) -> bool | None:
        """Whether scores fell, that is, whether the whole interval of the mean difference is below 0.

        If all items changed by the same amount, there is no interval, and the sign of the change decides. The
        value is None if fewer than two items have a score in both runs.
        """
        found = self.score.difference
        if found.ci is not None:
            return found.ci.upper < 0
        return None if found.mean_bias is None or found.n_samples < 2 else found.mean_bias < 0

    def blocks(self) -> list[Block]:
        """Return the differences as content blocks for the text, HTML and LaTeX renderers."""
        items: tuple[tuple[str, Cell], ...] = (
            ("items in both runs", self.n_items),
            ("items only in the baseline", self.n_only_baseline),
            ("items only in the run", self.n_only_run),
            ("verdicts of the baseline", str(self.baseline_verdicts)),
            ("verdicts of the run", str(self.run_verdicts)),
        )
        whole = [one for one in (self.score, self.score_answered, self.right) if one is not None]
        columns = ("figure", "baseline", "run", "run - baseline", "interval", "p", "p (holm)", "n")
        return [
            ScalarBlock(title="Run against baseline", figures=items),
            TableBlock(title="Items", columns=columns, rows=tuple(map(_row, whole))),
            TableBlock(title="Criteria", columns=columns, rows=tuple(map(_row, self.criteria))),
        ]


def run_difference(
    baseline: CountedRun,
    run: CountedRun,
    dataset: LabelledDataset | None = None,
    **resampling: Unpack[ResamplingArguments],
) -> RunDifference:
    """Compare a run's scores with a baseline run's scores, item by item.

    Items are matched by id. Their submissions can differ, for example if two systems generated them.

    Args:
        baseline: Reference run.
        run: Run to compare with the baseline.
        dataset: Dataset with labels, matched by item id; None uses the dataset of `run`.
        **resampling: `confidence_level` of the intervals, and `n_resamples` and `rng` of the sign-flip test.

    Raises:
        ArgumentError: If the runs have no items in common.
    """
    before, after = _by_id(baseline), _by_id(run)
    both = [item for item in before if item in after]
    if not both:
        raise ArgumentError(
            "the runs have no items in common; items are matched by id, so set item ids or compare runs on "
            "the same dataset"
        )
    pairs = [(before[item], after[item]) for item in both]
    score = _paired("score", [(_score(a), _score(b)) for a, b in pairs], resampling)
    answered = [(a, b) for a, b in pairs if not _assumes(a) and not _assumes(b)]
    values = [(_values(a), _values(b)) for a, b in pairs]
    names = dict.fromkeys(name for a, b in values for name in a if name in b)
    criteria = [_paired(name, [(a.get(name), b.get(name)) for a, b in values], resampling) for name in names]
    adjusted = adjust_pvalues([one.difference.permutation_p for one in criteria])
    truths = _truths(run.dataset if dataset is None else dataset)
    right = [_shares_right(a, b, truths.get(item, {})) for item, (a, b) in zip(both, pairs, strict=True)]
    labelled = any(a is not None for a, _ in right)
    return RunDifference(
        n_items=len(both),
        n_only_baseline=len(before) - len(both),
        n_only_run=len(after) - len(both),
        score=score,
        score_answered=None
        if len(answered) == len(pairs)
        else _paired(
            "score without assumed answers", [(_score(a), _score(b)) for a, b in answered], resampling
        ),
        right=_paired("share right", right, resampling) if labelled else None,
        criteria=tuple(replace(one, adjusted_p=p) for one, p in zip(criteria, adjusted, strict=True)),
        baseline_verdicts=baseline.verdicts,
        run_verdicts=run.verdicts,
    )


def _paired(
    name: str, pairs: list[tuple[float | None, float | None]], resampling: ResamplingArguments
) -> PairedDifference:
    complete = [(a, b) for a, b in pairs if a is not None and b is not None]
    return PairedDifference(
        name=name,
        baseline=fmean(a for a, _ in complete) if complete else None,
        run=fmean(b for _, b in complete) if complete else None,
        difference=bias([a for a, _ in pairs], [b for _, b in pairs], **resampling),
    )


def _by_id(run: OwnedRun) -> dict[str, EnsembleEvaluationReport | None]:
    return {run.dataset.item_id(item.item_idx): item.report for item in run.item_results}


def _score(report: EnsembleEvaluationReport | None) -> float | None:
    return None if report is None else report.score


def _assumes(report: EnsembleEvaluationReport | None) -> bool:
    return report is not None and bool(report.assumed)


def _values(report: EnsembleEvaluationReport | None) -> _Values:
    """Return each criterion's contribution to the score; None if unreadable replies decided it."""
    if report is None:
        return {}
    return {
        one.name: None if one.decision.assumed or one.decision.swayed else one.score_value
        for one in report.report
    }


def _truths(dataset: LabelledDataset) -> dict[str, Mapping[str, Json]]:
    return {dataset.item_id(at): dataset.item_truth(at) or {} for at in range(len(dataset.items))}


def _shares_right(
    a: EnsembleEvaluationReport | None, b: EnsembleEvaluationReport | None, truth: Mapping[str, Json]
) -> tuple[float | None, float | None]:
    """Return each run's proportion of correct answers to the labelled criteria that both runs decided."""
    if a is None or b is None:
        return None, None
    others = {one.name: one for one in b.report}
    hits: list[tuple[bool, bool]] = []
    for one in a.report:
        other, label = others.get(one.name), truth.get(one.name)
        if other is None or label is None or not one.status == other.status == "answered":
            continue
        wanted = one.criterion.parse_truth(label)
        if wanted is None or wanted.abstains or one.decision.assumed or other.decision.assumed:
            continue
        hits.append((one.final_answer == wanted.code, other.final_answer == wanted.code))
    if not hits:
        return None, None
    return fmean(own for own, _ in hits), fmean(new for _, new in hits)


def _row(found: PairedDifference) -> tuple[Cell, ...]:
    difference = found.difference
    ends = "" if difference.ci is None else f"[{difference.ci.lower:.3f}, {difference.ci.upper:.3f}]"
    return (
        found.name,
        found.baseline,
        found.run,
        difference.mean_bias,
        ends or (difference.reason or ""),
        p_cell(difference.permutation_p),
        p_cell(found.adjusted_p),
        difference.n_samples,
    )
