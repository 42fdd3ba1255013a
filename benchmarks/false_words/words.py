"""Sentences that rank, name or compare raters, criteria and plans, in worlds without the difference."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from autorubric.metrics import (
    Binary,
    alt_test,
    compare_run,
    item_analysis,
    judge_report,
    panel_audit,
    variance_components,
)
from autorubric.runs.escalation import CascadeCell, EscalationCurve, operating_point
from benchmarks.false_words._rows import Row

_TARGET = 0.8


def _rows(answers: Any, rater: str, kind: str) -> list[dict[str, Any]]:
    """Return rows of a label table for answers of shape `(n_items,)` or `(n_items, n_criteria)`."""
    table = np.asarray(answers).reshape(len(answers), -1)
    return [
        {
            "item_id": f"i{i}", "criterion": f"c{c}", "rater": rater, "rater_type": kind,
            "label": "MET" if table[i, c] else "UNMET",
        }
        for i, c in np.ndindex(*table.shape)
    ]  # fmt: skip


def _judged(
    rng: np.random.Generator, n: int, errors: list[float], n_criteria: int = 1
) -> list[dict[str, Any]]:
    """Return judges that err independently at these rates, beside the truth."""
    truth = rng.random((n, n_criteria)) < 0.5
    rows = _rows(truth, "truth", "truth")
    for at, error in enumerate(errors):
        rows += _rows(truth ^ (rng.random(truth.shape) < error), f"j{at}", "judge")
    return rows


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _says_of_panel(rng: np.random.Generator, *, n: int, errors: list[float], words: tuple[str, ...]) -> bool:
    n_resamples = 1000 if len(errors) == 2 else 200
    found = panel_audit(_judged(rng, n, errors), n_resamples=n_resamples, rng=_seed(rng)).summary()
    return any(one in " ".join(found.split()) for one in words)


def _redundant(rng: np.random.Generator, *, n: int, n_criteria: int, copies: bool = False) -> bool:
    coins = rng.random((n, n_criteria)) < 0.5
    if copies:
        coins[:, -1] = coins[:, 0]
    return "they are redundant" in _item_words(coins, rng)


def _item_words(answers: Any, rng: np.random.Generator) -> str:
    rows = _rows(answers, "a", "judge")
    return item_analysis(rows, rater="a", n_draws=1, n_resamples=200, rng=_seed(rng)).summary()


def _weakest(rng: np.random.Generator, *, n: int, loadings: list[float], among: str = "c") -> bool:
    """Criteria that follow a common factor; the weakest is said to be one of those named."""
    loading = np.array(loadings)
    noise = rng.normal(size=(n, len(loading))) * np.sqrt(1 - loading**2)
    answers = rng.normal(size=(n, 1)) * loading + noise > 0
    words = _item_words(answers, rng)
    return words.startswith(f"Check {among}") and "weakest" in words


def _votes(
    rng: np.random.Generator, shape: tuple[int, int, int], variances: tuple[float, float, float, float]
) -> list[dict[str, Any]]:
    n, k, _ = shape
    item, judge, both, sample = np.sqrt(variances)
    votes = (
        item * rng.normal(size=(n, 1, 1))
        + judge * rng.normal(size=(1, k, 1))
        + both * rng.normal(size=(n, k, 1))
        + sample * rng.normal(size=shape)
    )
    return [
        {
            "item_id": f"i{i}", "criterion": "c", "rater": f"j{j}", "rater_type": "judge", "sample": s,
            "value": float(votes[i, j, s]),
        }
        for i, j, s in np.ndindex(*shape)
    ]  # fmt: skip


def _plan(
    rng: np.random.Generator, *, shape: tuple[int, int, int], variances: tuple[float, float, float, float]
) -> bool | None:
    rows = _votes(rng, shape, variances)
    plan = variance_components(rows, target=_TARGET, n_resamples=400, rng=_seed(rng)).per_criterion["c"].plan
    if plan.judges is None or plan.samples is None or plan.low is None or plan.high is None:
        return None
    item, judge, both, sample = variances
    error = judge + both + sample / plan.samples
    return plan.low <= item / (item + error / plan.judges) <= plan.high


def _alt_test(
    rng: np.random.Generator, *, n: int, people: list[float], judge: float, epsilon: float, words: str
) -> bool:
    """Whether the words are said of a judge and annotators that are right at these rates."""
    truth = rng.integers(0, 2, n)
    answers = [np.where(rng.random(n) < right, truth, 1 - truth) for right in (judge, *people)]
    found = alt_test(answers[0], np.column_stack(answers[1:]), epsilon=epsilon, n_resamples=200)
    return words in found.summary()


def _found_pair(rng: np.random.Generator, *, n: int, errors: list[float], n_criteria: int = 1) -> bool:
    rows = _judged(rng, n, errors, n_criteria)
    found = compare_run(rows, scales=Binary(), n_resamples=1, rng=_seed(rng))
    return any(one.adjusted_p is not None and one.adjusted_p <= 0.05 for one in found.judges)


def _report_says(
    rng: np.random.Generator, *, n: int, errors: list[float], n_criteria: int, words: str
) -> bool:
    rows = _judged(rng, n, errors, n_criteria)
    found = judge_report(rows, scales=Binary(), n_resamples=200, rng=_seed(rng))
    return any(words in line and "is not shown" not in line for line in found.summary().splitlines()[:12])


def _threshold(
    rng: np.random.Generator, *, n: int, loss: float, accuracy: float, is_reached: bool
) -> bool | None:
    """Whether a threshold is returned that reaches the accuracy, or does not.

    The strong panel is right at the rate .95, the first one at .95 - loss × (1 - confidence).
    """
    confidence = rng.integers(0, 21, n) / 20
    right = [rng.random(n) < rate for rate in (0.95 - loss * (1 - confidence), 0.95)]
    cells = [
        CascadeCell(
            item_id=f"i{at}",
            criterion="c",
            confidence=float(confidence[at]),
            level="binary",
            probability=None,
            first=str(right[0][at]),
            strong=str(right[1][at]),
            truth="True",
            first_votes=1,
            strong_votes=1,
            first_cost=None,
            strong_cost=None,
            states_cost=False,
        )
        for at in range(n)
    ]
    points = tuple(operating_point(cells, at / 20) for at in range(21))
    curve = EscalationCurve(
        points=points, first_accuracy=points[0].accuracy, strong_accuracy=points[0].strong_accuracy
    )
    threshold = curve.threshold_for(accuracy)
    if threshold is None:
        return None
    levels = np.arange(21) / 20
    true_rate = 0.95 - loss * np.where(levels < threshold, 0, 1 - levels).mean()
    return bool(true_rate >= accuracy) is is_reached


_COMPARED = ("The panel is better", "The panel is worse")
_NEGATIVE = ("because the judges' errors are negatively",)
_BEST, _WEAKEST = "The best of", "The weakest criterion is"
_EQUAL, _PERFECT = [0.8, 0.8, 0.8], [1.0, 1.0, 1.0]
_VARIANCES = (1.0, 0.2, 0.5, 0.8)

ROWS: tuple[Row, ...] = (
    *(
        Row(
            name=f"words: panel of two equal judges, {n} items",
            claim="the panel is said to be better or worse than its best judge",
            kind="false word",
            world=partial(_says_of_panel, n=n, errors=[0.2, 0.2], words=_COMPARED),
        )
        for n in (60, 200)
    ),
    Row(
        name="words: panel of five judges, 200 items",
        claim="a better panel is said to be better",
        kind="power",
        world=partial(_says_of_panel, n=200, errors=[0.25] * 5, words=_COMPARED[:1]),
    ),
    *(
        Row(
            name=f"words: {len(errors)} independent judges, errors {errors[0]:.0%}, {n} items",
            claim="their errors are said to be negatively correlated",
            kind="false word",
            world=partial(_says_of_panel, n=n, errors=errors, words=_NEGATIVE),
        )
        for n, errors in ((60, [0.05] * 2), (100, [0.2] * 3), (60, [0.4] * 5))
    ),
    Row(
        name="words: 20 criteria of coin flips, 12 items",
        claim="two are said to be redundant",
        kind="false word",
        world=partial(_redundant, n=12, n_criteria=20),
    ),
    Row(
        name="words: a copy among 5 criteria, 80 items",
        claim="the copies are said to be redundant",
        kind="power",
        world=partial(_redundant, n=80, n_criteria=5, copies=True),
    ),
    *(
        Row(
            name=f"words: 4 criteria that discriminate equally, {n} items",
            claim="one is said to have the weakest correlation with the rest",
            kind="false word",
            world=partial(_weakest, n=n, loadings=[0.7] * 4),
        )
        for n in (30, 100)
    ),
    Row(
        name="words: a coin among 4 criteria, 100 items",
        claim="it is said to have the weakest correlation with the rest",
        kind="power",
        world=partial(_weakest, n=100, loadings=[0.8, 0.8, 0.8, 0.0], among="c3"),
    ),
    *(
        Row(
            name=f"words: interval of plan from {shape[0]} items, {shape[1]} judges, {shape[2]} samples",
            claim="it contains the plan's Φ",
            kind="coverage",
            world=partial(_plan, shape=shape, variances=_VARIANCES),
        )
        for shape in ((40, 3, 1), (60, 5, 2))
    ),
    *(
        Row(
            name=f"words: alt-test, judge as good as three people, {n} items",
            claim="it is said that it cannot replace them",
            kind="false word",
            world=partial(_alt_test, n=n, people=_EQUAL, judge=0.8, epsilon=0.2, words="cannot"),
        )
        for n in (30, 100, 200)
    ),
    *(
        Row(
            name=f"words: alt-test, unanimous people, judge at the limit of {epsilon:g}, {n} items",
            claim="it is said that it may replace them",
            kind="false word",
            world=partial(
                _alt_test,
                n=n,
                people=_PERFECT,
                judge=1 - epsilon,
                epsilon=epsilon,
                words="The judge may replace",
            ),
        )
        for epsilon, n in ((0.01, 30), (0.05, 30), (0.05, 100), (0.05, 200), (0.2, 30))
    ),
    Row(
        name="words: alt-test, judge as good as three people, 200 items, power",
        claim="it is said that it may replace them",
        kind="power",
        world=partial(_alt_test, n=200, people=_EQUAL, judge=0.8, epsilon=0.2, words="The judge may replace"),
    ),
    *(
        Row(
            name=f"words: 8 equal judges, {n} items",
            claim="two are said to differ (29 adjusted tests)",
            kind="false word",
            world=partial(_found_pair, n=n, errors=[0.25] * 8, n_criteria=3),
        )
        for n in (20, 40)
    ),
    Row(
        name="words: 2 equal judges, 30 items",
        claim="they are said to differ",
        kind="false word",
        world=partial(_found_pair, n=30, errors=[0.25] * 2, n_criteria=3),
    ),
    Row(
        name="words: 8 judges, one right on 55 % and others on 97 % of 100 items",
        claim="two are said to differ (29 adjusted tests)",
        kind="power",
        world=partial(_found_pair, n=100, errors=[0.45, *[0.03] * 7]),
    ),
    Row(
        name="words: report on 2 equal judges, 50 items",
        claim="one is said to be the best",
        kind="false word",
        world=partial(_report_says, n=50, errors=[0.2] * 2, n_criteria=2, words=_BEST),
    ),
    Row(
        name="words: report on 2 equal criteria, 50 items",
        claim="one is said to be the weakest",
        kind="false word",
        world=partial(_report_says, n=50, errors=[0.2], n_criteria=2, words=_WEAKEST),
    ),
    *(
        Row(
            name=f"words: threshold of a cascade for {accuracy:g}, first panel {loss:.0%} worse, 300 items",
            claim=f"a threshold is returned that {'reaches' if is_reached else 'misses'} the accuracy",
            kind="power" if is_reached else "false word",
            world=partial(_threshold, n=300, loss=loss, accuracy=accuracy, is_reached=is_reached),
        )
        for loss, accuracy, is_reached in ((0.0, 0.951, False), (0.3, 0.88, True))
    ),
)
