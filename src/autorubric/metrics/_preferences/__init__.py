"""Preference metrics: agreement of two scores on the order of items, and strengths from pairwise wins."""

from autorubric.metrics._preferences._bradley_terry import BradleyTerryResult, EloResult, bradley_terry, elo
from autorubric.metrics._preferences._pair_figures import pairwise_accuracy, position_consistency
from autorubric.metrics._preferences._soft_pairwise import soft_pairwise_accuracy
from autorubric.metrics._preferences._tie_calibration import (
    TieCalibratedAccuracy,
    tie_calibrated_pairwise_accuracy,
)

__all__ = [
    "BradleyTerryResult",
    "EloResult",
    "TieCalibratedAccuracy",
    "bradley_terry",
    "elo",
    "pairwise_accuracy",
    "position_consistency",
    "soft_pairwise_accuracy",
    "tie_calibrated_pairwise_accuracy",
]
