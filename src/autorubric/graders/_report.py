"""Votes to a report: decisions, scores, reasons, spend. All pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autorubric.aggregation import decide_by_judge, decide_panel
from autorubric.criteria import BaseCriterion
from autorubric.graders._base import GradingTask, Votes
from autorubric.graders._policy import GradingPolicy
from autorubric.scoring import Score, entering_value, penalised, score_values, submission_length_penalty
from autorubric.types import Decision, EnsembleCriterionReport, EnsembleEvaluationReport, JudgeVote
from autorubric.values import TokenUsage


def build_report(
    task: GradingTask, votes: Votes, policy: GradingPolicy, *, length_penalty: float | None = None
) -> EnsembleEvaluationReport:
    """What votes on a task come to under a policy.

    Args:
        task: What was graded.
        votes: Votes by criterion name.
        policy: How they are combined and scored.
        length_penalty: What is taken off for length, where it is known; else it is computed.
    """
    criteria = list(task.rubric)
    reports = [criterion_report(c, votes.get(c.name or "", ()), policy) for c in criteria]
    penalty = length_penalty
    if penalty is None:
        penalty = submission_length_penalty(task.submission, policy.length_penalty)
    scored = score_values(criteria, [report.score_value for report in reports], normalize=policy.normalize)
    if not any(report.score_value is not None and not report.decision.assumed for report in reports):
        scored = Score(score=None, raw=None)
    agreements = [report.agreement for report in reports if report.agreement is not None]
    cast = [vote for report in reports for vote in report.votes]
    usages = [vote.token_usage for vote in cast if vote.token_usage is not None]
    costs = [vote.completion_cost for vote in cast if vote.completion_cost is not None]
    return EnsembleEvaluationReport(
        score=penalised(scored.score, penalty, normalize=policy.normalize),
        raw_score=scored.raw,
        llm_raw_score=scored.raw,
        length_penalty=penalty,
        report=reports,
        cannot_assess_count=sum(report.status == "abstained" for report in reports),
        token_usage=sum(usages, TokenUsage()) if usages else None,
        completion_cost=sum(costs) if costs else None,
        error=_what_failed(reports, scored),
        judge_scores=_judge_scores(reports, policy, penalty),
        mean_agreement=sum(agreements) / len(agreements) if agreements else None,
    )


def criterion_report(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: GradingPolicy
) -> EnsembleCriterionReport:
    """What votes on one criterion come to under a policy."""
    by_judge = decide_by_judge(criterion, votes, policy.aggregation)
    decision = decide_panel(criterion, votes, by_judge, policy.aggregation)
    return EnsembleCriterionReport(
        criterion=criterion,
        decision=decision,
        votes=list(votes),
        judge_decisions=by_judge,
        final_reason=_final_reason(criterion, decision, votes),
        error=_criterion_error(decision, votes),
        score_value=entering_value(criterion, decision, policy.cannot_assess),
    )


def _judge_scores(
    reports: Sequence[EnsembleCriterionReport], policy: GradingPolicy, penalty: float
) -> dict[str, float | None]:
    judges = dict.fromkeys(judge for report in reports for judge in report.judge_decisions)
    return {judge: _judge_score(judge, reports, policy, penalty) for judge in judges}


def _judge_score(
    judge: str, reports: Sequence[EnsembleCriterionReport], policy: GradingPolicy, penalty: float
) -> float | None:
    own: Mapping[str, Decision] = {
        report.name: report.judge_decisions[judge] for report in reports if judge in report.judge_decisions
    }
    criteria = [report.criterion for report in reports]
    values = [entering_value(c, own.get(c.name or ""), policy.cannot_assess) for c in criteria]
    assumed = {name for name, made in own.items() if made.assumed}
    if all(v is None or c.name in assumed for c, v in zip(criteria, values, strict=True)):
        return None
    alone = score_values(criteria, values, normalize=policy.normalize)
    return penalised(alone.score, penalty, normalize=policy.normalize)


def _final_reason(criterion: BaseCriterion, decision: Decision, votes: Sequence[JudgeVote]) -> str:
    """Reasons of the votes that say what was decided, each after its judge where there are several."""
    if decision.status == "abstained":
        carrying = [vote for vote in votes if vote.status == "abstained" and vote.reason]
    else:
        decided = decision.answer.code if decision.answer else None
        answered = [vote for vote in votes if vote.status == "answered" and vote.reason]
        carrying = [vote for vote in answered if vote.answer == decided] or answered
    if len(votes) == 1:
        return carrying[0].reason if carrying else ""
    return "\n".join(f"{vote.judge_id}: {vote.reason}" for vote in carrying)


def _criterion_error(decision: Decision, votes: Sequence[JudgeVote]) -> str | None:
    failures = [f"{vote.judge_id}: {vote.error}" for vote in votes if vote.status == "failed"]
    if decision.status == "not_asked":
        return "no judge was asked or has a vote on it"
    return "; ".join(failures) or None


def _what_failed(reports: Sequence[EnsembleCriterionReport], scored: Score) -> str | None:
    """Why there is no score, or which criteria carry no judgment because of failures."""
    failed = [report for report in reports if report.status == "failed" or report.decision.assumed]
    told = "; ".join(f"{report.name}: {report.error}" for report in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    if failed:
        head = "every judgment failed" if len(failed) == len(reports) else _share(failed, reports)
        left = "nothing is left to score; " if scored.score is None and len(failed) < len(reports) else ""
        return f"{left}{head}: {told}{more}"
    swayed = [report.name for report in reports if report.decision.swayed]
    if swayed:
        return f"replies that could not be read decided {', '.join(swayed)}, as the conservative answer"
    if scored.score is None:
        return "nothing is left to score: " + ", ".join(
            f"{report.name} {_why_unscored(report)}" for report in reports[:5]
        )
    return None


def _why_unscored(report: EnsembleCriterionReport) -> str:
    if report.status != "answered":
        return f"is {report.status}"
    return "measures nothing" if report.score_value is None else f"has weight {report.criterion.weight:g}"


def _share(failed: Sequence[object], reports: Sequence[object]) -> str:
    return f"{len(failed)} of {len(reports)} criteria could not be judged"
