"""Pure functions that aggregate votes into decisions, by measurement level."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.aggregation._ballots import Ballot
    from autorubric.aggregation._bradley_terry import Contest, TieModel, fit_strengths
    from autorubric.aggregation._decide import ballot_of, decide, decide_by_judge, decide_panel
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
    "AGGREGATORS", "AggregationPolicy", "Ballot", "BinaryAggregation", "Contest",
    "NominalAggregation", "OnFailure", "OrdinalAggregation", "RankingAggregation", "TieModel",
    "ballot_of", "counts_weights", "decide", "decide_by_judge", "decide_panel", "fit_strengths",
    "is_settled", "votes_wanted",
]  # fmt: skip

# A policy is read whenever a run is opened, but votes are counted in few of these cases.
_HOMES = {
    "_methods": ("AGGREGATORS",),
    "_policy": (
        "AggregationPolicy", "BinaryAggregation", "NominalAggregation", "OnFailure",
        "OrdinalAggregation", "RankingAggregation",
    ),
    "_ballots": ("Ballot",),
    "_bradley_terry": ("Contest", "TieModel", "fit_strengths"),
    "_decide": ("ballot_of", "decide", "decide_by_judge", "decide_panel"),
    "_settled": ("counts_weights", "is_settled", "votes_wanted"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
