"""The parts of an audit of a run, each as blocks and JSON, or with the reason why it is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from autorubric.criteria.values import VerdictCounts
from autorubric.errors import ArgumentError
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.metrics.correction.alt_test import AltAbstain
    from autorubric.metrics.correction.score import CorrectedScore
    from autorubric.metrics.summaries.report_result import JudgeReport
    from autorubric.runs.result import EvalResult
    from autorubric.scoring.report_builder import GradingPolicy


NO_LABELS = "no item has a label; pass the labelled dataset with --dataset"
ONE_JUDGE = "fewer than two judges"


class AuditPart(StrEnum):
    """A part of an audit; its name is also its key in the JSON output."""

    REPORT = "report"
    RELIABILITY = "reliability"
    PANEL = "panel"
    BIAS = "bias"
    SELF_CONSISTENCY = "self_consistency"
    ITEM_ANALYSIS = "item_analysis"
    VARIANCE_COMPONENTS = "variance_components"
    CORRECTED_SCORE = "corrected_score"
    ALT_TEST = "alt_test"


class Told(NamedTuple):
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
        abstain: AltAbstain = "exclude",
    ) -> None:
        self._result, self._dataset, self._families, self._seed = result, dataset, families, seed
        self._abstain: AltAbstain = abstain

    @cached_property
    def _report(self) -> JudgeReport:
        from autorubric.metrics.summaries.judge_report import judge_report

        return judge_report(self._result, self._dataset, abstain=self._abstain, rng=self._seed)

    def verdicts(self) -> dict[str, VerdictCounts]:
        """Return verdict counts by judge, and for `panel` and, if there are any, `items without a report`."""
        from autorubric.scoring.reports import verdicts_by_judge

        reports = (one.report for one in self._result.item_results)
        by_judge = verdicts_by_judge(report for report in reports if report is not None)
        panel, judged = self._result.verdicts, VerdictCounts.sum(by_judge.values())
        if panel.asked > judged.asked:
            lost = panel.asked - judged.asked
            by_judge["items without a report"] = VerdictCounts(
                asked=lost, lost=lost, lost_cause=panel.lost_cause
            )
        return {"panel": panel, **by_judge}

    @property
    def has_labels(self) -> bool:
        """Whether any judged item has a label."""
        return self._report.n_cells > 0

    @property
    def _has_judges(self) -> bool:
        return len(self._report.per_judge) > 1

    def part(self, name: AuditPart) -> Told:
        """Compute and return one part of the audit."""
        makers: dict[AuditPart, Callable[[], Told]] = {
            AuditPart.REPORT: self._headline,
            AuditPart.RELIABILITY: self._reliability,
            AuditPart.PANEL: self._panel,
            AuditPart.BIAS: self._bias,
            AuditPart.SELF_CONSISTENCY: self._self_consistency,
            AuditPart.ITEM_ANALYSIS: self._item_analysis,
            AuditPart.VARIANCE_COMPONENTS: self._variance_components,
            AuditPart.CORRECTED_SCORE: self._correct_score,
            AuditPart.ALT_TEST: self._alt_test,
        }
        return makers[name]()

    def decision(self, item_id: str, threshold: float, policy: GradingPolicy) -> dict[str, Any]:
        """Return the decision on an item's score; allows for the judges' errors if labels are available."""
        from autorubric.metrics.correction.decision import decision

        dataset = self._result.dataset
        found = {dataset.item_id(one.item_idx): one for one in self._result.item_results}
        if item_id not in found:
            raise ArgumentError(f"--item {item_id!r} is not in the run. Items: {_some(list(found))}")
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

    def _headline(self) -> Told:
        if not self.has_labels:
            return Told(reason=NO_LABELS)
        return Told(self._report.headline_blocks(), _without_criteria(self._report))

    def _reliability(self) -> Told:
        found = self._report.reliability
        if not self._has_judges or not found:
            return Told(reason=ONE_JUDGE)
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
        return Told([table], {name: one.to_dict() for name, one in found.items()})

    def _panel(self) -> Told:
        from autorubric.metrics.audit.panel import panel_audit

        if not self._has_judges:
            return Told(reason=ONE_JUDGE)
        if not self.has_labels:
            return Told(reason=NO_LABELS)
        found = panel_audit(self._result, self._dataset, rng=self._seed)
        return Told(found.blocks(), found.to_dict())

    def _bias(self) -> Told:
        from autorubric.metrics.audit.bias import bias_report

        found = bias_report(self._result, self._dataset, families=self._families, rng=self._seed)
        return Told(found.blocks(), found.to_dict())

    def _self_consistency(self) -> Told:
        from autorubric.metrics.audit.consistency import self_consistency

        found = self_consistency(self._result, self._dataset, rng=self._seed)
        if not found.n_units:
            return Told(reason="no judge answered a question twice, in several samples or in both orders")
        return Told(found.blocks(), found.to_dict())

    def _item_analysis(self) -> Told:
        from autorubric.metrics.audit.item_analysis import item_analysis

        found = item_analysis(self._result, self._dataset, rng=self._seed)
        if not found.n_items:
            return Told(reason="none of the panel's answers has a numeric value in [0, 1]")
        return Told(found.blocks(), found.to_dict())

    def _variance_components(self) -> Told:
        from autorubric.metrics.audit.variance import variance_components

        found = variance_components(self._result, self._dataset, rng=self._seed)
        studies = [found.score, *found.per_criterion.values()]
        if all(one.phi.value is None for one in studies):
            return Told(reason=f"variance components are undefined ({found.score.phi.reason})")
        return Told(found.blocks(), found.to_dict())

    def _correct_score(self) -> Told:
        from autorubric.metrics.correction.score import corrected_score

        if not self.has_labels:
            return Told(reason=NO_LABELS)
        try:
            found = corrected_score(self._result, self._dataset, rng=self._seed)
        except ArgumentError as error:
            return Told(reason=str(error))
        if found.n_labelled >= found.n_items:
            return Told(reason="every judged item has labels; no correction is needed")
        return Told(_correction_blocks(found), found.to_dict())

    def _alt_test(self) -> Told:
        from autorubric.metrics.audit.alt_tests import run_alt_tests

        found = run_alt_tests(self._result, self._dataset, abstain=self._abstain, rng=self._seed)
        if not found.per_criterion:
            return Told(reason="no item was labelled by two annotators")
        return Told(found.blocks(), found.to_dict())


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _without_criteria(report: JudgeReport) -> dict[str, Any]:
    """Return the report without its details on individual criteria and annotators."""
    found = report.to_dict()
    for one in (found["panel"], *found["per_judge"].values()):
        del one["per_criterion"]
    del found["reliability"]
    if found["human_ceiling"] is not None:
        del found["human_ceiling"]["per_criterion"], found["human_ceiling"]["per_human"]
    return found


def _correction_blocks(found: CorrectedScore) -> list[Block]:
    shown = {"corrected": found.score, "as judged": found.raw, "labelled items only": found.labelled_only}
    rows: list[tuple[Cell, ...]] = [
        (name, one.value, one.low, one.high, one.n, one.reason or "") for name, one in shown.items()
    ]
    rows += [
        (f"{name}, corrected (as judged {one.raw:.3f})", one.value.value, one.value.low, one.value.high,
         one.n_calibration, one.reason or "")
        for name, one in found.per_criterion.items()
    ]  # fmt: skip
    if found.score.value is None:
        opening = f"The mean score cannot be corrected for the judges' errors ({found.score.reason})."
    else:
        opening = (
            f"The mean score is {found.raw:.3f} as judged, and {found.score:.3f} after correcting for the "
            f"judges' errors, estimated from {found.n_labelled} labelled items (of {found.n_items})."
        )
    columns = ("figure", "estimate", "low", "high", "n", "reason")
    return [TextBlock(text=opening), TableBlock(title="Corrected score", columns=columns, rows=tuple(rows))]
