"""The alternative annotator test: whether a judge may replace a human annotator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from autorubric._blocks import Block, Cell, TableBlock, TextBlock, p_cell, render_text
from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes, encode
from autorubric.metrics._correction._arguments import answer_or_none, finite_number, labels_of
from autorubric.metrics._correction._humans import read_annotators
from autorubric.metrics._correction._intervals import share_estimate
from autorubric.metrics._correction._sayings import ends_text, figure_text
from autorubric.metrics._estimate import Estimate, Reason, TestStatistic
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._intervals import mean_ends
from autorubric.metrics._label_homes import ABSTENTION, NO_ANSWER
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._rater_tables import no_analytic, row_units
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._shares import divide

AltScore: TypeAlias = Literal["accuracy", "rmse"]

AltAbstain: TypeAlias = Literal["exclude", "as_category"]
"""How NA and CANNOT_ASSESS are counted."""

LEAST_ITEMS = 30
"""Smallest number of items with which an annotator is tested."""

FALSE_DISCOVERY_RATE = 0.05
PASS_AT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorTest:
    """A test of the judge against one annotator, with the other annotators as reference.

    Attributes:
        name: The annotator.
        n: Number of this annotator's items that the judge and at least one other annotator also annotated.
        advantage: Share of items on which the judge is at least as close to the others (ρ_f).
        human_advantage: Share of items on which the annotator is at least as close (ρ_h); ties count for
            both.
        p_value: One-sided p-value of ρ_h - ρ_f < ε; None if the annotator is left out.
        adjusted_p: The p-value adjusted by Benjamini and Yekutieli.
        wins: Whether the judge wins; None if the annotator is left out.
        reason: Why the annotator is left out.
        t_test: The one-sided t test with its statistic and degrees of freedom; None if there is no test, or
            if d does not vary.
    """

    name: str
    n: int
    advantage: Estimate
    human_advantage: Estimate
    p_value: float | None
    adjusted_p: float | None
    wins: bool | None
    reason: Reason | None
    t_test: TestStatistic | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTestResult:
    """The outcome of an alternative annotator test.

    Attributes:
        winning_rate: Share of tested annotators that the judge wins against (ω).
        advantage: Mean of the annotators' ρ_f (ρ): the probability that the judge is at least as good as one
            of them.
        passed: Whether ω is at least 0.5; None if no annotator could be tested.
        per_annotator: The test of each annotator, including those left out.
        epsilon: The margin granted to the judge for its lower cost.
        score: How closeness to the others was measured.
        n_items: Number of rows of the table.
        abstain: Whether abstentions were missing or a category.
    """

    winning_rate: Estimate
    advantage: Estimate
    passed: bool | None
    per_annotator: Mapping[str, AnnotatorTest]
    epsilon: float
    score: AltScore
    n_items: int
    abstain: AltAbstain = "exclude"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data; never NaN."""
        return asdict(self)

    def blocks(self) -> list[Block]:
        """Return the outcome in a sentence, then each annotator's test, for any renderer."""
        rows: list[tuple[Cell, ...]] = [
            (
                one.name, one.n, one.advantage.value, ends_text(one.advantage.low, one.advantage.high),
                one.human_advantage.value, p_cell(one.adjusted_p), one.wins, one.reason or "",
            )
            for one in self.per_annotator.values()
        ]  # fmt: skip
        columns = (
            "annotator", "n", "judge as close", "interval", "annotator as close", "p (BY)", "judge wins",
            "why not",
        )  # fmt: skip
        table = TableBlock(title="Against each annotator", columns=columns, rows=tuple(rows))
        return [TextBlock(title="Alternative annotator test", text=self._sentence()), table]

    def summary(self) -> str:
        """Return the outcome and the tests as plain text."""
        return render_text(self.blocks())

    def _sentence(self) -> str:
        if self.passed is None:
            return f"Nobody could be tested: that takes {LEAST_ITEMS} items, each with another's annotation."
        tested = [one for one in self.per_annotator.values() if one.wins is not None]
        won = sum(bool(one.wins) for one in tested)
        outcome = "may" if self.passed else "may not"
        return (
            f"The judge {outcome} replace an annotator: it wins against {won} of {len(tested)} "
            f"(at least half are needed; epsilon {self.epsilon:g}), advantage {figure_text(self.advantage)}."
        )


def alt_test(
    judge: Iterable[Any],
    humans: Any,
    *,
    epsilon: float = 0.2,
    score: AltScore = "accuracy",
    abstain: AltAbstain = "exclude",
    **interval: Unpack[IntervalArguments],
) -> AltTestResult:
    """Test whether the judge may replace an annotator: the alternative annotator test [1].

    Each annotator j is left out in turn. On the items of j, the judge and j are scored against the item's
    other annotators: by the share of them that agree, or by minus the root mean square distance from them.
    W_f is 1 if the judge scores at least as well as j, and W_h is 1 if j scores at least as well as the
    judge; ties count for both. With `d = W_h - W_f`, the judge wins against j if a one-sided t test finds
    `mean d < ε`, at a false discovery rate of 0.05 over all annotators by Benjamini and Yekutieli [2]. The
    winning rate ω is the share of annotators that the judge wins against; the test is passed if it is at
    least 0.5. The advantage ρ is the mean of the annotators' mean W_f.

    An annotator with fewer than 30 items is left out (`too_few_units`); if none remains, all figures are
    None. If d does not vary, the t statistic is undefined; p is then 0 if d < ε and 1 otherwise.

    Args:
        judge: The judge's annotations; None, NaN, NA, CANNOT_ASSESS and INVALID are missing (see `abstain`).
        humans: Annotations, shape `(n_items, n_annotators)`, with the same values missing; a frame's columns
            name the annotators.
        epsilon: About 0.2 for expert annotators, 0.15 for skilled ones, 0.1 for a crowd [1].
        score: `"accuracy"` for categories, `"rmse"` for numbers.
        abstain: `"exclude"` treats NA and CANNOT_ASSESS as missing; `"as_category"` treats both as one
            additional category, so that a judge that answers NA where people do agrees with them. Not
            available for numbers.
        **interval: See `IntervalArguments`; with `cluster`, the test uses sums over clusters. The interval of
            ρ resamples items.

    Raises:
        ArgumentError: If lengths differ, there are fewer than two annotators, or an option is not allowed.

    References:
        [1] N. Calderon, R. Reichart, R. Dror (2025), The alternative annotator test for LLM-as-a-judge,
            arXiv:2501.10970.
        [2] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
    """
    if score not in get_args(AltScore):
        raise ArgumentError(f"score={score!r}; give one of {list(get_args(AltScore))}")
    if abstain not in get_args(AltAbstain):
        raise ArgumentError(f"abstain={abstain!r}; give one of {list(get_args(AltAbstain))}")
    if abstain == "as_category" and score == "rmse":
        raise ArgumentError(
            "abstain='as_category' with score='rmse': numbers have no categories; leave one out"
        )
    if not 0 <= finite_number(epsilon, "epsilon", "a share between 0 and 1") <= 1:
        raise ArgumentError(f"epsilon={epsilon!r}; give a share between 0 and 1")
    options = IntervalOptions(**interval)
    people = read_annotators(humans)
    judged = list(labels_of(judge, "judge"))
    if len(judged) != people.n_items:
        raise ArgumentError(
            f"judge has {len(judged)} annotations and humans {people.n_items} rows; give one each"
        )
    read = answer_or_none if abstain == "exclude" else _answer_or_abstention
    columns = [[read(label) for label in column] for column in (judged, *people.columns)]
    table = _numbers(columns, score)
    cluster = cluster_codes(options.cluster, people.n_items)
    wins = [_compare(table, j, score) for j in range(1, len(table))]
    tests = [_test(name, one, cluster, epsilon) for name, one in zip(people.names, wins, strict=True)]
    tests = _adjusted(tests)
    tested = [j for j, one in enumerate(tests) if one.p_value is not None]
    won = sum(bool(tests[j].wins) for j in tested)
    name = f"winning rate (alt-test, epsilon {epsilon:g})"
    rate = Estimate.undefined("too_few_units", method=name)
    if tested:
        rate = Estimate(won / len(tested), n=len(tested), method=name)
    return AltTestResult(
        winning_rate=rate,
        advantage=_advantage([wins[j] for j in tested], cluster, options),
        passed=rate.value >= PASS_AT if rate.value is not None else None,
        per_annotator={one.name: one for one in tests},
        epsilon=epsilon,
        score=score,
        n_items=people.n_items,
        abstain=abstain,
    )


def _answer_or_abstention(label: Any) -> Any:
    """Return the label, with all abstentions as one label, and None for missing answers and failures."""
    said = NO_ANSWER.get(label.strip().upper()) if isinstance(label, str) else None
    return ABSTENTION if said == "abstained" else answer_or_none(label)


@dataclass(frozen=True, slots=True)
class _Wins:
    """W_f and W_h of the items `there`, each of shape `(n_items,)`, 0 elsewhere."""

    judge: Array
    human: Array
    there: Array


def _numbers(columns: list[list[Any]], score: AltScore) -> Array:
    """Return annotations as numbers, shape `(1 + n_annotators, n_items)`, NaN where missing."""
    if score == "rmse":
        return np.array([numeric_column(column, "an annotator's column") for column in columns])
    codes = np.array(encode(columns, None, None).codes, dtype=float)
    return np.where(codes < 0, np.nan, codes)


def _compare(table: Array, j: int, score: AltScore) -> _Wins:
    others = np.delete(table, [0, j], axis=0)
    n_others = np.count_nonzero(~np.isnan(others), axis=0)
    there = (n_others > 0) & ~np.isnan(table[0]) & ~np.isnan(table[j])
    far = [_distance(row, others, score) for row in (table[0], table[j])]
    # Sums over the same annotators: no more than rounding lies between those that tie.
    room = 1e-9 * np.maximum(1.0, np.maximum(*far))
    judge, human = far[0] <= far[1] + room, far[1] <= far[0] + room
    return _Wins(np.where(there, judge, 0.0), np.where(there, human, 0.0), there)


def _distance(row: Array, others: Array, score: AltScore) -> Array:
    apart = (others != row) & ~np.isnan(others) if score == "accuracy" else (others - row) ** 2
    return np.asarray(np.nansum(apart.astype(float), axis=0))


def _test(name: str, wins: _Wins, cluster: Codes | None, epsilon: float) -> AnnotatorTest:
    n = int(np.count_nonzero(wins.there))
    judge, human = wins.judge[wins.there], wins.human[wins.there]
    members = None if cluster is None else cluster[wins.there]
    enough = n >= LEAST_ITEMS
    p_value, t_test = _t_test(human - judge, members, epsilon) if enough else (None, None)
    return AnnotatorTest(
        name=name,
        n=n,
        advantage=share_estimate("advantage of the judge", judge, members, 0.95),
        human_advantage=share_estimate("advantage of the annotator", human, members, 0.95),
        p_value=p_value,
        adjusted_p=None,
        wins=None,
        reason=None if enough else "too_few_units",
        t_test=t_test,
    )


def _t_test(differences: Array, members: Codes | None, epsilon: float) -> tuple[float, TestStatistic | None]:
    """Return the one-sided p-value, and its t test if the differences vary."""
    own = np.arange(len(differences)) if members is None else np.unique(members, return_inverse=True)[1]
    mean = float(differences.mean())
    se = mean_ends(differences, own.reshape(-1), 0.95).se
    if np.ptp(differences) == 0 or not se:
        return float(mean >= epsilon), None
    df, t = int(own.max()), (mean - epsilon) / se
    p = float(stdtr(df, t))
    return p, TestStatistic(name="t", value=t, df=df, p_value=p)


def _adjusted(tests: list[AnnotatorTest]) -> list[AnnotatorTest]:
    p_values = [one.p_value for one in tests if one.p_value is not None]
    adjusted = iter(false_discovery_control(p_values, method="by").tolist() if p_values else [])
    found = []
    for one in tests:
        p = None if one.p_value is None else float(next(adjusted))
        wins = None if p is None else p <= FALSE_DISCOVERY_RATE
        fields = {name: getattr(one, name) for name in one.__dataclass_fields__}
        found.append(AnnotatorTest(**fields | {"adjusted_p": p, "wins": wins}))
    return found


def _advantage(wins: list[_Wins], cluster: Codes | None, options: IntervalOptions) -> Estimate:
    name = "advantage (alt-test)"
    if not wins:
        return Estimate.undefined("too_few_units", method=name)
    rows = np.column_stack([column for one in wins for column in (one.judge, one.there.astype(float))])
    figure = Figure(
        name=name,
        compute=lambda sums: divide(sums[..., 0::2], sums[..., 1::2]).mean(-1),
        reason=lambda sums: "too_few_units",
        bounds=(0.0, 1.0),
        auto="percentile",
        auto_clustered="percentile",
        analytic=no_analytic,
        on_table=False,
    )
    return estimate(figure, row_units(rows, cluster), options)
