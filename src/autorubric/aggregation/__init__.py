"""Aggregation: votes to decisions, by measurement level. All pure."""

from autorubric.aggregation._ballots import Ballot, OnFailure
from autorubric.aggregation._decide import (
    AggregationPolicy,
    BinaryAggregation,
    NominalAggregation,
    OrdinalAggregation,
    decide,
    decide_by_judge,
    decide_panel,
)
from autorubric.aggregation._methods import AGGREGATORS

__all__ = [
    "AGGREGATORS",
    "AggregationPolicy",
    "Ballot",
    "BinaryAggregation",
    "NominalAggregation",
    "OnFailure",
    "OrdinalAggregation",
    "decide",
    "decide_by_judge",
    "decide_panel",
]
