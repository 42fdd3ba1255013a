"""Votes to decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.scoring import Decision, JudgeVote
from autorubric.scoring.aggregation import AGGREGATORS, CountedVote
from autorubric.scoring.decisions import decide, decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy
from tests.criteria.kinds import KINDS, NOMINAL, Findings, Polite, Share, Tone, Warmth
from tests.doubles import binary, choice, lost_vote, open_vote, vote


def panel(criterion: BaseCriterion, votes: Sequence[JudgeVote], **policy: Any) -> Decision:
    """What the panel decides."""
    chosen = AggregationPolicy(**policy)
    return decide_panel(criterion, votes, decide_by_judge(criterion, votes, chosen), chosen)


def of(criterion: BaseCriterion, *answers: Any, weights: Sequence[float] = (), **policy: Any) -> Decision:
    """What one vote of each judge comes to."""
    given_weights = list(weights) or [1.0] * len(answers)
    votes = [
        vote(f"j{i}", answer, weight=weight)
        for i, (answer, weight) in enumerate(zip(answers, given_weights, strict=True))
    ]
    return panel(criterion, votes, **policy)


def said(decision: Decision) -> tuple[Any, bool]:
    return (decision.answer.code if decision.answer else None, decision.tie)


# Binary


@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_majority_is_more_than_half_of_the_votes_cast(weight: float) -> None:
    """Two of three decide; two of four do not: then the conservative verdict, flagged."""
    criterion = binary(weight=weight)
    conservative = "UNMET" if weight > 0 else "MET"
    assert said(of(criterion, "MET", "MET", "UNMET")) == ("MET", False)
    assert said(of(criterion, "UNMET", "MET", "UNMET")) == ("UNMET", False)
    assert said(of(criterion, "MET", "MET", "UNMET", "UNMET")) == (conservative, True)
    assert said(of(criterion, "MET")) == ("MET", False)


def test_abstentions_are_no_votes_cast() -> None:
    """One MET beside two abstentions is all of the votes cast."""
    votes = [vote("a", "MET"), open_vote("b", "CANNOT_ASSESS"), open_vote("c")]
    assert said(panel(binary(), votes)) == ("MET", False)


def test_weights_decide_where_asked() -> None:
    """`weighted` follows the weight, `majority` the heads."""
    answers, weights = ("MET", "UNMET", "UNMET"), (5.0, 2.0, 2.0)
    assert said(of(binary(), *answers, weights=weights, aggregation="weighted")) == ("MET", False)
    assert said(of(binary(), *answers, weights=weights)) == ("UNMET", False)


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_weighted_ties_see_through_binary_fractions(scale: float) -> None:
    """0.1 + 0.2 against 0.3 is a tie at any scale, and 0.1 + 0.21 is none."""
    weights = [0.1 * scale, 0.2 * scale, 0.3 * scale]
    tied = of(binary(), "MET", "MET", "UNMET", weights=weights, aggregation="weighted")
    assert said(tied) == ("UNMET", True)
    weights[1] = 0.21 * scale
    decided = of(binary(), "MET", "MET", "UNMET", weights=weights, aggregation="weighted")
    assert said(decided) == ("MET", False)


def test_weights_of_nothing_are_a_tie() -> None:
    """Judges without any weight decide nothing."""
    decision = of(binary(), "MET", "MET", weights=[0.0, 0.0], aggregation="weighted")
    assert said(decision) == ("UNMET", True)


@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_any_and_unanimous(weight: float) -> None:
    """MET if one is, or if all are, whatever the sign of the weight; neither knows a tie."""
    criterion = binary(weight=weight)
    assert said(of(criterion, "UNMET", "MET", "UNMET", aggregation="any")) == ("MET", False)
    assert said(of(criterion, "UNMET", "UNMET", aggregation="any")) == ("UNMET", False)
    assert said(of(criterion, "MET", "MET", "UNMET", aggregation="unanimous")) == ("UNMET", False)
    assert said(of(criterion, "MET", "MET", aggregation="unanimous")) == ("MET", False)


def test_a_binary_kind_of_ones_own_takes_every_method() -> None:
    """Methods go by the level and the value, not by the words MET and UNMET."""
    criterion = Polite(name="polite")
    assert said(of(criterion, True, False, aggregation="any")) == (True, False)
    assert said(of(criterion, True, False, aggregation="unanimous")) == (False, False)
    assert said(of(criterion, True, False)) == (False, True)
    assert said(of(criterion, True, True, False)) == (True, False)


# Ordered scales


def test_the_mean_selects_the_nearest_option() -> None:
    """The aggregate stands beside the option selected."""
    decision = of(choice(), "good", "good", "fair")
    assert said(decision) == ("good", False)
    assert decision.mean_value == pytest.approx(5 / 6)
    assert decision.value == 1.0


@pytest.mark.parametrize(("weight", "taken"), [(1.0, "poor"), (-1.0, "fair")])
def test_a_mean_between_two_options_is_a_tie(weight: float, taken: str) -> None:
    """The option that helps the score least is taken, and flagged."""
    decision = of(choice(weight=weight), "poor", "fair")
    assert said(decision) == (taken, True)
    assert decision.mean_value == 0.25


@pytest.mark.parametrize(
    ("method", "code"),
    [("mean", "fair"), ("median", "poor"), ("mode", "poor"), ("min", "poor"), ("max", "good")],
)
def test_ordered_methods(method: str, code: str) -> None:
    """Each method finds its option of poor, poor, poor, good, good."""
    answers = ("poor", "good", "poor", "good", "poor")
    assert said(of(choice(), *answers, ordinal_aggregation=method)) == (code, False)


def test_the_weighted_mean_follows_the_weights() -> None:
    """A heavy judge pulls; without any weight it is the plain mean."""
    for weights, code in (([9.0, 1.0], "good"), ([1.0, 9.0], "poor"), ([0.0, 0.0], "fair")):
        decision = of(choice(), "good", "poor", weights=weights, ordinal_aggregation="weighted_mean")
        assert said(decision)[0] == code


def test_a_median_of_an_even_panel_may_be_a_tie() -> None:
    """Half way between two neighbours the conservative one is taken."""
    assert said(of(choice(), "fair", "good", ordinal_aggregation="median")) == ("fair", True)


def test_a_tied_mode_is_conservative() -> None:
    """Of the options that lead, the one that helps least."""
    assert said(of(choice(), "good", "fair", ordinal_aggregation="mode")) == ("fair", True)
    assert said(of(choice(weight=-1.0), "good", "fair", ordinal_aggregation="mode")) == ("good", True)


def test_uneven_values_count_and_not_positions() -> None:
    """The nearest option is nearest by value."""
    scale = choice(values={"none": 0.0, "some": 0.1, "most": 0.9, "all": 1.0})
    assert said(of(scale, "none", "all")) == ("some", True)
    assert said(of(scale, "none", "most", "all")) == ("most", False)


# Unordered choices


def test_nominal_methods() -> None:
    """The mode leads, by heads or weight; unanimity takes all; else the conservative option, flagged."""
    colours = choice(values=NOMINAL, scale_type="nominal")
    assert said(of(colours, "green", "red", "green")) == ("green", False)
    heavy = of(colours, "green", "red", "green", weights=[1, 5, 1], nominal_aggregation="weighted_mode")
    assert said(heavy) == ("red", False)
    assert said(of(colours, "green", "red")) == ("red", True)
    assert said(of(colours, "blue", "blue", nominal_aggregation="unanimous")) == ("blue", False)
    assert said(of(colours, "blue", "green", nominal_aggregation="unanimous")) == ("red", True)


def test_tied_options_of_one_value_go_to_the_first_declared() -> None:
    """A tie that no value decides does not depend on the order of the judges."""
    colours = choice(values=NOMINAL, scale_type="nominal")
    assert said(of(colours, "blue", "green")) == said(of(colours, "green", "blue")) == ("green", True)


# Numbers, and kinds that measure nothing


def test_a_mean_of_numbers_is_in_their_own_units() -> None:
    """Votes of 4 and 7 on a scale to 7 decide 5.5, whose value is its position."""
    decision = of(Warmth(name="w"), 4, 7)
    assert said(decision) == (5.5, False)
    assert decision.value == decision.mean_value == 0.75
    assert said(of(Share(name="s"), 0.0, 1.0)) == (0.5, False)


@pytest.mark.parametrize("method", ["mean", "median", "weighted_mean", "mode", "min", "max"])
def test_equal_numbers_decide_themselves(method: str) -> None:
    """Judges who agree are the decision, whatever floats make of their mean."""
    decision = of(Share(name="s"), *[-0.6] * 3, ordinal_aggregation=method)
    assert said(decision) == (-0.6, False)
    assert decision.agreement == 1.0


def test_answers_without_a_value_get_none() -> None:
    """What measures nothing is decided by frequency and never scored as a zero."""
    tone = Tone(name="t", weight=1.0)
    assert said(of(tone, "cold", "warm", "cold")) == ("cold", False)
    findings = of(Findings(name="f"), [1], [2], [2])
    assert said(findings) == ([2], False)
    assert findings.value is None
    assert of(KINDS["text"](), {"remark": "a"}, {"remark": "b"}).answer is not None


def test_unreadable_replies_do_not_vote_where_nothing_is_conservative() -> None:
    """Without a measure no answer helps or harms, so none is assumed."""
    votes = [vote("a", "warm"), *(lost_vote(j, unreadable=True) for j in "bcd")]
    assert said(panel(Tone(name="t"), votes)) == ("warm", False)


# Samples, failures, abstentions


def test_samples_come_before_judges() -> None:
    """A judge of many samples has one voice in the panel."""
    votes = [*(vote("a", "MET", sample=i) for i in range(5)), vote("b", "UNMET"), vote("c", "UNMET")]
    decision = panel(binary(), votes)
    assert said(decision) == ("UNMET", False)
    assert decision.agreement == 2 / 7


def test_a_tie_within_the_only_judge_is_flagged() -> None:
    """Two samples that differ are a tie of the panel of one."""
    votes = [vote("a", "MET", sample=0), vote("a", "UNMET", sample=1)]
    assert said(panel(binary(), votes)) == ("UNMET", True)


def test_unreadable_replies_count_as_the_conservative_answer() -> None:
    """Under `conservative`; never as agreement; and not at all under `exclude`."""
    votes = [vote("a", "MET"), lost_vote("b", unreadable=True), lost_vote("c", unreadable=True)]
    counted = panel(binary(), votes)
    assert said(counted) == ("UNMET", False)
    assert counted.agreement == 0.0
    assert not counted.assumed
    assert said(panel(binary(weight=-1.0), votes))[0] == "MET"
    left_out = panel(binary(), votes, on_failure="exclude")
    assert said(left_out) == ("MET", False)
    assert left_out.agreement == 1.0


def test_on_a_scale_the_conservative_answer_is_the_worst_option() -> None:
    """The best one for a penalty."""
    votes = [lost_vote("a", unreadable=True)]
    assert said(panel(choice(), votes)) == ("poor", False)
    assert said(panel(choice(weight=-1.0), votes)) == ("good", False)
    assert said(panel(Warmth(name="w"), votes)) == (1, False)
    assert said(panel(Warmth(name="w", weight=-1.0), votes)) == (7, False)


def test_unreadable_replies_alone_are_an_assumption() -> None:
    """The decision says that nobody gave it, and has no agreement."""
    decision = panel(binary(), [lost_vote("a", unreadable=True), lost_vote("b", unreadable=False)])
    assert decision.assumed
    assert decision.agreement is None
    assert panel(binary(), [lost_vote("a", unreadable=True)], on_failure="exclude").status == "failed"


def test_an_assumed_judge_stays_unreadable_in_the_panel() -> None:
    """A judge whose samples were all unreadable adds no agreement and no answer of its own."""
    votes = [lost_vote("a", unreadable=True), lost_vote("b", unreadable=True), vote("c", "UNMET")]
    decision = panel(binary(), votes)
    assert said(decision) == ("UNMET", False)
    assert decision.agreement == 1.0
    assert not decision.assumed


@pytest.mark.parametrize("policy", ["conservative", "exclude", "raise"])
def test_a_vote_without_a_reply_never_counts(policy: str) -> None:
    """A provider's failure is not a verdict under any policy."""
    votes = [vote("a", "MET"), *(lost_vote(j, unreadable=False) for j in "bcd")]
    assert said(panel(binary(), votes, on_failure=policy)) == ("MET", False)
    assert panel(binary(), votes[1:], on_failure=policy).status == "failed"


def test_none_counted() -> None:
    """Abstained if any abstained, else failed, else not asked."""
    lost, unasked = lost_vote("a", unreadable=False), JudgeVote(judge_id="b", status="not_asked")
    assert panel(binary(), [lost, unasked, open_vote("c")]).status == "abstained"
    assert panel(binary(), [lost, unasked]).status == "failed"
    assert panel(binary(), [unasked]).status == "not_asked"
    assert panel(binary(), []).status == "not_asked"


def test_an_abstention_is_na_where_most_say_so() -> None:
    """NA by a majority of the abstentions, else CANNOT_ASSESS; an answer beats both."""
    scale = choice(na="none")
    na, cannot = open_vote("a", "none", na=True), open_vote("c")
    decision = panel(scale, [na, replace(na, judge_id="b"), cannot])
    assert decision.answer is not None
    assert (decision.status, decision.answer.na, decision.value) == ("abstained", True, None)
    half = panel(scale, [na, cannot])
    assert half.answer is not None
    assert half.answer.cannot_assess
    assert said(panel(scale, [na, cannot, vote("d", "good")])) == ("good", False)


def test_agreement_is_the_share_of_answered_votes_equal_to_the_decision() -> None:
    """Abstentions and failures are in neither number."""
    votes = [vote("a", "MET"), vote("b", "MET"), vote("c", "UNMET"), open_vote("d")]
    assert panel(binary(), votes).agreement == pytest.approx(2 / 3)
    assert panel(binary(), [open_vote("d")]).agreement is None


def test_stored_votes_are_valued_anew() -> None:
    """A vote keeps the label; its value is what the criterion says today."""
    stored = [replace(vote("a", "fair"), value=0.5)]
    assert panel(choice(values={"poor": 0.0, "fair": 0.8}), stored).value == 0.8


# Policies


def test_a_criterion_may_name_its_own_aggregation() -> None:
    """It wins over the grader's; one that its level does not have is told with those it has."""
    assert said(of(binary(aggregation="any"), "MET", "UNMET", "UNMET")) == ("MET", False)
    with pytest.raises(
        ArgumentError, match="aggregation 'mean' is not available for the level 'binary'; allowed: majority"
    ):
        of(binary(aggregation="mean"), "MET")


@pytest.mark.parametrize(
    "wrong", [{"aggregation": "mode"}, {"ordinal_aggregation": "any"}, {"on_failure": "ignore"}, {"mean": 1}]
)
def test_unknown_policies_are_refused(wrong: dict[str, Any]) -> None:
    """A policy is checked when it is made."""
    with pytest.raises(ValidationError):
        AggregationPolicy(**wrong)


# Laws

SCALES = {
    "binary": binary(),
    "ordinal": choice(values={"a": 0.0, "b": 0.3, "c": 0.3, "d": 1.0}),
    "nominal": choice(values=NOMINAL, scale_type="nominal"),
    "interval": Warmth(name="w"),
}
CODES: dict[str, list[Any]] = {
    "binary": ["MET", "UNMET"],
    "ordinal": list("abcd"),
    "nominal": list(NOMINAL),
    "interval": [1, 2, 5, 7],
}
FIELDS = {"binary": "aggregation", "nominal": "nominal_aggregation"}
METHODS = [(level, method) for level in SCALES for method in AGGREGATORS[level]]  # type: ignore[index]
voters = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["answered", "answered", "answered", "abstained", "failed", "unreadable"]),
        st.sampled_from([0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=6,
)


@given(st.sampled_from(METHODS), voters, st.randoms(use_true_random=False), st.sampled_from([1.0, -1.0]))
def test_laws_of_every_method(
    chosen: tuple[str, str], given_voters: list[tuple[int, str, float]], rng: Any, weight: float
) -> None:
    """The order of the judges does not matter, decisions are bounded, and what all say is decided."""
    level, method = chosen
    criterion = SCALES[level].model_copy(update={"weight": weight})
    policy = AggregationPolicy(**{FIELDS.get(level, "ordinal_aggregation"): method})
    votes = [
        CountedVote(
            status="failed" if status == "unreadable" else status,
            answer=criterion.parse_truth(CODES[level][code % len(CODES[level])])
            if status == "answered"
            else None,
            unreadable=status == "unreadable",
            weight=own,
        )
        for code, status, own in given_voters
    ]
    decision = decide(criterion, votes, policy)
    shuffled = [*votes]
    rng.shuffle(shuffled)
    again = decide(criterion, shuffled, policy)
    assert said(decision) == said(again)
    assert decision.agreement == again.agreement
    assert decision.value is None or 0.0 <= decision.value <= 1.0
    codes = {one.answer.code for one in votes if one.answer is not None}
    if len(codes) == 1 and not any(one.unreadable for one in votes):
        assert said(decision) == (codes.pop(), False)
        assert decision.agreement == 1.0
