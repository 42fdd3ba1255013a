"""Synthetic inputs of the benchmarks, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autorubric.criteria import Answer
from autorubric.metrics.core.item_scores import PANEL, TRUTH, Rater
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, MeasuredCriterion, VotesTable

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the inputs are.

    Attributes:
        n_items: Items of the run.
        n_criteria: Criteria of each item.
        n_judges: Judges.
        n_resamples: Resamples of every bootstrap.
        n_pairs: Pairs of codes of two raters, and units of several.
        n_raters: Raters of these units.
        n_votes: Items of Dawid and Skene's model.
    """

    n_items: int = 10_000
    n_criteria: int = 10
    n_judges: int = 3
    n_resamples: int = 1000
    n_pairs: int = 1_000_000
    n_raters: int = 5
    n_votes: int = 100_000


TINY = Sizes(n_items=30, n_criteria=2, n_judges=2, n_resamples=20, n_pairs=200, n_raters=3, n_votes=200)
"""To see that the benchmarks run."""

_BINARY = (
    Answer(code="UNMET", value=0.0, label="UNMET", index=0),
    Answer(code="MET", value=1.0, label="MET", index=1),
)


def binary_votes(n_items: int, n_criteria: int, n_judges: int, seed: int = 0) -> VotesTable:
    """The votes table of a run on binary criteria: each judge's vote and decision, the panel's, the label.

    Judges are right on nine MET and 85 of 100 UNMET cells; the panel takes their majority.
    """
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_criteria, n_items)) < 0.6).astype(np.int64)
    right = rng.random((n_judges, n_criteria, n_items)) < np.where(truth == 1, 0.9, 0.85)
    judged = np.where(right, truth, 1 - truth)
    panel = (judged.mean(axis=0) > 0.5).astype(np.int64)
    judges: list[Rater] = [("judge", f"judge-{j}") for j in range(n_judges)]
    raters = (*judges, PANEL, TRUTH)
    decided = [*judged, panel, truth]
    codes = np.concatenate([one.reshape(-1) for one in [*judged, *decided]])
    who = [*range(n_judges), *range(len(raters))]
    samples = [0] * n_judges + [DECIDED] * len(raters)
    cells, n = n_criteria * n_items, len(codes)
    weights = rng.dirichlet(np.ones(n_criteria))
    return VotesTable(
        criteria=tuple(MeasuredCriterion(f"criterion-{c}", "binary", _BINARY) for c in range(n_criteria)),
        raters=raters,
        item_ids=tuple(str(i) for i in range(n_items)),
        item=np.tile(np.arange(n_items), n // n_items),
        criterion=np.tile(np.repeat(np.arange(n_criteria), n_items), n // cells),
        rater=np.repeat(who, cells),
        sample=np.repeat(samples, cells),
        order=np.full(n, None, dtype=object),
        origin=np.full(n, None, dtype=object),
        code=codes,
        label=np.array(["UNMET", "MET"], dtype=object)[codes],
        value=codes.astype(float),
        number=np.full(n, np.nan),
        na=np.zeros(n, dtype=bool),
        status=np.full(n, ANSWERED, dtype=np.int64),
        probabilities=np.full(n, None, dtype=object),
        scores={rater: weights @ one for rater, one in zip(raters, decided, strict=True)},
        outcomes={},
    )


def pair(n: int, size: int, seed: int = 0) -> tuple[Codes, Codes]:
    """Codes of two raters on `size` categories, alike on four of five pairs and by chance."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, size, n)
    return truth, np.where(rng.random(n) < 0.8, truth, rng.integers(0, size, n))


def units(n: int, n_raters: int, size: int, seed: int = 0) -> Codes:
    """Codes of several raters, shape `(n, n_raters)`, each right on three of five and by chance."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, size, n)[:, None]
    right = rng.random((n, n_raters)) < 0.6
    return np.asarray(np.where(right, truth, rng.integers(0, size, (n, n_raters))))
