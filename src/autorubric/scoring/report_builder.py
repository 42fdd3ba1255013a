"""Pure functions that turn votes into a report, and that say which decisions escalate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission, VerdictCounts
from autorubric.errors import TokenUsage
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig, LengthPenalty, RubricGroup
from autorubric.scoring.probabilities import is_in_band, probability_of
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.score import (
    Entry,
    TreeScore,
    abstention_value,
    apply_conditions,
    entry_of,
    score_tree,
    submission_length_penalty,
    subtract_penalty,
)
from autorubric.scoring.votes import NO_VOTE, Decision, JudgeVote, Votes, count_verdicts
from autorubric.support.field_types import Share
from autorubric.support.objects import IdentityCache, Memo, maker_of

Reports: TypeAlias = Sequence[EnsembleCriterionReport]


class EscalationRule(BaseModel):
    """An `EscalationConfig` as stored in a run's policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judges: tuple[str, ...]
    threshold: Share  # confidence below which a criterion is escalated
    # Thresholds for individual criteria, by criterion name.
    per_criterion: dict[str, float] = Field(default_factory=dict)
    band: tuple[Share, Share] | None = None  # probabilities that escalate, instead of the threshold

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit an absent band, so that the entry is that of older runs."""
        return {name: value for name, value in handler(self).items() if value is not None}

    def threshold_of(self, criterion: BaseCriterion) -> float:
        """Return the confidence below which this criterion is escalated."""
        return self.per_criterion.get(criterion.name or "", self.threshold)

    def split(self, votes: Sequence[JudgeVote]) -> tuple[list[JudgeVote], list[JudgeVote]]:
        """Split the votes into votes from the first judges and votes from the escalation panel."""
        strong = set(self.judges)
        return [v for v in votes if v.judge_id not in strong], [v for v in votes if v.judge_id in strong]

    def is_unsure(self, criterion: BaseCriterion, decision: Decision, votes: Sequence[JudgeVote]) -> bool:
        """Return whether the first judges' decision must be escalated, given their votes."""
        if decision.status != "answered" or decision.assumed:
            return True
        if self.band is not None:
            return is_in_band(criterion.level, probability_of(criterion, votes), self.band)
        confidence = confidence_of(votes, decision)
        return confidence is None or confidence < self.threshold_of(criterion)


def confidence_of(votes: Sequence[JudgeVote], decision: Decision) -> float | None:
    """Return the mean probability that the answered votes give to the decided answer; None if it is unknown.

    Of several votes, one without a confidence counts as certain, so that agreement determines the
    confidence.
    """
    answered = [vote for vote in votes if vote.status == "answered"]
    if decision.answer is None or not answered:
        return None
    if len(answered) == 1 and answered[0].confidence is None:
        return None
    code = decision.answer.code
    sure = [(1.0 if vote.confidence is None else vote.confidence, vote.answer == code) for vote in answered]
    return sum(confidence if same else 1.0 - confidence for confidence, same in sure) / len(sure)


class GradingPolicy(BaseModel):
    """The rules that turn votes into decisions and decisions into a score."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregation: AggregationPolicy = Field(default_factory=AggregationPolicy)  # how votes are combined
    # How criteria that have no judgment count in the score.
    cannot_assess: CannotAssessConfig = Field(default_factory=CannotAssessConfig)
    length_penalty: LengthPenalty | None = None  # penalty for length; None for no penalty
    normalize: bool = True  # whether the score is normalized to [0, 1]
    # Rule for escalating uncertain criteria to other judges; None for no escalation.
    escalation: EscalationRule | None = None
    stop_when_decided: bool = False  # whether votes that can no longer change a verdict are skipped


def build_report(
    submission: Submission,
    root: RubricGroup,
    votes: Votes,
    policy: GradingPolicy,
    *,
    length_penalty: float | None = None,
) -> EnsembleEvaluationReport:
    """Build the report on a submission from votes by criterion; a length penalty of None is computed."""
    reports = [report_on(submission, c, votes.get(c.name or "", ()), policy) for c in root.leaves]
    reports = under_conditions(reports, policy)
    penalty = length_penalty
    if penalty is None:
        penalty = submission_length_penalty(submission, policy.length_penalty)
    spent = spend([vote for report in reports for vote in report.votes])
    return scored_report(root, reports, policy, penalty, spent)


def scored_report(
    root: RubricGroup,
    reports: list[EnsembleCriterionReport],
    policy: GradingPolicy,
    penalty: float,
    spent: tuple[TokenUsage | None, float | None],
) -> EnsembleEvaluationReport:
    """Build the report on a submission from the reports on all criteria and its tokens and cost."""
    penalised = partial(subtract_penalty, penalty=penalty, normalize=policy.normalize)
    scored = _score(root, reports, policy)
    alone = _judge_scores(root, reports, policy, scored)
    agreements = [report.agreement for report in reports if report.agreement is not None]
    return EnsembleEvaluationReport(
        score=penalised(scored.score),
        raw_score=scored.raw,
        llm_raw_score=scored.raw,
        length_penalty=penalty,
        node_scores=dict(scored.node_scores),
        report=reports,
        cannot_assess_count=[report.decision.status for report in reports].count("abstained"),
        token_usage=spent[0],
        completion_cost=spent[1],
        error=_describe_failures(reports, scored),
        verdicts=VerdictCounts.sum(report.verdicts for report in reports),
        judge_scores={judge: penalised(score) for judge, score in alone.items()},
        mean_agreement=sum(agreements) / len(agreements) if agreements else None,
    )


def report_on(
    submission: Submission, criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: GradingPolicy
) -> EnsembleCriterionReport:
    """Build the report on one criterion of a submission from its votes."""
    bound = criterion.bind(submission)
    report = criterion_report(bound, votes, policy)
    return report if bound is criterion else replace(report, criterion=criterion)


def spend(votes: Sequence[JudgeVote]) -> tuple[TokenUsage | None, float | None]:
    """Return the votes' total tokens and total cost in US dollars, each None if no vote reports it."""
    usages = [vote.token_usage for vote in votes if vote.token_usage is not None]
    costs = [vote.completion_cost for vote in votes if vote.completion_cost is not None]
    return TokenUsage.sum(usages) if usages else None, sum(costs) if costs else None


def criterion_report(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: GradingPolicy
) -> EnsembleCriterionReport:
    found = _known_outcome(criterion, votes, policy)
    deciding = votes
    if policy.escalation is not None and criterion.check is None:
        deciding = policy.escalation.split(votes)[found.escalated]
    return _make_criterion_report(
        criterion=criterion,
        decision=found.decision,
        votes=list(votes),
        judge_decisions=dict(found.by_judge),
        final_reason=_final_reason(criterion, found.decision, deciding),
        error=_criterion_error(found.decision, deciding),
        score_value=found.entry.value,
        score_share=found.entry.share,
        abstention_value=abstention_value(criterion, policy.cannot_assess),
        confidence=found.confidence,
        escalated=found.escalated,
        verdicts=count_verdicts(
            votes,
            assumes=criterion.measures and policy.aggregation.on_failure == "conservative",
            of_panel=True,
        ),
    )


_make_criterion_report: Final = maker_of(EnsembleCriterionReport)


class _Outcome(NamedTuple):
    """What votes decide on a criterion, regardless of their reasons and costs."""

    by_judge: Mapping[str, Decision]
    decision: Decision
    entry: Entry
    confidence: float | None
    escalated: bool


_OUTCOMES: Final = IdentityCache[GradingPolicy, IdentityCache[BaseCriterion, Memo[_Outcome]]](
    lambda policy: IdentityCache(lambda criterion: Memo())
)
"""Outcomes of equal votes, by policy and criterion."""


def _known_outcome(criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: GradingPolicy) -> _Outcome:
    """Return the outcome of the votes, computed once for equal votes on a criterion."""
    # A comparison is another object for each item; answers with parts and probabilities are seldom equal.
    reads_all = policy.aggregation.votes == "soft" or policy.escalation is not None
    has_shares = reads_all and any(one.probabilities is not None for one in votes)
    if (
        has_shares
        or criterion.level == "ranking"
        or not _PLAIN.issuperset([type(one.answer) for one in votes])
    ):
        return _decide(criterion, votes, policy)
    is_sure_read = policy.escalation is not None
    key = tuple([
        (
            one.judge_id, one.sample, one.status, type(one.answer), one.answer or repr(one.answer),
            one.weight, one.unreadable, one.order, is_sure_read and one.confidence,
        )
        for one in votes
    ])  # fmt: skip
    return _OUTCOMES.of(policy).of(criterion).once(key, _decide, criterion, votes, policy)


_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


def _decide(criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: GradingPolicy) -> _Outcome:
    by_judge = decide_by_judge(criterion, votes, policy.aggregation)
    deciding, confidence, escalated = votes, None, False
    if policy.escalation is not None and criterion.check is None:
        deciding, strong = policy.escalation.split(votes)
        first = _decide_panel(criterion, deciding, by_judge, policy)
        confidence = confidence_of(deciding, first)
        escalated = policy.escalation.is_unsure(criterion, first, deciding)
        deciding = strong if escalated else deciding
    decision = _decide_panel(criterion, deciding, by_judge, policy)
    entry = entry_of(criterion, decision, policy.cannot_assess)
    return _Outcome(by_judge, decision, entry, confidence, escalated)


def _decide_panel(
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    judges: Mapping[str, Decision],
    policy: GradingPolicy,
) -> Decision:
    """Combine votes into a joint decision of the judges that cast them."""
    own = {vote.judge_id: judges[vote.judge_id] for vote in votes}
    return decide_panel(criterion, votes, own, policy.aggregation)


def under_conditions(
    reports: Sequence[EnsembleCriterionReport], policy: GradingPolicy
) -> list[EnsembleCriterionReport]:
    """Mark reports whose condition does not hold: by the panel's decisions, or a judge's where it has one."""
    if all(report.criterion.when is None for report in reports):
        return list(reports)
    criteria = [report.criterion for report in reports]
    panel = apply_conditions(criteria, {r.name: r.decision for r in reports}, policy.cannot_assess)
    judges = {}
    for judge in _judges(reports):
        own = {r.name: r.judge_decisions[judge] for r in reports if judge in r.judge_decisions}
        judges[judge] = apply_conditions(criteria, own, policy.cannot_assess, elsewhere=panel)
    return [
        _apply_condition(
            report,
            panel[report.name],
            {judge: judges[judge][report.name] for judge in report.judge_decisions},
        )
        for report in reports
    ]


def _apply_condition(
    report: EnsembleCriterionReport, decision: Decision, by_judge: dict[str, Decision]
) -> EnsembleCriterionReport:
    condition = report.criterion.when
    if decision.status != "not_applicable" or condition is None:
        return replace(report, judge_decisions=by_judge)
    reason = f"applies only if {condition.criterion!r} reaches {condition.at_least:g}, which it does not"
    return replace(
        report,
        decision=decision,
        judge_decisions=by_judge,
        score_value=None,
        score_share=1.0,
        final_reason=reason,
        error=None,
        verdicts=VerdictCounts(),
    )


_TREES: Final = IdentityCache[RubricGroup, Memo[TreeScore]](lambda root: Memo())
"""Scores of equal entries, by tree."""


def _known_score(root: RubricGroup, entries: Mapping[str, Entry], policy: GradingPolicy) -> TreeScore:
    """Return the score of entries in the order of the tree's leaves, computed once for equal entries."""
    key = (policy.normalize, *entries.values())
    return _TREES.of(root).once(key, lambda: score_tree(root, entries, normalize=policy.normalize))


def _score(root: RubricGroup, reports: Reports, policy: GradingPolicy) -> TreeScore:
    entries = {r.name: Entry.of(r.score_value, r.decision, r.score_share) for r in reports}
    scored = _known_score(root, entries, policy)
    if [1 for report in reports if report.score_value is not None and not report.decision.assumed]:
        return scored
    return TreeScore(score=None, raw=None, node_scores=dict.fromkeys(scored.node_scores))


def _judges(reports: Reports) -> list[str]:
    return list(dict.fromkeys(judge for report in reports for judge in report.judge_decisions))


def _judge_scores(
    root: RubricGroup, reports: Reports, policy: GradingPolicy, panel: TreeScore
) -> dict[str, float | None]:
    """Return each judge's score before the length penalty."""
    judges = _judges(reports)
    if len(judges) == 1 and all(r.judge_decisions.get(judges[0]) is r.decision for r in reports):
        # The only judge has the decisions of the panel, and therefore its score.
        return {judges[0]: panel.score}
    # Votes were skipped because of other judges' votes, so the rest is not representative of their judge.
    skipping = {vote.judge_id for report in reports for vote in report.votes if vote.skipped}
    return {
        judge: None if judge in skipping else _judge_score(judge, root, reports, policy) for judge in judges
    }


def _judge_score(judge: str, root: RubricGroup, reports: Reports, policy: GradingPolicy) -> float | None:
    entries, is_judged = {}, False
    for report in reports:
        own = report.judge_decisions.get(judge)
        # The panel decides gates that the judge was not asked.
        entry = entry_of(report.criterion, own or report.decision, policy.cannot_assess)
        entries[report.name] = entry if own else entry._replace(value=None)
        is_judged = is_judged or (own is not None and entry.value is not None and not own.assumed)
    return _known_score(root, entries, policy).score if is_judged else None


def _final_reason(criterion: BaseCriterion, decision: Decision, votes: Sequence[JudgeVote]) -> str:
    """Join the reasons of the votes that agree with the decision, with judge ids if there are several."""
    telling = "abstained" if decision.status == "abstained" else "answered"
    if len(votes) == 1:
        return votes[0].reason if votes[0].status == telling else ""
    carrying = [vote for vote in votes if vote.status == telling and vote.reason]
    if telling == "answered":
        decided = decision.answer.code if decision.answer else None
        carrying = [vote for vote in carrying if vote.answer == decided] or carrying
    return "\n".join(f"{vote.judge_id}: {vote.reason}" for vote in carrying)


def _criterion_error(decision: Decision, votes: Sequence[JudgeVote]) -> str | None:
    if decision.status == "not_asked":
        return NO_VOTE
    failures = [f"{vote.judge_id}: {vote.error}" for vote in votes if vote.status == "failed"]
    return "; ".join(failures) if failures else None


def _describe_failures(reports: Reports, scored: TreeScore) -> str | None:
    """Describe why there is no score, and which judgments are missing because of failures or open gates."""
    failed = [one for one in reports if one.decision.status == "failed" or one.decision.assumed]
    gates = _open_gates(reports, scored)
    messages = []
    if failed:
        head = f"{len(failed)} of {len(reports)} criteria could not be judged"
        head = "every judgment failed" if len(failed) == len(reports) else head
        empty = scored.score is None and len(failed) < len(reports) and not gates
        messages.append(f"{'no score: ' if empty else ''}{head}: {_first_errors(failed)}")
    elif swayed := [report.name for report in reports if report.decision.swayed]:
        names = ", ".join(swayed)
        messages.append(f"unreadable replies, counted as the conservative answer, decided {names}")
    elif scored.score is None and not gates:
        whys = ", ".join(f"{report.name} ({_why_unscored(report)})" for report in reports[:5])
        if all(report.status == "not_asked" for report in reports):
            whys = "no judge voted; recorded votes are found by item id (--id COL) and criterion name"
        messages.append(f"no score: {whys}")
    return "; ".join([*gates, *messages]) or None


def _first_errors(failed: Reports) -> str:
    if len(failed) > 1 and len({report.error for report in failed}) == 1:
        return failed[0].error or ""
    messages = "; ".join(f"{report.name}: {report.error}" for report in failed[:3])
    return messages + (f"; and {len(failed) - 3} more" if len(failed) > 3 else "")


def _open_gates(reports: Reports, scored: TreeScore) -> list[str]:
    if not scored.open_gates:
        return []
    statuses = {report.name: report.status for report in reports}
    around = ", and so the rubric," if scored.score is None else ""
    return [
        f"{f'the group {gate.group!r}{around}' if gate.group else 'the rubric'} has no score: its gate "
        f"{gate.criterion!r} could not be judged ({statuses[gate.criterion]})"
        for gate in scored.open_gates
    ]


def _why_unscored(report: EnsembleCriterionReport) -> str:
    if report.status != "answered":
        return report.status.replace("_", " ")
    if report.score_value is not None and report.criterion.bonus:
        return "bonus"
    return "no value" if report.score_value is None else f"weight {report.criterion.weight:g}"
