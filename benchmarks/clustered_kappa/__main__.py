"""Coverage of `cohen_kappa(cluster=)` by the number of clusters: `python -m benchmarks.clustered_kappa`.

Ends with status 1 where the intervals of some design, from the number of clusters on below which the library
warns, cover less than 93 % by more than three standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom
from threadpoolctl import threadpool_limits

from autorubric.metrics import Estimate, cohen_kappa
from autorubric.metrics.core.estimation import FEWEST_CLUSTERS
from benchmarks._output import markdown

FLOOR = 0.93
NUMBERS = (8, 12, 20, 40)
JUDGES = ((0.97, 0.97), (0.9, 0.85), (0.75, 0.7))
CLUSTERS = (("10", 0.3), ("10", 0.6), ("3", 0.3), ("1 to 19", 0.3))
TOP = 4
GRID = 4096

Codes: TypeAlias = npt.NDArray[np.int64]
Shares: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """A population of clusters of pairs.

    Attributes:
        base_rate: Proportion of MET; for ratings from 0 to `TOP`, the mean divided by `TOP`.
        sensitivity: Proportion of MET, or of ratings, on which the judge is right.
        specificity: Proportion of UNMET on which it is right; None for ratings, where errors are one level.
        size: Pairs per cluster.
        effect: Intraclass correlation of the labels, and of being right, in a cluster.
    """

    base_rate: float
    sensitivity: float
    specificity: float | None
    size: str
    effect: float


@dataclass(frozen=True, slots=True)
class Cell:
    """Result of the replicates of a design; proportions are of the intervals that exist."""

    design: Design
    clusters: int
    kappa: float
    given: int
    coverage: float
    too_low: float
    too_high: float
    width: float


DESIGNS = tuple(
    Design(base, *judge, *clusters) for base, judge, clusters in product((0.5, 0.9), JUDGES, CLUSTERS)
) + tuple(Design(0.6, 0.7, None, *clusters) for clusters in CLUSTERS[::3])


@cache
def _quantiles(mean: float, effect: float) -> Shares:
    """Return evenly spaced quantiles of a beta distribution with a mean and an intraclass correlation."""
    strength = 1 / effect - 1
    ranks = (np.arange(GRID) + 0.5) / GRID
    return np.asarray(beta.ppf(ranks, mean * strength, (1 - mean) * strength))


def _rates(mean: float, effect: float, ranks: Codes) -> Shares:
    """Return the clusters' rates at these ranks of the grid."""
    return _quantiles(mean, effect)[ranks] if effect else np.full(len(ranks), mean)


def drawn(design: Design, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
    """Draw labels, verdicts and cluster numbers of the pairs of `n` clusters."""
    uneven = design.size == "1 to 19"
    sizes = rng.integers(1, 20, n) if uneven else np.full(n, int(design.size))
    cluster = np.repeat(np.arange(n), sizes)
    met, clear = rng.integers(0, GRID, (2, n))
    rates = _rates(design.base_rate, design.effect, met)[cluster]
    right = _rates(design.sensitivity, design.effect, clear)[cluster]
    if design.specificity is None:
        truth = rng.binomial(TOP, rates)
        step = np.where(rng.random(len(cluster)) < 0.5, 1, -1)
        wrong = np.clip(truth + step, 0, TOP)
    else:
        truth = rng.binomial(1, rates)
        right = np.where(truth == 1, right, _rates(design.specificity, design.effect, clear)[cluster])
        wrong = 1 - truth
    return truth, np.where(rng.random(len(cluster)) < right, truth, wrong), cluster


def population(design: Design) -> Shares:
    """Return the proportions of label (rows) and verdict in all clusters, shape `(K, K)`."""
    if design.specificity is not None:
        rows = [[design.specificity, 1 - design.specificity], [1 - design.sensitivity, design.sensitivity]]
        return np.array([[1 - design.base_rate], [design.base_rate]]) * rows
    if design.effect:
        rates = _quantiles(design.base_rate, design.effect)
        margin = np.mean([binom.pmf(np.arange(TOP + 1), TOP, rate) for rate in rates], axis=0)
    else:
        margin = binom.pmf(np.arange(TOP + 1), TOP, design.base_rate)
    table = np.diag(margin * design.sensitivity)
    for level, share in enumerate(margin):
        for step in (-1, 1):
            table[level, min(max(level + step, 0), TOP)] += share * (1 - design.sensitivity) / 2
    return table


def true_kappa(design: Design) -> float:
    """Return kappa of the population, with quadratic weights for ratings."""
    shares = population(design)
    levels = np.arange(len(shares))
    distances = (levels[:, None] - levels) ** 2
    return 1 - float((shares * distances).sum() / (np.outer(shares.sum(1), shares.sum(0)) * distances).sum())


def _estimate(design: Design, n: int, rng: np.random.Generator) -> Estimate:
    truth, judged, cluster = drawn(design, n, rng)
    ratings = design.specificity is None
    return cohen_kappa(
        truth,
        judged,
        labels=TOP + 1 if ratings else 2,
        weights="quadratic" if ratings else None,
        cluster=cluster,
        n_resamples=400,
        rng=int(rng.integers(2**32)),
    )


def measure(where: tuple[int, Design], replicates: int, seed: int) -> Cell:
    """Simulate a design with a number of clusters; the same seed gives the same counts."""
    n, design = where
    rng = np.random.default_rng([seed, n, DESIGNS.index(design)])
    kappa = true_kappa(design)
    with threadpool_limits(1):
        found = [_estimate(design, n, rng) for _ in range(replicates)]
    low, high = np.array([(one.low, one.high) for one in found if one.low is not None], dtype=float).T
    return Cell(
        design,
        n,
        kappa,
        len(low),
        float(((low <= kappa) & (kappa <= high)).mean()),
        float((high < kappa).mean()),
        float((low > kappa).mean()),
        float((high - low).mean()),
    )


def _short(cell: Cell) -> bool:
    error = math.sqrt(FLOOR * (1 - FLOOR) / cell.given)
    return cell.clusters >= FEWEST_CLUSTERS and cell.coverage < FLOOR - 3 * error


def _lines(cells: Sequence[Cell]) -> Iterator[Sequence[str]]:
    yield ("clusters", "designs", "lowest", "below .93", "mean", "highest", "mean width")
    yield ("--:",) * 7
    for n in dict.fromkeys(one.clusters for one in cells):
        here = [one for one in cells if one.clusters == n]
        covered = [one.coverage for one in here]
        yield (
            str(n),
            str(len(here)),
            f"{min(covered):.3f}",
            str(sum(one < FLOOR for one in covered)),
            f"{np.mean(covered):.3f}",
            f"{max(covered):.3f}",
            f"{np.mean([one.width for one in here]):.3f}",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clustered_kappa", description=__doc__)
    parser.add_argument("--replicates", type=int, default=500, help="replicates per cell (default 500)")
    parser.add_argument(
        "--clusters", nargs="+", type=int, default=NUMBERS, help="numbers of clusters to simulate"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--workers", type=int, default=2, help="number of processes; 1 runs in the main process"
    )
    parser.add_argument("--json", type=Path, help="file to which the figures of each design are also written")
    given = parser.parse_args(argv)
    wanted = list(product(given.clusters, DESIGNS))
    count = partial(measure, replicates=given.replicates, seed=given.seed)
    if given.workers <= 1:
        cells = [count(one) for one in wanted]
    else:
        with ProcessPoolExecutor(given.workers) as pool:
            cells = list(pool.map(count, wanted, chunksize=4))
    print(markdown(_lines(cells)))
    if given.json:
        given.json.write_text(
            "[\n" + ",\n".join(json.dumps(asdict(one)) for one in cells) + "\n]\n", encoding="utf-8"
        )
    return int(any(_short(one) for one in cells))


if __name__ == "__main__":
    sys.exit(main())
