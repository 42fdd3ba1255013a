"""The scores table, with one row per item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from autorubric.eval._export._run import ExportedRun, item_id_of
from autorubric.eval._items import ItemResult
from autorubric.types import EnsembleCriterionReport

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS: Final = ("score", "raw_score", "mean_agreement", "cost", "seconds")
_COUNTS: Final = ("cannot_assess_count", "tokens")
_NUMBERED: Final = ("judge.", "group.", "value.")
_FIRST: Final = ("item", "item_id", "score", "raw_score")
_LAST: Final = ("assumed", "mean_agreement", "cannot_assess_count", "tokens", "cost", "seconds", "error")


def scores_table(run: ExportedRun) -> pd.DataFrame:
    """Return a DataFrame with one row per item; see `EvalResult.scores_table`."""
    import pandas as pd  # imported late, as few callers need a DataFrame

    rows = [_row(one) for one in run.item_results]
    between = dict.fromkeys(column for row in rows for column in row)
    families = [[column for column in between if column.startswith(one)] for one in ("judge.", "group.")]
    answers = [column for column in between if column.startswith(("answer.", "value."))]
    columns = [*_FIRST, *families[0], *families[1], *answers, *_LAST]
    table = {}
    for column in columns:
        cells = [row.get(column) for row in rows]
        if column in ("item", *_COUNTS):
            table[column] = pd.Series(cells, dtype="Int64")
        elif column in _NUMBERS or column.startswith(_NUMBERED):
            table[column] = pd.Series(cells, dtype="float64")
        else:
            table[column] = pd.Series(cells, dtype=object)
    return pd.DataFrame(table)


def _row(result: ItemResult) -> dict[str, Any]:
    report = result.report
    head = {"item": result.item_idx, "item_id": item_id_of(result), "seconds": result.duration_seconds}
    if report is None:
        return {**head, "error": result.error}
    row = {
        **head,
        "score": report.score,
        "raw_score": report.raw_score,
        "assumed": json.dumps(report.assumed, ensure_ascii=False) if report.assumed else None,
        "mean_agreement": report.mean_agreement,
        "cannot_assess_count": report.cannot_assess_count,
        "tokens": report.token_usage.total_tokens if report.token_usage else None,
        "cost": report.completion_cost,
        "error": result.error or report.error,
    }
    row |= {f"judge.{judge}": score for judge, score in report.judge_scores.items()}
    row |= {f"group.{name}": score for name, score in report.node_scores.items() if name}
    for one in report.report:
        row[f"answer.{one.name}"] = answer_in_words(one)
        row[f"value.{one.name}"] = one.score_value
    return row


def answer_in_words(report: EnsembleCriterionReport) -> str | None:
    """Return the decision as text; None if there is no decision, for example because the panel abstained."""
    answer = report.decision.answer
    if answer is None:
        return None
    if answer.label is not None or answer.code is None:
        return answer.label
    return json.dumps(answer.code, ensure_ascii=False)
