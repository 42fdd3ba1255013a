"""Pure functions that aggregate votes into decisions, by measurement level."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.aggregation._ballots import Ballot
    from autorubric.aggregation._bradley_terry import Contest, TieModel, fit_strengths
    from autorubric.aggregation._decide import (
        ballot_of,
        decide,
        decide_by_judge,
        decide_panel,
    )
    from autorubric.aggregation._methods import AGGREGATORS
    from autorubric.aggregation._policy import (
        AggregationPolicy,
        BinaryAggregation,
        NominalAggregation,
        OnFailure,
        OrdinalAggregation,
        RankingAggregation,
    )
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

# A policy is read with every run that is opened; votes are counted in few of them.
_HOMES = {
    "AGGREGATORS": "_methods",
    "AggregationPolicy": "_policy",
    "Ballot": "_ballots",
    "BinaryAggregation": "_policy",
    "Contest": "_bradley_terry",
    "NominalAggregation": "_policy",
    "OnFailure": "_policy",
    "OrdinalAggregation": "_policy",
    "RankingAggregation": "_policy",
    "TieModel": "_bradley_terry",
    "ballot_of": "_decide",
    "counts_weights": "_settled",
    "decide": "_decide",
    "decide_by_judge": "_decide",
    "decide_panel": "_decide",
    "fit_strengths": "_bradley_terry",
    "is_settled": "_settled",
    "votes_wanted": "_settled",
}

__getattr__ = loading(__name__, _HOMES)
