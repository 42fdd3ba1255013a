"""Pass@k and pass^k: whether any, or every one, of k trials of a task passes, from repeated trials."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from autorubric.criteria.conditions import Gate
from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, renumber_kept
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import effective_score, estimate, ratio_figure
from autorubric.metrics.core.item_scores import OwnedRun, pair_items
from autorubric.metrics.core.resampling import IntervalArguments, IntervalOptions, check_number, row_units
from autorubric.metrics.core.result import ResultBase
from autorubric.metrics.core.scales import as_sequence, is_missing
from autorubric.scoring.reports import EnsembleEvaluationReport


@dataclass(frozen=True, slots=True)
class PassRates(ResultBase):
    """Pass@k and pass^k, averaged over the `n` tasks with at least k judged trials; `n_missing` have fewer.

    Attributes:
        pass_at_k: Probability that at least one of k trials of a task passes.
        pass_hat_k: Probability that all of k trials of a task pass.
        k: Number of trials that are drawn from each task.
        n_trials: Number of judged trials of the `n` tasks.
        n_passed: Number of these trials that passed.
        n_unjudged: Number of trials of any task without an outcome; they neither passed nor failed.
    """

    pass_at_k: Estimate = field(metadata={"title": "pass@k"})
    pass_hat_k: Estimate = field(metadata={"title": "pass^k"})
    k: int
    n_trials: int
    n_passed: int
    n_unjudged: int

    def _sentence(self) -> str:
        tasks, excluded = self.pass_at_k.n, self.pass_at_k.n_missing
        return (
            f"{self.n_passed} of {self.n_trials} trials of {tasks} tasks passed; trials without an outcome: "
            f"{self.n_unjudged}; tasks with fewer than k={self.k} judged trials: {excluded}"
        )


def pass_at_k(
    trials: Any,
    k: int,
    *,
    task: Any = None,
    passes: float | str | Sequence[str] | None = None,
    **interval: Unpack[IntervalArguments],
) -> PassRates:
    """Estimate pass@k and pass^k: the probability that any, or every one, of k trials of a task passes.

    A task with n judged trials, of which c passed, contributes `1 - C(n - c, k) / C(n, k)` to pass@k [1, eq.
    1] and `C(c, k) / C(n, k)` to pass^k [2], which are unbiased. Both are undefined if no task has k judged
    trials (`no_repeats`, or `no_values` without a judged trial). Tasks are the sampling units: `ci="auto"` is
    the score interval with the effective number of tasks, after half a task of 0 and half a task of 1 are
    added. One task has no interval (`too_few_units`).

    Criteria of a run pass if a gate reaches its `at_least`, a penalty is not met (value 0), and another
    criterion is met (value 1). One that does not pass fails the trial, whatever else could not be judged;
    otherwise, a lost criterion or an abstention leaves the trial without an outcome; NA does not count. A
    score treats abstentions by the run's `cannot_assess` strategy, and is no outcome if a criterion was lost.

    Args:
        trials: `{task: [outcome, …]}`; a column of outcomes, with `task`; an `EvalResult`; or several, such
            as one run per trial. Outcomes are True, False, 1, 0, or None for no outcome.
        k: Number of trials, at least 1.
        task: Task of each trial: for a column, one id per outcome; for runs, a `metadata` key or a function
            of an item. By default, items of several runs with the same id are trials of one task.
        passes: When a trial of a run passes: the minimum score, the names of the criteria that must pass, or
            `"gates"` for those with a gate; by default, all criteria that have values.
        **interval: See `IntervalArguments`; `cluster` has one id per task.

    Raises:
        ArgumentError: If an argument is invalid, an item lacks the key, or a criterion is unknown.

    References:
        [1] M. Chen et al. (2021), Evaluating large language models trained on code, arXiv:2107.03374.
        [2] S. Yao et al. (2024), τ-bench: a benchmark for tool-agent-user interaction, arXiv:2406.12045.
    """
    options, size = IntervalOptions(**interval), int(check_number("k", k, "[1, inf)", whole=True))
    outcomes = list(_read_trials(trials, task, passes))
    counts = np.array([(len(each) - each.count(None), each.count(True)) for each in outcomes]).reshape(-1, 2)
    cluster, enough = cluster_codes(options.cluster, len(counts)), counts[:, 0] >= size
    used = counts[enough].tolist()
    shares = {
        f"pass@{k}": [1 - math.comb(n - c, size) / math.comb(n, size) for n, c in used],
        f"pass^{k}": [math.comb(c, size) / math.comb(n, size) for n, c in used],
    }
    found = []
    for name, values in shares.items():
        figure = ratio_figure(f"{name}, mean over tasks", effective_score, reason="no_values")
        units = row_units(np.column_stack([values, np.ones(len(used))]), renumber_kept(cluster, enough))
        one = estimate(figure, units, options, n_missing=len(counts) - len(used))
        why: Reason | None = one.reason if used else "no_repeats" if counts.any() else "no_values"
        found.append(replace(one, method=one.method.replace("analytic", "score interval"), reason=why))
    n_trials, n_passed = (int(total) for total in counts[enough].sum(0))
    return PassRates(found[0], found[1], size, n_trials, n_passed, sum(each.count(None) for each in outcomes))


def _read_trials(trials: Any, task: Any, passes: Any) -> Iterable[list[bool | None]]:
    found: dict[Hashable, list[bool | None]] = {}
    runs = list(trials) if isinstance(trials, list | tuple) else [trials]
    if runs and all(isinstance(one, OwnedRun) for one in runs):
        for run in runs:
            items = range(len(run.dataset.items))
            outcomes = {one.item_idx: _passes(one.report, passes) for one in run.item_results if one.report}
            if task is None:
                names = pair_items(run.dataset, runs[0].dataset)
                tasks = [names[run.dataset.item_id(i)] for i in items]
            else:
                tasks = run.dataset.groups(task, "task")
            for i, name in zip(items, tasks, strict=True):
                found.setdefault(name, []).append(outcomes.get(i))
        return found.values()
    if passes is not None or (task is not None and isinstance(trials, Mapping)):
        raise ArgumentError("passes is only for runs, and task only for runs and columns of outcomes")
    if isinstance(trials, Mapping):
        return [_outcomes(each, f"trials[{name!r}]") for name, each in trials.items()]
    column = _outcomes(trials, "trials")
    codes = cluster_codes(task, len(column), "task")
    if codes is None:
        raise ArgumentError("task is missing; pass one id per outcome, or trials as {task: [True, False, …]}")
    for name, one in zip(codes.tolist(), column, strict=True):
        found.setdefault(name, []).append(one)
    return found.values()


def _outcomes(column: Any, name: str) -> list[bool | None]:
    given = [None if is_missing(one) else one for one in as_sequence(column, name)]
    for at, one in enumerate(given):
        if one is not None and not (isinstance(one, int | float | np.number | np.bool_) and one in (0, 1)):
            raise ArgumentError(f"{name}[{at}] must be True, False, 1, 0 or None; got {one!r}")
    return [None if one is None else bool(one) for one in given]


def _passes(report: EnsembleEvaluationReport, rule: float | str | Sequence[str] | None) -> bool | None:
    """Return whether a trial passes; None if this could not be judged."""
    if isinstance(rule, int | float):
        least, is_lost = check_number("passes", rule), any(one.is_lost for one in report.report)
        return None if is_lost or report.score is None else report.score >= least
    known = {one.name: one for one in report.report if one.criterion.measures}
    gates = [name for name, one in known.items() if one.criterion.gate is not None]
    names = gates if rule == "gates" else [rule] if isinstance(rule, str) else rule or known
    if unknown := [name for name in names if name not in known] or ["gates"] * (names is gates and not gates):
        raise ArgumentError(f"passes: unknown criterion {unknown[0]!r}; available: {', '.join(known)}")
    found: list[bool | None] = []
    for one in map(known.__getitem__, names):
        gate, value = one.criterion.gate, None if one.is_lost else one.decision.value
        if value is not None and gate is None and one.criterion.weight < 0:
            value = 1 - value
        if one.status != "not_applicable" and not one.is_na:
            found.append(None if value is None else (gate or Gate()).passes(value))
    return False if False in found else None if None in found or not found else True
