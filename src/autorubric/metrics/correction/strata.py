"""Test items and labelled items as sampling units, and intervals over their resamples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import logit_t_ends, mean_ends, normal_quantile, wilson_ends
from autorubric.metrics.core.resampling import (
    MOST_UNDEFINED_CORRECTED,
    NO_ENDS,
    Compute,
    Ends,
    draw_weights,
    interval_of,
)
from autorubric.metrics.core.scales import Array, Codes, as_sequence
from autorubric.metrics.correction.arguments import CorrectionOptions

_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Stratum:
    """Units of one kind: test items, labelled items, or clusters with both."""

    rows: Array  # contribution of each distinct unit, labelled columns first, shape `(u, d)`
    counts: Array  # of identical units, shape `(u,)`; fractional if a table is smoothed
    labelled: bool  # whether the units have labels
    tested: bool  # whether the units have items under test

    @property
    def size(self) -> int:
        """Number of units."""
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class Strata:
    """All sampling units, in non-empty strata."""

    parts: tuple[Stratum, ...]
    clustered_tests: bool
    clustered_labels: bool

    @property
    def n_labelled(self) -> int:
        """Number of units with labels."""
        return sum(part.size for part in self.parts if part.labelled)

    @property
    def n_tested(self) -> int:
        """Number of units with items under test."""
        return sum(part.size for part in self.parts if part.tested)

    @property
    def clustered(self) -> bool:
        """Whether a unit may contain several items."""
        return self.clustered_tests or self.clustered_labels

    @property
    def df(self) -> int | None:
        """Degrees of freedom of the variance between clusters; None if there are no clusters."""
        sizes = []
        if self.clustered_labels:
            sizes.append(self.n_labelled)
        if self.clustered_tests:
            sizes.append(self.n_tested)
        return min(sizes) - 1 if sizes else None

    def total(self) -> Array:
        """Return the sums over all units, shape `(d,)`."""
        return np.asarray(sum(part.counts @ part.rows for part in self.parts))

    def square(self) -> Array:
        """Return the sum of the outer products of the units' rows, shape `(d, d)`."""
        return np.asarray(sum((part.rows * part.counts[:, None]).T @ part.rows for part in self.parts))

    def describe(self) -> str:
        """Describe the numbers of units in words."""
        tests = f"{self.n_tested} {'clusters' if self.clustered_tests else 'items'}"
        return f"{tests}, {self.n_labelled} labelled {'clusters' if self.clustered_labels else 'items'}"

    def draws(
        self, n_resamples: int, rng: np.random.Generator, *, squares: bool = False, width: int | None = None
    ) -> Iterator[Array]:
        """Yield sums of resamples, shape `(r, d)`; with `squares`, also outer products, `(r, d + d * d)`."""
        features = [_with_squares(part.rows) if squares else part.rows for part in self.parts]
        widest = max((len(part.counts) for part in self.parts), default=1) if width is None else width
        step = max(1, _CHUNK_CELLS // max(widest, 1))
        for start in range(0, n_resamples, step):
            rows = min(step, n_resamples - start)
            drawn = [
                draw_weights(part.counts, part.size, rows, rng) @ columns
                for part, columns in zip(self.parts, features, strict=True)
            ]
            yield np.asarray(sum(drawn))


def _with_squares(rows: Array) -> Array:
    d = rows.shape[1]
    return np.concatenate([rows, (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), d * d)], axis=1)


def strata_of(
    labelled: Array, tested: Array, label_cluster: Codes | None, test_cluster: Codes | None
) -> Strata:
    """Build strata from labelled rows `(n, a)` and test rows `(N, b)`; units have rows of width a + b."""
    a, b = labelled.shape[1], tested.shape[1]
    padded_labels = np.concatenate([labelled, np.zeros((len(labelled), b))], axis=1)
    padded_tests = np.concatenate([np.zeros((len(tested), a)), tested], axis=1)
    flags = (test_cluster is not None, label_cluster is not None)
    if label_cluster is None or test_cluster is None:
        parts = [
            _stratum(padded_labels, label_cluster, labelled=True),
            _stratum(padded_tests, test_cluster, labelled=False),
        ]
        return Strata(tuple(part for part in parts if part.size), *flags)
    members = np.concatenate([label_cluster, test_cluster])
    rows = _by_cluster(np.concatenate([padded_labels, padded_tests]), members)
    has_label = np.isin(np.arange(len(rows)), label_cluster)
    has_test = np.isin(np.arange(len(rows)), test_cluster)
    kinds = [(True, False), (False, True), (True, True)]
    masks = [(has_label == kind[0]) & (has_test == kind[1]) for kind in kinds]
    found = [
        Stratum(rows[mask], np.ones(int(mask.sum()), dtype=np.int64), *kind)
        for kind, mask in zip(kinds, masks, strict=True)
        if mask.any()
    ]
    return Strata(tuple(found), *flags)


def joint_clusters(
    label_cluster: Iterable[Any] | None, test_cluster: Iterable[Any] | None, n: int, n_tests: int
) -> tuple[Codes | None, Codes | None]:
    """Return cluster codes of labelled and of tested items, with equal codes for equal ids."""
    if label_cluster is None or test_cluster is None:
        return cluster_codes(label_cluster, n), cluster_codes(test_cluster, n_tests)
    labels, tests = as_sequence(label_cluster, "calib_cluster"), as_sequence(test_cluster, "cluster")
    if len(labels) != n:
        raise ArgumentError(f"calib_cluster has {len(labels)} ids for {n} labelled items; pass one per item")
    if len(tests) != n_tests:
        raise ArgumentError(f"cluster has {len(tests)} ids for {n_tests} items; pass one per item")
    joint = cluster_codes([*list(labels), *list(tests)], n + n_tests)
    assert joint is not None
    return joint[:n], joint[n:]


def _by_cluster(rows: Array, members: Codes) -> Array:
    n_clusters = int(members.max(initial=-1)) + 1
    return np.column_stack([np.bincount(members, weights=column, minlength=n_clusters) for column in rows.T])


def _stratum(rows: Array, members: Codes | None, *, labelled: bool) -> Stratum:
    if members is None:
        return Stratum(*_distinct(rows), labelled, not labelled)
    held = np.unique(members, return_inverse=True)[1].reshape(-1)
    summed = _by_cluster(rows, held)
    return Stratum(summed, np.ones(len(summed), dtype=np.int64), labelled, not labelled)


def _distinct(rows: Array) -> tuple[Array, Codes]:
    """Return the distinct rows and their counts, without merging rows with numbers other than 0 and 1."""
    if not np.all((rows == 0) | (rows == 1)):
        return rows, np.ones(len(rows), dtype=np.int64)
    keys = (rows @ (2.0 ** np.arange(rows.shape[1]))).astype(np.int64)
    counts = np.bincount(keys)
    there = np.flatnonzero(counts)
    bits = ((there[:, None] >> np.arange(rows.shape[1])) & 1).astype(float)
    return bits, counts[there]


def share_estimate(
    name: str, hits: Array, cluster: Codes | None, level: float, absent: Reason = "no_values"
) -> Estimate:
    """Estimate the proportion of ones with Wilson's interval, or with a logit-t interval over clusters."""
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
    if units.n_labelled < 2 or units.n_tested < 2:
        return NO_ENDS, 0
    drawn = np.concatenate([compute(s) for s in units.draws(options.n_resamples, options.generator())])
    return interval_of(drawn, options, most_undefined=MOST_UNDEFINED_CORRECTED)
