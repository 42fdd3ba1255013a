"""Simulations: data from a model, the estimate of a public function, and the true value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from autorubric.metrics import (
    Binary,
    Estimate,
    accuracy,
    cohen_kappa,
    corrected_rate,
    fleiss_kappa,
    judge_report,
    krippendorff_alpha,
    pass_at_k,
    percent_agreement,
)
from autorubric.metrics.core.resampling import CiMethod

SENSITIVITY, SPECIFICITY = 0.9, 0.85
CRITERIA_PER_ITEM = 10
ITEM_CORRELATION = 0.3
N_TESTED = 1000
GOOD = 0.97
HEADLINE_RESAMPLES = 400
N_TRIALS, K = 5, 3

Codes: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the table.

    Attributes:
        simulation: Name of the simulation.
        prevalence: Proportion of MET in the population.
        n: Number of pairs, items or labels, depending on the simulation.
    """

    simulation: str
    prevalence: float
    n: int


Estimator: TypeAlias = Callable[[Cell, np.random.Generator], Estimate]
"""(cell, generator) to the estimate of one replicate."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A metric and a model of data.

    Attributes:
        title: Description, including what `n` counts.
        estimate: Function that draws a replicate and computes the metric.
        truth: Function from the prevalence to the true value.
        sizes: Values of `n`.
    """

    title: str
    estimate: Estimator
    truth: Callable[[float], float]
    sizes: tuple[int, ...] = (30, 50, 100, 200)


def _population(prevalence: float) -> npt.NDArray[np.float64]:
    """Return the proportions of label (rows) and verdict, shape `(2, 2)`."""
    rows = [[SPECIFICITY, 1 - SPECIFICITY], [1 - SENSITIVITY, SENSITIVITY]]
    return np.array([[1 - prevalence], [prevalence]]) * rows


def _verdicts(truth: Codes, rng: np.random.Generator) -> Codes:
    """Draw the judge's verdicts on items with these labels."""
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


def _raters(figure: Literal["fleiss", "alpha", "percent"], n_raters: int, ci: CiMethod = "auto") -> Estimator:
    """Draw ratings of raters who err independently, as often as the judge."""
    functions: dict[str, Callable[..., Estimate]] = {
        "fleiss": fleiss_kappa,
        "alpha": krippendorff_alpha,
        "percent": percent_agreement,
    }

    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        items = _labels(cell.n, cell.prevalence, rng)
        ratings = _verdicts(np.repeat(items[:, None], n_raters, axis=1), rng)
        return functions[figure](ratings, labels=2, ci=ci, rng=_seed(rng))

    return estimate


def _true_percent(prevalence: float) -> float:
    """Return the probability that two raters agree."""
    apart = [1 - SPECIFICITY, SENSITIVITY]
    alike = [p * p + (1 - p) * (1 - p) for p in apart]
    return (1 - prevalence) * alike[0] + prevalence * alike[1]


def _true_fleiss(prevalence: float) -> float:
    met = prevalence * SENSITIVITY + (1 - prevalence) * (1 - SPECIFICITY)
    expected = met * met + (1 - met) * (1 - met)
    return (_true_percent(prevalence) - expected) / (1 - expected)


def _item_effects(mean: float, ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a probability per item: a beta distribution with this mean, at the item's ranks in (0, 1)."""
    strength = 1 / ITEM_CORRELATION - 1
    return np.asarray(beta.ppf(ranks, mean * strength, (1 - mean) * strength))


def _accuracy(*, clustered: bool) -> Estimator:
    """Draw items that differ in their proportion of MET and in the judge's accuracy."""

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


def _headline(part: Literal["macro", "micro"], figure: str, n_criteria: int) -> Estimator:
    """Draw a judge that is right on `GOOD` of the cells, with few items often on all of them."""

    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        rows: list[dict[str, object]] = []
        for at in range(n_criteria):
            met, right = rng.random(cell.n) < cell.prevalence, rng.random(cell.n) < GOOD
            for kind, said in (("truth", met), ("judge", met == right)):
                rows += [
                    {
                        "item_id": item,
                        "criterion": f"c{at}",
                        "rater": kind,
                        "rater_kind": kind,
                        "label": label,
                    }
                    for item, label in enumerate(np.where(said, "MET", "UNMET").tolist())
                ]
        report = judge_report(rows, scales=Binary(), n_resamples=HEADLINE_RESAMPLES, rng=_seed(rng))
        found: Estimate = getattr(getattr(report, part), figure)
        return found

    return estimate


def _good_kappa(prevalence: float) -> float:
    passed = prevalence * GOOD + (1 - prevalence) * (1 - GOOD)
    expected = prevalence * passed + (1 - prevalence) * (1 - passed)
    return (GOOD - expected) / (1 - expected)


def _good(prevalence: float) -> float:
    return GOOD


def _rogan_gladen(cell: Cell, rng: np.random.Generator) -> Estimate:
    labelled = _labels(cell.n, cell.prevalence, rng)
    tested = _verdicts(_labels(N_TESTED, cell.prevalence, rng), rng)
    return corrected_rate(tested, labelled, _verdicts(labelled, rng), method="rogan-gladen")


def _rogan_gladen_by_label(cell: Cell, rng: np.random.Generator) -> Estimate:
    """Draw labelled items that are selected by their label, half of each."""
    labelled = np.arange(cell.n) % 2
    tested = _verdicts(_labels(N_TESTED, cell.prevalence, rng), rng)
    calibration = _verdicts(labelled, rng)
    return corrected_rate(tested, labelled, calibration, method="rogan-gladen", sampled="chosen")


def _ppi(ci: Literal["auto", "bootstrap-t"]) -> Estimator:
    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        labelled = _labels(cell.n, cell.prevalence, rng)
        tested = _verdicts(_labels(N_TESTED, cell.prevalence, rng), rng)
        calibration = _verdicts(labelled, rng)
        return corrected_rate(tested, labelled, calibration, method="ppi++", ci=ci, rng=_seed(rng))

    return estimate


def _itself(prevalence: float) -> float:
    return prevalence


def _passes(figure: Literal["pass_at_k", "pass_hat_k"], ci: CiMethod = "auto") -> Estimator:
    """Draw trials of tasks that differ in their pass rate."""

    def estimate(cell: Cell, rng: np.random.Generator) -> Estimate:
        rates = _item_effects(cell.prevalence, rng.random((cell.n, 1)))
        trials = rng.random((cell.n, N_TRIALS)) < rates
        found: Estimate = getattr(pass_at_k(dict(enumerate(trials)), K, ci=ci, rng=_seed(rng)), figure)
        return found

    return estimate


def _true_pass_hat_k(prevalence: float) -> float:
    """Return the mean of the k-th power of a beta distribution."""
    strength = 1 / ITEM_CORRELATION - 1
    return float(np.prod([(prevalence * strength + i) / (strength + i) for i in range(K)]))


def _true_pass_at_k(prevalence: float) -> float:
    return 1 - _true_pass_hat_k(1 - prevalence)


SIMULATIONS: dict[str, Simulation] = {
    "kappa": Simulation("Cohen's kappa of n pairs, smoothed bootstrap", _kappa("auto"), _true_kappa),
    "accuracy": Simulation(
        f"Accuracy over n items of {CRITERIA_PER_ITEM} criteria, logit-t",
        _accuracy(clustered=True),
        _true_accuracy,
    ),
    "fleiss": Simulation("Fleiss' kappa of n items, 2 raters", _raters("fleiss", 2), _true_fleiss),
    "fleiss of 3": Simulation("Fleiss' kappa of n items, 3 raters", _raters("fleiss", 3), _true_fleiss),
    "alpha": Simulation("Krippendorff's alpha of n items, 2 raters", _raters("alpha", 2), _true_fleiss),
    "alpha of 3": Simulation("Krippendorff's alpha of n items, 3 raters", _raters("alpha", 3), _true_fleiss),
    "percent agreement": Simulation(
        "Percent agreement of n items, 3 raters, logit-t", _raters("percent", 3), _true_percent
    ),
    "pass@k": Simulation(
        f"pass@{K} of n tasks, {N_TRIALS} trials, logit-t",
        _passes("pass_at_k"),
        _true_pass_at_k,
        sizes=(10, 20, 50, 100),
    ),
    "pass^k": Simulation(
        f"pass^{K} of n tasks, {N_TRIALS} trials, logit-t",
        _passes("pass_hat_k"),
        _true_pass_hat_k,
        sizes=(10, 20, 50, 100),
    ),
    "rogan-gladen": Simulation("Rogan–Gladen rate, n random labels", _rogan_gladen, _itself),
    "rogan-gladen by label": Simulation(
        "Rogan–Gladen rate, n labels, half of them MET", _rogan_gladen_by_label, _itself
    ),
    "ppi++": Simulation("ppi++ rate, n random labels", _ppi("auto"), _itself, sizes=(50, 100, 200)),
    "ppi++ bootstrap-t": Simulation(
        "ppi++ rate, bootstrap-t, n random labels", _ppi("bootstrap-t"), _itself, sizes=(30, 50)
    ),
    "headline kappa": Simulation(
        "Mean kappa of one criterion, a good judge",
        _headline("macro", "kappa", 1),
        _good_kappa,
        sizes=(40, 100),
    ),
    "headline kappa of 3": Simulation(
        "Mean kappa of 3 criteria, a good judge", _headline("macro", "kappa", 3), _good_kappa, sizes=(40, 100)
    ),
    "headline accuracy of 3": Simulation(
        "Mean accuracy of 3 criteria, a good judge", _headline("macro", "accuracy", 3), _good, sizes=(40, 100)
    ),
    "pooled kappa of 3": Simulation(
        "Pooled kappa of 3 criteria, a good judge",
        _headline("micro", "kappa", 3),
        _good_kappa,
        sizes=(40, 100),
    ),
}
"""The defaults, and the alternatives to defaults that refuse, by name, in the order of the table."""

COMPARED: dict[str, Simulation] = {
    "kappa analytic": Simulation("Cohen's kappa, closed form", _kappa("analytic"), _true_kappa),
    "kappa percentile": Simulation("Cohen's kappa, percentile bootstrap", _kappa("percentile"), _true_kappa),
    "kappa bca": Simulation("Cohen's kappa, BCa bootstrap", _kappa("bca"), _true_kappa),
    "fleiss percentile": Simulation(
        "Fleiss' kappa, 2 raters, percentile bootstrap", _raters("fleiss", 2, "percentile"), _true_fleiss
    ),
    "alpha percentile": Simulation(
        "Krippendorff's alpha, 2 raters, percentile bootstrap",
        _raters("alpha", 2, "percentile"),
        _true_fleiss,
    ),
    "pass@k percentile": Simulation(
        f"pass@{K} of n tasks, {N_TRIALS} trials, percentile bootstrap",
        _passes("pass_at_k", "percentile"),
        _true_pass_at_k,
        sizes=(10, 20, 50, 100),
    ),
    "pass^k percentile": Simulation(
        f"pass^{K} of n tasks, {N_TRIALS} trials, percentile bootstrap",
        _passes("pass_hat_k", "percentile"),
        _true_pass_hat_k,
        sizes=(10, 20, 50, 100),
    ),
    "accuracy by pair": Simulation(
        "Accuracy of all pairs, items ignored, Wilson", _accuracy(clustered=False), _true_accuracy
    ),
}
"""What is no default, and why; by name."""

ALL = {**SIMULATIONS, **COMPARED}
PREVALENCES = (0.5, 0.9)


def cells(names: Iterable[str]) -> list[Cell]:
    """Return the cells of the simulations."""
    return [
        Cell(simulation=name, prevalence=prevalence, n=n)
        for name in names
        for prevalence in PREVALENCES
        for n in ALL[name].sizes
    ]
