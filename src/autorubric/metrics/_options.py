"""Options of confidence intervals, shared by all metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError

CiMethod: TypeAlias = Literal["auto", "analytic", "percentile", "bca", "smoothed"]


class ResamplingArguments(TypedDict, total=False):
    """Keyword arguments of metrics whose intervals resample items.

    Attributes:
        confidence_level: Confidence level of the interval, in (0, 1).
        n_resamples: Number of bootstrap resamples.
        rng: Seed or generator of the resampling.
    """

    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


class IntervalArguments(ResamplingArguments, total=False):
    """Keyword arguments of all metrics: resampling, clusters and the kind of interval.

    Attributes:
        cluster: One id per unit (item, prompt, document); units of the same cluster are resampled together.
        ci: Method of the interval; None computes no interval.
    """

    cluster: Iterable[Any] | None
    ci: CiMethod | None


class CodedArguments(IntervalArguments, total=False):
    """Keyword arguments of all metrics on categories.

    Attributes:
        labels: Number of categories K, if the labels are already integer codes 0..K-1, with -1 for missing.
    """

    labels: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Validated arguments of a resampling; attributes are as in `ResamplingArguments`."""

    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise ArgumentError(f"confidence_level={self.confidence_level!r}; give a level between 0 and 1")
        if self.n_resamples < 1:
            raise ArgumentError(f"n_resamples={self.n_resamples!r}; give at least 1")
        is_seed = isinstance(self.rng, int | np.integer) and not isinstance(self.rng, bool) and self.rng >= 0
        if not is_seed and not isinstance(self.rng, np.random.Generator):
            raise ArgumentError(f"rng={self.rng!r}; give a seed, a whole number from 0, or a numpy Generator")

    def generator(self) -> np.random.Generator:
        """Return the generator to draw from; the same seed gives the same draws."""
        return np.random.default_rng(self.rng)

    def fixed(self) -> Self:
        """Return a copy with a fixed seed, so that all metrics computed with it use the same draws."""
        if isinstance(self.rng, np.random.Generator):
            return replace(self, rng=int(self.rng.integers(2**31)))
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions(Resampling):
    """Validated interval arguments; attributes are as in `IntervalArguments`."""

    cluster: Iterable[Any] | None = None
    ci: CiMethod | None = "auto"

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made anew, and is then another than the one super() knows.
        Resampling.__post_init__(self)
        if self.ci is not None and self.ci not in get_args(CiMethod):
            raise ArgumentError(f"ci={self.ci!r}; give one of {list(get_args(CiMethod))} or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedOptions(IntervalOptions):
    """Validated arguments of metrics on categories; attributes are as in `CodedArguments`."""

    labels: int | None = None

    def __post_init__(self) -> None:
        IntervalOptions.__post_init__(self)
        if self.labels is not None and self.labels < 1:
            raise ArgumentError(f"labels={self.labels!r}; give the number of categories, at least 1")
