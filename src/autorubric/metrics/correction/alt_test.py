"""The alternative annotator test, which decides whether a judge may replace a human annotator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

import numpy as np
from scipy.special import bdtr, stdtr, stdtrit

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, divide, encode, numeric_column, renumber
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic
from autorubric.metrics.core.estimation import Figure, estimate
from autorubric.metrics.core.intervals import mean_ends, normal_quantile, wilson_ends
from autorubric.metrics.core.item_scores import PANEL, Rater
from autorubric.metrics.core.label_rows import ABSTENTION, NO_ANSWER
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import (
    IntervalArguments,
    IntervalOptions,
    Resampling,
    check_choice,
    check_number,
    row_units,
)
from autorubric.metrics.core.result import ResultBase, describe_estimate, format_interval
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, VotesTable, distinct_names
from autorubric.metrics.core.wording import answered_in_words, compare_in_words, side_of, widen
from autorubric.metrics.correction.samples import answer_or_none, labels_of, read_annotators, share_estimate
from autorubric.support.blocks import Block, Cell, TableBlock, p_cell

AltScore: TypeAlias = Literal["accuracy", "rmse"]

AltAbstain: TypeAlias = Literal["exclude", "as_category"]
"""Treatment of NA and CANNOT_ASSESS."""

LEAST_ITEMS = 30
"""Minimum number of items for an annotator to be tested."""

FALSE_DISCOVERY_RATE = 0.05
PASS_AT = 0.5

FEW_DIFFERENCES = 5
"""Number of items in favour of either side below which the t test is replaced by an exact test."""

_NOT_SHOWN = "That the judge may replace an annotator is not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorTest:
    """A test of the judge against one annotator, with the other annotators as reference.

    Attributes:
        name: Name of the annotator.
        n: Number of items that this annotator, the judge and at least one other annotator labelled.
        advantage: Fraction of items on which the judge is at least as close to the others as this annotator
            is (ρ_f).
        human_advantage: The same fraction with judge and annotator swapped (ρ_h). Ties count for both.
        p_value: One-sided p-value for the null hypothesis ρ_h - ρ_f ≥ ε; None if not tested.
        adjusted_p: p-value adjusted by the Benjamini-Yekutieli procedure.
        wins: Whether the judge wins against the annotator; None if the annotator was not tested.
        reason: Reason why the annotator was not tested; None if tested.
        t_test: The t test with its statistic and degrees of freedom; None if the annotator was not tested, or
            if an exact test was used because few items differ.
        smallest_gap: Smallest difference ε - mean d that these items could show, at the level that half of
            the annotators need and with the observed spread; None if not tested, or if they can show none.
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
    smallest_gap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTestResult(ResultBase):
    """The result of an alternative annotator test.

    Attributes:
        winning_rate: Fraction of the tested annotators that the judge wins against (ω).
        advantage: Mean of ρ_f over the tested annotators (ρ): the probability that the judge is at least as
            good as a randomly chosen annotator.
        gap: Mean of ρ_h - ρ_f over the tested annotators, which is compared with ε.
        smallest_gap: Smallest difference ε - gap that these items could show against at least half of the
            annotators; None if there is none.
        passed: Whether ω is at least 0.5, also with the judge's abstentions as errors and as right answers;
            None if no annotator could be tested.
        per_annotator: Result for each annotator, including those with too few items to be tested.
        epsilon: Margin granted to the judge because it costs less than an annotator.
        score: Metric of closeness to the other annotators: `accuracy` or `rmse`.
        n_items: Number of items, equal to the number of rows of `humans`.
        n_answered: Number of items that the judge answered, including abstentions if they are a category.
        abstain: Whether abstentions were excluded or treated as a category.
        abstention_gaps: The gap with the judge's excluded abstentions as errors, which agree with nobody, and
            as right answers, which are those of the others that agree with most; None if there are none.
        abstention_rates: The winning rate in the same two cases.
    """

    winning_rate: Estimate
    advantage: Estimate
    gap: Estimate
    smallest_gap: float | None
    passed: bool | None
    per_annotator: Mapping[str, AnnotatorTest]
    epsilon: float
    score: AltScore
    n_items: int
    n_answered: int
    abstain: AltAbstain = "exclude"
    abstention_gaps: tuple[Estimate, Estimate] | None = None
    abstention_rates: tuple[Estimate, Estimate] | None = None

    _heading: ClassVar[str] = "Alternative annotator test"

    @property
    def _widened_gap(self) -> Estimate:
        """The gap, whose interval contains both cases of the judge's abstentions."""
        errors, right = self.abstention_gaps or (self.gap, self.gap)
        return widen(self.gap, right, errors)

    def _sentence(self) -> str:
        rate, gap = self.winning_rate, self._widened_gap
        if self.passed is None:
            return f"No annotator could be tested: each needs {LEAST_ITEMS} items that others also labelled."
        condition = answered_in_words(self.n_answered, self.n_items, "items")
        wins = f"it wins against {_won_of(rate)}"
        count = f" (at least half are needed; epsilon {self.epsilon:g})"
        if self.abstention_rates and self.abstention_gaps:
            cases = zip(self.abstention_rates, self.abstention_gaps, strict=True)
            errors, right = (f"against {_won_of(won)} (mean d {mean:.3f})" for won, mean in cases)
            count += f"; with its abstentions as errors {errors} and as right answers {right}"
        count += f", advantage {describe_estimate(self.advantage)}."
        if self.passed:
            return f"The judge may replace an annotator{condition}: {wins}{count}"
        verdict = compare_in_words(
            gap,
            above="The judge cannot replace an annotator",
            below=_NOT_SHOWN,
            otherwise=_NOT_SHOWN,
            reference=self.epsilon,
            quantity="annotator's advantage minus judge's",
        )
        verdict = f"{verdict}: {wins}{condition}{count}"
        if self.smallest_gap is None or float(rate) >= PASS_AT or side_of(gap, self.epsilon) == "above":
            return verdict
        most = round(self.epsilon - self.smallest_gap, 3) + 0
        sides = ("it", "the annotator") if most < 0 else ("the annotator", "it")
        share = f"at {'least' if most < 0 else 'most'} {100 * abs(most):.1f}% more items"
        needs = f"{sides[0]} is closer to the others than {sides[1]} on {share} (mean d at most {most:.3f})"
        return f"{verdict} With these items, the judge passes only if {needs}."

    def _tables(self) -> list[Block]:
        rows: list[tuple[Cell, ...]] = [
            (
                one.name, one.n, one.advantage.value,
                format_interval(one.advantage.low, one.advantage.high), one.human_advantage.value,
                p_cell(one.adjusted_p), one.wins, one.reason or "",
            )
            for one in self.per_annotator.values()
        ]  # fmt: skip
        columns = (
            "annotator", "n", "judge at least as close", "interval", "annotator at least as close", "p (BY)",
            "judge wins", "reason",
        )  # fmt: skip
        return [TableBlock(title="Against each annotator", columns=columns, rows=tuple(rows))]


def alt_test(
    judge: Iterable[Any],
    humans: Any,
    *,
    epsilon: float = 0.2,
    score: AltScore = "accuracy",
    abstain: AltAbstain = "exclude",
    **interval: Unpack[IntervalArguments],
) -> AltTestResult:
    """Run the alternative annotator test, which decides whether a judge may replace an annotator [1].

    Each annotator j is held out in turn. On the items that j labelled, the judge and j are scored against the
    other annotators of the item, by the proportion that agrees or by the negative root mean square distance.
    W_f is 1 if the judge scores at least as well as j, and W_h is 1 if j scores at least as well as the
    judge, so ties count for both. With `d = W_h - W_f`, the judge wins against j if a one-sided t test finds
    `mean d < ε` at a false discovery rate of 0.05 over all annotators (Benjamini and Yekutieli [2]). The
    winning rate ω is the fraction of annotators that the judge wins against; the test is passed if ω is at
    least 0.5. The advantage ρ is the mean of W_f, averaged over annotators. A judge that does not pass is not
    shown to be worse: the summary says "cannot" only if the interval of the mean d is above ε, and otherwise
    the mean d below which the judge would have passed with these items. A judge that abstains passes, or
    "cannot", only if that also holds with its abstentions as errors and as right answers.

    With fewer than five items in favour of either side, the t test would pass a judge at the limit too often
    (in 6 to 23% of cases if annotators are unanimous). Then p is exact: the probability of a mean d as low
    as observed if P(d = 1) = ε + q and P(d = -1) = q, where q has maximum likelihood; `(1 - ε)ⁿ` if d is
    always 0. With clusters, this needs equally large clusters whose items have the same d; other clusters
    take the t test or, without variance, `((1 - ε) / (1 - d))ⁿ`, which is Markov's bound for n clusters.

    An annotator with fewer than 30 items is not tested (`too_few_units`). If no annotator can be tested, all
    results are None.

    Args:
        judge: The judge's labels. None, NaN, NA, CANNOT_ASSESS and INVALID count as missing (see `abstain`).
        humans: Annotators' labels, shape `(n_items, n_annotators)`, with the same values counting as missing.
            DataFrame columns name the annotators.
        epsilon: Margin granted to the judge: about 0.2 for expert annotators, 0.15 for skilled ones and 0.1
            for a crowd [1].
        score: `"accuracy"` for categories, `"rmse"` for numbers.
        abstain: `"exclude"` treats NA and CANNOT_ASSESS as missing. `"as_category"` treats both as one
            additional category, so that two NA answers agree; it is not available for numbers.
        **interval: See `IntervalArguments`. With `cluster`, the test uses cluster sums. The interval for ρ
            resamples items or clusters.

    Raises:
        ArgumentError: If lengths differ, there are fewer than two annotators, or an option is invalid.

    References:
        [1] N. Calderon, R. Reichart, R. Dror (2025), The alternative annotator test for LLM-as-a-judge,
            arXiv:2501.10970.
        [2] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
    """
    check_choice("score", score, AltScore)
    check_choice("abstain", abstain, AltAbstain)
    if abstain == "as_category" and score == "rmse":
        raise ArgumentError(
            "abstain='as_category' cannot be combined with score='rmse': numbers have no categories"
        )
    check_number("epsilon", epsilon, "[0, 1]")
    options = IntervalOptions(**interval)
    people = read_annotators(humans)
    judged = list(labels_of(judge, "judge"))
    if len(judged) != people.n_items:
        raise ArgumentError(
            f"judge has {len(judged)} labels but humans has {people.n_items} rows; pass one label per row"
        )
    read = answer_or_none if abstain == "exclude" else _answer_or_abstention
    columns = [[read(label) for label in column] for column in (judged, *people.columns)]
    table = _annotation_table(columns, score)
    cluster = cluster_codes(options.cluster, people.n_items)

    def compare(bounded: Array, *, right: bool = False) -> tuple[list[AnnotatorTest], Estimate, Estimate]:
        wins = [_compare_with_others(table, j, score, bounded, right=right) for j in range(1, len(table))]
        tests = _test_annotators(people.names, wins, cluster, epsilon, options.confidence_level)
        kept = [one for one, test in zip(wins, tests, strict=True) if test.p_value is not None]
        gaps = [(one.human - one.judge, one.there) for one in kept]
        gap = _estimate_mean("annotator's advantage minus judge's", gaps, cluster, options)
        if gap.value == 1.0 and cluster is None:
            low = wilson_ends(1.0, gap.n, normal_quantile(options.confidence_level))[0]
            gap = replace(gap, low=2 * low - 1, high=1.0, method=f"{gap.method}; score interval", reason=None)
        advantages = [(one.judge, one.there) for one in kept]
        return tests, _estimate_mean("advantage", advantages, cluster, options), gap

    abstained = np.array([_answer_or_abstention(label) is ABSTENTION for label in judged], dtype=bool)
    abstained &= np.isnan(table[0]) & (np.count_nonzero(~np.isnan(table[1:]), axis=0) > 1)
    tests, advantage, gap = compare(np.zeros_like(abstained))
    cases = [compare(abstained, right=right) for right in (False, True)] if abstained.any() else []
    rate, *rates = (_winning_rate(each, epsilon) for each in (tests, *(case[0] for case in cases)))
    tested = rate.value is not None
    needed = math.ceil(PASS_AT * rate.n)
    gaps = sorted(one.smallest_gap for one in tests if one.smallest_gap is not None)
    return AltTestResult(
        winning_rate=rate,
        advantage=advantage,
        gap=gap,
        smallest_gap=gaps[needed - 1] if 0 < needed <= len(gaps) else None,
        passed=all(float(one) >= PASS_AT for one in (rate, *rates)) if tested else None,
        per_annotator={one.name: one for one in tests},
        epsilon=epsilon,
        score=score,
        n_items=people.n_items,
        n_answered=int(np.count_nonzero(~np.isnan(table[0]))),
        abstain=abstain,
        abstention_gaps=(cases[0][2], cases[1][2]) if cases and tested else None,
        abstention_rates=(rates[0], rates[1]) if rates and tested else None,
    )


def _winning_rate(tests: Iterable[AnnotatorTest], epsilon: float) -> Estimate:
    """Return the fraction of the tested annotators that the judge wins against."""
    wins, method = [one.wins for one in tests if one.wins is not None], f"(alt-test, epsilon {epsilon:g})"
    if not wins:
        return Estimate.undefined("too_few_units", method=f"winning rate {method}")
    return Estimate(sum(wins) / len(wins), n=len(wins), method=f"winning rate {method}")


def _won_of(rate: Estimate) -> str:
    return f"{round(float(rate) * rate.n)} of {rate.n}"


def _answer_or_abstention(label: Any) -> Any:
    """Return the label, one common label for all abstentions, or None for missing answers and failures."""
    status = NO_ANSWER.get(label.strip().upper()) if isinstance(label, str) else None
    return ABSTENTION if status == "abstained" else answer_or_none(label)


@dataclass(frozen=True, slots=True)
class _PairedWins:
    """W_f and W_h of each item, shape `(n_items,)`; 0 for items that are not in `there`."""

    judge: Array
    human: Array
    there: Array


def _annotation_table(columns: list[list[Any]], score: AltScore) -> Array:
    """Return annotations as numbers, shape `(1 + n_annotators, n_items)`, NaN where missing."""
    if score == "rmse":
        return np.array([numeric_column(column, "an annotator's column") for column in columns])
    codes = np.array(encode(columns, None, None).codes, dtype=float)
    # `encode` takes abstentions as missing.
    abstained = np.array([[label is ABSTENTION for label in column] for column in columns])
    return np.where(abstained, codes.max(initial=0) + 1, np.where(codes < 0, np.nan, codes))


def _compare_with_others(
    table: Array, j: int, score: AltScore, bounded: Array, *, right: bool
) -> _PairedWins:
    """Compare the judge and annotator j; where `bounded`, the judge's answer is right, otherwise an error."""
    others = np.delete(table, [0, j], axis=0)
    n_others = np.count_nonzero(~np.isnan(others), axis=0)
    there = (n_others > 0) & (~np.isnan(table[0]) | bounded) & ~np.isnan(table[j])

    def distance(row: Array) -> Array:
        apart = (others != row) & ~np.isnan(others) if score == "accuracy" else (others - row) ** 2
        return np.asarray(np.nansum(apart.astype(float), axis=0))

    error = n_others if score == "accuracy" else np.inf
    ends = np.min([np.where(np.isnan(row), np.inf, distance(row)) for row in others], axis=0)
    far = [np.where(bounded, ends if right else error, distance(table[0])), distance(table[j])]
    # Both distances are sums over the same annotators, so tied ones differ by rounding only.
    room = 1e-9 * np.maximum(1.0, np.maximum(*far))
    judge, human = far[0] <= far[1] + room, far[1] <= far[0] + room
    return _PairedWins(np.where(there, judge, 0.0), np.where(there, human, 0.0), there)


def _test_annotators(
    names: Iterable[str], wins: list[_PairedWins], cluster: Codes | None, epsilon: float, level: float
) -> list[AnnotatorTest]:
    from scipy.stats import false_discovery_control  # imported here because importing scipy.stats is slow

    m = sum(int(np.count_nonzero(one.there)) >= LEAST_ITEMS for one in wins)
    # The level at which Benjamini and Yekutieli reject half of m hypotheses.
    alpha = FALSE_DISCOVERY_RATE * math.ceil(PASS_AT * m) / (m * sum(1 / i for i in range(1, m + 1)) or 1)
    members = [None if cluster is None else cluster[one.there] for one in wins]
    results = [
        _test_differences((one.human - one.judge)[one.there], own, epsilon, alpha)
        if np.count_nonzero(one.there) >= LEAST_ITEMS
        else (None, None, None)
        for one, own in zip(wins, members, strict=True)
    ]
    p_values = [p for p, *_ in results if p is not None]
    adjusted = iter(false_discovery_control(p_values, method="by").tolist() if p_values else [])
    tests = []
    for name, one, own, (p_value, t_test, gap) in zip(names, wins, members, results, strict=True):
        p = None if p_value is None else float(next(adjusted))
        judge, human = one.judge[one.there], one.human[one.there]
        test = AnnotatorTest(
            name=name,
            n=len(judge),
            advantage=share_estimate("advantage of the judge", judge, own, level),
            human_advantage=share_estimate("advantage of the annotator", human, own, level),
            p_value=p_value,
            adjusted_p=p,
            wins=None if p is None else p <= FALSE_DISCOVERY_RATE,
            reason="too_few_units" if p is None else None,
            t_test=t_test,
            smallest_gap=gap,
        )
        tests.append(test)
    return tests


def _test_differences(
    differences: Array, members: Codes | None, epsilon: float, alpha: float
) -> tuple[float, TestStatistic | None, float | None]:
    """Return the one-sided p-value, the t test if it was used, and the smallest significant ε - mean."""
    own = np.arange(len(differences)) if members is None else renumber(members)
    sizes = np.bincount(own)
    units, n = np.bincount(own, weights=differences) / sizes, len(sizes)
    counted = np.ptp(sizes) == 0 and bool(np.isin(units, (-1.0, 0.0, 1.0)).all())
    human, judge = int(np.count_nonzero(units > 0)), int(np.count_nonzero(units < 0))
    if counted and min(human, judge) < FEW_DIFFERENCES:
        sums = range(human - judge, -n - 1, -1) if human - judge < epsilon * n else range(human, -n - 1, -1)
        shown = next(
            (s for s in sums if _exact_p(max(s + judge, 0), max(judge, -s), n, epsilon) <= alpha), None
        )
        gap = None if shown is None else epsilon - shown / n
        return _exact_p(human, judge, n, epsilon), None, gap
    mean = float(differences.mean())
    se = mean_ends(differences, own, 0.95).se
    if not se:
        bound = ((1 - epsilon) / (1 - mean)) ** n if mean < epsilon else 1.0
        return bound, None, None
    t = (mean - epsilon) / se
    p = float(stdtr(n - 1, t))
    statistic = TestStatistic(name="t", value=t, df=n - 1, p_value=p)
    return p, statistic, -float(stdtrit(n - 1, alpha)) * se


def _exact_p(human: int, judge: int, n: int, epsilon: float) -> float:
    """Return P(X - Y ≤ human - judge) for n units of which X favour the human and Y the judge.

    P(human) = ε + q and P(judge) = q, where q is the root of the likelihood equation in [0, (1 - ε) / 2].
    """
    a, c = -2.0 * n, judge * epsilon * (1 - epsilon)
    b = human * (1 - epsilon) + judge * (1 - 3 * epsilon) - 2 * (n - human - judge) * epsilon
    root = (b + math.sqrt(max(b * b - 4 * a * c, 0.0))) / (-2 * a)
    q = min(max(root, 0.0), (1 - epsilon) / 2)
    y = np.arange(max(0, judge - human), n + 1)
    chances = bdtr(y, n, q) - np.where(y > 0, bdtr(y - 1.0, n, q), 0.0)
    most = np.minimum(human - judge + y, n - y)
    return min(1.0, float((chances * bdtr(most, n - y, min(1.0, (epsilon + q) / (1 - q)))).sum()))


def _estimate_mean(
    name: str, columns: list[tuple[Array, Array]], cluster: Codes | None, options: IntervalOptions
) -> Estimate:
    """Estimate the mean over annotators of the mean of each column over its items, given by a mask."""
    name = f"{name} (alt-test)"
    if not columns:
        return Estimate.undefined("too_few_units", method=name)
    rows = np.column_stack([part for values, there in columns for part in (values, there.astype(float))])
    figure = Figure(
        name=name,
        compute=lambda sums: divide(sums[..., 0::2], sums[..., 1::2]).mean(-1),
        reason=lambda sums: "too_few_units",
        bounds=(-1.0, 1.0),
        auto="percentile",
        on_table=False,
    )
    kept = rows[:, 1::2].any(axis=1)
    members = None if cluster is None else renumber(cluster[kept])
    return estimate(figure, row_units(rows[kept], members), options)


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTests(ResultBase):
    """Alternative annotator tests of all criteria that several annotators labelled."""

    per_criterion: Mapping[str, AltTestResult]  # numbers are compared by distance, categories by equality

    def _sentence(self) -> str:
        tested = [one for one in self.per_criterion.values() if one.passed is not None]
        if not tested:
            return "No criterion could be tested: no annotator labelled 30 items that others also labelled."
        passed = sum(bool(one.passed) for one in tested)
        rest = [one for one in tested if not one.passed and side_of(one._widened_gap, one.epsilon) != "above"]
        text = f"The panel may replace an annotator on {passed} of {len(tested)} tested criteria"
        text += f" (epsilon {tested[0].epsilon:g})"
        if passed < len(tested):
            text += f" and cannot on {len(tested) - passed - len(rest)}"
        if rest:
            text += f"; for {len(rest)}, neither is shown (n = {_range_of([one.gap.n for one in rest])}"
            gaps = [one.smallest_gap for one in rest if one.smallest_gap is not None]
            text += f", smallest gap {_range_of(gaps, '.3f')})" if gaps else ")"
        return f"{text}."

    def _tables(self) -> list[Block]:
        rows: list[tuple[Cell, ...]] = [
            (
                name, one.winning_rate.n, one.winning_rate.value,
                one.abstention_rates[0].value if one.abstention_rates else None,
                one.advantage.value, one.advantage.low, one.advantage.high, one.passed, one.smallest_gap,
                one.winning_rate.reason or "",
            )
            for name, one in self.per_criterion.items()
        ]  # fmt: skip
        columns = (
            "criterion", "people tested", "winning rate", "abstentions as errors", "advantage", "low", "high",
            "passed", "smallest gap", "reason",
        )  # fmt: skip
        title = "Alternative annotator test of the panel"
        return [TableBlock(title=title, columns=columns, rows=tuple(rows))]


def _range_of(numbers: list[Any], form: str = "") -> str:
    return " to ".join(dict.fromkeys(f"{end:{form}}" for end in (min(numbers), max(numbers))))


def run_alt_tests(
    result: Any, dataset: Any = None, *, abstain: AltAbstain = "exclude", rng: int | np.random.Generator = 0
) -> AltTests:
    """Run `alt_test` of the panel on each criterion with an item that two annotators labelled."""
    import pandas as pd  # imported only when these tests are run

    resampling, table = Resampling(rng=rng).with_fixed_seed(), table_of(result, dataset)
    people = [rater for rater in table.raters if rater[0] == "human"]
    found: dict[str, AltTestResult] = {}
    if PANEL not in table.raters:
        return AltTests(per_criterion=found)
    for place, name in enumerate(distinct_names(table.criteria)):
        numeric = table.criteria[place].level == "interval"
        mode: AltAbstain = "exclude" if numeric else abstain
        by_person = {rater[1]: _answers_of(table, place, rater, mode) for rater in people}
        humans = {who: answers for who, answers in by_person.items() if _count_answers_of(answers)}
        if len(humans) < 2 or all(_count_answers_of(row) < 2 for row in zip(*humans.values(), strict=True)):
            continue
        score: AltScore = "rmse" if numeric else "accuracy"
        panel = _answers_of(table, place, PANEL, "as_category")
        found[name] = alt_test(panel, pd.DataFrame(humans), score=score, abstain=mode, rng=resampling.rng)
    return AltTests(per_criterion=found)


def _count_answers_of(answers: Iterable[Any]) -> int:
    return sum(one is not None for one in answers)


def _answers_of(table: VotesTable, place: int, rater: Rater, abstain: AltAbstain) -> list[Any]:
    """Return a rater's answers to a criterion by item; None if an answer is missing, failed or excluded."""
    rows = table.rows_of(rater)
    statuses = [ANSWERED] if abstain == "exclude" else [ANSWERED, ABSTAINED]
    rows = rows[(table.criterion[rows] == place) & np.isin(table.status[rows], statuses)]
    numbers = np.where(np.isnan(table.number[rows]), table.value[rows], table.number[rows])
    answers = numbers if table.criteria[place].level == "interval" else table.label[rows]
    found: list[Any] = [None] * table.n_items
    for at, answer in zip(rows.tolist(), answers.tolist(), strict=True):
        found[table.item[at]] = ABSTENTION if table.status[at] == ABSTAINED else answer
    return found
