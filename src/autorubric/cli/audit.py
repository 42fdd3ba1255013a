"""The parts of an audit of a run, each as blocks and JSON, or with the reason why it is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from autorubric.criteria.values import VerdictCounts
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.bias import bias_report
from autorubric.metrics.audit.consistency import self_consistency
from autorubric.metrics.audit.item_analysis import item_analysis
from autorubric.metrics.audit.panel import panel_audit
from autorubric.metrics.audit.variance import VarianceComponents, variance_components
from autorubric.metrics.correction.alt_test import AltAbstain, run_alt_tests
from autorubric.metrics.correction.decision import decision
from autorubric.metrics.correction.score import corrected_score
from autorubric.metrics.summaries.judge_report import judge_report
from autorubric.metrics.summaries.report_result import JudgeReport
from autorubric.runs.result import EvalResult
from autorubric.scoring.report_builder import GradingPolicy
from autorubric.scoring.reports import verdicts_by_judge
from autorubric.support.blocks import Block, Cell, TableBlock
from autorubric.support.reading_errors import list_first

NO_LABELS: Final = "no item has a label; pass the labelled dataset with --dataset"
ONE_JUDGE: Final = "fewer than two judges"
_OF_LABELS: Final = ("report", "panel", "corrected_score")
_OF_SEVERAL_JUDGES: Final = ("reliability", "panel")


class PartResult(NamedTuple):
    """A part's content as blocks and as a JSON object, or the reason why it is missing."""

    blocks: Sequence[Block] = ()
    content: Any = None
    reason: str | None = None


class Audit:
    """An audit of a run."""

    def __init__(
        self,
        result: EvalResult,
        dataset: RubricDataset | None,
        families: Mapping[str, str],
        seed: int,
        abstain: AltAbstain,
    ) -> None:
        self._result, self._dataset, self._families, self._seed = result, dataset, families, seed
        self._abstain: AltAbstain = abstain

    @cached_property
    def _judges(self) -> JudgeReport:
        return judge_report(self._result, self._dataset, abstain=self._abstain, rng=self._seed)

    def verdicts(self) -> dict[str, VerdictCounts]:
        """Return verdict counts by judge, and for `panel` and, if there are any, `items without a report`."""
        reports = [one.report for one in self._result.item_results if one.report is not None]
        by_judge, panel = verdicts_by_judge(reports), self._result.verdicts
        for judge, n in self._result.item_results.not_judged.items():
            by_judge[judge] = by_judge.get(judge, VerdictCounts()) + VerdictCounts(not_judged=n)
        if lost := panel.asked - VerdictCounts.sum(one.verdicts for one in reports).asked:
            by_judge["items without a report"] = VerdictCounts.all_lost(lost, panel.lost_cause)
        return {"panel": panel, **by_judge}

    @property
    def n_items(self) -> int:
        """Number of items with a result."""
        return len(self._result.item_results)

    @property
    def has_labels(self) -> bool:
        """Whether any judged item has a label."""
        return self._judges.n_cells > 0

    def decision(self, item_id: str, threshold: float, policy: GradingPolicy) -> dict[str, Any]:
        """Return the decision on an item's score; allows for the judges' errors if labels are available."""
        dataset = self._result.dataset
        found = {dataset.item_id(one.item_idx): one for one in self._result.item_results}
        if item_id not in found:
            raise ArgumentError(f"--item {item_id!r} is not in the run. Items: {list_first(list(found), 5)}")
        one = found[item_id]
        if one.report is None:
            raise ArgumentError(f"--item {item_id!r} has no report: {one.error}")
        made = decision(
            one.report,
            threshold=threshold,
            judge_error=self._result if self.has_labels and policy.normalize else None,
            dataset=self._dataset,
            rubric=dataset.get_item_rubric(one.item_idx),
            aggregation=policy.aggregation,
            cannot_assess=policy.cannot_assess,
            normalize=policy.normalize,
            rng=self._seed,
        )
        return made.to_dict()

    def part(self, name: str) -> PartResult:
        """Compute and return one part of the audit."""
        has_judges = len(self._judges.per_judge) > 1
        if name in _OF_SEVERAL_JUDGES and not has_judges:
            return PartResult(reason=ONE_JUDGE)
        if name in _OF_LABELS and not self.has_labels:
            return PartResult(reason=NO_LABELS)
        part: PartResult = getattr(self, f"_{name}")()
        return part

    def _measure(
        self, function: Callable[..., Any], why_missing: Callable[[Any], str | None], **options: Any
    ) -> PartResult:
        found = function(self._result, self._dataset, rng=self._seed, **options)
        reason = why_missing(found)
        return PartResult(found.blocks(), found.to_dict()) if reason is None else PartResult(reason=reason)

    def _report(self) -> PartResult:
        return PartResult(self._judges.headline_blocks(), _without_criteria(self._judges))

    def _reliability(self) -> PartResult:
        found = self._judges.reliability
        if not found:
            return PartResult(reason=ONE_JUDGE)
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                one.level,
                one.n_pairable,
                one.percent_agreement.value,
                one.alpha.value,
                one.alpha.low,
                one.alpha.high,
                one.alpha.reason or "",
            )
            for name, one in found.items()
        ]
        columns = ("criterion", "level", "items", "agreement", "alpha", "low", "high", "reason")
        table = TableBlock(title="Agreement among judges", columns=columns, rows=tuple(rows))
        return PartResult([table], {name: one.to_dict() for name, one in found.items()})

    def _panel(self) -> PartResult:
        return self._measure(panel_audit, lambda found: None)

    def _bias(self) -> PartResult:
        return self._measure(bias_report, lambda found: None, families=self._families)

    def _self_consistency(self) -> PartResult:
        reason = "no judge answered a question twice, in several samples or in both orders"
        return self._measure(self_consistency, lambda found: None if found.n_units else reason)

    def _item_analysis(self) -> PartResult:
        reason = "none of the panel's answers has a numeric value in [0, 1]"
        return self._measure(item_analysis, lambda found: None if found.n_items else reason)

    def _variance_components(self) -> PartResult:
        return self._measure(variance_components, _why_no_components)

    def _alt_test(self) -> PartResult:
        reason = "no item was labelled by two annotators"
        return self._measure(
            run_alt_tests, lambda found: None if found.per_criterion else reason, abstain=self._abstain
        )

    def _corrected_score(self) -> PartResult:
        try:
            found = corrected_score(self._result, self._dataset, rng=self._seed)
        except ArgumentError as error:
            return PartResult(reason=str(error))
        if found.n_labelled >= found.n_items:
            return PartResult(reason="every judged item has labels; no correction is needed")
        return PartResult(found.blocks(), found.to_dict())


def _why_no_components(found: VarianceComponents) -> str | None:
    studies = [found.score, *found.per_criterion.values()]
    if any(one.phi.value is not None for one in studies):
        return None
    return f"variance components are undefined ({found.score.phi.reason})"


def _without_criteria(report: JudgeReport) -> dict[str, Any]:
    """Return the report without its details on individual criteria and annotators."""
    found = report.to_dict()
    for one in (found["panel"], *found["per_judge"].values()):
        del one["per_criterion"]
    del found["reliability"]
    if found["human_ceiling"] is not None:
        for name in ("per_criterion", "per_human", "in_place_per_criterion"):
            del found["human_ceiling"][name]
    return found
