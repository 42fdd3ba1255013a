"""Coverage of `corrected_score(run, calibration=labelled_run)`: `python -m benchmarks.calibrated_score`.

The columns of both runs are drawn, joined and corrected as in `corrected_score` after reading; a
test compares the two. Exits with status 1 if the intervals of a cell cover less than 93 % by more than
three standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from autorubric.metrics import Estimate
from autorubric.metrics.correction.samples import CorrectionOptions
from autorubric.metrics.correction.score import correct_criteria
from autorubric.metrics.correction.score_columns import CriterionColumns, ScoredRun, join_calibration
from benchmarks._output import markdown

FLOOR = 0.93
N_TESTED = 200
PREVALENCES = tuple(at / 10 for at in range(1, 10))
LABELLED = (50, 100, 200)
JUDGES = ((0.9, 0.85), (0.8, 0.7))
WEIGHTS = {1: (1.0,), 4: (0.5, 0.3, 0.2, -0.3)}
ITEM_CORRELATION = 0.3

Met: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Design:
    """A judge, and the labels of the calibration run.

    Attributes:
        sensitivity: Proportion of MET that the judge passes.
        specificity: Proportion of UNMET that it fails.
        labelled: Labelled items of the calibration run.
        labels: Proportion of MET among the labelled items: `"half"`, or `"alike"`, as in the run.
        criteria: Criteria of the rubric; of several the items' labels and errors correlate, and one is a
            penalty.
    """

    sensitivity: float
    specificity: float
    labelled: int
    labels: str
    criteria: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Result of the replicates of a design; proportions are of the intervals that exist."""

    design: Design
    prevalence: float
    replicates: int
    given: int
    coverage: float
    too_low: float
    too_high: float
    width: float


DESIGNS = (
    *(Design(*judge, labelled, "half", 1) for judge, labelled in product(JUDGES, LABELLED)),
    *(Design(*judge, 100, "alike", 1) for judge in JUDGES),
    Design(*JUDGES[0], 100, "half", 4),
)


def drawn(design: Design, n: int, prevalence: float, rng: np.random.Generator) -> tuple[Met, Met]:
    """Draw truth and verdicts of items, each `(n, criteria)`."""
    shape = (n, design.criteria)
    strength = 1 / ITEM_CORRELATION - 1
    rates, right = np.full((n, 1), prevalence), np.empty(shape)
    if design.criteria > 1:
        rates = rng.beta(prevalence * strength, (1 - prevalence) * strength, (n, 1))
    truth = rng.random(shape) < rates
    for value, share in ((True, design.sensitivity), (False, design.specificity)):
        of = rng.beta(share * strength, (1 - share) * strength, (n, 1)) if design.criteria > 1 else share
        right = np.where(truth == value, of, right)
    return truth, truth == (rng.random(shape) < right)


def columns(truth: Met, said: Met, *, labels: bool) -> ScoredRun:
    """Return what `corrected_score` reads from a run with these verdicts, with or without labels."""
    n, n_criteria = truth.shape
    criteria = tuple(
        CriterionColumns(
            f"c{at}",
            ("UNMET", "MET"),
            np.array([0.0, 1.0]),
            weight,
            truth[:, at].astype(np.int64) if labels else np.full(n, -1),
            said[:, at].astype(np.int64),
            truth[:, at].astype(float) if labels else np.full(n, np.nan),
            said[:, at].astype(float),
        )
        for at, weight in enumerate(WEIGHTS[n_criteria])
    )
    nothing = np.full(n, np.nan)
    return ScoredRun(criteria, 0.0, nothing, nothing, np.zeros(n, bool), (), 0, np.ones(n, bool))


def corrected(tested: ScoredRun, calibration: ScoredRun, seed: int) -> Estimate:
    """Return the corrected mean of the test run, as `corrected_score` computes it from both columns."""
    options = CorrectionOptions(n_resamples=400, rng=seed)
    return correct_criteria(join_calibration(tested, calibration), "rogan-gladen", "random", options).score


def _interval(design: Design, prevalence: float, rng: np.random.Generator) -> tuple[float, float] | None:
    of_labels = 0.5 if design.labels == "half" else prevalence
    tested = columns(*drawn(design, N_TESTED, prevalence, rng), labels=False)
    calibration = columns(*drawn(design, design.labelled, of_labels, rng), labels=True)
    found = corrected(tested, calibration, int(rng.integers(2**32)))
    return None if found.low is None or found.high is None else (found.low, found.high)


def measure(where: tuple[Design, float], replicates: int, seed: int) -> Cell:
    """Simulate a design at a prevalence; the same seed gives the same counts."""
    design, prevalence = where
    rng = np.random.default_rng([seed, DESIGNS.index(design), round(100 * prevalence)])
    truth = prevalence * sum(WEIGHTS[design.criteria])
    with threadpool_limits(1):
        found = [_interval(design, prevalence, rng) for _ in range(replicates)]
    low, high = np.array([one for one in found if one is not None], dtype=float).reshape(-1, 2).T
    given = max(len(low), 1)
    return Cell(
        design,
        prevalence,
        replicates,
        len(low),
        float(((low <= truth) & (truth <= high)).sum() / given),
        float((high < truth).sum() / given),
        float((low > truth).sum() / given),
        float((high - low).sum() / given),
    )


def _short(cell: Cell) -> bool:
    error = math.sqrt(FLOOR * (1 - FLOOR) / max(cell.given, 1))
    return cell.given > 0 and cell.coverage < FLOOR - 3 * error


def _lines(cells: Sequence[Cell]) -> Iterator[Sequence[str]]:
    prevalences = list(dict.fromkeys(one.prevalence for one in cells))
    yield (
        "criteria",
        "sensitivity",
        "specificity",
        "labels",
        "MET in them",
        *map(str, prevalences),
        "refused",
    )
    yield (*["--:"] * 4, "---", *["--:"] * (len(prevalences) + 1))
    for design in dict.fromkeys(one.design for one in cells):
        row = [one for one in cells if one.design == design]
        refused = 1 - sum(one.given for one in row) / sum(one.replicates for one in row)
        yield (
            str(design.criteria),
            str(design.sensitivity),
            str(design.specificity),
            str(design.labelled),
            design.labels,
            *(f"{one.coverage:.3f}" for one in row),
            f"{refused:.3f}",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrated_score", description=__doc__)
    parser.add_argument("--replicates", type=int, default=300, help="replicates per cell (default 300)")
    parser.add_argument(
        "--prevalences", nargs="+", type=float, default=PREVALENCES, help="prevalences to simulate"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--workers", type=int, default=2, help="number of processes; 1 runs in the main process"
    )
    parser.add_argument("--json", type=Path, help="file to which the figures of each cell are also written")
    given = parser.parse_args(argv)
    wanted = list(product(DESIGNS, given.prevalences))
    count = partial(measure, replicates=given.replicates, seed=given.seed)
    if given.workers <= 1:
        cells = [count(one) for one in wanted]
    else:
        with ProcessPoolExecutor(given.workers) as pool:
            cells = list(pool.map(count, wanted, chunksize=4))
    print(markdown(_lines(cells)))
    if given.json:
        lines = ",\n".join(json.dumps(asdict(one)) for one in cells)
        given.json.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return int(any(_short(one) for one in cells))


if __name__ == "__main__":
    sys.exit(main())
