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
from itertools import chain
from typing import Any, Literal, NamedTuple

TieModel = Literal["half", "davidson"]

_STEPS, _SETTLED = 200, 1e-12


class Contest(NamedTuple):
    """Two players and how often each won; the counts can be fractional weights."""

    left: int
    right: int
    won: float = 0.0
    lost: float = 0.0
    tied: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthFit:
    # Log strength of each player, with mean 0; None if the likelihood has no maximum.
    strengths: tuple[float, ...] | None
    tie_strength: float | None = None
    # Covariance of the strengths about their mean, from the inverse of the observed information, including
    # the prior's comparisons; None if there is no maximum.
    covariance: tuple[tuple[float, ...], ...] | None = None
    # Positions of the players that cannot be reached from all others, or cannot reach them, by a chain of
    # wins and ties; empty if there is a maximum.
    apart: tuple[int, ...] = field(default=())


class _Outcomes(NamedTuple):
    """Outcomes of all pairs; the tie strength and an average player of strength 0 follow the players."""

    of: Any  # parameters of each pair, shape `(k, n_pairs)`: left, right and, with it, the tie strength
    seen: Any  # count of each outcome, shape `(k, n_pairs)`
    possible: Any  # whether the pair can have the outcome: no ties with the average player
    parts: Any  # coefficients of the parameters (columns) in the logit of each outcome, shape `(k, k)`


def fit_strengths(
    n_players: int, contests: Sequence[Contest], *, ties: TieModel = "half", prior: float | None = None
) -> StrengthFit:
    """Fit the strengths; `prior` comparisons of each player with an average one ensure a maximum."""
    apart = () if prior else _unconnected_players(n_players, contests)
    if apart:
        return StrengthFit(strengths=None, apart=apart)
    # Without ties, the most likely tie strength is 0, whose logarithm the search cannot reach.
    davidson = ties == "davidson" and any(contest.tied for contest in contests)
    outcomes = _outcomes(n_players, contests, davidson, prior or 0.0)
    solved = _newton(outcomes, n_players, n_players + davidson)
    strengths = tuple((solved[:n_players] - solved[:n_players].mean()).tolist())
    covariance = _covariance(outcomes, solved, n_players, bool(prior))
    if ties != "davidson":
        return StrengthFit(strengths=strengths, covariance=covariance)
    tie_strength = math.exp(float(solved[-1])) if davidson else 0.0
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


def _outcomes(n_players: int, contests: Sequence[Contest], davidson: bool, prior: float) -> _Outcomes:
    import numpy as np  # imported only if a model is fitted

    rows = np.fromiter(chain.from_iterable(contests), float, 5 * len(contests)).reshape(-1, 5).T
    of, seen = rows[:2].astype(np.int64), rows[2:]
    possible = np.ones_like(seen, dtype=bool)
    if prior:
        average = np.full(n_players, n_players + davidson)
        of = np.hstack([of, [np.arange(n_players), average]])
        seen = np.hstack([seen, np.repeat([[prior / 2], [prior / 2], [0.0]], n_players, axis=1)])
        possible = np.hstack([possible, np.repeat([[True], [True], [False]], n_players, axis=1)])
    if not davidson:
        return _Outcomes(of, seen[:2] + seen[2] / 2, possible[:2], np.eye(2))
    of = np.vstack([of, np.full(of.shape[1], n_players)])
    return _Outcomes(of, seen, possible, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0]]))


def _newton(outcomes: _Outcomes, n_players: int, size: int) -> Any:
    """Return the parameters that maximize the likelihood."""
    import numpy as np  # imported only if a model is fitted

    at = np.zeros(size)
    reached = _likelihood(outcomes, at)
    for _ in range(_STEPS):
        slope, spread = _slopes(outcomes, at)
        # Strengths are determined up to a constant; this fixes their sum without changing the likelihood.
        spread[:n_players, :n_players] += 1.0
        step = np.linalg.solve(spread, slope)
        found = _likelihood(outcomes, at + step)
        while found < reached - _SETTLED * abs(reached) and np.abs(step).max() > _SETTLED:
            step = step / 2
            found = _likelihood(outcomes, at + step)
        at, reached = at + step, found
        if np.abs(step).max() < _SETTLED:
            break
    return at


def _covariance(
    outcomes: _Outcomes, at: Any, n_players: int, anchored: bool
) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of the centered strengths, which depends on the number of comparisons alone."""
    import numpy as np  # imported only if a model is fitted

    spread = _slopes(outcomes, at)[1]
    if not anchored:
        # There is no information on the sum of the strengths; centring removes what is added here.
        spread[:n_players, :n_players] += 1.0
    covariance = np.linalg.inv(spread)[:n_players, :n_players]
    covariance -= covariance.mean(0)
    covariance -= covariance.mean(1)[:, None]
    return tuple(map(tuple, covariance.tolist()))


def _slopes(outcomes: _Outcomes, at: Any) -> tuple[Any, Any]:
    """Return the gradient and the information matrix of the parameters."""
    import numpy as np  # imported only if a model is fitted

    of, seen, _, parts = outcomes
    size = len(at) + 1
    total = seen.sum(0)
    shares = np.exp(_log_shares(outcomes, at))
    slope = np.bincount(of.ravel(), weights=(parts.T @ (seen - total * shares)).ravel(), minlength=size)
    expected = parts.T @ shares
    products = (parts[:, :, None] * parts[:, None, :]).reshape(len(parts), -1).T @ shares
    within = products.reshape(len(parts), *expected.shape) - expected[:, None] * expected
    places = of[:, None] * size + of
    spread = np.bincount(places.ravel(), weights=(total * within).ravel(), minlength=size * size)
    return slope[:-1], spread.reshape(size, size)[:-1, :-1]


def _likelihood(outcomes: _Outcomes, at: Any) -> float:
    seen = outcomes.seen > 0
    return float((outcomes.seen[seen] * _log_shares(outcomes, at)[seen]).sum())


def _log_shares(outcomes: _Outcomes, at: Any) -> Any:
    import numpy as np  # imported only if a model is fitted

    logits = outcomes.parts @ np.append(at, 0.0)[outcomes.of]
    logits[~outcomes.possible] = -np.inf
    logits -= logits.max(0)
    return logits - np.log(np.exp(logits).sum(0))
