"""Arguments of corrected figures and their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._label_homes import NO_ANSWER
from autorubric.metrics._scales import Binary, Codes, as_sequence

CorrectionCi: TypeAlias = Literal["auto", "analytic", "percentile", "bootstrap-t"]
CorrectionMethod: TypeAlias = Literal["rogan-gladen", "ppi++"]
Sampled: TypeAlias = Literal["random", "chosen"]

PPI_LABELS = 50
"""Smallest number of labelled units for which the normal interval of ppi++ covers enough."""

MOST_UNDEFINED = 0.1
"""Largest share of undefined resamples that an interval may ignore without being biased."""


class CorrectionArguments(TypedDict, total=False):
    """Keyword arguments of every corrected figure.

    Attributes:
        ci: `"auto"` and `"analytic"`: in closed form; `"percentile"`: bootstrap that resamples test items and
            labelled items; `"bootstrap-t"`: the studentised bootstrap, for ppi++; None for no interval.
        confidence_level: Level of the interval, in (0, 1).
        n_resamples: Bootstrap resamples.
        rng: Seed or generator of the resampling.
        lam: λ of ppi++, in [0, 1]: 0 relies on the labels alone, 1 is prediction-powered inference as first
            published; None tunes it to minimise the variance.
    """

    ci: CorrectionCi | None
    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator
    lam: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOptions:
    """Validated interval arguments; attributes as in `CorrectionArguments`."""

    ci: CorrectionCi | None = "auto"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0
    lam: float | None = None

    def __post_init__(self) -> None:
        if self.ci is not None and self.ci not in get_args(CorrectionCi):
            raise ArgumentError(f"ci={self.ci!r}; give one of {list(get_args(CorrectionCi))} or None")
        if self.lam is not None and not 0 <= finite_number(self.lam, "lam", "from 0 to 1, or None") <= 1:
            raise ArgumentError(f"lam={self.lam!r}; give a number from 0 to 1, or None to tune it")
        check_draws(self.confidence_level, self.n_resamples, self.rng)

    def generator(self) -> np.random.Generator:
        """Return the random generator; the same seed gives the same draws."""
        return np.random.default_rng(self.rng)


def check_method(method: str, sampled: str, options: CorrectionOptions) -> None:
    """Check the method, the kind of sampling, and that they fit together.

    Raises:
        ArgumentError: If one is unknown, or they do not fit together.
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
    if method == "rogan-gladen" and options.lam is not None:
        raise ArgumentError(f"lam={options.lam!r} belongs to method='ppi++'; leave it out")
    if method == "rogan-gladen" and options.ci == "bootstrap-t":
        raise ArgumentError("ci='bootstrap-t' needs method='ppi++'; give 'analytic' or 'percentile'")


def check_draws(confidence_level: object, n_resamples: object, rng: Any) -> np.random.Generator:
    """Check the level and the number of resamples, and return the random generator.

    Raises:
        ArgumentError: If one of them is not allowed.
    """
    if not isinstance(confidence_level, Real) or not 0.0 < float(confidence_level) < 1.0:
        raise ArgumentError(f"confidence_level={confidence_level!r}; give a level between 0 and 1")
    if not isinstance(n_resamples, Integral) or int(n_resamples) < 1:
        raise ArgumentError(f"n_resamples={n_resamples!r}; give a whole number, at least 1")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"rng={rng!r}; give a whole number from 0 on, or a numpy Generator") from error


def finite_number(given: object, what: str, meaning: str) -> float:
    """Return the argument as a float.

    Raises:
        ArgumentError: If it is not a finite number.
    """
    if isinstance(given, bool | np.bool_) or not isinstance(given, Real) or not math.isfinite(given):
        raise ArgumentError(f"{what}={given!r}; give a number, {meaning}")
    return float(given)


def labels_of(given: Iterable[Any], what: str) -> Any:
    """Return the labels as a 1-D sequence.

    Raises:
        ArgumentError: If it is not a sequence of labels.
    """
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{what} is a {type(given).__name__}; give a sequence of labels, one per item")
    return as_sequence(given, what)


def binary_codes(column: Iterable[Any], what: str) -> Codes:
    """Encode binary verdicts as 0 and 1, shape `(n,)`; -1 if missing, NA, CANNOT_ASSESS or INVALID.

    Raises:
        ArgumentError: If a verdict is not binary.
    """
    labels = labels_of(column, what)
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        levels, where = np.unique(labels, return_inverse=True)
        coded = Binary().encode([answer_or_none(level) for level in levels.tolist()])
        return coded[where.reshape(-1)] if len(labels) else np.zeros(0, np.int64)
    return Binary().encode([answer_or_none(label) for label in labels])


def answer_or_none(label: Any) -> Any:
    """Return the label, or None if it is NA, CANNOT_ASSESS or INVALID, which mean that there is no answer."""
    return None if isinstance(label, str) and label.strip().upper() in NO_ANSWER else label
