"""Confidence interval options shared by all metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError

CiMethod: TypeAlias = Literal["auto", "analytic", "percentile", "bca", "smoothed"]


class ResamplingArguments(TypedDict, total=False):
    """Keyword arguments of metrics whose intervals are computed by resampling.

    Attributes:
        confidence_level: Confidence level of the interval, in (0, 1).
        n_resamples: Number of bootstrap resamples.
        rng: Seed or numpy random generator for the resampling.
    """

    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


class IntervalArguments(ResamplingArguments, total=False):
    """Keyword arguments of all metrics, which select the interval method, the clusters and the resampling.

    Attributes:
        cluster: Cluster id of each unit, such as its prompt. Units of a cluster are resampled together.
        ci: Method used to compute the interval; None computes no interval.
    """

    cluster: Iterable[Any] | None
    ci: CiMethod | None


class CodedArguments(IntervalArguments, total=False):
    """Keyword arguments of all metrics of categorical labels.

    Attributes:
        labels: Number of categories K if the labels are already integer codes 0..K-1, where -1 means missing.
    """

    labels: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Validated resampling arguments; see `ResamplingArguments` for the attributes."""

    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise ArgumentError(f"confidence_level must be between 0 and 1; got {self.confidence_level!r}")
        if self.n_resamples < 1:
            raise ArgumentError(f"n_resamples must be a positive integer; got {self.n_resamples!r}")
        is_seed = isinstance(self.rng, int | np.integer) and not isinstance(self.rng, bool) and self.rng >= 0
        if not is_seed and not isinstance(self.rng, np.random.Generator):
            raise ArgumentError(f"rng must be a non-negative integer or a numpy Generator; got {self.rng!r}")

    def generator(self) -> np.random.Generator:
        """Return the random generator. The same seed always gives the same draws."""
        return np.random.default_rng(self.rng)

    def fixed(self) -> Self:
        """Return a copy with a fixed seed, so that all metrics computed with it use the same draws."""
        if isinstance(self.rng, np.random.Generator):
            return replace(self, rng=int(self.rng.integers(2**31)))
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions(Resampling):
    """Validated interval arguments; see `IntervalArguments` for the attributes."""

    cluster: Iterable[Any] | None = None
    ci: CiMethod | None = "auto"

    def __post_init__(self) -> None:
        # super() does not work here, because `slots=True` replaces the class with a new one.
        Resampling.__post_init__(self)
        if self.ci is not None and self.ci not in get_args(CiMethod):
            raise ArgumentError(f"ci must be one of {list(get_args(CiMethod))} or None; got {self.ci!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedOptions(IntervalOptions):
    """Validated arguments of metrics of categorical labels; see `CodedArguments` for the attributes."""

    labels: int | None = None

    def __post_init__(self) -> None:
        IntervalOptions.__post_init__(self)
        if self.labels is not None and self.labels < 1:
            raise ArgumentError(f"labels must be the number of categories, at least 1; got {self.labels!r}")
