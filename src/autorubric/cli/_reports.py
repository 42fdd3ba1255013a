"""A grading report as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autorubric.types import CriterionReport, EnsembleEvaluationReport, JudgeVote


def report_json(report: EnsembleEvaluationReport) -> dict[str, Any]:
    """Return a report as the object that `--json` prints."""
    return {
        "score": report.score,
        "raw_score": report.raw_score,
        "error": report.error,
        "node_scores": report.node_scores,
        "judge_scores": report.judge_scores,
        "mean_agreement": report.mean_agreement,
        "cannot_assess_count": report.cannot_assess_count,
        "verdicts": report.verdicts.to_dict(),
        "tokens": report.token_usage.total_tokens if report.token_usage else None,
        "cost": report.completion_cost,
        "criteria": [_criterion_json(one) for one in report.report],
    }


def _criterion_json(report: CriterionReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "weight": report.criterion.weight,
        "status": report.status,
        "answer": report.final_answer,
        "value": report.score_value,
        "reason": report.final_reason,
        "agreement": report.agreement,
        "tie": report.tie,
        "error": report.error,
        "votes": [_vote_json(vote) for vote in report.votes],
    }


def _vote_json(vote: JudgeVote) -> dict[str, Any]:
    return {
        "judge": vote.judge_id,
        "sample": vote.sample,
        "status": vote.status,
        "answer": vote.answer,
        "value": vote.value,
        "reason": vote.reason,
        "confidence": vote.confidence,
        "error": vote.error,
    }
