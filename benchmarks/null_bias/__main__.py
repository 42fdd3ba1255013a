"""Levels of `bias_report` in runs without a bias: `python -m benchmarks.null_bias`.

Exits with status 1 if the share of runs that report a bias, or of lenient judges, is above α by more
than three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from autorubric import Criterion, DataItem, Rubric, RubricDataset
from autorubric.metrics import bias_report
from benchmarks._output import markdown, print_results

ALPHA = 0.05
DESIGNS = tuple(
    (base, error, n_items, n_judges)
    for n_items, n_judges in ((80, 1), (200, 1), (200, 3))
    for base, error in ((0.5, 0.2), (0.8, 0.2), (0.9, 0.05), (0.1, 0.3))
)


class Found(NamedTuple):
    """A design and the proportions of its runs in which a test rejects."""

    base_rate: float
    error: float
    n_items: int
    n_judges: int
    named: float
    leniency: float
    covered: float
    mean_difference: float


def simulate(base: float, error: float, n_items: int, n_judges: int, rng: np.random.Generator) -> Any:
    """Return the bias report of judges with symmetric errors that correlate between two criteria."""
    truth = rng.random((n_items, 2)) < base
    rubric = Rubric([Criterion(name=name, requirement="It is.") for name in ("a", "b")])
    words = rng.integers(20, 200, n_items)
    items = [
        DataItem(
            id=f"i{at}",
            submission="word " * int(words[at]),
            ground_truth={name: _label(truth[at, k]) for k, name in enumerate(("a", "b"))},
            metadata={"generator": f"j{at % (n_judges + 1)}"},
        )
        for at in range(n_items)
    ]
    rows = []
    for judge in range(n_judges):
        shared = rng.random((n_items, 1)) < 0.3
        wrong = np.where(shared, rng.random((n_items, 1)), rng.random((n_items, 2))) < error
        said = truth ^ wrong
        rows += [
            {"item_id": f"i{at}", "criterion": name, "rater": f"j{judge}", "rater_type": "llm",
             "label": _label(said[at, k])}
            for at in range(n_items)
            for k, name in enumerate(("a", "b"))
        ]  # fmt: skip
    return bias_report(rows, RubricDataset(rubric=rubric, items=items), n_resamples=20)


def _label(met: Any) -> str:
    return "MET" if met else "UNMET"


def measure(design: tuple[float, float, int, int], runs: int, rng: np.random.Generator) -> Found:
    """Return the proportions of runs that report a bias, and of judges for which each test rejects."""
    named, tested = 0, []
    for _ in range(runs):
        report = simulate(*design, rng)
        named += report.summary().startswith("The clearest bias")
        for one in report.per_judge.values():
            effect = one.leniency.effect
            if one.leniency.p_value is not None:
                tested.append(
                    (
                        one.leniency.p_value < ALPHA,
                        effect.low <= 0 <= effect.high,
                        (one.mean_difference.p_value or 1.0) < ALPHA,
                    )
                )
    return Found(*design, named / runs, *np.mean(tested, axis=0).tolist())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.null_bias", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs per design (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = [
        measure(design, given.runs, np.random.default_rng([given.seed, at]))
        for at, design in enumerate(DESIGNS)
    ]
    heads = (
        "base rate", "error", "items", "judges", "runs that name a bias", "leniency p < .05",
        "interval holds 0", "mean difference p < .05",
    )  # fmt: skip
    lines = [heads, ("--:",) * len(heads)]
    lines += [
        (f"{one[0]:g}", f"{one[1]:g}", str(one[2]), str(one[3]), *(f"{share:.3f}" for share in one[4:]))
        for one in found
    ]
    print_results(markdown(lines), [one._asdict() for one in found], given.json)
    slack = 3 * math.sqrt(ALPHA * (1 - ALPHA) / given.runs)
    return int(any(max(one.named, one.leniency) > ALPHA + slack for one in found))


if __name__ == "__main__":
    sys.exit(main())
