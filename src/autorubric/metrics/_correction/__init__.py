"""Inference about the truth from a judge's verdicts: corrections, tests against people and decisions."""

from __future__ import annotations

from autorubric.metrics._correction._alt_test import AltTestResult, AnnotatorTest, alt_test
from autorubric.metrics._correction._decision import DecisionResult, decision
from autorubric.metrics._correction._human_ceiling import HumanCeiling, human_ceiling
from autorubric.metrics._correction._rate import CorrectedRate, corrected_rate
from autorubric.metrics._correction._score import corrected_score
from autorubric.metrics._correction._score_results import CorrectedCriterion, CorrectedScore

__all__ = [
    "AltTestResult",
    "AnnotatorTest",
    "CorrectedCriterion",
    "CorrectedRate",
    "CorrectedScore",
    "DecisionResult",
    "HumanCeiling",
    "alt_test",
    "corrected_rate",
    "corrected_score",
    "decision",
    "human_ceiling",
]
