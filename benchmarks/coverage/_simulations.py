"""One replicate of each simulation: data drawn from a model, a public function's estimate, the true value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from autorubric.metrics import Estimate, accuracy, cohen_kappa, corrected_rate
from autorubric.metrics._options import CiMethod

SENSITIVITY, SPECIFICITY = 0.9, 0.85
CRITERIA_PER_ITEM = 10
ITEM_CORRELATION = 0.3
N_TESTED = 1000

Codes: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the table.

    Attributes:
        simulation: Name of the simulation.
        prevalence: Share of MET in the population.
        n: Pairs, items or labels, as the simulation says.
    """

    simulation: str
    prevalence: float
    n: int


Estimator: TypeAlias = Callable[[Cell, np.random.Generator], Estimate]
"""(cell, generator) to the estimate of one replicate."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A figure and the model that it is tried on.

    Attributes:
        title: What is tried, and what `n` counts.
        estimate: Draws a replicate and estimates the figure.
        truth: Prevalence to the exact value that the interval should hold.
        sizes: Values of `n`.
    """

    title: str
    estimate: Estimator
    truth: Callable[[float], float]
    sizes: tuple[int, ...] = (30, 50, 100, 200)


def _population(prevalence: float) -> npt.NDArray[np.float64]:
    """Shares of the cells of label and verdict, shape `(2, 2)`, rows the label."""
    rows = [[SPECIFICITY, 1 - SPECIFICITY], [1 - SENSITIVITY, SENSITIVITY]]
    return np.array([[1 - prevalence], [prevalence]]) * rows


def _judged(truth: Codes, rng: np.random.Generator) -> Codes:
    """The judge's verdicts on items of these labels."""
    return (rng.random(truth.shape) < np.where(truth == 1, SENSITIVITY, 1 - SPECIFICITY)).astype(np.int64)


def _labels(n: int, prevalence: float, rng: np.random.Generator) -> Codes:
    return (rng.random(n) < prevalence).astype(np.int64)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))


def _kappa(ci: CiMethod) -> Estimator:
    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        counts = rng.multinomial(cell.n, _population(cell.prevalence).reshape(-1)).reshape(2, 2)
        return cohen_kappa(table=counts, ci=ci, rng=_seed(rng))

    return estimate


def _true_kappa(prevalence: float) -> float:
    shares = _population(prevalence)
    expected = float(shares.sum(1) @ shares.sum(0))
    return (float(np.trace(shares)) - expected) / (1 - expected)


def _item_effects(mean: float, ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A probability for each item: Beta with this mean, at the item's ranks in (0, 1)."""
    strength = 1 / ITEM_CORRELATION - 1
    return np.asarray(beta.ppf(ranks, mean * strength, (1 - mean) * strength))


def _accuracy(*, clustered: bool) -> Estimator:
    """Items differ in how many criteria they meet, and in how well the judge reads them."""

    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        shape = (cell.n, CRITERIA_PER_ITEM)
        truth = (rng.random(shape) < _item_effects(cell.prevalence, rng.random((cell.n, 1)))).astype(np.int64)
        clarity = rng.random((cell.n, 1))
        sure = np.where(truth == 1, _item_effects(SENSITIVITY, clarity), _item_effects(SPECIFICITY, clarity))
        judged = np.where(rng.random(shape) < sure, truth, 1 - truth)
        items = np.repeat(np.arange(cell.n), CRITERIA_PER_ITEM) if clustered else None
        return accuracy(truth.reshape(-1), judged.reshape(-1), labels=2, cluster=items)

    return estimate


def _true_accuracy(prevalence: float) -> float:
    return float(np.trace(_population(prevalence)))


def _rogan_gladen(cell: Cell, rng: np.random.Generator) -> Estimate:
    labelled = _labels(cell.n, cell.prevalence, rng)
    tested = _judged(_labels(N_TESTED, cell.prevalence, rng), rng)
    return corrected_rate(tested, labelled, _judged(labelled, rng), method="rogan-gladen").rate


def _rogan_gladen_by_label(cell: Cell, rng: np.random.Generator) -> Estimate:
    """Labelled items picked by their label, half of each."""
    labelled = np.arange(cell.n) % 2
    tested = _judged(_labels(N_TESTED, cell.prevalence, rng), rng)
    calibration = _judged(labelled, rng)
    return corrected_rate(tested, labelled, calibration, method="rogan-gladen", sampled="chosen").rate


def _ppi(ci: Literal["auto", "bootstrap-t"]) -> Estimator:
    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        labelled = _labels(cell.n, cell.prevalence, rng)
        tested = _judged(_labels(N_TESTED, cell.prevalence, rng), rng)
        calibration = _judged(labelled, rng)
        found = corrected_rate(tested, labelled, calibration, method="ppi++", ci=ci, rng=_seed(rng))
        return found.rate

    return estimate


def _itself(prevalence: float) -> float:
    return prevalence


SIMULATIONS: dict[str, Simulation] = {
    "kappa": Simulation("Cohen's kappa of n pairs, smoothed bootstrap", _kappa("auto"), _true_kappa),
    "accuracy": Simulation(
        f"Accuracy over n items of {CRITERIA_PER_ITEM} criteria, logit-t",
        _accuracy(clustered=True),
        _true_accuracy,
    ),
    "rogan-gladen": Simulation("Rogan–Gladen rate, n random labels", _rogan_gladen, _itself),
    "rogan-gladen by label": Simulation(
        "Rogan–Gladen rate, n labels, half of them MET", _rogan_gladen_by_label, _itself
    ),
    "ppi++": Simulation("ppi++ rate, n random labels", _ppi("auto"), _itself, sizes=(50, 100, 200)),
    "ppi++ bootstrap-t": Simulation(
        "ppi++ rate, bootstrap-t, n random labels", _ppi("bootstrap-t"), _itself, sizes=(30, 50)
    ),
}
"""The defaults, and what stands in for a default that refuses; by name, in the order of the table."""

COMPARED: dict[str, Simulation] = {
    "kappa analytic": Simulation("Cohen's kappa, closed form", _kappa("analytic"), _true_kappa),
    "kappa percentile": Simulation("Cohen's kappa, percentile bootstrap", _kappa("percentile"), _true_kappa),
    "kappa bca": Simulation("Cohen's kappa, BCa bootstrap", _kappa("bca"), _true_kappa),
    "accuracy by pair": Simulation(
        "Accuracy of all pairs, items ignored, Wilson", _accuracy(clustered=False), _true_accuracy
    ),
}
"""What is no default, and why; by name."""

ALL = {**SIMULATIONS, **COMPARED}
PREVALENCES = (0.5, 0.9)


def cells(names: Iterable[str]) -> list[Cell]:
    """The cells of these simulations."""
    return [
        Cell(simulation=name, prevalence=prevalence, n=n)
        for name in names
        for prevalence in PREVALENCES
        for n in ALL[name].sizes
    ]
