"""A grading report as blocks for people and as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock

if TYPE_CHECKING:
    from autorubric.types import CriterionReport, EnsembleEvaluationReport, JudgeVote


def report_blocks(report: EnsembleEvaluationReport) -> list[Block]:
    """Tables of the criteria and of the groups, and the score with what is known about it."""
    panel = len(report.judge_scores) > 1
    columns = ("criterion", "weight", "answer", *(("agreement",) if panel else ()), "reason")
    rows = tuple(
        (
            one.name,
            f"{one.criterion.weight:g}",
            answer_text(one),
            *((one.agreement,) if panel else ()),
            one.final_reason or one.error or "",
        )
        for one in report.report
    )
    figures: list[tuple[str, Cell]] = [("score", report.score), ("raw score", report.raw_score)]
    if panel:
        figures += [(f"score by {judge}", score) for judge, score in report.judge_scores.items()]
        figures.append(("mean agreement", report.mean_agreement))
    figures.append(("verdicts", str(report.verdicts)))
    if report.token_usage is not None:
        figures.append(("tokens", report.token_usage.total_tokens))
    if report.completion_cost is not None:
        figures.append(("cost in US dollars", report.completion_cost))
    groups = tuple((name, score) for name, score in report.node_scores.items() if name)
    tables = [TableBlock(columns=columns, rows=rows)]
    if groups:
        tables.append(TableBlock(columns=("group", "score"), rows=groups))
    return [*tables, ScalarBlock(figures=tuple(figures))]


def answer_text(report: CriterionReport) -> str:
    """The answer decided on, in words; without one, what became of the criterion."""
    decision = report.decision
    label = decision.answer.label if decision.answer else None
    # A panel that abstained has an answer with nothing in it.
    if label is None and report.final_answer is None:
        return decision.status.replace("_", " ")
    text = label if label is not None else json.dumps(report.final_answer, ensure_ascii=False)
    marks = [word for word, so in (("tie", decision.tie), ("no readable vote", decision.assumed)) if so]
    return f"{text} ({', '.join(marks)})" if marks else text


def report_json(report: EnsembleEvaluationReport) -> dict[str, Any]:
    """A report as the object that `--json` prints."""
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
