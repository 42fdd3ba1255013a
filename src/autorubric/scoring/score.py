"""Scores of groups and of a rubric's tree, with penalties, bonuses, caps and the length penalty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import Any, Final, NamedTuple, TypeVar, assert_never

from pydantic import ValidationError

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.conditions import Gate
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.scoring.policies import CannotAssessConfig, CannotAssessStrategy, LengthPenalty, RubricGroup
from autorubric.scoring.votes import Decision
from autorubric.support.objects import is_number
from autorubric.support.reading_errors import fields_text, short_repr

_LEAST_SUM: Final = 1e-280

Number = TypeVar("Number", float, Fraction)


class Term(NamedTuple):
    """One term of a score: a criterion or a group."""

    value: float  # value in [0, 1]
    weight: float
    bonus: bool = False


class Score(NamedTuple):
    """A score before the length penalty."""

    score: float | None  # the score, either normalized to [0, 1] or a raw sum; None if nothing can be scored
    raw: float | None  # Σ value × weight; None if nothing can be scored or the sum exceeds the largest float


def score_terms(terms: Iterable[Term], *, normalize: bool = True, cap: float | None = None) -> Score:
    """Combine terms into a score, whose upper limit is `cap`; a raw sum is limited to the equivalent sum.

    Without a denominator, the score is None, or 0 if the cap is 0: missing such a gate counts in any
    case.
    """
    kept = list(terms)
    total = sum(abs(term.weight) for term in kept)
    if math.isfinite(total) and (total == 0 or total > _LEAST_SUM):
        return Score(*_score_and_raw(kept, normalize, cap))
    # Fractions keep the normalized score correct if the sum overflows or products would underflow.
    exact = [(Fraction(term.value), Fraction(term.weight), term.bonus) for term in kept]
    score, raw = _score_and_raw(exact, normalize, None if cap is None else Fraction(cap))
    shown = _as_float(score)
    if score is not None and shown is None:
        largest = max((term.weight for term in kept), key=abs)
        raise ArgumentError(
            f"the sum of value × weight exceeds the largest float (the largest weight is {largest:g}); "
            "divide all weights by the same number, or grade with normalize=True"
        )
    return Score(score=shown, raw=_as_float(raw))


def _score_and_raw(
    terms: Sequence[tuple[Number, Number, bool]], normalize: bool, cap: Number | None
) -> tuple[Number | None, Number | None]:
    products = [value * weight for value, weight, _ in terms]
    divided = [weight for _, weight, bonus in terms if not bonus]
    if not products or not any(divided):
        return (cap if cap == 0 else None), (sum(products[1:], products[0]) if products else None)
    raw = sum(products[1:], products[0])
    gains = [weight for weight in divided if weight > 0]
    # If there are only penalties, they are subtracted from a full score.
    start, shares = (0, gains) if gains else (1, [abs(weight) for weight in divided])
    scale = sum(shares[1:], shares[0])
    if not normalize:
        return (raw if cap is None else min(raw, (cap - start) * scale)), raw
    score = clamp(start + raw / scale)
    return (score if cap is None else min(score, cap)), raw


def _as_float(figure: Fraction | None) -> float | None:
    """Return the nearest float; None if the value overflows."""
    try:
        return None if figure is None else float(figure)
    except OverflowError:
        return None


def clamp(score: Number) -> Number:
    """Clip a number to [0, 1]."""
    low, high = type(score)(0), type(score)(1)
    return min(high, max(low, score))


def subtract_penalty(score: float | None, penalty: float, *, normalize: bool = True) -> float | None:
    """Subtract the length penalty from a score, and clip a normalized score to [0, 1]."""
    if score is None:
        return None
    return clamp(score - penalty) if normalize else score - penalty


def compute_length_penalty(
    text: str | Mapping[str, Any], config: LengthPenalty | Mapping[str, Any] | None = None
) -> float:
    """Compute the length penalty of a text.

    For `n` units of text, the penalty is 0 up to `free_budget`, `penalty_at_cap` at `max_cap` and above, and
    `penalty_at_cap * ((n - free_budget) / (max_cap - free_budget)) ** exponent` in between.

    Args:
        text: A text, or a submission such as `{"thinking", "output"}`; the policy selects the part to count.
        config: The policy, or a mapping of its fields; by default, `LengthPenalty()`.

    Raises:
        ArgumentError: If the text or the policy is invalid, or if `count_fn` fails or returns an invalid
            count.
    """
    policy = config if isinstance(config, LengthPenalty) else _length_policy(config or {})
    if isinstance(text, Mapping):
        return submission_length_penalty(Submission.parse(text), policy)
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a string or a submission mapping; got {short_repr(text)}")
    return _penalty_of(_length_of(text, policy), policy)


def _length_policy(fields: Any) -> LengthPenalty:
    try:
        return LengthPenalty.model_validate(fields)
    except ValidationError as error:
        wrong, known = fields_text(error, "config"), ", ".join(LengthPenalty.model_fields)
        message = f"config={short_repr(fields)} is not a length penalty: {wrong}. Fields: {known}"
        raise ArgumentError(message) from None


def _length_of(text: str, config: LengthPenalty) -> int:
    if config.count_fn is None:
        return len(text.split())
    try:
        units = config.count_fn(text)
    # The function is user code, so its exceptions are reported as errors in the policy.
    except Exception as error:
        raise ArgumentError(f"count_fn raised {type(error).__name__}: {error}") from error
    if not is_number(units) or not 0 <= units < math.inf:
        raise ArgumentError(f"count_fn must return a non-negative number of units; got {units!r}")
    return int(units)


def _penalty_of(units: int, config: LengthPenalty) -> float:
    if units <= config.free_budget:
        return 0.0
    if units >= config.max_cap:
        return config.penalty_at_cap
    share = (units - config.free_budget) / (config.max_cap - config.free_budget)
    return float(config.penalty_at_cap * share**config.exponent)


def submission_length_penalty(submission: Submission, config: LengthPenalty | None) -> float:
    """Compute the length penalty of a submission; only the part selected by `penalty_type` is counted."""
    if config is None:
        return 0.0
    parts = {
        "ALL": (submission.thinking, submission.text),
        "OUTPUT_ONLY": (submission.text,),
        "THINKING_ONLY": (submission.thinking,),
    }[config.penalty_type]
    return _penalty_of(sum(_length_of(part, config) for part in parts if part), config)


class Entry(NamedTuple):
    """A criterion's contribution to a score."""

    value: float | None  # value used in the sums, in [0, 1]; None if the criterion is excluded from the score
    seen: float | None  # value that the criterion's gate checks; None if the criterion was not judged
    applies: bool = True
    share: float = 1.0  # share of the criterion's weight that counts, in [0, 1]

    @classmethod
    def of(cls, value: float | None, decision: Decision | None, share: float = 1.0) -> Entry:
        """Create the entry for a decision that contributes this value to the score.

        The criterion does not apply if it is NA and excluded, or its condition is not met. A gate
        checks the answer, also if the value is the expected value of soft votes.
        """
        if value is not None and decision is not None and decision.probabilities is not None:
            if decision.status == "answered":
                return cls(value, decision.value, share=share)
            if share == 1.0:
                return cls(value, value)
            return cls(value, None, not (decision.answer and decision.answer.na), share)
        if value is not None or decision is None:
            return cls(value, value)
        left_out = decision.status == "not_applicable" or bool(decision.answer and decision.answer.na)
        return cls(value, value, not left_out)


def abstention_value(criterion: BaseCriterion, policy: CannotAssessConfig) -> float | None:
    """Return the value in [0, 1] of an abstention; None if it is excluded."""
    if not criterion.measures:
        return None
    match policy.strategy:
        case CannotAssessStrategy.SKIP:
            return None
        case CannotAssessStrategy.ZERO:
            return 0.0
        case CannotAssessStrategy.PARTIAL:
            return policy.partial_credit
        case CannotAssessStrategy.FAIL:
            return criterion.conservative().value
        case _:
            assert_never(policy.strategy)


def entry_of(criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig) -> Entry:
    """Return the score entry of a decision; failed, unasked and inapplicable ones have no value."""
    return entry_with(decision, abstention_value(criterion, policy))


def entry_with(decision: Decision | None, missing: float | None) -> Entry:
    """Return the entry of a decision; P(abstention) scores `missing` or excludes its share of the weight."""
    if decision is None or decision.probabilities is None:
        # Most decisions have a value, and this runs for every decision of every judge.
        if decision is not None and (value := decision.value) is not None:
            return Entry(value, value)
        return Entry.of(
            missing if decision is not None and decision.status == "abstained" else None, decision
        )
    mean = decision.mean_value
    if missing is None or not decision.abstention:
        return Entry.of(mean, decision, 1.0 - decision.abstention)
    if mean is None:
        return Entry.of(missing, decision)
    value = (1.0 - decision.abstention) * mean + decision.abstention * missing
    return Entry.of(value, decision)


def apply_conditions(
    criteria: Sequence[BaseCriterion],
    decisions: Mapping[str, Decision],
    policy: CannotAssessConfig,
    *,
    elsewhere: Mapping[str, Decision] | None = None,
) -> dict[str, Decision]:
    """Return the decisions, `not_applicable` where the criterion of a condition is too low or not judged."""
    applied = dict(decisions)
    by_name = {criterion.name or "": criterion for criterion in criteria}
    conditions = {name: one.when for name, one in by_name.items() if one.when is not None}
    graph = {name: [condition.criterion] for name, condition in conditions.items()}
    for name in TopologicalSorter(graph).static_order():
        condition = conditions.get(name)
        if condition is None or name not in applied:
            continue
        other = condition.criterion
        known = applied.get(other) or (elsewhere or {}).get(other)
        value = entry_of(by_name[other], known, policy).seen if other in by_name else None
        if not condition.holds(value):
            applied[name] = Decision(status="not_applicable")
    return applied


_ABSENT = Entry(None, None, applies=False)


class OpenGate(NamedTuple):
    """A gate that could not be judged, so that its group has no score."""

    criterion: str
    group: str


class TreeScore(NamedTuple):
    """The scores of a tree before the length penalty."""

    score: float | None  # score of the root, normalized to [0, 1] if requested; None if it cannot be computed
    # Σ value × weight over the root's members, where a group's value is its score, before gates are applied.
    # None if nothing can be scored.
    raw: float | None
    # Normalized score of each group by name, parents before children; the root is `""`.
    node_scores: dict[str, float | None]
    open_gates: tuple[OpenGate, ...] = ()


def score_tree(root: RubricGroup, entries: Mapping[str, Entry], *, normalize: bool = True) -> TreeScore:
    """Score a tree from its criteria's entries, in time linear in the size of the tree.

    A group in which nothing can be scored is excluded from its parent. A failed gate caps its group. If a
    gate was not judged, its group and all groups above it have no score, except a group whose score does
    not exceed the cap anyway and a parent group that another gate caps at 0.
    """
    scores: dict[str, float | None] = {}
    open_gates: list[OpenGate] = []
    members = _score_group(root, entries, scores, open_gates)
    score = scores[root.name]
    if score is not None and not normalize:
        score = score_terms(members.terms, normalize=False, cap=members.cap).score
    return TreeScore(score=score, raw=members.raw, node_scores=scores, open_gates=tuple(open_gates))


class _ScoredGroup(NamedTuple):
    terms: list[Term]
    cap: float | None
    raw: float | None
    is_open: bool


def _score_group(
    group: RubricGroup,
    entries: Mapping[str, Entry],
    scores: dict[str, float | None],
    open_gates: list[OpenGate],
) -> _ScoredGroup:
    scores[group.name] = None  # so that it comes before its nested groups
    terms: list[Term] = []
    caps: list[float] = []
    undecided: list[tuple[str, Gate]] = []
    is_open = False
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            is_open = _score_group(one, entries, scores, open_gates).is_open or is_open
            if (value := scores[one.name]) is not None:
                terms.append(Term(value, one.weight))
            continue
        entry = entries.get(one.name or "", _ABSENT)
        if entry.value is not None:
            terms.append(Term(entry.value, one.weight * entry.share, one.bonus))
        if one.gate is None or not entry.applies:
            continue
        if entry.seen is None:
            undecided.append((one.name or "", one.gate))
        elif not one.gate.passes(entry.seen):
            caps.append(one.gate.cap)
    cap = min(caps) if caps else None
    score, raw = score_terms(terms, cap=cap)
    is_open = is_open and cap != 0.0
    if score is not None and not is_open:
        biting = [OpenGate(name, group.name) for name, gate in undecided if score > gate.cap]
        open_gates.extend(biting)
        is_open = bool(biting)
    scores[group.name] = None if is_open else score
    return _ScoredGroup(terms, cap, raw, is_open)
