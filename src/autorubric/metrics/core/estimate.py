"""Estimates with uncertainty, which behave like numbers if they are defined."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, SupportsFloat

from autorubric.errors import ArgumentError

RELATIVE_ZERO = 1e-12
"""Relative size up to which a computed number counts as rounding error."""


def is_rounding(number: float, scale: float = 1.0) -> bool:
    """Return whether a number computed from values of size `scale` is only rounding error."""
    return abs(number) <= RELATIVE_ZERO * abs(scale)


class NumberLike(numbers.Real):
    """A value that behaves like its `_number` in arithmetic; arithmetic raises an error if that is None.

    It is a `Real`, so that `pytest.approx` and `isinstance(x, numbers.Real)` treat it as a number.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _number(self) -> float | None: ...

    @abstractmethod
    def _undefined(self) -> ArgumentError: ...

    def __float__(self) -> float:
        number = self._number
        if number is None:
            raise self._undefined()
        return number

    def __int__(self) -> int:
        return int(float(self))

    def __trunc__(self) -> int:
        return math.trunc(float(self))

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np  # imported here so that the value type does not depend on numpy

        return np.asarray(float(self), dtype=dtype)

    def __format__(self, spec: str) -> str:
        return "n/a" if self._number is None else format(self._number, spec)

    def __str__(self) -> str:
        return "n/a" if self._number is None else str(self._number)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._number)

    def __bool__(self) -> bool:
        return bool(float(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberLike):
            return self._number == other._number
        if isinstance(other, int | float):
            return self._number == other
        return NotImplemented

    def __lt__(self, other: SupportsFloat) -> bool:
        return float(self) < float(other)

    def __le__(self, other: SupportsFloat) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: SupportsFloat) -> bool:
        return float(self) >= float(other)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the value as a pair of integers, like `float.as_integer_ratio`."""
        return float(self).as_integer_ratio()

    def __abs__(self) -> float:
        return abs(float(self))

    def __neg__(self) -> float:
        return -float(self)

    def __pos__(self) -> float:
        return float(self)

    def __round__(self, digits: int | None = None) -> float:  # type: ignore[override]
        return round(float(self), digits)

    def __add__(self, other: SupportsFloat) -> float:
        return float(self) + float(other)

    def __radd__(self, other: SupportsFloat) -> float:
        return float(other) + float(self)

    def __sub__(self, other: SupportsFloat) -> float:
        return float(self) - float(other)

    def __rsub__(self, other: SupportsFloat) -> float:
        return float(other) - float(self)

    def __mul__(self, other: SupportsFloat) -> float:
        return float(self) * float(other)

    def __rmul__(self, other: SupportsFloat) -> float:
        return float(other) * float(self)

    def __truediv__(self, other: SupportsFloat) -> float:
        return float(self) / float(other)

    def __rtruediv__(self, other: SupportsFloat) -> float:
        return float(other) / float(self)

    def __floordiv__(self, other: SupportsFloat) -> float:
        return float(self) // float(other)

    def __rfloordiv__(self, other: SupportsFloat) -> float:
        return float(other) // float(self)

    def __mod__(self, other: SupportsFloat) -> float:
        return float(self) % float(other)

    def __rmod__(self, other: SupportsFloat) -> float:
        return float(other) % float(self)

    def __pow__(self, other: SupportsFloat) -> Any:
        return float(self) ** float(other)

    def __rpow__(self, other: SupportsFloat) -> Any:
        return float(other) ** float(self)


Reason = Literal[
    "no_pairs",
    "no_ratings",
    "no_values",
    "single_class",
    "single_category_scale",
    "no_variance",
    "too_few_units",
    "no_positive_in_truth",
    "no_positive_in_pred",
    "no_positive",
    "no_negative",
    "no_negative_in_truth",
    "degenerate_resamples",
    "na_as_category",
    "no_criterion_defined",
    "not_comparable",
    "infinite_loss",
    "no_confidence",
    "not_connected",
    "too_few_labels",
    "uninformative_judge",
    "nonlinear_score",
    "no_spread",
    "no_truth",
    "one_judge",
    "no_repeats",
    "no_generator",
    "no_text",
    "no_order",
    "unattainable",
    "not_on_scale",
    "not_requested",
    "no_interval",
    "errors_cancel",
]
"""Reason why a metric, or the interval of a defined metric, is undefined."""


class UndefinedEstimateError(ArgumentError):
    """Raised when an undefined estimate is used as a number.

    Attributes:
        reason: Reason why the estimate is undefined; see `Estimate.reason`.
    """

    def __init__(self, estimate: Estimate) -> None:
        self.reason = estimate.reason
        super().__init__(
            f"the estimate is undefined ({estimate.reason}; {estimate.method}, n={estimate.n}) and cannot be "
            "used as a number; check `.value is None` first"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TestStatistic:
    """A test statistic with its reference distribution.

    Attributes:
        name: Name of the distribution of the statistic under the null hypothesis, such as `"t"`.
        value: Value of the statistic; signed for t and z.
        df: Degrees of freedom (numerator degrees of freedom for F); None for z.
        df_denominator: Denominator degrees of freedom for F; None for other statistics.
        p_value: p-value in [0, 1]. Two-sided for t and z unless the result says otherwise; upper tail for F
            and chi-squared.
    """

    __test__ = False  # Otherwise pytest collects the class because of its name.

    name: Literal["t", "F", "chi-squared", "z"]
    value: float
    df: float | None
    df_denominator: float | None = None
    p_value: float

    def to_dict(self) -> dict[str, float | str | None]:
        """Return all fields as JSON-compatible values, never NaN."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, eq=False)
class Estimate(NumberLike):
    """A metric's value with its confidence interval and method.

    A defined estimate behaves like its `value` in comparisons, formatting and arithmetic. If it is undefined,
    `value` is None, `float()` and arithmetic raise, `==` with a number is False, and formatting yields `n/a`.

    Attributes:
        value: Value of the metric; None if undefined.
        low: Lower limit of the interval; None if there is no interval.
        high: Upper limit of the interval; None if there is no interval.
        se: Standard error; None if it is not available.
        n: Number of observations used (pairs, or units with at least one rating).
        method: Description of the metric and its interval method.
        reason: Reason why the value is undefined or, if it is defined, why there is no interval.
        n_missing: Number of observations dropped because a value was missing.
        test: Test of the null hypothesis that an intraclass correlation or Kendall's W is 0; None for other
            metrics or if there are clusters.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    n: int = 0
    method: str = ""
    reason: Reason | None = None
    n_missing: int = 0
    test: TestStatistic | None = None

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "se"):
            number = getattr(self, name)
            if number is not None:
                if not math.isfinite(number):
                    raise ArgumentError(f"Estimate.{name} must be a finite number or None; got {number!r}")
                object.__setattr__(self, name, float(number))
        if self.value is None and self.reason is None:
            raise ArgumentError("Estimate.reason must be set if the value is None")

    @classmethod
    def undefined(cls, reason: Reason, *, n: int = 0, method: str = "", n_missing: int = 0) -> Estimate:
        """Create an undefined estimate with the given reason."""
        return cls(None, n=n, method=method, reason=reason, n_missing=n_missing)

    @classmethod
    def _extending(cls, found: Estimate, **more: Any) -> Self:
        """Create an instance of a subclass from an estimate and the fields that the subclass adds."""
        return cls(**{name: getattr(found, name) for name in Estimate.__dataclass_fields__}, **more)

    @property
    def is_defined(self) -> bool:
        """Whether the estimate has a value."""
        return self.value is not None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values, never NaN; `test` is omitted if it is None."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        test = fields.pop("test")
        return fields if test is None else fields | {"test": test.to_dict()}

    @property
    def _number(self) -> float | None:
        return self.value

    def _undefined(self) -> UndefinedEstimateError:
        return UndefinedEstimateError(self)

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"n/a ({self.reason})"

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Apply a monotone function to the value and the interval limits; the standard error is dropped."""
        if self.value is None:
            return self
        low, high = None, None
        if self.low is not None and self.high is not None:
            low, high = sorted((function(self.low), function(self.high)))
        return replace(self, value=function(self.value), low=low, high=high, se=None)
