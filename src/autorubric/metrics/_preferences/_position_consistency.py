"""Position consistency: whether the order of the candidates affects a judge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import read_pair
from autorubric.metrics._contingency_figures import share_figure
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import estimate
from autorubric.metrics._options import CodedArguments, CodedOptions
from autorubric.metrics._scales import Scale


def position_consistency(
    first: Iterable[Any],
    swapped: Iterable[Any],
    *,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the proportion of comparisons with the same outcome in both orders of the candidates.

    Both arguments use the same names for the candidates, regardless of their order. A judge that always picks
    the first candidate scores 0; a judge that picks one of two at random scores about 1/2. The interval is
    Wilson's. The result is undefined without a complete pair (`no_pairs`).

    Args:
        first: Outcomes in the declared order. None and NaN count as missing, and their pairs are dropped.
        swapped: Outcomes in the other order, with the same names.
        scale: Declared outcomes; None uses the outcomes that occur.
        **interval: See `CodedArguments`.
    """
    options = CodedOptions(**interval)
    pair = read_pair(first, swapped, None, scale, options)
    figure = share_figure(
        "position consistency", pair.size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs"
    )
    return estimate(figure, pair.units, options, n_missing=pair.n_missing)
