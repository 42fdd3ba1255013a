"""Losses of probabilistic forecasts: Brier score and logarithmic loss."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._probabilities._forecasts import Forecasts, read_forecasts
from autorubric.metrics._probabilities._observations import (
    Observations,
    logit_ends,
    mean_of,
    t_ends,
    weighted_figure,
)
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Scale


def brier(
    truth: Iterable[Any], prob: Any, *, scale: Scale | None = None, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute the Brier score, the mean squared difference between forecast and outcome [1].

    0 is perfect. For P(positive), shape `(n,)`, it is `Σ (p - y)² / n`, in [0, 1]; always forecasting 1/2
    scores 0.25. For classes, shape `(n, K)`, it is `Σ Σ_k (p_k - y_k)² / n`, in [0, 2], the sum of [1]; with
    two classes this is halved, so that both forms of a binary forecast score the same. `brier_parts`
    decomposes it. The score is undefined (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes. With one column, 0/1 or any value that `Binary()` reads; with K columns, codes
            0..K-1, with -1 for missing. None and NaN are missing.
        prob: Probabilities, shape `(n,)` or `(n, K)`, with rows that sum to 1 ± 0.001; a missing number drops
            its row.
        scale: Categories in the order of the columns, the positive one last; required if `truth` has labels.
        **interval: See `IntervalArguments`. `auto` is a t interval on the logit scale, with C - 1 degrees of
            freedom for C clusters.

    References:
        [1] G. W. Brier (1950), Verification of forecasts expressed in terms of probability, Monthly Weather
            Review 78(1), 1-3.
    """
    options = IntervalOptions(**interval)
    return brier_of(read_forecasts(truth, prob, scale, options), options)


def brier_of(given: Forecasts, options: IntervalOptions) -> Estimate:
    """Compute `brier` for forecasts that have already been read."""
    losses, high = _squared_losses(given)
    seen = Observations(given.n, given.cluster, given.n_missing)
    figure = weighted_figure(
        f"Brier score, {_form(given)}",
        mean_of(losses),
        logit_ends(seen, lambda: (losses - losses.mean()) / seen.n, high),
        high=high,
    )
    return seen.estimate(figure, options)


def _form(given: Forecasts) -> str:
    if given.prob.ndim == 1:
        return "positive class"
    if given.n_classes == 2:
        return "2 classes, half of their sum"
    return f"sum over {given.n_classes} classes"


def _squared_losses(given: Forecasts) -> tuple[Array, float]:
    """Return the squared error of each forecast, shape `(n,)`, and its maximum possible value."""
    if given.prob.ndim == 1:
        return (given.prob - given.truth) ** 2, 1.0
    happened = np.eye(given.n_classes)[given.truth]
    losses = ((given.prob - happened) ** 2).sum(axis=1)
    return (losses / 2, 1.0) if given.n_classes == 2 else (losses, 2.0)


def log_loss(
    truth: Iterable[Any],
    prob: Any,
    *,
    clip: float | None = None,
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> Estimate:
    """Compute the logarithmic loss, the mean of `-ln P(outcome)` in nats [1].

    0 is perfect, and a coin flip scores ln 2. An outcome that was forecast with probability 0 has infinite
    loss, so the result is undefined (`infinite_loss`) unless `clip` bounds the probabilities. The result then
    depends on `clip`: one such error in n observations adds `-ln(clip) / n`. The loss is also undefined
    (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes; see `brier`.
        prob: Probabilities; see `brier`.
        clip: Probabilities are first clipped to [clip, 1 - clip]; None leaves them unchanged. scikit-learn
            clips at 2.2e-16.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` is a t interval, with C - 1 degrees of freedom if there
            are clusters.

    References:
        [1] I. J. Good (1952), Rational decisions, Journal of the Royal Statistical Society B 14(1), 107-114.
    """
    if clip is not None and not 0.0 < clip < 0.5:
        raise ArgumentError(f"clip must be between 0 and 0.5, or None; got {clip!r}")
    options = IntervalOptions(**interval)
    given = read_forecasts(truth, prob, scale, options)
    chances = _of_what_happened(given)
    if clip is not None:
        chances = np.clip(chances, clip, 1 - clip)
    name = "log loss in nats" + (
        "" if clip is None else f", probabilities clipped to [{clip:g}, 1 - {clip:g}]"
    )
    if np.any(chances <= 0.0):
        return Estimate.undefined("infinite_loss", n=given.n, method=name, n_missing=given.n_missing)
    # Adding 0 turns -0.0 into 0.0.
    losses = -np.log(chances) + 0.0
    seen = Observations(given.n, given.cluster, given.n_missing)
    ends = t_ends(seen, lambda: (losses - losses.mean()) / seen.n, (0.0, math.inf))
    return seen.estimate(weighted_figure(name, mean_of(losses), ends, high=math.inf), options)


def _of_what_happened(given: Forecasts) -> Array:
    if given.prob.ndim == 1:
        return np.where(given.truth == 1, given.prob, 1 - given.prob)
    return np.asarray(given.prob[np.arange(given.n), given.truth])
