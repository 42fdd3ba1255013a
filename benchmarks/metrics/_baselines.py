"""The same by other packages, or by numpy as one would write it down.

Packages that give no interval are timed without one. Loops over resamples are timed on a few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.stats
from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa

from autorubric.metrics.core.item_scores import TRUTH
from autorubric.metrics.core.votes_table import DECIDED, VotesTable
from benchmarks.metrics._inputs import Codes, Sizes, binary_votes, pair, units
from benchmarks.metrics._ours import Call

_RESAMPLES_TIMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Another way to the figures of a case.

    Attributes:
        name: Whose, and what it leaves out.
        prepare: Sizes to the call to time.
        share: Sizes to the share of the whole work that the call does.
    """

    name: str
    prepare: Callable[[Sizes], Call]
    share: Callable[[Sizes], float] = lambda sizes: 1.0


def _few_resamples(sizes: Sizes) -> float:
    return min(_RESAMPLES_TIMED / sizes.n_resamples, 1.0)


def _decisions(table: VotesTable) -> dict[str, Codes]:
    """Codes of the raters, shape `(n_criteria, n_items)`, the labels as `truth`."""
    shape = (len(table.criteria), table.n_items)
    found = {}
    for place, (_, name) in enumerate(table.raters):
        rows = np.flatnonzero((table.rater == place) & (table.sample == DECIDED))
        codes = np.zeros(shape, dtype=np.int64)
        codes[table.criterion[rows], table.item[rows]] = table.code[rows]
        found[name] = codes
    return found


def _packages_on_run(sizes: Sizes) -> Call:
    table = binary_votes(sizes.n_items, sizes.n_criteria, sizes.n_judges)

    def call() -> None:
        columns = _decisions(table)
        truth = columns.pop("truth")
        for codes in columns.values():
            for label, pred in zip(truth, codes, strict=True):
                accuracy_score(label, pred)
                precision_recall_fscore_support(label, pred, average="binary")
                cohen_kappa_score(label, pred)
            cohen_kappa_score(truth.reshape(-1), codes.reshape(-1))
        for rater, scores in table.scores.items():
            if rater != TRUTH:
                for correlation in (scipy.stats.pearsonr, scipy.stats.spearmanr, scipy.stats.kendalltau):
                    correlation(table.scores[TRUTH], scores)

    return call


def _loop_on_run(sizes: Sizes) -> Call:
    columns = _decisions(binary_votes(sizes.n_items, sizes.n_criteria, sizes.n_judges))
    truth = columns.pop("truth")

    def call() -> None:
        rng = np.random.default_rng(0)
        for _ in range(min(_RESAMPLES_TIMED, sizes.n_resamples)):
            drawn = rng.integers(0, sizes.n_items, sizes.n_items)
            for codes in columns.values():
                for label, pred in zip(truth[:, drawn], codes[:, drawn], strict=True):
                    _kappa_of(label, pred, 2)

    return call


def _kappa_of(truth: Codes, pred: Codes, size: int) -> float:
    table = np.bincount(truth * size + pred, minlength=size * size).reshape(size, size) / len(truth)
    expected = float(table.sum(0) @ table.sum(1))
    return (float(np.trace(table)) - expected) / (1 - expected)


def _sklearn_kappa(size: int) -> Callable[[Sizes], Call]:
    def prepare(sizes: Sizes) -> Call:
        truth, pred = pair(sizes.n_pairs, size)
        return lambda: cohen_kappa_score(truth, pred)

    return prepare


def _statsmodels_kappa(size: int) -> Callable[[Sizes], Call]:
    def prepare(sizes: Sizes) -> Call:
        truth, pred = pair(sizes.n_pairs, size)
        cells = size * size

        def call() -> None:
            cohens_kappa(np.bincount(truth * size + pred, minlength=cells).reshape(size, size))

        return call

    return prepare


def _loop_kappa(size: int) -> Callable[[Sizes], Call]:
    def prepare(sizes: Sizes) -> Call:
        truth, pred = pair(sizes.n_pairs, size)

        def call() -> None:
            rng = np.random.default_rng(0)
            for _ in range(min(_RESAMPLES_TIMED, sizes.n_resamples)):
                drawn = rng.integers(0, len(truth), len(truth))
                _kappa_of(truth[drawn], pred[drawn], size)

        return call

    return prepare


def _numpy_alpha(sizes: Sizes) -> Call:
    ratings = units(sizes.n_pairs, sizes.n_raters, 5)
    return lambda: ordinal_alpha(ratings, 5)


def ordinal_alpha(ratings: Codes, size: int) -> float:
    """Ordinal alpha of complete ratings, from the coincidences of each pair of raters."""
    coincidences = np.zeros((size, size))
    n_raters = ratings.shape[1]
    for left in range(n_raters):
        for right in range(n_raters):
            if left != right:
                pairs = np.bincount(ratings[:, left] * size + ratings[:, right], minlength=size * size)
                coincidences += pairs.reshape(size, size) / (n_raters - 1)
    margins = coincidences.sum(0)
    middles = np.cumsum(margins) - margins / 2
    apart = (middles[:, None] - middles) ** 2
    expected = float((np.outer(margins, margins) * apart).sum())
    return 1 - (float(margins.sum()) - 1) * float((coincidences * apart).sum()) / expected


def _statsmodels_fleiss(sizes: Sizes) -> Call:
    ratings = units(sizes.n_pairs, sizes.n_raters, 5)
    return lambda: fleiss_kappa(aggregate_raters(ratings, n_cat=5)[0])


def _numpy_dawid_skene(sizes: Sizes) -> Call:
    ratings = units(sizes.n_votes, sizes.n_raters, 4)
    return lambda: plain_dawid_skene(ratings, 4)


def plain_dawid_skene(ratings: Codes, size: int, tolerance: float = 1e-8) -> npt.NDArray[np.float64]:
    """Posterior probabilities by EM over all items, `(n_items, size)`; votes must be complete."""
    chosen = (ratings[:, :, None] == np.arange(size)).astype(float)
    posterior = chosen.mean(1)
    for _ in range(1000):
        prior = posterior.mean(0)
        confusion = np.einsum("ik,irl->rkl", posterior, chosen)
        confusion /= confusion.sum(2, keepdims=True)
        logs = np.log(prior) + np.einsum("irl,rkl->ik", chosen, np.log(np.maximum(confusion, 1e-300)))
        new = np.exp(logs - logs.max(1, keepdims=True))
        new /= new.sum(1, keepdims=True)
        moved = float(np.abs(new - posterior).max())
        posterior = new
        if moved <= tolerance:
            break
    return np.asarray(posterior)


def _scipy_kendall(sizes: Sizes) -> Call:
    rng = np.random.default_rng(0)
    x = rng.normal(size=sizes.n_items)
    y = x + rng.normal(size=sizes.n_items)
    return lambda: scipy.stats.kendalltau(x, y)


def _on_kappa(size: int) -> tuple[Baseline, ...]:
    return (
        Baseline(name="scikit-learn, no interval", prepare=_sklearn_kappa(size)),
        Baseline(name="statsmodels of a numpy table, closed form", prepare=_statsmodels_kappa(size)),
        Baseline(name="numpy, loop over resamples", prepare=_loop_kappa(size), share=_few_resamples),
    )


BASELINES: dict[str, tuple[Baseline, ...]] = {
    "run": (Baseline(name="scikit-learn and scipy, fewer metrics", prepare=_packages_on_run),),
    "run-resampled": (
        Baseline(name="numpy, loop over resamples, kappa alone", prepare=_loop_on_run, share=_few_resamples),
    ),
    "kappa-2": _on_kappa(2),
    "kappa-5": _on_kappa(5),
    "alpha": (Baseline(name="numpy, coincidences, no interval", prepare=_numpy_alpha),),
    "fleiss": (Baseline(name="statsmodels, no interval", prepare=_statsmodels_fleiss),),
    "dawid-skene": (Baseline(name="numpy, item by item", prepare=_numpy_dawid_skene),),
    "kendall": (Baseline(name="scipy, no interval", prepare=_scipy_kendall),),
}
"""By case."""
