"""Laws of scoring, and the length penalty."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import Answer, BaseCriterion, Submission
from autorubric.errors import ArgumentError
from autorubric.scoring import (
    CannotAssessConfig,
    CannotAssessStrategy,
    Decision,
    LengthPenalty,
    compute_length_penalty,
)
from autorubric.scoring.score import (
    Score,
    Term,
    entry_of,
    score_terms,
    submission_length_penalty,
    subtract_penalty,
)
from tests.criteria.kinds import Remarks
from tests.doubles import binary, choice

values = st.floats(0, 1)
weights = st.floats(-100, 100).map(lambda weight: round(weight, 3))
terms = st.lists(st.builds(Term, values, weights, st.booleans()), min_size=1, max_size=8)
SKIPPED = CannotAssessConfig()
OPEN = Decision(status="abstained", answer=Answer(code=None, cannot_assess=True))


def answered(value: float) -> Decision:
    return Decision(status="answered", answer=Answer(code=value, value=value))


def near(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, abs_tol=1e-9))


def test_the_formulas_by_hand() -> None:
    """Positive weights divide; penalties take off; a rubric of penalties alone starts at 1."""
    mixed = [Term(1.0, 10.0), Term(0.5, 6.0), Term(1.0, -4.0)]
    assert score_terms(mixed).raw == 9.0
    assert score_terms(mixed).score == 9.0 / 16.0
    assert score_terms(mixed, normalize=False).score == 9.0
    penalties = [Term(1.0, -3.0), Term(0.0, -1.0)]
    assert score_terms(penalties).score == 0.25
    assert score_terms(penalties).raw == -3.0
    assert score_terms([Term(1.0, 1.0), Term(1.0, -5.0)]).score == 0.0


@given(terms)
def test_a_normalised_score_is_bounded(given_terms: list[Term]) -> None:
    """It lies in [0, 1] or there is none, and there is none exactly where nothing but bonuses weighs."""
    scored = score_terms(given_terms)
    assert (scored.score is None) == (not any(term.weight for term in given_terms if not term.bonus))
    if scored.score is not None:
        assert 0.0 <= scored.score <= 1.0
        assert scored.raw is not None


HUGE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.builds(Term, values, HUGE, st.booleans()), min_size=1, max_size=8), values)
@example([Term(0.25, 5e-324)], 1.0)
def test_weights_near_the_largest_float_score_by_the_same_formula(
    given_terms: list[Term], cap: float
) -> None:
    """Whatever finite weights, the score is that of exact arithmetic; only a raw sum can be refused."""
    exact = [(Fraction(term.value), Fraction(term.weight), term.bonus) for term in given_terms]
    divided = [weight for _, weight, bonus in exact if not bonus]
    scored = score_terms(given_terms)
    if not any(divided):
        assert scored.score is None
        return
    positive = sum((weight for weight in divided if weight > 0), Fraction(0))
    scale = positive or sum((abs(weight) for weight in divided), Fraction(0))
    raw = sum((value * weight for value, weight, _ in exact), Fraction(0))
    expected = min(
        1.0, max(0.0, float(max(Fraction(-2), min(Fraction(2), (0 if positive else 1) + raw / scale))))
    )
    assert scored.score == pytest.approx(expected, abs=_rounding(given_terms, scale))
    capped = score_terms(given_terms, cap=cap).score
    assert capped is not None and scored.score is not None
    assert capped == min(cap, scored.score)


def _rounding(given_terms: list[Term], scale: Fraction) -> float:
    """What rounding of float sums may add up to where huge terms cancel."""
    size = sum((Fraction(abs(term.weight)) for term in given_terms), Fraction(0))
    return float(min(Fraction(1), size / scale * Fraction(1, 10**14)))


def test_two_huge_weights_are_scored() -> None:
    """Two weights of 1e308 count by halves; their raw sum has no float, and asking for it is an error."""
    both, one = [Term(1.0, 1e308)] * 2, [Term(1.0, 1e308), Term(0.0, 1e308)]
    assert score_terms(both) == Score(score=1.0, raw=None)
    assert score_terms(one) == Score(score=0.5, raw=1e308)
    assert score_terms([Term(0.5, -1e308), Term(1.0, -1e308)]).score == 0.25
    assert score_terms([Term(1.0, 1e308), Term(1.0, 1e308, bonus=True), Term(0.0, 1e-300)]).score == 1.0
    assert score_terms(one, normalize=False).score == 1e308
    with pytest.raises(ArgumentError, match="exceeds the largest float"):
        score_terms(both, normalize=False)


@given(terms, st.integers(0, 7), values)
def test_a_score_rises_with_each_positive_criterion(
    given_terms: list[Term], position: int, value: float
) -> None:
    """A higher value of a positive criterion never lowers the score, of a penalty never raises it."""
    position %= len(given_terms)
    term = given_terms[position]
    changed = [*given_terms]
    changed[position] = term._replace(value=max(value, term.value))
    before, after = score_terms(given_terms).score, score_terms(changed).score
    if before is None or after is None:
        assert before is after
    elif term.weight >= 0:
        assert after >= before - 1e-12
    else:
        assert after <= before + 1e-12


@given(terms, st.randoms(use_true_random=False), st.floats(0.01, 100))
def test_order_and_scale_of_the_weights_do_not_matter(
    given_terms: list[Term], rng: object, factor: float
) -> None:
    """Shuffled criteria, and all weights times one factor, give the same score."""
    shuffled = [*given_terms]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    scaled = [term._replace(weight=term.weight * factor) for term in given_terms]
    assert near(score_terms(given_terms).score, score_terms(shuffled).score)
    assert near(score_terms(given_terms).score, score_terms(scaled).score)


rows = st.lists(st.tuples(weights, st.one_of(st.none(), values)), min_size=1, max_size=6)


def criteria_of(given_rows: list[tuple[float, float | None]]) -> list[BaseCriterion]:
    return [binary(f"c{i}", weight) for i, (weight, _) in enumerate(given_rows)]


def values_under(
    given_rows: list[tuple[float, float | None]], policy: CannotAssessConfig
) -> list[float | None]:
    """Values that enter the score where None is a criterion left open."""
    return [
        entry_of(criterion, OPEN if value is None else answered(value), policy).value
        for criterion, (_, value) in zip(criteria_of(given_rows), given_rows, strict=True)
    ]


def score_values(criteria: list[BaseCriterion], entering: list[float | None]) -> Score:
    """The score of values beside their criteria; a value of None leaves the score."""
    pairs = zip(criteria, entering, strict=True)
    return score_terms(Term(value, criterion.weight) for criterion, value in pairs if value is not None)


@given(rows)
def test_skip_equals_leaving_the_criterion_out(given_rows: list[tuple[float, float | None]]) -> None:
    """A skipped criterion leaves numerator and denominator."""
    judged = [row for row in given_rows if row[1] is not None]
    whole = score_values(criteria_of(given_rows), values_under(given_rows, SKIPPED))
    assert whole == score_values(criteria_of(judged), [value for _, value in judged])


@given(rows, st.floats(0, 1))
def test_other_strategies_equal_their_value(
    given_rows: list[tuple[float, float | None]], credit: float
) -> None:
    """ZERO is value 0, PARTIAL the credit, FAIL the worst for the weight's sign; all keep the denominator."""
    expected = {
        CannotAssessStrategy.ZERO: lambda weight: 0.0,
        CannotAssessStrategy.PARTIAL: lambda weight: credit,
        CannotAssessStrategy.FAIL: lambda weight: 0.0 if weight >= 0 else 1.0,
    }
    for strategy, value_for in expected.items():
        policy = CannotAssessConfig(strategy=strategy, partial_credit=credit)
        filled = [value_for(weight) if value is None else value for weight, value in given_rows]
        assert values_under(given_rows, policy) == filled


def test_fail_is_the_worst_option_of_a_scale() -> None:
    """On a scale the worst case is its worst option, for a penalty its best; for text there is none."""
    policy = CannotAssessConfig(strategy=CannotAssessStrategy.FAIL)
    scale = {"low": 0.2, "high": 0.9}
    assert entry_of(choice(values=scale), OPEN, policy).value == 0.2
    assert entry_of(choice(values=scale, weight=-1.0), OPEN, policy).value == 0.9
    assert entry_of(Remarks(name="r"), OPEN, policy).value is None


@pytest.mark.parametrize("status", ["failed", "not_asked", "not_applicable"])
@pytest.mark.parametrize("strategy", list(CannotAssessStrategy))
def test_what_was_not_judged_leaves_the_score(status: str, strategy: CannotAssessStrategy) -> None:
    """Failed, unasked and inapplicable criteria leave it whatever the strategy for abstentions."""
    decision = Decision(status=status, answer=Answer(code="MET", value=1.0))  # type: ignore[arg-type]
    policy = CannotAssessConfig(strategy=strategy)
    assert entry_of(binary(), decision, policy).value is None
    assert entry_of(binary(), None, policy).value is None


def test_partial_credit_lies_on_the_unit_interval() -> None:
    """Other credits are refused."""
    for credit in (-0.1, 1.1):
        with pytest.raises(ValidationError):
            CannotAssessConfig(partial_credit=credit)


# Length


def test_the_length_penalty_by_hand() -> None:
    """Nothing up to the free budget, all of it from the cap on, a power of the share between."""
    config = LengthPenalty(free_budget=10, max_cap=20, penalty_at_cap=0.4, exponent=2.0)
    taken = {n: compute_length_penalty("w " * n, config) for n in (0, 10, 15, 20, 400)}
    assert taken == pytest.approx({0: 0.0, 10: 0.0, 15: 0.1, 20: 0.4, 400: 0.4})
    defaults = LengthPenalty()
    assert compute_length_penalty("w " * 7000, defaults) == pytest.approx(0.5 * 0.5**1.6)


@given(
    st.integers(0, 50),
    st.integers(1, 50),
    st.floats(0, 2),
    st.floats(0.1, 5),
    st.integers(0, 200),
    st.integers(0, 50),
)
def test_the_length_penalty_is_bounded_and_rises(
    free: int, width: int, most: float, exponent: float, units: int, more: int
) -> None:
    """It lies between 0 and `penalty_at_cap` and never falls with length."""
    config = LengthPenalty(free_budget=free, max_cap=free + width, penalty_at_cap=most, exponent=exponent)
    shorter, longer = (compute_length_penalty("w " * n, config) for n in (units, units + more))
    assert 0.0 <= shorter <= longer <= most


def test_a_count_function_replaces_words() -> None:
    """Units are what `count_fn` counts."""
    config = LengthPenalty(free_budget=2, max_cap=4, penalty_at_cap=1.0, exponent=1.0, count_fn=len)
    assert compute_length_penalty("abc", config) == 0.5


def test_the_penalty_counts_the_parts_it_says() -> None:
    """ALL counts thinking and output, the other two one of them; a missing part is nothing."""
    submission = Submission(text="one two three", thinking="four five")
    counted = {
        kind: submission_length_penalty(
            submission,
            LengthPenalty(free_budget=0, max_cap=10, penalty_at_cap=1.0, exponent=1.0, penalty_type=kind),
        )
        for kind in ("ALL", "OUTPUT_ONLY", "THINKING_ONLY")
    }
    assert counted == {"ALL": 0.5, "OUTPUT_ONLY": 0.3, "THINKING_ONLY": 0.2}
    thinking = LengthPenalty(free_budget=0, max_cap=10, penalty_type="THINKING_ONLY")
    assert submission_length_penalty(Submission(text="one two"), thinking) == 0.0
    assert submission_length_penalty(Submission(text=None), LengthPenalty()) == 0.0
    assert submission_length_penalty(submission, None) == 0.0


def test_the_penalty_is_subtracted_and_clamped() -> None:
    """A normalised score stays in [0, 1]; a raw sum takes the penalty as it is; no score stays none."""
    assert subtract_penalty(0.7, 0.5) == pytest.approx(0.2)
    assert subtract_penalty(0.3, 0.5) == 0.0
    assert subtract_penalty(3.0, 0.5, normalize=False) == 2.5
    assert subtract_penalty(0.3, 0.5, normalize=False) == pytest.approx(-0.2)
    assert subtract_penalty(None, 0.5) is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"free_budget": 10, "max_cap": 10}, r"free_budget \(10\) must be less than max_cap \(10\)"),
        ({"penalty_at_cap": -0.1}, "greater than or equal to 0"),
        ({"exponent": 0}, "greater than 0"),
        ({"penalty_type": "output"}, "OUTPUT_ONLY"),
        ({"count_fn": 5}, "5 is not a function"),
        ({"budget": 5}, "Extra inputs"),
    ],
)
def test_bad_penalties_are_refused(fields: dict[str, object], told: str) -> None:
    """Each fault is named."""
    with pytest.raises(ValidationError, match=told):
        LengthPenalty.model_validate(fields)


@pytest.mark.parametrize("count", [float("nan"), -1, True, "many", None])
def test_a_count_that_is_none_is_refused(count: object) -> None:
    """What is no count of units never becomes a penalty."""
    with pytest.raises(ArgumentError, match="non-negative number of units"):
        compute_length_penalty("text", LengthPenalty(count_fn=lambda text: count))


def test_a_count_function_that_raises_is_told() -> None:
    """The function is its author's: its exception is named, not passed on bare."""
    with pytest.raises(ArgumentError, match="count_fn raised KeyError"):
        compute_length_penalty("text", LengthPenalty(count_fn=lambda text: {}[text]))
