"""Grading reports as JSON for programs, and the figures of a run as blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autorubric._blocks import Block, ScalarBlock

if TYPE_CHECKING:
    from autorubric.eval import EvalResult
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


def run_blocks(result: EvalResult) -> list[Block]:
    """Return a run's figures as blocks; if the cost is unknown, the reason is shown in its place."""
    blocks = result.blocks()
    head = blocks[0]
    if result.total_completion_cost is None and isinstance(head, ScalarBlock):
        costs = ((name, _why_no_cost(result) if "cost" in name else value) for name, value in head.figures)
        blocks[0] = replace(head, figures=tuple(costs))
    return blocks


def _why_no_cost(result: EvalResult) -> str:
    judges = result.fingerprint.get("judges")
    settings = judges.values() if isinstance(judges, dict) else ()
    models = [str(one["model"]) for one in settings if isinstance(one, dict) and "model" in one]
    if not models:
        return "none reported (the panel has no models)"
    if result.total_token_usage is None:
        return "unknown (no reply reported a token count)"
    return f"unknown (no price for {', '.join(dict.fromkeys(models))})"
