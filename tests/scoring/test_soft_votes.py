"""Probabilities of answers: how they are read, and what soft votes come to."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric import CannotAssessConfig, CriterionGrader, Gate, Rubric
from autorubric.criteria import AnalyticRubricCriterion, BaseCriterion, RubricDimension, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.scoring import JudgeVote
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.probabilities import ABSTENTION, read_probabilities
from autorubric.scoring.report_builder import GradingPolicy, build_report
from autorubric.scoring.votes import Decision
from tests.criteria.kinds import KINDS
from tests.doubles import binary, choice, lost_vote, open_vote, vote

PAIR = Submission.parse({"first": "one", "second": "two"})
SOFT = AggregationPolicy(votes="soft")


def bound(criterion: BaseCriterion) -> BaseCriterion:
    """The criterion, as it applies to a pair."""
    return criterion.bind(PAIR) if criterion.level == "ranking" else criterion


def text_for(criterion: BaseCriterion) -> Submission:
    """A text that the criterion can judge."""
    return PAIR if criterion.level == "ranking" else Submission(text="t")


def has_labels(criterion: BaseCriterion) -> bool:
    """Whether the answers, or those of each part, can be listed."""
    parts = criterion.part_fields.values() or (criterion,)
    return criterion.level != "text" and all(part.answers() for part in parts)


LISTED = [one for one in (bound(make()) for make in KINDS.values()) if has_labels(one)]


def labels(criterion: BaseCriterion) -> list[str]:
    """The labels of the answers."""
    return [str(answer.label) for answer in criterion.answers()]


def shares(draw: st.DrawFn, keys: Sequence[str]) -> dict[str, float]:
    """A distribution over keys, in which some have no mass."""
    given_weights = draw(st.lists(st.integers(0, 100), min_size=len(keys), max_size=len(keys)))
    weights = given_weights if any(given_weights) else [1] * len(keys)
    return {key: weight / sum(weights) for key, weight in zip(keys, weights, strict=True)}


@st.composite
def votes(
    draw: st.DrawFn, judge_id: str = "j", *, abstains: bool = True
) -> tuple[BaseCriterion, list[JudgeVote]]:
    """A criterion with votes of one to four judges."""
    criterion = draw(st.sampled_from(LISTED))
    cast = []
    for at in range(draw(st.integers(1, 4))):
        parts = {
            key: shares(draw, [*labels(part), ABSTENTION]) for key, part in criterion.part_fields.items()
        }
        cast.append(soft_vote(f"j{at}", criterion, parts or shares(draw, [*labels(criterion), ABSTENTION])))
    return criterion, cast


def soft_vote(judge_id: str, criterion: BaseCriterion, probabilities: Any, **fields: Any) -> JudgeVote:
    """A vote with probabilities."""
    read = read_probabilities(criterion, probabilities)
    return JudgeVote(judge_id=judge_id, status="answered", answer=None, probabilities=read, **fields)


def panel(criterion: BaseCriterion, cast: Sequence[JudgeVote], policy: AggregationPolicy = SOFT) -> Decision:
    """What the panel decides."""
    return decide_panel(criterion, cast, decide_by_judge(criterion, cast, policy), policy)


def score(criterion: BaseCriterion, cast: Sequence[JudgeVote], strategy: str = "skip") -> float | None:
    """The score of a rubric of two criteria, of which the other is met."""
    other = binary("other", weight=abs(criterion.weight))
    policy = GradingPolicy(aggregation=SOFT, cannot_assess=CannotAssessConfig(strategy=strategy))
    given_votes = {criterion.name or "": list(cast), "other": [vote("j", "MET")]}
    root = Rubric([criterion, other]).root
    return build_report(
        PAIR if criterion.level == "ranking" else Submission(text="t"), root, given_votes, policy
    ).score


# Laws


@given(st.sampled_from(LISTED), st.data())
def test_a_certain_vote_is_the_hard_vote(criterion: BaseCriterion, data: st.DataObject) -> None:
    """A degenerate distribution gives exactly the answer, value and score of a hard vote."""
    if criterion.part_fields:
        chosen = [data.draw(st.sampled_from(part.answers())) for part in criterion.part_fields.values()]
        answer = criterion.whole(chosen)
        given_shares: Any = {
            key: {str(one.label): 1.0} for key, one in zip(criterion.part_fields, chosen, strict=True)
        }
    else:
        answer = data.draw(st.sampled_from(criterion.answers()))
        given_shares = {str(answer.label): 1.0}
    status: Any = "abstained" if answer.abstains else "answered"
    hard = JudgeVote(judge_id="j", status=status, answer=answer.code, na=answer.na)
    soft = JudgeVote(
        judge_id="j", status=status, answer=answer.code, na=answer.na, probabilities=given_shares
    )
    expected, found = panel(criterion, [hard], AggregationPolicy()), panel(criterion, [soft])
    assert (found.status, found.value, found.tie) == (expected.status, expected.value, False)
    assert found.answer is not None
    assert expected.answer is not None
    assert found.answer.code == expected.answer.code
    for strategy in ("skip", "zero", "partial", "fail"):
        policies = [
            GradingPolicy(aggregation=one, cannot_assess=CannotAssessConfig(strategy=strategy))
            for one in (AggregationPolicy(), SOFT)
        ]
        submission = text_for(criterion)
        root = Rubric([criterion, binary("other")]).root
        reports = [
            build_report(submission, root, {criterion.name or "": [one], "other": [vote("j", "MET")]}, policy)
            for one, policy in zip((hard, soft), policies, strict=True)
        ]
        assert reports[0].score == reports[1].score
        assert reports[0].report[0].score_value == reports[1].report[0].score_value


@given(st.lists(st.tuples(st.floats(0.05, 5.0), st.integers(1, 5)), min_size=1, max_size=6))
def test_zeros_and_rounding_do_not_make_parts_uncertain(parts: list[tuple[float, int]]) -> None:
    """Only one answer of each part has mass: the value is exactly that of the hard vote."""
    dimensions = {
        f"d{at}": RubricDimension(description="x", min_score=1, max_score=5, weight=weight)
        for at, (weight, _) in enumerate(parts)
    }
    criterion = AnalyticRubricCriterion(name="essay", dimensions=dimensions)
    keys = dict(zip(criterion.part_fields, (str(score) for _, score in parts), strict=True))
    chosen = [
        part.parse_truth(score)
        for part, (_, score) in zip(criterion.part_fields.values(), parts, strict=True)
    ]
    hard = vote("j", criterion.whole([one for one in chosen if one is not None]).code)
    expected = panel(criterion, [hard], AggregationPolicy()).value
    for zeros, mass in (({}, 1.0), (dict.fromkeys("12345", 0.0), 1.0), ({ABSTENTION: 0.0}, 0.99)):
        cast = soft_vote("j", criterion, {key: {**zeros, score: mass} for key, score in keys.items()})
        assert panel(criterion, [cast]).mean_value == expected


@pytest.mark.parametrize("kind", ["dict", "list", "two marks"])
def test_answers_that_no_label_gives_back_are_hard(kind: str) -> None:
    """An object or a list is no key of a distribution; its votes are combined as hard votes."""
    criterion = KINDS[kind]()
    answers: dict[str, Any] = {
        "dict": {"counts": {"a": 2.0}},
        "list": {"findings": [1]},
        "two marks": {"form": 3, "content": 7, "explanation": "x"},
    }
    answer = criterion.parse_truth(answers[kind])
    assert answer is not None
    cast = [vote(judge, answer.code) for judge in "ab"]
    found, expected = panel(criterion, cast), panel(criterion, cast, AggregationPolicy())
    assert found == expected
    assert found.status == "answered"


@given(votes())
def test_expected_values_stay_within_bounds(given_votes: tuple[BaseCriterion, list[JudgeVote]]) -> None:
    """Values and scores are in [0, 1], and probabilities sum to 1."""
    criterion, cast = given_votes
    found = panel(criterion, cast)
    assert found.mean_value is None or 0.0 <= found.mean_value <= 1.0
    assert 0.0 <= found.abstention <= 1.0
    parts: Any = found.probabilities
    for one in parts.values() if criterion.part_fields else [parts]:
        assert math.fsum(one.values()) == pytest.approx(1.0)
    for strategy in ("skip", "zero", "partial", "fail"):
        reached = score(criterion, cast, strategy)
        assert reached is not None
        assert 0.0 <= reached <= 1.0


@given(votes(), st.integers(0, 2**32))
def test_the_order_of_votes_does_not_matter(
    given_votes: tuple[BaseCriterion, list[JudgeVote]], seed: int
) -> None:
    """Every figure is the same, to the last digit, in any order of judges."""
    criterion, cast = given_votes
    mixed = random.Random(seed).sample(cast, len(cast))
    one, other = panel(criterion, cast), panel(criterion, mixed)
    assert (one.mean_value, one.abstention, one.probabilities) == (
        other.mean_value,
        other.abstention,
        other.probabilities,
    )
    assert (one.answer, one.status, one.tie) == (other.answer, other.status, other.tie)


@given(votes())
def test_the_mass_of_abstentions_is_kept(given_votes: tuple[BaseCriterion, list[JudgeVote]]) -> None:
    """The policy scores it: `skip` removes that share of the weight, the others give it their value."""
    criterion, cast = given_votes
    found = panel(criterion, cast)
    if not criterion.measures or criterion.weight < 0:
        return
    values = {"zero": 0.0, "partial": 0.5, "fail": criterion.conservative().value or 0.0}
    mean, kept = found.mean_value or 0.0, 1.0 - found.abstention
    for strategy, value in values.items():
        reached = (kept * mean + found.abstention * value + 1.0) / 2
        assert score(criterion, cast, strategy) == pytest.approx(reached)
    assert score(criterion, cast, "skip") == pytest.approx((kept * mean + 1.0) / (kept + 1.0))


# Reference values


def test_judges_are_averaged_and_weighted() -> None:
    """Two judges: .9 and .3; with weights 3 and 1, .75."""
    criterion = binary()
    cast = [
        soft_vote("a", criterion, {"MET": 0.9, "UNMET": 0.1}, weight=3.0),
        soft_vote("b", criterion, {"MET": 0.3, "UNMET": 0.7}),
    ]
    assert panel(criterion, cast).mean_value == pytest.approx(0.6)
    weighted = AggregationPolicy(votes="soft", aggregation="weighted")
    assert panel(criterion, cast, weighted).mean_value == pytest.approx(0.75)


def test_samples_of_a_judge_count_as_one_judge() -> None:
    """The mean over samples comes first, then the mean over judges."""
    criterion = binary()
    cast = [vote("a", "MET", sample=at) for at in range(3)] + [vote("b", "UNMET")]
    found = panel(criterion, cast)
    assert found.mean_value == 0.5
    assert (found.answer and found.answer.code, found.tie) == ("UNMET", True)


def test_votes_without_probabilities_are_certain() -> None:
    """Answers, abstentions and unreadable replies count as their answer; lost votes do not count."""
    criterion = binary()
    cast = [
        soft_vote("a", criterion, {"MET": 0.5, "UNMET": 0.5}),
        vote("b", "MET"),
        open_vote("c"),
        lost_vote("d", unreadable=True),
        lost_vote("e", unreadable=False),
    ]
    found = panel(criterion, cast)
    assert found.probabilities == {"UNMET": 1.5 / 4, "MET": 1.5 / 4, ABSTENTION: 1 / 4}
    excluded = AggregationPolicy(votes="soft", on_failure="exclude")
    assert panel(criterion, cast, excluded).probabilities == {
        "UNMET": 0.5 / 3,
        "MET": 1.5 / 3,
        ABSTENTION: 1 / 3,
    }


def test_only_unreadable_replies_are_assumed_and_swaying_ones_marked() -> None:
    """As with hard votes, figures leave out what only unreadable replies say."""
    criterion = binary()
    assert panel(criterion, [lost_vote("a", unreadable=True)]).assumed
    cast = [soft_vote("a", criterion, {"MET": 0.6, "UNMET": 0.4}), lost_vote("b", unreadable=True)]
    assert panel(criterion, cast).swayed
    assert panel(criterion, [lost_vote("a", unreadable=False)]).status == "failed"


def test_an_ordinal_scale_with_na() -> None:
    """The expected value is over the options with a value; the verdict is the most probable one."""
    criterion = choice(na="n/a")
    found = panel(criterion, [soft_vote("a", criterion, {"poor": 0.2, "fair": 0.1, "good": 0.3, "n/a": 0.4})])
    assert found.status == "abstained"
    assert found.answer is not None
    assert found.answer.na
    assert found.mean_value == pytest.approx((0.1 * 0.5 + 0.3) / 0.6)
    assert found.abstention == pytest.approx(0.4)


def test_a_choice_without_values_does_not_abstain() -> None:
    """It has no expected value; only the mass of abstentions is their probability."""
    tone = KINDS["choice"]()
    for abstained in (0.0, 0.25):
        shares_given = {"warm": 0.6, "cold": 0.4 - abstained, ABSTENTION: abstained}
        found = panel(tone, [soft_vote("a", tone, shares_given)])
        assert (found.status, found.mean_value) == ("answered", None)
        assert found.abstention == pytest.approx(abstained)


def test_checklists_and_dimensions_are_averaged_part_by_part() -> None:
    """The value is the weighted mean of the parts' expected values."""
    essay = KINDS["analytic_rubric"]()
    content, style = essay.part_fields
    given_shares = {content: {"1": 0.5, "5": 0.5}, style: {"0": 0.25, "2": 0.75}}
    found = panel(essay, [soft_vote("a", essay, given_shares)])
    weights = essay.part_weights
    assert weights == (1.0, 3.0)
    assert found.mean_value == pytest.approx((0.5 * 1 + 0.75 * 3) / 4)
    short = {key.removesuffix("_score"): one for key, one in given_shares.items()}
    assert read_probabilities(essay, short) == given_shares


def test_both_orders_of_a_pair_are_averaged() -> None:
    """A judge with a preference for the first position comes to a tie in value."""
    criterion = bound(KINDS["comparative"]())
    names = tuple(PAIR.candidates)
    cast = [
        soft_vote("a", criterion, {"first": 0.8, "second": 0.2}, order=names),
        soft_vote("a", criterion, {"first": 0.2, "second": 0.8}, order=names[::-1]),
    ]
    assert panel(criterion, cast).mean_value == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["comparative", "comparative with a margin"])
def test_opposite_preferences_in_both_orders_are_a_tie(kind: str) -> None:
    """As with hard votes, neither candidate wins because of the position."""
    criterion = bound(KINDS[kind]())
    first, *_, second = criterion.answers()
    names = tuple(PAIR.candidates)
    cast = [
        soft_vote("a", criterion, {first.label: 1.0}, order=names),
        soft_vote("a", criterion, {second.label: 1.0}, order=names[::-1]),
    ]
    answered = [replace(one, answer=own.code) for one, own in zip(cast, (first, second), strict=True)]
    found, hard = panel(criterion, cast), panel(criterion, answered, AggregationPolicy())
    assert found.answer is not None and hard.answer is not None
    assert (found.answer.code, found.tie) == (hard.answer.code, hard.tie)
    assert found.answer.label == "tie"
    assert found.mean_value == pytest.approx(0.5)


def test_thresholds_decide_binary_criteria() -> None:
    """The positive answer needs its threshold's share of the mass that is not an abstention."""
    criterion = binary("claim")
    cast = [soft_vote("a", criterion, {"MET": 0.3, "UNMET": 0.5, ABSTENTION: 0.2})]
    for threshold, answer in ((0.3, "MET"), (0.375, "MET"), (0.38, "UNMET")):
        policy = AggregationPolicy(votes="soft", thresholds={"claim": threshold})
        found = panel(criterion, cast, policy)
        assert found.answer is not None
        assert found.answer.code == answer
        assert found.mean_value == pytest.approx(0.375)


def test_gates_and_conditions_check_the_verdict() -> None:
    """A gate is passed by the verdict, while the score has the expected value."""
    gate = binary("gate", gate=Gate(at_least=1.0, cap=0.0))

    def report(p: float) -> float | None:
        cast = {"gate": [soft_vote("a", gate, {"MET": p, "UNMET": 1 - p})]}
        policy = GradingPolicy(aggregation=SOFT)
        return build_report(Submission(text="t"), Rubric([gate]).root, cast, policy).score

    assert report(0.75) == pytest.approx(0.75)
    assert report(0.25) == 0.0


def test_a_gate_with_the_verdict_na_does_not_apply() -> None:
    """As with hard votes, also if another answer has some mass."""
    gate = choice(na="n/a", gate=Gate(at_least=0.5, cap=0.0))
    cast = {gate.name or "": [soft_vote("a", gate, {"n/a": 0.9, "good": 0.1})], "claim": [vote("a", "MET")]}
    policy = GradingPolicy(aggregation=SOFT)
    report = build_report(Submission(text="t"), Rubric([gate, binary()]).root, cast, policy)
    assert (report.score, report.error) == (1.0, None)


# Reading


@pytest.mark.parametrize(
    ("given_shares", "message"),
    [
        ({}, "must map answers to numbers"),
        ({"MET": 0.5}, "must sum to 1"),
        ({"MET": 0.5, "UNMET": 0.47}, "must sum to 1"),
        ({"MET": 0.5100001, "UNMET": 0.51}, "the sum is 1.02000"),
        ({"MET": "1" * 1000}, "got '1+…"),
        ({"MET": 1.2, "UNMET": -0.2}, "between 0 and 1; got 1.2"),
        ({"MET": math.nan, "UNMET": 1.0}, "between 0 and 1; got nan"),
        ({"MET": True}, "between 0 and 1; got True"),
        ({"MET": "1"}, "between 0 and 1; got '1'"),
        ({"MET": 0.5, "yes": 0.5}, "given twice"),
        ({"maybe": 1.0}, "unknown answer"),
        ({None: 1.0}, "not an answer"),
    ],
)
def test_invalid_probabilities_are_errors(given_shares: Mapping[Any, Any], message: str) -> None:
    """The error names the criterion, the key and what is allowed."""
    with pytest.raises(ReplyError, match=message):
        read_probabilities(binary(), given_shares)


def test_parts_must_be_complete() -> None:
    """Probabilities of a checklist are by item."""
    checklist = KINDS["checklist"]()
    keys = list(checklist.part_fields)
    with pytest.raises(ReplyError, match=f"missing for {', '.join(keys[1:])}"):
        read_probabilities(checklist, {keys[0]: {"yes": 1.0}})
    with pytest.raises(ReplyError, match="unknown part 'other'; parts:"):
        read_probabilities(checklist, {"other": {"yes": 1.0}})


def test_rounding_errors_of_32_bits_are_removed() -> None:
    """A probability of 1.0000001 is 1, and -1e-7 is 0."""
    assert read_probabilities(binary(), {"MET": 1.0000001, "UNMET": -1e-7}) == {"MET": 1.0, "UNMET": 0.0}


def test_sums_may_be_rounded() -> None:
    """A sum within .02 of 1, both ends included, is kept as it is."""
    for met, unmet in ((0.33, 0.66), (0.49, 0.49), (0.51, 0.51), (0.98, 0.0), (1.0, 0.02)):
        rounded = {"MET": met, "UNMET": unmet}
        assert read_probabilities(binary(), rounded) == rounded


def test_numbers_of_numpy_are_read() -> None:
    """Classifiers return 32-bit floats; stored votes have Python floats."""
    found: Any = read_probabilities(binary(), {"MET": np.float32(0.75), "UNMET": np.float32(0.25)})
    assert found == {"MET": 0.75, "UNMET": 0.25}
    assert {type(share) for share in found.values()} == {float}


# Through a grader


def grade(judge: Any, criterion: BaseCriterion, **options: Any) -> Any:
    """The report on the criterion."""
    grader = CriterionGrader(judges=[judge], **options)
    return Rubric([criterion]).grade_sync("text", grader).report[0]


def test_a_judge_may_give_only_probabilities() -> None:
    """The most probable answer is the vote's answer."""

    def judge(request: JudgeRequest) -> JudgeReply:
        return JudgeReply(
            answer=None,
            probabilities={"poor": 0.2, "fair": 0.2, "good": 0.6},
            probability_source="classifier",
            probability_backend="example",
        )

    found = grade(judge, choice())
    (cast,) = found.votes
    assert (cast.answer, cast.value, cast.status) == ("good", 1.0, "answered")
    assert (cast.probability_source, cast.probability_backend) == ("classifier", "example")
    assert JudgeVote.from_dict(cast.to_dict()) == cast
    assert found.score_value == 1.0
    soft = grade(judge, choice(), votes="soft")
    assert soft.score_value == pytest.approx(0.7)
    assert soft.final_answer == "good"


def test_invalid_probabilities_fail_the_vote() -> None:
    """As an unreadable reply."""
    found = grade(lambda request: JudgeReply(answer="MET", probabilities={"MET": 0.5}), binary())
    assert found.votes[0].status == "failed"
    assert found.votes[0].unreadable
    with pytest.raises(ReplyError, match="probability_source must be one of 'decision_model'"):
        JudgeReply(answer="MET", probability_source="guess")  # type: ignore[arg-type]


def test_settings_that_cannot_be_combined() -> None:
    """The error says what to do."""
    judge = lambda request: "MET"  # noqa: E731
    with pytest.raises(ArgumentError, match="require votes='soft'"):
        grade(judge, binary(), thresholds={"claim": 0.7})
    with pytest.raises(ArgumentError, match="with votes='soft', use majority or weighted"):
        grade(judge, binary(), votes="soft", aggregation="unanimous")
    with pytest.raises(ArgumentError, match="thresholds: unknown criterion 'other'"):
        grade(judge, binary(), votes="soft", thresholds={"other": 0.5})
    with pytest.raises(ArgumentError, match="stop_when_decided"):
        grade(judge, binary(), votes="soft", stop_when_decided=True)
    with pytest.raises(ArgumentError, match="votes='firm'"):
        grade(judge, binary(), votes="firm")


@settings(max_examples=25)
@given(st.permutations(range(4)))
def test_the_settings_of_hard_votes_are_those_of_older_runs(order: Sequence[int]) -> None:
    """A run folder without soft votes has no new keys."""
    assert "votes" not in AggregationPolicy().model_dump(mode="json")
    written = AggregationPolicy(votes="soft", thresholds={"a": 0.5}).model_dump(mode="json")
    assert AggregationPolicy.model_validate(written).thresholds == {"a": 0.5}
    assert list(itertools.islice(written, 1)) == ["aggregation"]


def test_unreadable_replies_that_change_the_expected_value_are_marked() -> None:
    """The verdict stays, but figures of numbers must not contain what an unreadable reply counts as."""
    criterion = binary()
    cast = [soft_vote(judge, criterion, {"MET": 0.9, "UNMET": 0.1}) for judge in ("a", "b")]
    found = panel(criterion, [*cast, lost_vote("c", unreadable=True)])
    assert found.answer is not None
    assert (found.answer.code, found.swayed) == ("MET", True)


def test_thresholds_apply_to_binary_criteria_and_checklists() -> None:
    """Another criterion is refused by name."""
    judge = lambda request: None  # noqa: E731
    with pytest.raises(ArgumentError, match="the criterion 'scale' is not binary"):
        grade(judge, choice(), votes="soft", thresholds={"scale": 0.5})
    grade(judge, KINDS["checklist"](), votes="soft", thresholds={"code": 0.5})
