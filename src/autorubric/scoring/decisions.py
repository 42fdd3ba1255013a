"""Decisions from votes: by each judge from its samples, then by the panel from its judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.scoring.aggregation import (
    CountedVote,
    VoteTally,
    aggregator_of,
    agreement,
    decision_without_answers,
    uses_weights,
)
from autorubric.scoring.calibration import ProbabilityCalibration
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.probabilities import (
    certain_of,
    expected_value,
    is_certain,
    mean_probabilities,
    probable_answer,
)
from autorubric.scoring.votes import Decision, JudgeVote, Probabilities, prefers_alike


def counted_vote(
    criterion: BaseCriterion, vote: JudgeVote, calibrations: Sequence[ProbabilityCalibration] = ()
) -> CountedVote:
    """Return a vote as it counts: its answer, stored in words, has the value of the current criterion."""
    answer = criterion.parse_truth(vote.answer) if vote.answer is not None else None
    given = vote.probabilities
    for calibration in calibrations if given is not None else ():
        if calibration.judge == vote.judge_id:
            given = calibration.apply(criterion, vote)
    return CountedVote(vote.status, answer, vote.unreadable, vote.weight, given)


def count_decision(decision: Decision, weight: float = 1.0) -> CountedVote:
    """Return a judge's decision as its vote in the panel."""
    # An assumed answer represents unreadable replies and is counted as an unreadable reply.
    status = "failed" if decision.assumed else decision.status
    return CountedVote(status, decision.answer, decision.assumed, weight, decision.probabilities)


def counted_answer(criterion: BaseCriterion, vote: CountedVote, policy: AggregationPolicy) -> Answer | None:
    """Return the answer that a vote contributes; None if the vote does not count."""
    if vote.status == "answered":
        return vote.answer
    if vote.status == "failed" and vote.unreadable and policy.on_failure == "conservative":
        return criterion.conservative() if criterion.measures else None
    return None


def decide(criterion: BaseCriterion, votes: Sequence[CountedVote], policy: AggregationPolicy) -> Decision:
    """Combine the votes on a criterion into a decision.

    Answered votes count, and with `on_failure="conservative"` unreadable ones count as the conservative
    answer. If no vote counts, the decision is `abstained` if any vote abstained and `failed` otherwise.
    """
    if policy.votes == "soft" and (soft := _decide_softly(criterion, votes, policy)) is not None:
        return soft
    answers: list[Answer] = []
    weights: list[float] = []
    for vote in votes:
        counted = counted_answer(criterion, vote, policy)
        if counted is not None:
            answers.append(counted)
            weights.append(vote.weight)
    if not answers:
        return decision_without_answers(votes)
    made = aggregator_of(policy, criterion)(VoteTally(criterion, answers, weights))
    # `replace` would take twice as long.
    return Decision(
        status="answered",
        answer=made.answer,
        mean_value=made.mean_value,
        tie=made.tie,
        agreement=agreement(criterion, votes, made.answer),
        assumed="answered" not in [vote.status for vote in votes],
    )


def _decide_softly(
    criterion: BaseCriterion, votes: Sequence[CountedVote], policy: AggregationPolicy
) -> Decision | None:
    """Combine probabilities; votes without them are certain. None if the answers have no probabilities."""
    if criterion.level == "text":
        return None
    given = [(vote, _soft_vote(criterion, vote, policy)) for vote in votes]
    if any(one is None and vote.status == "answered" for vote, one in given):
        return None
    counted = [(vote, one) for vote, one in given if one is not None]
    if not counted:
        return decision_without_answers(votes)
    found = mean_probabilities(
        criterion,
        [one for _, one in counted],
        lambda part: [vote.weight if uses_weights(policy, part) else 1.0 for vote, _ in counted],
    )
    answer, tie = probable_answer(criterion, found, policy.thresholds.get(criterion.name or ""))
    mean, valued = expected_value(criterion, found)
    if tie and criterion.level == "interval" and not criterion.part_fields and mean is not None:
        answer, tie = criterion.answer_at(mean), False
    return Decision(
        status="abstained" if answer.abstains else "answered",
        answer=answer,
        mean_value=answer.value if is_certain(criterion, found, answer) else mean,
        tie=tie,
        agreement=agreement(criterion, votes, answer),
        assumed=not {"answered", "abstained"} & {vote.status for vote in votes},
        probabilities=found,
        abstention=0.0 if valued == 1.0 else 1.0 - valued,
    )


def _soft_vote(
    criterion: BaseCriterion, vote: CountedVote, policy: AggregationPolicy
) -> Probabilities | None:
    """Return the probabilities that a vote contributes; None if the vote does not count."""
    if vote.probabilities is not None and not vote.unreadable:
        return vote.probabilities
    if vote.status == "abstained":
        return certain_of(criterion, vote.answer)
    answer = counted_answer(criterion, vote, policy)
    return None if answer is None else certain_of(criterion, answer)


def decide_by_judge(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy
) -> dict[str, Decision]:
    """Return decisions over judges' samples by id; a sample's votes in both orders are combined first."""
    by_judge: dict[str, dict[int, list[CountedVote]]] = {}
    for vote in votes:
        samples = by_judge.setdefault(vote.judge_id, {})
        samples.setdefault(vote.sample, []).append(counted_vote(criterion, vote, policy.calibrations))
    strict = _without_unreadable(policy, votes)
    return {
        judge: _mark_swayed(
            _decide_samples(criterion, samples, policy),
            _decide_samples(criterion, samples, strict) if strict is not None else None,
        )
        for judge, samples in by_judge.items()
    }


def _decide_samples(
    criterion: BaseCriterion, samples: Mapping[int, Sequence[CountedVote]], policy: AggregationPolicy
) -> Decision:
    single = [vote for cast in samples.values() for vote in cast]
    if len(single) == len(samples) or policy.votes == "soft":
        return decide(criterion, single, policy)
    over_orders = [_decide_orders(criterion, cast, policy) for cast in samples.values()]
    made = decide(criterion, [count_decision(one) for one in over_orders], policy)
    if made.answer is None or made.status != "answered":
        return made
    lone = over_orders[0] if len(over_orders) == 1 else made
    return replace(
        made,
        tie=made.tie or lone.tie,
        mean_value=lone.mean_value,
        agreement=agreement(criterion, single, made.answer),
    )


def _decide_orders(
    criterion: BaseCriterion, votes: Sequence[CountedVote], policy: AggregationPolicy
) -> Decision:
    """Combine the votes of one sample, for which the candidates were shown in different orders."""
    answers = [answer for vote in votes if (answer := counted_answer(criterion, vote, policy)) is not None]
    if answers and len(criterion.candidate_values(answers[0])) == 2:
        first, *others = answers
        if not all(prefers_alike(first.code, other.code) for other in others):
            tied = criterion.ranking_answer((0.5, 0.5))
            assumed = not any(vote.status == "answered" for vote in votes)
            return Decision(status="answered", answer=tied, tie=True, mean_value=0.5, assumed=assumed)
    return decide(criterion, votes, policy)


def decide_panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    """Combine the judges' decisions into a panel decision, with the agreement among the individual votes."""
    lone = _lone_decision(votes, judges)
    if lone is not None:
        return lone
    panel = _combine_judges(criterion, votes, judges, policy)
    if panel.answer is None or panel.status != "answered":
        return panel
    lone_tie = len(judges) == 1 and next(iter(judges.values())).tie
    single = [counted_vote(criterion, vote) for vote in votes]
    panel = replace(panel, tie=panel.tie or lone_tie, agreement=agreement(criterion, single, panel.answer))
    strict = _without_unreadable(policy, votes)
    if strict is None:
        return panel
    alone = decide_by_judge(criterion, votes, strict)
    return _mark_swayed(panel, _combine_judges(criterion, votes, alone, strict))


def _lone_decision(votes: Sequence[JudgeVote], judges: Mapping[str, Decision]) -> Decision | None:
    """Return the decision of a single judge's only vote, which a panel would repeat; otherwise None."""
    if len(votes) != 1 or votes[0].status != "answered":
        return None
    made = judges[votes[0].judge_id]
    same = made.answer is not None and made.answer.code == votes[0].answer
    return made if same and made.status == "answered" else None


def _combine_judges(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: AggregationPolicy,
) -> Decision:
    weights = {vote.judge_id: vote.weight for vote in votes}
    decisions = [count_decision(made, weights[judge]) for judge, made in judges.items()]
    return decide(criterion, decisions, policy)


def _without_unreadable(policy: AggregationPolicy, votes: Sequence[JudgeVote]) -> AggregationPolicy | None:
    """Return the policy that ignores unreadable replies if any of them count; otherwise None."""
    if policy.on_failure != "conservative" or True not in [vote.unreadable for vote in votes]:
        return None
    return policy.model_copy(update={"on_failure": "exclude"})


def _mark_swayed(decision: Decision, answered_only: Decision | None) -> Decision:
    """Mark the decision as swayed if the answer or expected value of the answered votes alone differs."""
    if answered_only is None or decision.assumed or decision.answer is None:
        return decision
    alone = answered_only.answer.code if answered_only.answer else None
    is_same = alone == decision.answer.code
    if decision.probabilities is not None:
        is_same = is_same and decision.probabilities == answered_only.probabilities
    return decision if is_same else replace(decision, swayed=True)
