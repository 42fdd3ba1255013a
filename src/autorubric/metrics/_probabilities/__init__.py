"""Metrics for probabilities and confidences: accuracy, calibration, ranking and abstention."""

from __future__ import annotations

from autorubric.metrics._probabilities._auroc import auroc
from autorubric.metrics._probabilities._brier_parts import BrierParts, brier, brier_parts, log_loss
from autorubric.metrics._probabilities._calibration import (
    ReliabilityBin,
    ReliabilityCurve,
    ece,
    reliability_curve,
)
from autorubric.metrics._probabilities._coverage import CoverageCurve, CoveragePoint, accuracy_at_coverage

__all__ = [
    "BrierParts",
    "CoverageCurve",
    "CoveragePoint",
    "ReliabilityBin",
    "ReliabilityCurve",
    "accuracy_at_coverage",
    "auroc",
    "brier",
    "brier_parts",
    "ece",
    "log_loss",
    "reliability_curve",
]
