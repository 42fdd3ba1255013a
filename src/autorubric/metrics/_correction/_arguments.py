"""How the interval of a corrected figure is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError

CorrectionCi: TypeAlias = Literal["auto", "analytic", "percentile", "bootstrap-t"]
CorrectionMethod: TypeAlias = Literal["rogan-gladen", "ppi++"]
Sampled: TypeAlias = Literal["random", "chosen"]

PPI_LABELS = 50
"""With fewer labelled units the normal interval of ppi++ covers too little."""


class CorrectionArguments(TypedDict, total=False):
    """Keyword arguments of every corrected figure.

    Attributes:
        ci: `"auto"` and `"analytic"`: in closed form; `"percentile"`: bootstrap, which draws test items and
            labelled items again; `"bootstrap-t"`: the same, studentised, for ppi++; None for none.
        confidence_level: Level of the interval, in (0, 1).
        n_resamples: Bootstrap resamples.
        rng: Seed or generator of the resampling.
    """

    ci: CorrectionCi | None
    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOptions:
    """Checked interval arguments; attributes as in `CorrectionArguments`."""

    ci: CorrectionCi | None = "auto"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        if self.ci is not None and self.ci not in get_args(CorrectionCi):
            raise ArgumentError(f"ci={self.ci!r}; give one of {list(get_args(CorrectionCi))} or None")
        if not 0.0 < self.confidence_level < 1.0:
            raise ArgumentError(f"confidence_level={self.confidence_level!r}; give a level between 0 and 1")
        if self.n_resamples < 1:
            raise ArgumentError(f"n_resamples={self.n_resamples!r}; give at least 1")

    def generator(self) -> np.random.Generator:
        """The generator to draw from: the same seed, the same draws."""
        return np.random.default_rng(self.rng)


def check_method(method: str, sampled: str, ci: str | None) -> None:
    """Refuses a method or way of sampling that there is not, and those that do not go together.

    Raises:
        ArgumentError: As said.
    """
    if method not in get_args(CorrectionMethod):
        raise ArgumentError(f"method={method!r}; give one of {list(get_args(CorrectionMethod))}")
    if sampled not in get_args(Sampled):
        raise ArgumentError(f"sampled={sampled!r}; give one of {list(get_args(Sampled))}")
    if method == "ppi++" and sampled == "chosen":
        raise ArgumentError(
            "method='ppi++' with sampled='chosen': ppi++ takes the labelled items for a random sample of the "
            "items under test, and hand-picked ones are none, so the rate would come out wrong by an unknown "
            "amount; take method='rogan-gladen', which only needs items picked by their true label, or label "
            "a random sample"
        )
    if method == "rogan-gladen" and ci == "bootstrap-t":
        raise ArgumentError("ci='bootstrap-t' goes with method='ppi++'; take 'analytic' or 'percentile'")
