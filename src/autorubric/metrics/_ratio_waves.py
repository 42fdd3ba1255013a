"""Sums of ratio-scale differences over all pairs, computed from a sum of waves instead of pair by pair.

With `t = log c - log k`, the difference `((c - k) / (c + k))²` is `tanh²(t/2) = 1 - sech²(t/2)`, and
`sech²(t/2)` is the integral of `4 ω / sinh(π ω) cos(ω t)` over ω from 0 to infinity. The trapezoidal rule
turns the integral into a sum whose error is below rounding error here. The sum of `1 - cos(ω (x - y))` over
all pairs follows from the sums of `1 - cos(ω x)` and of `sin(ω x)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from autorubric.metrics._resampling import Array

_TAIL = 40.0
"""exp(-_TAIL) is below rounding error."""

_HIGHEST = 13.0
"""Frequency above which the weights are below rounding error."""


class Waves(NamedTuple):
    """Waves that represent the differences between a set of values.

    Attributes:
        frequency: Frequencies, shape `(f,)`.
        weight: Weight of each frequency, shape `(f,)`.
        place: Centred logarithm of each value; NaN if the value is 0.
    """

    frequency: Array
    weight: Array
    place: Array

    @classmethod
    def of(cls, values: Array) -> Waves:
        """Return the waves for non-negative values."""
        with np.errstate(divide="ignore"):
            place = np.log(values)
        place = np.where(values > 0, place, np.nan)
        positive = place[values > 0]
        span = float(np.ptp(positive)) if positive.size else 0.0
        step = 2 * np.pi / (span + _TAIL)
        frequency = step * np.arange(1, int(_HIGHEST / step) + 2)
        centre = float(positive.mean()) if positive.size else 0.0
        return cls(frequency, step * 4 * frequency / np.sinh(np.pi * frequency), place - centre)

    @property
    def width(self) -> int:
        """Number of sums per unit."""
        return 2 + 2 * len(self.frequency)

    def sums(self, codes: Array) -> Array:
        """Compute the sums of each unit, shape `(u, width)`: ratings, zeros, and two sums per wave."""
        n_waves = len(self.frequency)
        found = np.zeros((len(codes), self.width))
        for column in codes.T:
            there = column >= 0
            place = np.where(there, self.place[column], np.nan)
            waving = ~np.isnan(place)
            angle = np.where(waving, place, 0.0)[:, None] * self.frequency
            found[:, 0] += there
            found[:, 1] += there & ~waving
            found[:, 2 : 2 + n_waves] += 2 * np.sin(angle / 2) ** 2
            found[:, 2 + n_waves :] += np.sin(angle)
        return found

    def over_all_pairs(self, sums: Array) -> Array:
        """Compute the sum of differences over all ordered pairs of the ratings that the sums represent."""
        n_waves = len(self.frequency)
        n, zeros = sums[..., 0], sums[..., 1]
        positive = (n - zeros)[..., None]
        rise, sway = sums[..., 2 : 2 + n_waves], sums[..., 2 + n_waves :]
        # n² - (n - Σ (1 - cos))² - (Σ sin)², rearranged to avoid cancellation for close values.
        waves = (2 * positive - rise) * rise - sway * sway
        return np.asarray(waves @ self.weight + 2 * zeros * (n - zeros))
