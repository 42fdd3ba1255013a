"""EM algorithm for the Dawid-Skene model on patterns of votes, computed in logarithms.

T_ik is the probability that item i belongs to class k, and n_irl how often rater r gave it label l [1]:

    start  T_ik = Σ_r n_irk / Σ_rl n_irl
    M      π_rkl = (Σ_i T_ik n_irl + s) / (Σ_il T_ik n_irl + s K)      (2.3)
           p_k = (Σ_i T_ik + s) / (n + s K)                            (2.4)
    E      T_ik ∝ p_k Π_rl π_rkl ^ n_irl                               (2.5)

References:
    [1] A. P. Dawid, A. M. Skene (1979), Applied Statistics 28(1), 20-28, with the same equation numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_to_truth._votes import Patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Final estimates of the EM algorithm.

    Attributes:
        posterior: Probability of each class, shape `(n_patterns, K)`.
        prior: Proportion of each class, shape `(K,)`.
        confusion: Confusion matrix of each rater with truth in the rows, shape `(R, K, K)`.
        support: Expected number of votes in each row of `confusion`, shape `(R, K)`.
        log_likelihood: Log-likelihood of all votes.
        iterations: Number of M steps.
        converged: Whether the last step changed no probability by more than the tolerance.
    """

    posterior: Array
    prior: Array
    confusion: Array
    support: Array
    log_likelihood: float
    iterations: int
    converged: bool


def fit(patterns: Patterns, smoothing: float, max_iterations: int, tolerance: float) -> Fit:
    """Fit the model to patterns that each have a vote."""
    size, n_raters = patterns.size, patterns.n_raters
    backward = patterns.votes.T.tocsr()
    posterior = _soft_majority(patterns)
    iterations, moved = 0, np.inf
    while moved > tolerance and iterations < max_iterations:
        weighted = posterior * patterns.counts[:, None]
        votes = (backward @ weighted).reshape(n_raters, size, size)
        prior = (weighted.sum(0) + smoothing) / (patterns.counts.sum() + smoothing * size)
        support = votes.sum(1)
        confusion = _rows(votes, support, smoothing)
        before = posterior
        posterior, evidence = _expect(patterns, prior, confusion)
        moved = float(np.abs(posterior - before).max())
        iterations += 1
    return Fit(
        posterior=posterior,
        prior=prior,
        confusion=confusion.transpose(0, 2, 1),
        support=support,
        log_likelihood=float(patterns.counts @ evidence),
        iterations=iterations,
        converged=moved <= tolerance,
    )


def _soft_majority(patterns: Patterns) -> Array:
    votes = patterns.votes @ np.tile(np.eye(patterns.size), (patterns.n_raters, 1))
    return np.asarray(votes / votes.sum(1, keepdims=True))


def _rows(votes: Array, support: Array, smoothing: float) -> Array:
    """Return the probability of each label given the class, `(R, label, class)`.

    Without votes, all labels are equally probable, which is the limit as smoothing goes to 0. This has no
    effect, because no item belongs to the class.
    """
    size = votes.shape[1]
    room = support[:, None, :] + smoothing * size
    empty = room == 0
    return np.where(empty, 1.0 / size, (votes + smoothing) / np.where(empty, 1.0, room))


def _expect(patterns: Patterns, prior: Array, confusion: Array) -> tuple[Array, Array]:
    """Return the posterior of each pattern and the logarithm of its probability."""
    with np.errstate(divide="ignore"):
        table, shares = np.log(confusion.reshape(-1, patterns.size)), np.log(prior)
    # The sparse product skips labels that were not given, for which 0 · log 0 would be NaN.
    joint = patterns.votes @ table + shares
    top = joint.max(1, keepdims=True)
    joint = np.exp(joint - top)
    total = joint.sum(1, keepdims=True)
    return joint / total, (top + np.log(total))[:, 0]
