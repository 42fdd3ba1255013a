"""Warnings that a Dawid-Skene fit may not recover the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_to_truth._copies import copying_pairs
from autorubric.metrics._votes_to_truth._expectation_maximisation import Fit
from autorubric.metrics._votes_to_truth._patterns import Patterns

_READINGS = 3
_NAMES_SHOWN = 5


def fit_warnings(
    fit: Fit, patterns: Patterns, raters: Sequence[Any], categories: Sequence[Any]
) -> tuple[str, ...]:
    """Return the warnings for a fit to patterns that have at least one vote each."""
    n_items, size = int(patterns.counts.sum()), len(categories)
    voted = (patterns.votes.T @ patterns.counts).reshape(len(raters), size)
    found = []
    if patterns.n_columns < _READINGS:
        found.append(
            f"{patterns.n_columns} columns of votes do not identify the model: with fewer than {_READINGS}, "
            "several solutions fit equally well and the starting point decides between them"
        )
    active = int(np.count_nonzero(voted.sum(1)))
    free = (size - 1) + active * size * (size - 1)
    if n_items < free:
        found.append(
            f"{n_items} items are too few to estimate {free} parameters; smoothing stabilises the estimates"
        )
    found += _on_raters(fit, voted, raters)
    found += _on_copies(patterns, raters)
    empty = [categories[k] for k in np.flatnonzero(fit.support.sum(0) == 0).tolist()]
    if empty:
        found.append(f"no item belongs to {_listed(empty)}; error rates of such classes are not estimated")
    if not fit.converged:
        found.append(f"the fit did not converge in {fit.iterations} iterations; increase max_iterations")
    return tuple(found)


def _on_raters(fit: Fit, voted: Array, raters: Sequence[Any]) -> list[str]:
    """Warn about raters that have no votes, give only one label, or are worse than guessing."""
    size = voted.shape[1]
    silent = voted.sum(1) == 0
    constant = (np.count_nonzero(voted, axis=1) == 1) & (size > 1)
    seen = fit.support > 0
    right = np.diagonal(fit.confusion, axis1=1, axis2=2)
    expected = np.where(seen, fit.prior, 0.0)
    share = (right * expected).sum(1) / np.where(expected.sum(1) > 0, expected.sum(1), 1.0)
    worse = ~silent & ~constant & (share < 1 / size)
    named = (
        (silent, "have no votes: their confusion matrices are not estimated"),
        (constant, "always give the same label: their votes carry no information about the truth"),
        (worse, "are correct less often than by guessing: their labels, or the classes, may be swapped"),
    )
    found = []
    for which, what in named:
        names = [raters[place] for place in np.flatnonzero(which).tolist()]
        if names:
            found.append(f"raters {_listed(names)} {what}")
    return found


def _on_copies(patterns: Patterns, raters: Sequence[Any]) -> list[str]:
    """Warn about pairs of raters that agree too well to be independent."""
    return [
        f"raters {raters[pair.first]!r} and {raters[pair.second]!r} give the same label on "
        f"{pair.agreement:.1%} of {pair.n_items} items, more than independent errors explain: if one copies "
        "the other, or both are the same model, the fit mistakes agreement for accuracy; exclude one of them"
        for pair in copying_pairs(patterns)
    ]


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"
