"""Comparisons of candidates: strengths from who beat whom, and whether their order sways a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack, get_args

from autorubric.aggregation import Contest, TieModel, fit_strengths
from autorubric.errors import ArgumentError
from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import read_pair
from autorubric.metrics._contingency_figures import share_figure
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import estimate
from autorubric.metrics._options import CodedArguments, IntervalOptions
from autorubric.metrics._scales import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerryResult:
    """Strengths in the Bradley–Terry model.

    Attributes:
        strengths: Logarithmic strength by name, their mean 0; None where the likelihood has no maximum.
        tie_strength: Davidson's ν: a tie between equals is ν times as likely as a win of one; None where
            ties are half wins.
        n: Comparisons.
        unconnected: The players for want of whose wins or losses there is no maximum.
        reason: Why there are no strengths, in words.
    """

    strengths: Mapping[str, float] | None
    tie_strength: float | None = None
    n: int = 0
    unconnected: tuple[str, ...] = field(default=())
    reason: str | None = None


def bradley_terry(
    comparisons: Iterable[tuple[str, str, str | None]],
    *,
    ties: TieModel = "half",
    prior: float | None = None,
) -> BradleyTerryResult:
    """Strengths from who beat whom: `P(i beats j) = 1 / (1 + e^(a_j - a_i))` [1], by maximum likelihood.

    The strengths are logarithmic, and centred: their mean is 0. There is a maximum if and only if from each
    player a chain of wins or ties leads to every other [3]. Without it the strengths are None, and the
    players outside the largest connected set are named; `prior` adds what is missing.

    Args:
        comparisons: `(left, right, winner)`, the winner being one of the two, or None for a tie.
        ties: `"half"`: a tie is half a win for each; `"davidson"`: an outcome of its own [2].
        prior: So many comparisons of each player with an average one, half of them won, are added.

    Raises:
        ArgumentError: A comparison is none, there are fewer than two players, or an option is not allowed.

    References:
        [1] R. A. Bradley and M. E. Terry (1952), Biometrika 39(3/4), 324-345.
        [2] R. R. Davidson (1970), JASA 65(329), 317-328, equations (2.4) and (2.5).
        [3] L. R. Ford (1957), American Mathematical Monthly 64(8.2), 28-33.
    """
    if ties not in get_args(TieModel):
        raise ArgumentError(f"ties={ties!r}; give one of {list(get_args(TieModel))}")
    if prior is not None and not 0 < prior < float("inf"):
        raise ArgumentError(f"prior={prior!r}; give a number of comparisons above 0, or None")
    players: dict[str, int] = {}
    counts: dict[tuple[int, int], list[int]] = {}
    n = 0
    for comparison in comparisons:
        left, right, winner = _checked(comparison)
        places = [players.setdefault(name, len(players)) for name in (left, right)]
        outcome = 2 if winner is None else int((winner == left) != (places[0] < places[1]))
        counts.setdefault((min(places), max(places)), [0, 0, 0])[outcome] += 1
        n += 1
    if len(players) < 2:
        raise ArgumentError(f"{n} comparisons of {len(players)} players; give comparisons of two or more")
    contests = [
        Contest(left=left, right=right, won=won, lost=lost, tied=tied)
        for (left, right), (won, lost, tied) in counts.items()
    ]
    fit = fit_strengths(len(players), contests, ties=ties, prior=prior)
    names = list(players)
    if fit.strengths is None:
        apart = tuple(names[place] for place in fit.apart)
        reason = f"not every player has won from and lost to the others by some chain: {', '.join(apart)}"
        return BradleyTerryResult(strengths=None, n=n, unconnected=apart, reason=reason)
    strengths = dict(zip(names, fit.strengths, strict=True))
    return BradleyTerryResult(strengths=strengths, tie_strength=fit.tie_strength, n=n)


def _checked(comparison: Any) -> tuple[str, str, str | None]:
    try:
        left, right, winner = comparison
    except (TypeError, ValueError):
        raise ArgumentError(f"{comparison!r} is no comparison; give (left, right, winner or None)") from None
    if left == right or winner not in (left, right, None):
        raise ArgumentError(
            f"{comparison!r}: a comparison has two different players, and one of them or None as the winner"
        )
    return left, right, winner


def position_consistency(
    first: Iterable[Any],
    swapped: Iterable[Any],
    *,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Share of comparisons with the same outcome in both orders of the candidates.

    Both sides name the candidates alike, whatever the order. A judge that always takes the first one shown
    has 0; one that tosses a coin between two about 1/2. Wilson's interval. No pair: undefined (`no_pairs`).

    Args:
        first: Outcomes in the order declared; None and NaN are missing, and drop the pair.
        swapped: Outcomes in the other order, by the same names.
        scale: Declared outcomes; None takes those seen.
        **interval: See `CodedArguments`.
    """
    options = IntervalOptions(**interval)
    pair = read_pair(first, swapped, None, scale, options)
    figure = share_figure(
        "position consistency", pair.size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs"
    )
    return estimate(figure, pair.units, options, n_missing=pair.n_missing)
