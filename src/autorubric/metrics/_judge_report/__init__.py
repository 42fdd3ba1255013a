"""Public reports on the agreement of two raters, the reliability of several raters, and a run's judges."""

from __future__ import annotations

from autorubric.metrics._judge_report._agreement import agreement
from autorubric.metrics._judge_report._agreement_result import Abstentions, Agreement, OptionAgreement
from autorubric.metrics._judge_report._human_agreement import HumanAgreement, human_agreement
from autorubric.metrics._judge_report._judge_report import judge_report
from autorubric.metrics._judge_report._panel_and_best import PanelAndBest
from autorubric.metrics._judge_report._rater_report import (
    ComparisonFigures,
    HeadlineFigures,
    HumanCeilings,
    MacroFigures,
    RaterFailures,
    RaterReport,
)
from autorubric.metrics._judge_report._reliability import RaterShares, Reliability, reliability
from autorubric.metrics._judge_report._report_result import JudgeReport
from autorubric.metrics._judge_report._run_comparison import JudgePair, RunComparison, compare_run
from autorubric.metrics._judge_report._run_difference import PairedDifference, RunDifference, run_difference

__all__ = [
    "Abstentions",
    "Agreement",
    "ComparisonFigures",
    "HeadlineFigures",
    "HumanAgreement",
    "HumanCeilings",
    "JudgePair",
    "JudgeReport",
    "MacroFigures",
    "OptionAgreement",
    "PairedDifference",
    "PanelAndBest",
    "RaterFailures",
    "RaterReport",
    "RaterShares",
    "Reliability",
    "RunComparison",
    "RunDifference",
    "agreement",
    "compare_run",
    "human_agreement",
    "judge_report",
    "reliability",
    "run_difference",
]
