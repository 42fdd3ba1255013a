"""Agreement weights: how far each pair of categories counts as agreement, from 0 to 1 on the diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import CategoricalScale, Nominal

Weights: TypeAlias = Literal["linear", "quadratic"] | Sequence[Sequence[float]] | Array | None


def weight_matrix(weights: Weights, scale: CategoricalScale | None, size: int) -> Array:
    """Return agreement weights of shape `(K, K)`: linear [1], quadratic [2], or the matrix that was passed.

    Linear weights are 1 - |v_i - v_j| / range, and quadratic weights are 1 - (v_i - v_j)² / range², where v
    are the values of the scale's categories or, if there are none, their positions.

    Raises:
        ArgumentError: If the scale has no order, or the matrix is not a K × K agreement matrix.

    References:
        [1] D. V. Cicchetti, T. Allison (1971), A new procedure for assessing reliability of scoring EEG
            sleep recordings, American Journal of EEG Technology 11, 101-109.
        [2] J. L. Fleiss, J. Cohen (1973), The equivalence of weighted kappa and the intraclass correlation
            coefficient as measures of reliability, Educational and Psychological Measurement 33, 613-619.
    """
    if weights is None:
        return np.eye(size)
    if not isinstance(weights, str):
        return _checked(weights, size)
    if weights not in ("linear", "quadratic"):
        raise ArgumentError(f"weights must be 'linear', 'quadratic', a K × K matrix or None; got {weights!r}")
    if isinstance(scale, Nominal):
        raise ArgumentError(
            f"weights={weights!r} need ordered categories, but {scale} has no order; pass Ordinal(labels) or "
            "a K × K matrix"
        )
    positions = np.arange(size, dtype=float) if scale is None else scale.positions
    assert positions is not None
    span = float(np.ptp(positions)) if size else 0.0
    distance = np.abs(positions[:, None] - positions[None, :]) / (span or 1.0)
    return np.asarray(1.0 - (distance if weights == "linear" else distance**2))


def _checked(weights: Any, size: int) -> Array:
    matrix = np.asarray(weights, dtype=float)
    if matrix.shape != (size, size):
        raise ArgumentError(f"weights must be a K × K matrix with K = {size}; got shape {matrix.shape}")
    if not (np.all((matrix >= 0) & (matrix <= 1)) and np.all(np.diag(matrix) == 1)):
        raise ArgumentError("weights must be 1 on the diagonal and between 0 and 1 elsewhere")
    return matrix


def describe(weights: Weights) -> str:
    """Describe the weights in words, for the `method` of an estimate."""
    return "" if weights is None else f"{weights} weights" if isinstance(weights, str) else "given weights"
