"""Counts over the replicates of a cell, and the table of all cells."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.coverage._simulations import ALL, Cell

LEVEL = 0.95
FLOOR = 0.93


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Result of the replicates of a cell.

    Attributes:
        cell: The cell.
        truth: The true value.
        replicates: Number of replicates.
        covered: Number whose interval contains it.
        below: Number whose interval is below it.
        above: Number whose interval is above it.
        without: Number without a value or an interval, which count as not covered.
        width: Mean width of the intervals; None without any.
    """

    cell: Cell
    truth: float
    replicates: int
    covered: int
    below: int
    above: int
    without: int
    width: float | None

    @property
    def coverage(self) -> float:
        """Proportion of all replicates whose interval contains the true value."""
        return self.covered / self.replicates

    @property
    def coverage_of_given(self) -> float:
        """Proportion of the existing intervals that contain the true value; 0 if there are none."""
        return self.covered / max(self.replicates - self.without, 1)

    def to_dict(self) -> dict[str, object]:
        """Return all figures for JSON."""
        return {**asdict(self), "coverage": self.coverage, "coverage_of_given": self.coverage_of_given}


def tally(cell: Cell, replicates: int, seed: int) -> Tally:
    """Simulate a cell; the same seed gives the same counts, independently of other cells."""
    simulation = ALL[cell.simulation]
    truth = simulation.truth(cell.prevalence)
    key = zlib.crc32(cell.simulation.encode())
    rng = np.random.default_rng([seed, key, cell.n, round(1000 * cell.prevalence)])
    with threadpool_limits(1):
        found = [simulation.estimate(cell, rng) for _ in range(replicates)]
    ends = np.array([(one.low, one.high) for one in found if one.low is not None and one.high is not None])
    low, high = ends.reshape(-1, 2).T
    return Tally(
        cell=cell,
        truth=truth,
        replicates=replicates,
        covered=int(np.count_nonzero((low <= truth) & (truth <= high))),
        below=int(np.count_nonzero(high < truth)),
        above=int(np.count_nonzero(low > truth)),
        without=replicates - len(low),
        width=float((high - low).mean()) if len(low) else None,
    )


def markdown(tallies: Iterable[Tally]) -> str:
    """Return the table, one row per cell."""
    heads = (
        "figure",
        "prevalence",
        "n",
        "true value",
        "coverage",
        "of those given",
        "too low",
        "too high",
        "refused",
        "width",
    )
    lines = [_line(heads), _line(["---", *["--:"] * (len(heads) - 1)])]
    lines += [_line(_row(one)) for one in tallies]
    return "\n".join(lines)


def _row(one: Tally) -> Sequence[str]:
    shares = (count / one.replicates for count in (one.below, one.above, one.without))
    return (
        ALL[one.cell.simulation].title,
        f"{one.cell.prevalence:.1f}",
        str(one.cell.n),
        f"{one.truth:.3f}",
        f"{one.coverage:.3f}",
        f"{one.coverage_of_given:.3f}",
        *(f"{share:.3f}" for share in shares),
        "–" if one.width is None else f"{one.width:.3f}",
    )


def _line(words: Iterable[str]) -> str:
    return f"| {' | '.join(words)} |"
