"""Aggregation: votes to decisions, by measurement level. All pure."""

from autorubric.aggregation._ballots import Ballot, OnFailure
from autorubric.aggregation._bradley_terry import Contest, TieModel, fit_strengths
from autorubric.aggregation._decide import (
    AggregationPolicy,
    BinaryAggregation,
    NominalAggregation,
    OrdinalAggregation,
    RankingAggregation,
    ballot_of,
    decide,
    decide_by_judge,
    decide_panel,
)
from autorubric.aggregation._methods import AGGREGATORS
from autorubric.aggregation._settled import counts_weights, is_settled, votes_wanted

__all__ = [
    "AGGREGATORS",
    "AggregationPolicy",
    "Ballot",
    "BinaryAggregation",
    "Contest",
    "NominalAggregation",
    "OnFailure",
    "OrdinalAggregation",
    "RankingAggregation",
    "TieModel",
    "ballot_of",
    "counts_weights",
    "decide",
    "decide_by_judge",
    "decide_panel",
    "fit_strengths",
    "is_settled",
    "votes_wanted",
]
