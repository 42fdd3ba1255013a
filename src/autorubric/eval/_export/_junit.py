"""A run as a JUnit report, which build servers show: an item is a test case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from autorubric.eval._export._run import ExportedRun, item_id_of
from autorubric.eval._export._scores import answer_in_words
from autorubric.eval._items import ItemResult
from autorubric.types import EnsembleEvaluationReport

# What XML 1.0 cannot hold, escaped or not.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(run: ExportedRun, fail_under: float | None) -> bytes:
    """The XML of a test suite with an item a case.

    An item without a score is an error, never a failure: it was not judged. One with a score below
    `fail_under` is a failure that lists its criteria.
    """
    name = _legal(run.experiment_name)
    suite = ElementTree.Element("testsuite", name=name, timestamp=run.started_at.isoformat())
    counts, seconds = {"tests": 0, "failures": 0, "errors": 0}, 0.0
    for result in run.item_results:
        case = _case(result, name, fail_under)
        counts["tests"] += 1
        counts["errors"] += case.find("error") is not None
        counts["failures"] += case.find("failure") is not None
        seconds += result.duration_seconds
        suite.append(case)
    told = {key: str(count) for key, count in counts.items()} | {"time": f"{seconds:.3f}"}
    suite.attrib.update(told)
    root = ElementTree.Element("testsuites", told)
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(result: ItemResult, suite: str, fail_under: float | None) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=suite,
        name=_legal(item_id_of(result)),
        time=f"{result.duration_seconds:.3f}",
    )
    report = result.report
    score = None if report is None else report.score
    if report is not None:
        properties = ElementTree.SubElement(case, "properties")
        for key, text in _properties(report):
            ElementTree.SubElement(properties, "property", name=_legal(key), value=_legal(text))
    if score is None:
        fault = ElementTree.SubElement(case, "error", message=_legal(result.error or "no score"))
        fault.text = _criteria(report)
    elif fail_under is not None and score < fail_under:
        message = f"the score {score:.3f} is below {fail_under:g}"
        fault = ElementTree.SubElement(case, "failure", message=message)
        fault.text = _criteria(report)
    return case


def _properties(report: EnsembleEvaluationReport) -> Iterator[tuple[str, str]]:
    if report.score is not None:
        yield "score", f"{report.score:.6g}"
    for judge, score in report.judge_scores.items():
        if score is not None:
            yield f"judge.{judge}", f"{score:.6g}"
    for one in report.report:
        yield f"answer.{one.name}", answer_in_words(one) or one.status


def _criteria(report: EnsembleEvaluationReport | None) -> str:
    if report is None:
        return ""
    lines = []
    for one in report.report:
        answer = answer_in_words(one) or one.status.replace("_", " ")
        reason = one.final_reason or one.error or ""
        lines.append(
            f"{one.name} (weight {one.criterion.weight:g}): {answer}{f': {reason}' if reason else ''}"
        )
    return _legal("\n".join(lines))


def _legal(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
