"""How an interval is made: the arguments that every figure takes besides its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError

CiMethod: TypeAlias = Literal["auto", "analytic", "percentile", "bca", "smoothed"]


class IntervalArguments(TypedDict, total=False):
    """Keyword arguments of every figure.

    Attributes:
        cluster: An id for each unit (item, prompt, document); units of one cluster are resampled together.
        ci: Method of the interval; None for none.
        confidence_level: Level of the interval, in (0, 1).
        n_resamples: Bootstrap resamples.
        rng: Seed or generator of the resampling.
    """

    cluster: Iterable[Any] | None
    ci: CiMethod | None
    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


class CodedArguments(IntervalArguments, total=False):
    """Keyword arguments of every figure on categories.

    Attributes:
        labels: Number of categories K, where the labels are integer codes 0..K-1 already, -1 missing.
    """

    labels: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions:
    """Checked interval arguments; attributes as in `IntervalArguments` and `CodedArguments`."""

    cluster: Iterable[Any] | None = None
    ci: CiMethod | None = "auto"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0
    labels: int | None = None

    def __post_init__(self) -> None:
        if self.ci is not None and self.ci not in get_args(CiMethod):
            raise ArgumentError(f"ci={self.ci!r}; give one of {list(get_args(CiMethod))} or None")
        if not 0.0 < self.confidence_level < 1.0:
            raise ArgumentError(f"confidence_level={self.confidence_level!r}; give a level between 0 and 1")
        if self.n_resamples < 1:
            raise ArgumentError(f"n_resamples={self.n_resamples!r}; give at least 1")
        if self.labels is not None and self.labels < 1:
            raise ArgumentError(f"labels={self.labels!r}; give the number of categories, at least 1")

    def generator(self) -> np.random.Generator:
        """The generator to draw from: the same seed, the same draws."""
        return np.random.default_rng(self.rng)
