"""Bradley-Terry strengths from pairwise comparisons, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.intervals import normal_quantile
from autorubric.metrics.core.resampling import check_choice, check_number
from autorubric.metrics.core.result import Record
from autorubric.scoring.bradley_terry import Contest, StrengthFit, TieModel, fit_strengths

Comparison: TypeAlias = tuple[str, str, str | None]
"""Two players and the winner, or None for a tie."""

_NO_GAIN = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerryResult(Record):
    """Strengths estimated by the Bradley–Terry model.

    Attributes:
        strengths: Log strength of each player, with mean 0; None if the likelihood has no maximum.
        estimates: Strengths with standard errors and intervals; undefined (`not_connected`) if the likelihood
            has no maximum.
        covariance: Covariance of the strengths, in the order of `estimates`; None if they are undefined.
        tie_strength: Davidson's ν: a tie between equal players is ν times as likely as a win by one of them.
            None if ties count as half wins or the likelihood has no maximum.
        n: Number of comparisons.
        unconnected: Players without the wins or losses needed for the likelihood to have a maximum.
        reason: Explanation of why there are no strengths; None if there are strengths.
        method: Description of the model and the interval method.
        confidence_level: Confidence level of the intervals.
    """

    strengths: Mapping[str, float] | None
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    covariance: tuple[tuple[float, ...], ...] | None = None
    tie_strength: float | None = None
    n: int = 0
    unconnected: tuple[str, ...] = field(default=())
    reason: str | None = None
    method: str = ""
    confidence_level: float = 0.95

    def difference(self, left: str, right: str) -> Estimate:
        """Return `left`'s strength minus `right`'s; the interval accounts for their covariance.

        Raises:
            ArgumentError: If a name is not a player.
        """
        names = list(self.estimates)
        for name in (left, right):
            if name not in self.estimates:
                raise ArgumentError(f"unknown player {name!r}; available: {', '.join(names)}")
        method = f"difference of strengths; {self.method}"
        if self.strengths is None or self.covariance is None:
            return Estimate.undefined("not_connected", n=self.n, method=method)
        i, j = names.index(left), names.index(right)
        variance = self.covariance[i][i] + self.covariance[j][j] - 2 * self.covariance[i][j]
        value = self.strengths[left] - self.strengths[right]
        return _wald(value, variance, self.n, method, self.confidence_level)


def bradley_terry(
    comparisons: Iterable[Comparison],
    *,
    ties: TieModel = "davidson",
    prior: float | None = None,
    confidence_level: float = 0.95,
) -> BradleyTerryResult:
    """Estimate players' strengths by maximum likelihood: `P(i beats j) = 1 / (1 + e^(a_j - a_i))` [1].

    Strengths are logarithmic and centred, with mean 0. The likelihood has a maximum if and only if a chain of
    wins or ties leads from each player to every other [3]. Otherwise the strengths are None, and the result
    lists the players outside the largest connected set; `prior` adds the missing connections. Ties are an
    outcome of their own [2]; with ties and too few wins, the strengths are None as well [4].

    Standard errors apply to the centred strengths and use the inverse of the observed information. The
    intervals are Wald intervals and need many comparisons per player. With
    `ties="half"`, the strengths are shrunk if there are ties: they are not those of the formula, which their
    intervals rarely contain. Comparisons added by `prior` count as observations.

    Args:
        comparisons: Tuples `(left, right, winner)`, where winner is one of the two, or None for a tie.
        ties: `"davidson"` models ties as an outcome [2]; `"half"` counts a tie as half a win for each player.
            Both have the same strengths if there are no ties.
        prior: Number of comparisons with an average player to add for each player, half of them as wins.
        confidence_level: Confidence level of the intervals.

    Raises:
        ArgumentError: If a comparison is malformed, there are fewer than two players, or an option is
            invalid.

    References:
        [1] R. A. Bradley and M. E. Terry (1952), Biometrika 39(3/4), 324-345.
        [2] R. R. Davidson (1970), JASA 65(329), 317-328, equations (2.4) and (2.5).
        [3] L. R. Ford (1957), American Mathematical Monthly 64(8.2), 28-33.
        [4] A. Albert and J. A. Anderson (1984), Biometrika 71(1), 1-10.
    """
    check_choice("ties", ties, TieModel)
    if prior is not None:
        check_number("prior", prior, "(0, inf)", hint="or None")
    check_number("confidence_level", confidence_level, "(0, 1)")
    names, contests = _contests(comparisons)
    n = sum(int(one.won + one.lost + one.tied) for one in contests)
    if len(names) < 2:
        raise ArgumentError(f"at least two players are needed; got {n} comparisons of {len(names)} players")
    bounded = ties == "half" or _has_maximum(len(names), contests, bool(prior))
    fit = fit_strengths(len(names), contests, ties=ties if bounded else "half", prior=prior)
    if not bounded:
        fit = StrengthFit(strengths=None, apart=fit.apart)
    method = f"Bradley-Terry (ties {ties}{f', prior {prior:g}' if prior else ''})"
    games = [0] * len(names)
    for left, right, *outcomes in contests:
        of_pair = int(sum(outcomes))
        games[left] += of_pair
        games[right] += of_pair
    if fit.strengths is None or fit.covariance is None:
        apart = tuple(names[place] for place in fit.apart)
        reason = (
            f"no chain of wins and losses connects these players to all others: {', '.join(apart)}"
            if apart
            else "there are too few wins to estimate the strength of ties; pass ties='half'"
        )
        undefined = [Estimate.undefined("not_connected", n=own, method=method) for own in games]
        return BradleyTerryResult(
            strengths=None,
            estimates=dict(zip(names, undefined, strict=True)),
            n=n,
            unconnected=apart,
            reason=reason,
            method=method,
            confidence_level=confidence_level,
        )
    method += f"; Wald, {confidence_level:.0%}"
    variances = [row[place] for place, row in enumerate(fit.covariance)]
    found = [
        _wald(value, variance, own, method, confidence_level)
        for value, variance, own in zip(fit.strengths, variances, games, strict=True)
    ]
    return BradleyTerryResult(
        strengths=dict(zip(names, fit.strengths, strict=True)),
        estimates=dict(zip(names, found, strict=True)),
        covariance=fit.covariance,
        tie_strength=fit.tie_strength,
        n=n,
        method=method,
        confidence_level=confidence_level,
    )


def _has_maximum(n_players: int, contests: Sequence[Contest], has_prior: bool) -> bool:
    """Return whether no direction makes some outcomes more likely and none less, in Davidson's model [4]."""
    if not any(one.tied for one in contests):
        # The most likely tie strength is 0.
        return True
    from scipy.optimize import linprog  # imported here because importing scipy.optimize is slow

    rows = []
    for one in contests:
        outcomes = np.zeros((3, n_players + 1))
        outcomes[0, one.left] = outcomes[1, one.right] = outcomes[2, -1] = 1.0
        outcomes[2, [one.left, one.right]] = 0.5
        for at, count in enumerate((one.won, one.lost, one.tied)):
            if count:
                rows.append(outcomes[at] - np.delete(outcomes, at, axis=0))
    gains = np.concatenate(rows)
    fixed = np.eye(n_players, n_players + 1) if has_prior else np.r_[np.ones(n_players), 0.0][None]
    found = linprog(
        -gains.sum(0),
        A_ub=-gains,
        b_ub=np.zeros(len(gains)),
        A_eq=fixed,
        b_eq=np.zeros(len(fixed)),
        bounds=(-1.0, 1.0),
    )
    return found.fun is None or bool(-found.fun < _NO_GAIN)


def _read_comparison(comparison: Any) -> Comparison:
    """Return the comparison as a tuple `(left, right, winner)`."""
    try:
        left, right, winner = comparison
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a comparison must be (left, right, winner or None); got {comparison!r}"
        ) from None
    if left == right or winner not in (left, right, None):
        raise ArgumentError(
            f"a comparison needs two different players and one of them or None as winner; got {comparison!r}"
        )
    return left, right, winner


def _contests(comparisons: Iterable[Comparison]) -> tuple[list[str], list[Contest]]:
    """Return the players in order of first appearance, and the results of each pair of players."""
    players: dict[str, int] = {}
    counts: dict[tuple[int, int], list[int]] = {}
    for comparison in comparisons:
        left, right, winner = _read_comparison(comparison)
        a, b = players.setdefault(left, len(players)), players.setdefault(right, len(players))
        outcome = 2 if winner is None else int((winner == left) != (a < b))
        pair = (a, b) if a < b else (b, a)
        if pair not in counts:
            counts[pair] = [0, 0, 0]
        counts[pair][outcome] += 1
    contests = [
        Contest(left=left, right=right, won=won, lost=lost, tied=tied)
        for (left, right), (won, lost, tied) in counts.items()
    ]
    return list(players), contests


def _wald(value: float, variance: float, n: int, method: str, confidence_level: float) -> Estimate:
    se = math.sqrt(max(variance, 0.0))
    half = normal_quantile(confidence_level) * se
    return Estimate(value, value - half, value + half, se, n, method)
