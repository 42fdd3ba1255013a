"""Export of runs to files for other programs: tables, a Markdown page, a JUnit report."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args
from xml.etree import ElementTree

from autorubric.criteria.values import MAX_LOST, VerdictCounts
from autorubric.errors import ArgumentError
from autorubric.runs.item_results import StoredResults
from autorubric.runs.items import ItemResult
from autorubric.runs.lines import StoredItem
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport, run_headline
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, as_text, printable
from autorubric.support.objects import fewer_gc_collections
from autorubric.support.read import load_pyarrow
from autorubric.support.reading_errors import nearest_key

if TYPE_CHECKING:
    import pandas as pd

    from autorubric.metrics.figures.bias import ConfidenceInterval
    from autorubric.metrics.summaries.compute import MetricsResult


class ExportedRun(Protocol):
    """The interface of a run that can be exported."""

    @property
    def item_results(self) -> Iterable[ItemResult]: ...
    @property
    def experiment_name(self) -> str: ...
    @property
    def unfinished_items(self) -> int: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def verdicts(self) -> VerdictCounts: ...
    @property
    def partly_scored_items(self) -> int: ...
    def votes_table(self) -> pd.DataFrame: ...
    def compute_metrics(self) -> MetricsResult: ...
    def blocks(self) -> list[Block]: ...


def item_id_of(result: ItemResult) -> str:
    """Return the item's id, or its position if it has no id."""
    return result.item.id or str(result.item_idx)


_NUMBERS: Final = ("score", "raw_score", "mean_agreement", "cost", "seconds")
_COUNTS: Final = ("cannot_assess_count", "tokens")
_NUMBERED: Final = ("judge.", "group.", "value.")
_FIRST: Final = ("item", "item_id", "score", "raw_score")
_LAST: Final = ("assumed", "mean_agreement", "cannot_assess_count", "tokens", "cost", "seconds", "error")


@fewer_gc_collections()
def scores_table(run: ExportedRun) -> pd.DataFrame:
    """Return a DataFrame with one row per item; see `EvalResult.scores_table`."""
    import pandas as pd  # imported late, as few callers need a DataFrame

    if isinstance(run.item_results, StoredResults):
        rows = [_row(line.position, line.item_id, line, report) for line, report in run.item_results.rows()]
    else:
        rows = [_row(one.item_idx, item_id_of(one), one, one.report) for one in run.item_results]
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


def _row(
    position: int, item_id: str, result: ItemResult | StoredItem, report: EnsembleEvaluationReport | None
) -> dict[str, Any]:
    head = {"item": position, "item_id": item_id, "seconds": result.duration_seconds}
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


# Characters that XML 1.0 cannot contain, even escaped.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(run: ExportedRun, fail_under: float | None, max_lost: float | None) -> bytes:
    """Return the XML of a test suite with one test case per item; see `EvalResult.export`."""
    name = _legal(run.experiment_name)
    suite = ElementTree.Element("testsuite", name=name, timestamp=run.started_at.isoformat())
    most = MAX_LOST if max_lost is None else max_lost
    most_of_item = 1.0 if fail_under is None and max_lost is None else most
    seconds, labelled = 0.0, False
    for result in run.item_results:
        labelled = labelled or result.item.ground_truth is not None or bool(result.item.ratings)
        seconds += result.duration_seconds
        suite.append(_case(result, name, fail_under, most_of_item))
    headline = run_headline(name, len(suite), run.unfinished_items)
    if run.unfinished_items and run.verdicts.exceeds(most):
        # Servers read the cases alone, and those of the finished items could all pass.
        case = ElementTree.SubElement(suite, "testcase", classname=name, name="unfinished items", time="0")
        message = f"{run.unfinished_items} items are unfinished; resume the run"
        ElementTree.SubElement(case, "error", message=message)
    figures = [
        *_verdicts(run.verdicts),
        ("items.partly_scored", str(run.partly_scored_items)),
        ("items.unfinished", str(run.unfinished_items)),
    ]
    if labelled:
        figures += _true_rates(run.compute_metrics())
    suite.insert(0, _properties_of(figures))
    tags = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    told = {key: str(len(suite.findall(tag))) for key, tag in tags.items()} | {"time": f"{seconds:.3f}"}
    suite.attrib.update(told)
    root = ElementTree.Element("testsuites", {"name": headline, **told})
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(result: ItemResult, suite: str, fail_under: float | None, max_lost: float) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=suite, name=_legal(item_id_of(result)), time=f"{result.duration_seconds:.3f}"
    )
    report = result.report
    score = None if report is None else report.score
    if report is not None:
        case.append(_properties_of(_properties(report)))
    # An item that was not judged is an error, not a failure.
    if score is None:
        kind, message = "error", result.error or "no score"
    elif report is not None and report.verdicts.exceeds(max_lost):
        kind, message = "error", "; ".join(report.verdicts.messages())
    elif fail_under is not None and score < fail_under:
        kind, message = "failure", f"the score {score:.3f} is below {fail_under:g}"
    else:
        return case
    ElementTree.SubElement(case, kind, message=_legal(message)).text = _criteria_text(report)
    return case


def _verdicts(counts: VerdictCounts) -> Iterator[tuple[str, str]]:
    for name, count in counts.to_dict().items():
        if count is not None:
            yield f"verdicts.{name}", str(count)


def _properties_of(pairs: Iterable[tuple[str, str]]) -> ElementTree.Element:
    properties = ElementTree.Element("properties")
    for key, text in pairs:
        ElementTree.SubElement(properties, "property", name=_legal(key), value=_legal(text))
    return properties


def _true_rates(found: MetricsResult) -> Iterator[tuple[str, str]]:
    """Yield sensitivity and specificity with their interval bounds, named like the gates of `metrics`."""
    if not found.n_binary_criteria:
        return
    overall = {
        "tpr": (found.criterion_sensitivity, found.criterion_sensitivity_ci),
        "tnr": (found.criterion_specificity, found.criterion_specificity_ci),
    }
    for figure, (value, ends) in overall.items():
        yield from _share(figure, "", value, ends, "no_criterion_defined")
    for one in found.per_criterion:
        # Only the metrics of binary criteria have these attributes.
        for figure, name in (("tpr", "sensitivity"), ("tnr", "specificity")):
            if hasattr(one, name):
                ends = getattr(one, f"{name}_ci")
                yield from _share(figure, f"@{one.name}", getattr(one, name), ends, one.reasons.get(name))


def _share(
    figure: str, where: str, value: float | None, ends: ConfidenceInterval | None, reason: str | None
) -> Iterator[tuple[str, str]]:
    yield f"{figure}{where}", f"undefined ({reason})" if value is None else f"{value:.6g}"
    if ends is not None:
        yield f"{figure}.low{where}", f"{ends.lower:.6g}"
        yield f"{figure}.high{where}", f"{ends.upper:.6g}"


def _properties(report: EnsembleEvaluationReport) -> Iterator[tuple[str, str]]:
    if report.score is not None:
        yield "score", f"{report.score:.6g}"
    for judge, score in report.judge_scores.items():
        if score is not None:
            yield f"judge.{judge}", f"{score:.6g}"
    for one in report.report:
        mark = " (assumed)" if one.name in report.assumed else ""
        yield f"answer.{one.name}", (answer_in_words(one) or one.status) + mark
    yield from _verdicts(report.verdicts)


def _criteria_text(report: EnsembleEvaluationReport | None) -> str:
    if report is None:
        return ""
    lines = []
    for one in report.report:
        answer = answer_in_words(one) or one.status.replace("_", " ")
        answer += " (assumed)" if one.name in report.assumed else ""
        reason = one.final_reason or one.error or ""
        lines.append(
            f"{one.name} (weight {one.criterion.weight:g}): {answer}{f': {reason}' if reason else ''}"
        )
    return _legal("\n".join(lines))


def _legal(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")


def _criteria_table(table: pd.DataFrame) -> TableBlock:
    """Return the mean value of each criterion, excluding assumed answers, as reports do."""
    rows: list[tuple[Cell, ...]] = []
    assumed = [json.loads(names) if isinstance(names, str) else () for names in table["assumed"]]
    for column in [one for one in table.columns if one.startswith("value.")]:
        name = column.removeprefix("value.")
        values = table[column][[name not in names for names in assumed]].dropna()
        mean = float(values.mean()) if len(values) else None
        rows.append((name, len(values), len(table) - len(values), mean))
    columns = ("criterion", "with a value", "without a value", "mean value")
    return TableBlock(title="Criteria", columns=columns, rows=tuple(rows))


def _items(table: pd.DataFrame) -> TableBlock:
    chosen = [one for one in table.columns if one in ("item_id", "score") or one.startswith("judge.")]
    cells = table[[*chosen, "error"]].astype(object).where(table[[*chosen, "error"]].notna(), None)
    rows = tuple(tuple(row) for row in cells.itertuples(index=False, name=None))
    heads = tuple(one.replace("judge.", "score by ").replace("item_id", "item") for one in chosen)
    return TableBlock(title="Items", columns=(*heads, "error"), rows=rows)


def _text(block: Block) -> str:
    head = f"## {_plain(block.title)}\n\n" if block.title else ""
    match block:
        case TextBlock():
            lines = [_plain(line) for line in block.text.splitlines()]
            return head + ("\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines))
        case ScalarBlock():
            return head + _table(("figure", "value"), block.figures)
        case TableBlock():
            return head + _table(block.columns, block.rows)
        case _:
            raise AssertionError(f"a run has no {type(block).__name__}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    numeric = [all(not isinstance(row[at], str) for row in rows) for at in range(len(columns))]
    lines = [[_plain(one) for one in columns], ["--:" if right else "---" for right in numeric]]
    lines += [["" if cell is None else _plain(as_text(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Return the text on one line, with Markdown characters escaped."""
    return _MARKS.sub(r"\\\1", " ".join(printable(text).split()))


ExportFormat: TypeAlias = Literal["csv", "parquet", "jsonl", "markdown", "junit"]
ExportTable: TypeAlias = Literal["scores", "votes"]


def export_run(
    run: ExportedRun, form: ExportFormat, table: ExportTable, fail_under: float | None, max_lost: float | None
) -> bytes:
    """Return the run as the content of a file; see `EvalResult.export`."""
    for given, allowed, what in ((form, ExportFormat, "format"), (table, ExportTable, "table")):
        if given not in get_args(allowed):
            raise ArgumentError(f"unknown {what} {given!r}; {nearest_key(str(given), get_args(allowed))}")
    if form == "junit":
        return junit_of(run, fail_under, max_lost)
    if form == "markdown":
        scores = scores_table(run)
        texts = map(_text, [*run.blocks(), _criteria_table(scores), _items(scores)])
        return ("\n\n".join(texts) + "\n").encode("utf-8", "replace")
    frame = scores_table(run) if table == "scores" else run.votes_table()
    if form == "csv":
        # Imported late: metrics load numpy and more, which a DataFrame has loaded already.
        from autorubric.metrics.core.result import spreadsheet_csv

        return spreadsheet_csv(_flat(frame)).encode("utf-8", "replace")
    return _parquet(frame) if form == "parquet" else _lines(frame)


def _parquet(frame: pd.DataFrame) -> bytes:
    pyarrow = load_pyarrow()
    flat, buffer = _flat(frame), io.BytesIO()
    columns = {
        name: pyarrow.array(flat[name], type=pyarrow.string() if flat[name].dtype == object else None)
        for name in flat.columns
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the DataFrame with all cells converted to strings and numbers."""
    flat = frame.copy()
    for column in flat.columns:
        if flat[column].dtype == object:
            flat[column] = flat[column].map(_cell).astype(object)
    return flat


def _cell(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str) or (isinstance(cell, float) and math.isnan(cell)):
        return cell if isinstance(cell, str) else None
    return json.dumps(cell, ensure_ascii=False, default=str)


def _lines(frame: pd.DataFrame) -> bytes:
    keys = [json.dumps(name).replace("%", "%%") for name in frame.columns]
    row = "{" + ", ".join(f"{key}: %s" for key in keys) + "}\n"
    columns = [_json_cells(frame[name]) for name in frame.columns]
    return "".join(row % cells for cells in zip(*columns, strict=True)).encode("ascii")


def _json_cells(column: pd.Series) -> list[str]:
    """Return the cells as JSON; equal cells are converted once."""
    known = lru_cache(maxsize=None, typed=True)(json.dumps)

    def convert(cell: Any, is_missing: bool) -> str:
        kind = cell.__class__
        if is_missing:
            return "null"
        # 0.0 and -0.0 are equal, so floats are not looked up.
        if kind is float and math.isfinite(cell):
            return repr(cell)
        return known(cell) if kind in (str, int, bool) else json.dumps(cell, allow_nan=False, default=_bare)

    return list(map(convert, column.astype(object).tolist(), column.isna().tolist()))


def _bare(cell: Any) -> Any:
    return cell.item() if hasattr(cell, "item") else str(cell)
