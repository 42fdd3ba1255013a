"""Values that behave like the number they contain, if any."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from typing import Any, SupportsFloat

from autorubric.errors import ArgumentError


class NumberLike(ABC):
    """A value that behaves like its `_number` in arithmetic; arithmetic raises an error if that is None."""

    __slots__ = ()

    @property
    @abstractmethod
    def _number(self) -> float | None:
        """Number that the value contains, or None."""
        ...

    @abstractmethod
    def _undefined(self) -> ArgumentError:
        """Return the error that arithmetic raises if there is no number."""
        ...

    def __float__(self) -> float:
        number = self._number
        if number is None:
            raise self._undefined()
        return number

    def __complex__(self) -> complex:
        return complex(float(self))

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

    def __hash__(self) -> int:
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

    @property
    def real(self) -> float:
        """The real part, which is the value itself."""
        return float(self)

    @property
    def imag(self) -> float:
        """The imaginary part, which is 0.0."""
        return 0.0

    def conjugate(self) -> float:
        """Return the complex conjugate, which is the value itself."""
        return float(self)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the value as a pair of integers, like `float.as_integer_ratio`."""
        return float(self).as_integer_ratio()

    def __abs__(self) -> float:
        return abs(float(self))

    def __neg__(self) -> float:
        return -float(self)

    def __pos__(self) -> float:
        return float(self)

    def __round__(self, digits: int | None = None) -> float:
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

    def __divmod__(self, other: SupportsFloat) -> tuple[float, float]:
        return divmod(float(self), float(other))

    def __rdivmod__(self, other: SupportsFloat) -> tuple[float, float]:
        return divmod(float(other), float(self))

    def __pow__(self, other: SupportsFloat) -> Any:
        return float(self) ** float(other)

    def __rpow__(self, other: SupportsFloat) -> Any:
        return float(other) ** float(self)


# `pytest.approx` and `isinstance(x, numbers.Real)` then treat such a value as a number.
numbers.Real.register(NumberLike)  # type: ignore[type-abstract]
