"""Intervals of proportions, and percentile intervals over resamples of test and labelled items."""

from __future__ import annotations

import math

import numpy as np

from autorubric.metrics._correction._arguments import MOST_UNDEFINED, CorrectionOptions
from autorubric.metrics._correction._strata import Strata
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._intervals import Ends, logit_t_ends, mean_ends, normal_quantile, wilson_ends
from autorubric.metrics._resampling import Array, Compute
from autorubric.metrics._scales import Codes


def share_estimate(
    name: str, hits: Array, cluster: Codes | None, level: float, absent: Reason = "no_values"
) -> Estimate:
    """Estimate the proportion of ones with Wilson's interval, or with a logit-t interval over clusters.

    Without values, the estimate is undefined with the reason `absent`.
    """
    n = len(hits)
    if not n:
        return Estimate.undefined(absent, method=name)
    share = float(hits.mean())
    if cluster is None:
        low, high = wilson_ends(share, n, normal_quantile(level))
        return Estimate(
            share, low, high, math.sqrt(share * (1 - share) / n), n, f"{name}; Wilson, {level:.0%}"
        )
    members = np.unique(cluster, return_inverse=True)[1].reshape(-1)
    n_clusters = int(members.max()) + 1
    se = mean_ends(hits, members, level).se
    method = f"{name}; logit-t interval, {level:.0%}, {n_clusters} clusters"
    if se is None:
        return Estimate(share, n=n, method=method, reason="too_few_units")
    return Estimate(share, *logit_t_ends(share, se, n_clusters, level), se, n, method)


def percentile_ends(units: Strata, compute: Compute, options: CorrectionOptions) -> tuple[Ends, int]:
    """Return the percentile interval over resamples of both samples, and the count of undefined resamples."""
    nothing = Ends(None, None, None)
    if units.n_labelled < 2 or units.n_tested < 2:
        return nothing, 0
    drawn = np.concatenate([compute(s) for s in units.draws(options.n_resamples, options.generator())])
    defined = drawn[~np.isnan(drawn)]
    undefined = len(drawn) - len(defined)
    if undefined > MOST_UNDEFINED * len(drawn):
        return nothing, undefined
    tail = (1 - options.confidence_level) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return Ends(float(low), float(high), float(defined.std(ddof=1)) if len(defined) > 1 else None), undefined
