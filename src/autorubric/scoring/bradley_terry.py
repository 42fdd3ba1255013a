"""The Bradley–Terry model: strengths of players from the results of pairwise comparisons.

`P(i beats j) = e^a_i / (e^a_i + e^a_j)` [1]. If ties are a separate outcome [2] of strength `t = e^h`, then
`P(i beats j)`, `P(j beats i)` and `P(tie)` are in the ratio `e^a_i : e^a_j : e^(h + (a_i + a_j) / 2)`. Both
log-likelihoods are concave in the strengths; Newton's method finds the maximum and halves a step that
overshoots. The maximum exists and is unique, up to a shared constant, if and only if every player is
connected to every other by a chain of wins or ties [3]. With a tie strength, there may be too few wins as
well; the caller checks this.

References:
    [1] R. A. Bradley and M. E. Terry (1952), Biometrika 39(3/4), 324-345.
    [2] R. R. Davidson (1970), JASA 65(329), 317-328.
    [3] L. R. Ford (1957), American Mathematical Monthly 64(8.2), 28-33.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

TieModel = Literal["half", "davidson"]

_STEPS, _SETTLED = 200, 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two players and how often each won; the counts can be fractional weights."""

    left: int
    right: int
    won: float = 0.0
    lost: float = 0.0
    tied: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthFit:
    """A fitted Bradley–Terry model."""

    # Log strength of each player, with mean 0; None if the likelihood has no maximum.
    strengths: tuple[float, ...] | None
    tie_strength: float | None = None
    # Covariance of the strengths about their mean, from the inverse of the observed information, including
    # the prior's comparisons; None if there is no maximum.
    covariance: tuple[tuple[float, ...], ...] | None = None
    # Positions of the players that cannot be reached from all others, or cannot reach them, by a chain of
    # wins and ties; empty if there is a maximum.
    apart: tuple[int, ...] = field(default=())


class _Outcome(NamedTuple):
    """One outcome of a comparison: the coefficients of the strengths in its logit, and its count."""

    of: Mapping[int, float]
    seen: float


def fit_strengths(
    n_players: int, contests: Sequence[Contest], *, ties: TieModel = "half", prior: float | None = None
) -> StrengthFit:
    """Fit the players' strengths by maximum likelihood and return the fit.

    prior: Number of fictitious comparisons to add for each player, half of them won, against an average
        player, so that a maximum always exists; None or 0 for none.
    """
    apart = () if prior else _unconnected_players(n_players, contests)
    if apart:
        return StrengthFit(strengths=None, apart=apart)
    # Without ties, the most likely tie strength is 0, whose logarithm the search cannot reach.
    davidson = ties == "davidson" and any(contest.tied for contest in contests)
    outcomes = _outcomes(n_players, contests, davidson, prior or 0.0)
    solved = _newton(outcomes, n_players, n_players + davidson)
    mean = sum(solved[:n_players]) / n_players
    strengths = tuple(strength - mean for strength in solved[:n_players])
    covariance = _covariance(outcomes, solved, n_players, bool(prior))
    if ties != "davidson":
        return StrengthFit(strengths=strengths, covariance=covariance)
    tie_strength = math.exp(solved[-1]) if davidson else 0.0
    return StrengthFit(strengths=strengths, tie_strength=tie_strength, covariance=covariance)


def _unconnected_players(n_players: int, contests: Sequence[Contest]) -> tuple[int, ...]:
    """Return the players outside the largest set in which wins and ties connect each player to each other."""
    beats: dict[int, set[int]] = {player: set() for player in range(n_players)}
    for one in contests:
        if one.won or one.tied:
            beats[one.left].add(one.right)
        if one.lost or one.tied:
            beats[one.right].add(one.left)
    beaten_by: dict[int, set[int]] = {player: set() for player in beats}
    for winner, losers in beats.items():
        for loser in losers:
            beaten_by[loser].add(winner)
    left, largest = set(beats), set[int]()
    while left:
        start = min(left)
        together = _reachable_players(start, beats) & _reachable_players(start, beaten_by)
        largest = max(largest, together, key=len)
        left -= together
    return tuple(sorted(set(beats) - largest))


def _reachable_players(start: int, to: Mapping[int, set[int]]) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        new = to[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def _outcomes(
    n_players: int, contests: Sequence[Contest], davidson: bool, prior: float
) -> list[list[_Outcome]]:
    """Return the possible outcomes of each pair; the tie strength comes after the players."""
    found = []
    for one in contests:
        half = 0.0 if davidson else one.tied / 2
        pair = [_Outcome({one.left: 1.0}, one.won + half), _Outcome({one.right: 1.0}, one.lost + half)]
        if davidson:
            pair.append(_Outcome({one.left: 0.5, one.right: 0.5, n_players: 1.0}, one.tied))
        found.append(pair)
    if prior:
        # The average player has strength 0.
        half = prior / 2
        found += [[_Outcome({player: 1.0}, half), _Outcome({}, half)] for player in range(n_players)]
    return found


def _newton(outcomes: Sequence[Sequence[_Outcome]], n_players: int, size: int) -> list[float]:
    """Return the parameters that maximize the likelihood."""
    import numpy as np  # imported only if a model is fitted

    at = np.zeros(size)
    reached = _likelihood(outcomes, at)
    for _ in range(_STEPS):
        slope, spread = np.zeros(size), np.zeros((size, size))
        # Strengths are determined up to a constant; this fixes their sum without changing the likelihood.
        spread[:n_players, :n_players] = 1.0
        for pair in outcomes:
            _add_slopes(pair, at, slope, spread)
        step = np.linalg.solve(spread, slope)
        found = _likelihood(outcomes, at + step)
        while found < reached - _SETTLED * abs(reached) and np.abs(step).max() > _SETTLED:
            step = step / 2
            found = _likelihood(outcomes, at + step)
        at, reached = at + step, found
        if np.abs(step).max() < _SETTLED:
            break
    return [float(one) for one in at]


def _covariance(
    outcomes: Sequence[Sequence[_Outcome]], at: Sequence[float], n_players: int, anchored: bool
) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of the centered strengths, from the information matrix at `at`.

    In both models the information depends on the number of comparisons, not on their outcomes.
    """
    import numpy as np  # imported only if a model is fitted

    size = len(at)
    slope, spread = np.zeros(size), np.zeros((size, size))
    if not anchored:
        # There is no information on the sum of the strengths; centring removes what is added here.
        spread[:n_players, :n_players] = 1.0
    for pair in outcomes:
        _add_slopes(pair, at, slope, spread)
    centre = np.eye(size)
    centre[:n_players, :n_players] -= 1 / n_players
    covariance = centre @ np.linalg.solve(spread, centre)
    return tuple(tuple(float(one) for one in row[:n_players]) for row in covariance[:n_players])


def _add_slopes(pair: Sequence[_Outcome], at: Any, slope: Any, spread: Any) -> None:
    """Add the contribution of one pair to the gradient and to the information matrix."""
    total = sum(one.seen for one in pair)
    shares = [math.exp(log) for log in _log_shares(pair, at)]
    expected: dict[int, float] = {}
    for one, share in zip(pair, shares, strict=True):
        for p, x in one.of.items():
            slope[p] += (one.seen - total * share) * x
            expected[p] = expected.get(p, 0.0) + share * x
            for q, y in one.of.items():
                spread[p, q] += total * share * x * y
    for p, x in expected.items():
        for q, y in expected.items():
            spread[p, q] -= total * x * y


def _likelihood(outcomes: Sequence[Sequence[_Outcome]], at: Any) -> float:
    return math.fsum(
        one.seen * log
        for pair in outcomes
        for one, log in zip(pair, _log_shares(pair, at), strict=True)
        if one.seen
    )


def _log_shares(pair: Sequence[_Outcome], at: Any) -> list[float]:
    logits = [math.fsum(x * float(at[p]) for p, x in one.of.items()) for one in pair]
    top = max(logits)
    whole = top + math.log(math.fsum(math.exp(logit - top) for logit in logits))
    return [logit - whole for logit in logits]
