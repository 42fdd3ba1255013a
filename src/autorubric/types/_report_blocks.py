"""Conversion of a grading report to blocks for rendering."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock

if TYPE_CHECKING:
    from autorubric.types._reports import EnsembleCriterionReport, EnsembleEvaluationReport


def report_blocks(report: EnsembleEvaluationReport) -> list[Block]:
    """Return tables of criteria and groups, and the score with its details."""
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


def answer_text(report: EnsembleCriterionReport) -> str:
    """Return the chosen answer in words or, if there is none, the outcome of the criterion."""
    decision = report.decision
    label = decision.answer.label if decision.answer else None
    # A panel that abstained has an empty answer.
    if label is None and report.final_answer is None:
        return decision.status.replace("_", " ")
    text = label if label is not None else json.dumps(report.final_answer, ensure_ascii=False)
    marks = [word for word, so in (("tie", decision.tie), ("no readable vote", decision.assumed)) if so]
    return f"{text} ({', '.join(marks)})" if marks else text
