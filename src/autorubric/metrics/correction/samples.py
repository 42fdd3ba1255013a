"""Options of corrected metrics, and the items under test and labelled items as sampling units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, read_rows, renumber
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import logit_t_ends, mean_ends, normal_quantile, wilson_ends
from autorubric.metrics.core.label_rows import NO_ANSWER
from autorubric.metrics.core.resampling import (
    MOST_UNDEFINED_CORRECTED,
    NO_ENDS,
    Compute,
    Ends,
    Resampling,
    ResamplingArguments,
    check_choice,
    check_number,
    chunks,
    draw_weights,
    interval_of,
    row_units,
)
from autorubric.metrics.core.scales import Array, Codes, as_sequence
from autorubric.support.frames import is_frame

CorrectionCi: TypeAlias = Literal["auto", "analytic", "percentile", "bootstrap-t"]
CorrectionMethod: TypeAlias = Literal["rogan-gladen", "ppi++"]
Sampled: TypeAlias = Literal["random", "chosen"]

PPI_LABELS = 50
"""Minimum number of labelled units for the normal interval of ppi++ to have sufficient coverage."""


ABSTAINED_AS = 0.5
"""Value of the judge's abstentions for ppi++, which is unbiased whatever the judge's values are."""


class CorrectionArguments(ResamplingArguments, total=False):
    """Keyword arguments of all corrected metrics.

    Attributes:
        ci: Method of the interval. `"auto"` and `"analytic"` use a closed form, `"percentile"` is a bootstrap
            that resamples test items and labelled items, `"bootstrap-t"` is the studentised bootstrap for
            ppi++, and None computes no interval.
        confidence_level: Confidence level of the interval, in (0, 1).
        n_resamples: Number of bootstrap resamples.
        rng: Seed or NumPy generator of the resampling.
        lam: λ of ppi++, in [0, 1]: 0 relies on the labels only, 1 is prediction-powered inference as first
            published, and None tunes λ to minimise the variance.
    """

    ci: CorrectionCi | None
    lam: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOptions(Resampling):
    """Validated interval arguments with the attributes of `CorrectionArguments`."""

    ci: CorrectionCi | None = "auto"
    lam: float | None = None

    def __post_init__(self) -> None:
        check_choice("ci", self.ci, CorrectionCi, or_none=True)
        if self.lam is not None:
            check_number("lam", self.lam, "[0, 1]", hint="or None to tune it")
        Resampling.__post_init__(self)  # super() does not work with slots=True


def check_method(method: str, sampled: str, options: CorrectionOptions) -> None:
    """Check the method and the kind of sampling, and that they can be combined."""
    check_choice("method", method, CorrectionMethod)
    check_choice("sampled", sampled, Sampled)
    if method == "ppi++" and sampled == "chosen":
        raise ArgumentError(
            "method='ppi++' cannot be combined with sampled='chosen': ppi++ treats the labelled items as a "
            "random sample of the items under test, so hand-picked items would bias the rate by an unknown "
            "amount; use method='rogan-gladen', which only requires items picked by their true label, or "
            "label a random sample"
        )
    if method == "rogan-gladen" and options.lam is not None:
        raise ArgumentError(f"lam applies only to method='ppi++'; got lam={options.lam!r}")
    if method == "rogan-gladen" and options.ci == "bootstrap-t":
        raise ArgumentError("ci='bootstrap-t' requires method='ppi++'; use 'analytic' or 'percentile'")


def labels_of(given: Iterable[Any], what: str) -> Any:
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{what} must be a sequence of labels, one per item; got {type(given).__name__}")
    return as_sequence(given, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSample:
    """Labels and judged values of labelled items, and judged values of items under test.

    NaN is a separate answer: the label has no answer, or the judge abstained.
    """

    truth: Array
    judged: Array  # the judge's values on the labelled items
    tested: Array  # the judge's values on the items under test
    label_cluster: Codes | None = None  # ids shared with `test_cluster` denote the same cluster
    test_cluster: Codes | None = None
    n_missing: int = 0  # items excluded because a verdict or label was missing

    def only(self, which: Array) -> LabelledSample:
        """Return the sample with the labelled items of the mask `which` alone."""
        members = None if self.label_cluster is None else self.label_cluster[which]
        return replace(self, truth=self.truth[which], judged=self.judged[which], label_cluster=members)


def answer_or_none(label: Any) -> Any:
    """Return the label, or None for NA, CANNOT_ASSESS and INVALID, which mean that there is no answer."""
    return None if isinstance(label, str) and label.strip().upper() in NO_ANSWER else label


class Annotators(NamedTuple):
    names: tuple[str, ...]  # column names of a DataFrame, otherwise `"0"`, `"1"`, …
    columns: tuple[list[Any], ...]  # one list of `n_items` annotations per annotator
    n_items: int


def read_annotators(humans: Any) -> Annotators:
    """Read the columns of an items × annotators table; None and NaN are missing."""
    rows = read_rows(humans, "humans", "(n_items, n_annotators)")
    listed = rows.tolist() if isinstance(rows, np.ndarray) else [list(row) for row in rows]
    n_annotators = len(listed[0]) if listed else 0
    if listed and n_annotators < 2:
        raise ArgumentError(
            f"humans must have at least two annotators, so that they can be compared; got {n_annotators}"
        )
    names = [str(name) for name in (humans.columns if is_frame(humans) else range(n_annotators))]
    if len(set(names)) != len(names):
        raise ArgumentError(f"the columns of humans must have unique names; got {names!r}")
    return Annotators(
        tuple(names), tuple([row[j] for row in listed] for j in range(n_annotators)), len(listed)
    )


@dataclass(frozen=True, slots=True)
class Stratum:
    """Units of one kind: test items, labelled items, or clusters with both."""

    rows: Array  # contribution of each distinct unit, labelled columns first, shape `(u, d)`
    counts: Array  # of identical units, shape `(u,)`; fractional if a table is smoothed
    labelled: bool  # whether the units have labels
    tested: bool  # whether the units have items under test

    @property
    def size(self) -> int:
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
        tests = f"{self.n_tested} {'clusters' if self.clustered_tests else 'items'}"
        return f"{tests}, {self.n_labelled} labelled {'clusters' if self.clustered_labels else 'items'}"

    def draws(
        self, n_resamples: int, rng: np.random.Generator, *, squares: bool = False, width: int | None = None
    ) -> Iterator[Array]:
        """Yield sums of resamples, shape `(r, d)`; with `squares`, also outer products, `(r, d + d * d)`."""
        features = [part.rows for part in self.parts]
        if squares:
            products = [(rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1) for rows in features]
            features = [np.concatenate(one, axis=1) for one in zip(features, products, strict=True)]
        widest = max((len(part.counts) for part in self.parts), default=1) if width is None else width
        for rows in chunks(n_resamples, widest):
            drawn = [
                draw_weights(part.counts, part.size, rows, rng) @ columns
                for part, columns in zip(self.parts, features, strict=True)
            ]
            yield np.asarray(sum(drawn))


def small_sample_factor(n_units: int) -> float:
    """Return n / (n - 1), which makes the variance over n units unbiased; 1 for a single unit."""
    return n_units / (n_units - 1) if n_units > 1 else 1.0


def strata_of(labels: Sequence[Array], tests: Sequence[Array], sample: LabelledSample) -> Strata:
    """Build strata from a columns of labelled items and b columns of test items; units have a + b columns."""
    labelled, tested = np.column_stack(labels), np.column_stack(tests)
    label_cluster, test_cluster = sample.label_cluster, sample.test_cluster
    a, b = len(labels), len(tests)
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
    rows = row_units(np.concatenate([padded_labels, padded_tests]), members).sums
    assert rows is not None
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
        return cluster_codes(label_cluster, n, "calib_cluster"), cluster_codes(test_cluster, n_tests)
    labels, tests = as_sequence(label_cluster, "calib_cluster"), as_sequence(test_cluster, "cluster")
    cluster_codes(labels, n, "calib_cluster")
    cluster_codes(tests, n_tests)
    joint = cluster_codes([*list(labels), *list(tests)], n + n_tests)
    assert joint is not None
    return joint[:n], joint[n:]


def _stratum(rows: Array, members: Codes | None, *, labelled: bool) -> Stratum:
    if members is None:
        return Stratum(*_distinct(rows), labelled, not labelled)
    units = row_units(rows, renumber(members))
    assert units.sums is not None
    return Stratum(units.sums, units.counts, labelled, not labelled)


def _distinct(rows: Array) -> tuple[Array, Codes]:
    """Return the distinct rows and their counts, without merging rows with numbers other than 0, 1/2, 1."""
    if not np.all((rows == 0) | (rows == 1) | (rows == ABSTAINED_AS)):
        return rows, np.ones(len(rows), dtype=np.int64)
    places = 3 ** np.arange(rows.shape[1])
    counts = np.bincount((2 * rows @ places).astype(np.int64))
    there = np.flatnonzero(counts)
    return (there[:, None] // places % 3) / 2, counts[there]


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
    members = renumber(cluster)
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
