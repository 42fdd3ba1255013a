"""Reliability of means from variance components, and the number of votes needed to reach a target.

The notation is Brennan's: item p, judge j, order o, and single votes s within them. For a mean over n_j
judges, n_o orders and n_s votes in each, reliability is G = σ²_p / (σ²_p + σ²_δ) or Φ = σ²_p / (σ²_p + σ²_Δ).

References:
    [1] R. L. Brennan (2001), Generalizability theory, Springer, ch. 4: eq. 4.18-4.24 for crossed designs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from autorubric.metrics._audit._mivque import RESIDUAL, Effect
from autorubric.metrics._audit._resampled import ratio
from autorubric.metrics._estimate import Reason
from autorubric.metrics._resampling import Array

Coefficient: TypeAlias = Literal["phi", "g"]

MOST_SAMPLES = 10
"""Maximum number of samples per judge in a plan."""

MOST_JUDGES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The numbers of judges, samples and orders in a mean, which may be fractional if they are averages.

    Attributes:
        judges: Number of judges.
        samples: Number of votes of a judge in each order.
        orders: Number of orders.
    """

    judges: float
    samples: float
    orders: float


def reliability(components: Array, effects: list[Effect], design: Design, coefficient: Coefficient) -> Array:
    """Compute G or Φ from components of shape `(..., m)`; NaN if there is no variance.

    Negative components are treated as 0.
    """
    true, error = _split(np.maximum(components, 0.0), effects, design, coefficient)
    # Reliability is undefined without variance.
    return np.where(np.isnan(components).any(-1), np.nan, ratio(true, true + error))


def _split(
    components: Array, effects: list[Effect], design: Design, coefficient: Coefficient
) -> tuple[Array, Array]:
    true, error = np.zeros(components.shape[:-1]), np.zeros(components.shape[:-1])
    for at, effect in enumerate(effects):
        if effect == frozenset({0}):
            true = true + components[..., at]
        elif coefficient == "phi" or 0 in effect or effect == RESIDUAL:
            error = error + components[..., at] / _size(effect, design)
    return true, error


def _size(effect: Effect, design: Design) -> float:
    """Return the number of levels of the effect over which a mean is taken."""
    if effect == RESIDUAL:
        return design.judges * design.orders * design.samples
    return (design.judges if 1 in effect else 1.0) * (design.orders if 2 in effect else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fewest votes that reach a target reliability.

    Attributes:
        judges: Number of judges; None if no number reaches the target.
        samples: Number of samples per judge; None if there is no plan.
        reached: Coefficient reached by the plan; None if there is no plan.
        reason: Reason why there is no plan; None if there is one.
    """

    judges: int | None
    samples: int | None
    reached: float | None
    reason: Reason | None = None


def plan_for(
    components: Mapping[Effect, float],
    target: float,
    coefficient: Coefficient,
    *,
    judges_vary: bool,
    repeats: bool,
) -> Plan:
    """Find the smallest number of votes (judges × samples in one order) that reaches the target.

    Among plans of equal size, the one with the fewest judges is chosen. If the study has only one judge,
    other judges are unknown, so only samples are added. Without repeated votes, the variance between samples
    cannot be separated, so plans use one sample.
    """
    effects, values = list(components), np.array(list(components.values()))
    if components.get(frozenset({0}), 0.0) <= 0:
        return Plan(judges=None, samples=None, reached=None, reason="no_variance")
    if not judges_vary and not repeats:
        return Plan(judges=None, samples=None, reached=None, reason="no_repeats")
    best: tuple[int, int, float] | None = None
    for samples in range(1, (MOST_SAMPLES if judges_vary else MOST_JUDGES) + 1 if repeats else 2):
        judges = _judges_needed(components, target, coefficient, samples) if judges_vary else 1
        if judges is None:
            continue
        reached = float(
            reliability(values, effects, Design(judges=judges, samples=samples, orders=1.0), coefficient)
        )
        if reached < target - 1e-9:
            continue
        votes = judges * samples
        if best is None or (votes, judges) < (best[0] * best[1], best[0]):
            best = (judges, samples, reached)
    if best is None:
        return Plan(judges=None, samples=None, reached=None, reason="unattainable")
    return Plan(judges=best[0], samples=best[1], reached=best[2])


def _judges_needed(
    components: Mapping[Effect, float], target: float, coefficient: Coefficient, samples: int
) -> int | None:
    """Solve n_j ≥ (error that judges average out) / (σ²_p (1 - ρ) / ρ - error that remains)."""
    effects, values = list(components), np.array(list(components.values()))
    one = Design(judges=1.0, samples=float(samples), orders=1.0)
    many = Design(judges=1e300, samples=float(samples), orders=1.0)
    true, whole = _split(np.maximum(values, 0.0), effects, one, coefficient)
    _, stays = _split(np.maximum(values, 0.0), effects, many, coefficient)
    room = float(true) * (1 - target) / target - float(stays)
    shrinks = float(whole - stays)
    if room <= 0:
        return 1 if shrinks <= 0 and float(stays) <= float(true) * (1 - target) / target else None
    needed = max(1, math.ceil(shrinks / room - 1e-9))
    return needed if needed <= MOST_JUDGES else None
