"""Power of exact McNemar at the numbers of `sample_size.paired`: `python -m benchmarks.power`.

Exits with status 1 if the power is below the required power by more than three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from autorubric.metrics import compare_judges, sample_size
from benchmarks._output import markdown, print_results

SHARES = ((0.15, 0.05), (0.2, 0.1), (0.25, 0.05), (0.3, 0.2), (0.1, 0.02), (0.3, 0.0), (0.6, 0.4))
POWERS = (0.8, 0.9)


class Found(NamedTuple):
    """A design, the numbers of items of both methods, and the power of the exact test for each."""

    p10: float
    p01: float
    asked: float
    n_formula: int
    power_formula: float
    n_exact: int
    power_exact: float


def simulate_power(n: int, shares: tuple[float, float], studies: int, rng: np.random.Generator) -> float:
    """Return the proportion of simulated studies of `n` items with p < .05."""
    p10, p01 = shares
    draws = rng.multinomial(n, [p10, p01, max(0.0, 1 - p10 - p01)], size=studies)
    outcomes, counts = np.unique(draws[:, :2], axis=0, return_counts=True)
    significant = 0
    for (only_a, only_b), count in zip(outcomes.tolist(), counts.tolist(), strict=True):
        a, b = np.arange(n) >= only_b, np.arange(n) < n - only_a
        found = compare_judges(np.ones(n), a, b, method="mcnemar", ci=None)
        significant += count * (found.p_value is not None and found.p_value < 0.05)
    return significant / studies


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.power", description=__doc__)
    parser.add_argument("--studies", type=int, default=20_000, help="studies per cell (default 20000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = []
    for at, (shares, asked) in enumerate((shares, asked) for shares in SHARES for asked in POWERS):
        rng = np.random.default_rng([given.seed, at])
        formula = sample_size.paired(*shares, power=asked, method="asymptotic").n
        exact = sample_size.paired(*shares, power=asked).n
        at_formula = simulate_power(formula, shares, given.studies, rng)
        at_exact = simulate_power(exact, shares, given.studies, rng)
        found.append(Found(*shares, asked, formula, at_formula, exact, at_exact))
    heads = ("p10", "p01", "power asked", "n, closed form", "power", "n, exact (default)", "power ")
    lines = [heads, ("--:",) * len(heads)]
    lines += [
        (f"{p10:g}", f"{p01:g}", f"{asked:g}", str(n), f"{power:.3f}", str(n_exact), f"{reached:.3f}")
        for p10, p01, asked, n, power, n_exact, reached in found
    ]
    print_results(markdown(lines), [one._asdict() for one in found], given.json)
    slack = [3 * math.sqrt(one.asked * (1 - one.asked) / given.studies) for one in found]
    return int(any(one.power_exact < one.asked - by for one, by in zip(found, slack, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
