"""Soft pairwise accuracy: whether a judge is as sure as people about which of two systems is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._rater_tables import dense, number_rows
from autorubric.metrics._resampling import Array

_EXACT_SEGMENTS = 13
_LEAST = 10_000
_CELLS = 4_000_000


def soft_pairwise_accuracy(
    gold: Any, pred: Any, *, n_permutations: int = _LEAST, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compare the p-values of all pairs of systems [1]: 1 - mean |p_gold(i>j) - p_pred(i>j)|.

    p(i>j), for i before j, is the one-sided p-value of a paired permutation test that system i scores higher
    on average: among the ways to swap the two systems' scores within segments, the proportion that gives a
    difference at least as large as the observed one. With S ≤ 13 segments (or clusters), all 2^S ways are
    enumerated; otherwise, m = `n_permutations` ways are drawn at random and the observed one is added: (k +
    1) / (m + 1), where k of the m differences are as large. All pairs, and both `gold` and `pred`, use the
    same permutations.

    If some swaps give exactly the observed difference, p(i>j) + p(j>i) exceeds 1, and the order of the
    systems can change the result by this excess.

    There is no interval (`no_interval`), because the p-values already account for the noise of the segments.
    Resampling segments would count that noise twice: p-values would move towards 0 and 1, and the resampled
    values would centre on a different value. The metric is undefined with one system (`too_few_units`) or no
    segment (`no_pairs`). Segments with a missing score are dropped and counted in `n_missing`.

    Args:
        gold: Reference scores, shape `(n_systems, n_segments)`; None and NaN count as missing.
        pred: Scores to evaluate, in the same shape.
        n_permutations: Number of random permutations, at least 10,000.
        **interval: See `IntervalArguments`. `cluster` has one id per segment; segments in the same cluster
            are swapped together. `rng` seeds the permutations. `ci` must be `"auto"` or None;
            `confidence_level` and `n_resamples` have no effect.

    Returns:
        The estimate, in which `n` is the number of systems.

    Raises:
        ArgumentError: If the shapes differ or are not two-dimensional, the numbers of cluster ids and
            segments differ, there are too few permutations, or a specific interval method is requested.

    References:
        [1] B. Thompson, N. Mathur, D. Deutsch, H. Khayrallah (2024), Improving statistical significance in
            human evaluation of automatic metrics via soft pairwise accuracy, WMT, 1222-1234.
    """
    if isinstance(n_permutations, bool) or n_permutations < _LEAST:
        raise ArgumentError(f"n_permutations must be at least {_LEAST}; got {n_permutations!r}")
    options = IntervalOptions(**interval)
    if options.ci not in ("auto", None):
        raise ArgumentError(f"soft pairwise accuracy has no interval; pass ci=None; got {options.ci!r}")
    sides, n_missing = _read(gold, pred, options)
    n_systems, n_units = sides[0].shape
    exact = n_units <= _EXACT_SEGMENTS
    ways = f"all {2**n_units}" if exact else f"{n_permutations} random"
    what = "segments" if options.cluster is None else "clusters of segments"
    method = f"soft pairwise accuracy ({n_units} {what}, {ways} permutations)"
    if n_systems < 2 or not n_units:
        undefined: Reason = "too_few_units" if n_units else "no_pairs"
        return Estimate.undefined(undefined, n=n_systems, method=method, n_missing=n_missing)
    rows = max(1, _CELLS // max(n_systems * n_systems, n_units))
    signs = _all_signs(n_units) if exact else _drawn_signs(n_units, n_permutations, rows, options.generator())
    left, right = _p_values(sides, signs, added=0 if exact else 1)
    value = 1 - float(np.abs(left - right)[np.triu_indices(n_systems, 1)].mean())
    reason: Reason | None = None if options.ci is None else "no_interval"
    return Estimate(value, n=n_systems, method=method, reason=reason, n_missing=n_missing)


def _read(gold: Any, pred: Any, options: IntervalOptions) -> tuple[list[Array], int]:
    """Return both scores as systems × complete exchangeable units, and the number of dropped segments."""
    sides = [
        number_rows(values, what, "(n_systems, n_segments)")
        for values, what in ((gold, "gold"), (pred, "pred"))
    ]
    if sides[0].shape != sides[1].shape:
        raise ArgumentError(
            f"gold has shape {sides[0].shape} but pred has {sides[1].shape}; pass systems × segments for both"
        )
    there = np.asarray(~(np.isnan(sides[0]) | np.isnan(sides[1])).any(axis=0))
    members = dense(cluster_codes(options.cluster, there.size), there)
    kept = [side[:, there] for side in sides]
    if members is not None:
        # A cluster is swapped as a whole, so only its sum matters.
        one_hot = np.eye(int(members.max(initial=-1)) + 1)[members]
        kept = [side @ one_hot for side in kept]
    return kept, int(there.size - np.count_nonzero(there))


def _all_signs(n_segments: int) -> Iterator[Array]:
    """Yield every combination of keeping or swapping, shape `(2^S, S)`."""
    yield 1.0 - 2.0 * (np.arange(2**n_segments)[:, None] >> np.arange(n_segments) & 1)


def _drawn_signs(n_segments: int, n_drawn: int, rows: int, generator: np.random.Generator) -> Iterator[Array]:
    """Yield randomly drawn combinations, `rows` at a time."""
    for start in range(0, n_drawn, rows):
        yield 1.0 - 2.0 * generator.integers(0, 2, size=(min(rows, n_drawn - start), n_segments))


def _p_values(sides: list[Array], signs: Iterable[Array], *, added: int) -> list[Array]:
    """Return p(i>j) for each side, shape `(n_systems, n_systems)`."""
    # A component common to all systems cancels; removing it reduces rounding error.
    sides = [side - side[:1] for side in sides]
    totals = [side.sum(axis=1) for side in sides]
    # Sums that are equal in exact arithmetic must compare as equal.
    slack = [1e-12 * side.shape[1] * float(np.abs(side).max()) for side in sides]
    at_least = [np.full((len(side), len(side)), float(added)) for side in sides]
    n_ways = added
    for block in signs:
        n_ways += len(block)
        for side, total, tolerance, count in zip(sides, totals, slack, at_least, strict=True):
            sums = block @ side.T
            apart = sums[:, :, None] - sums[:, None, :]
            count += (apart >= total[:, None] - total - tolerance).sum(axis=0)
    return [count / n_ways for count in at_least]
