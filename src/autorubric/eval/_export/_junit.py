"""Exporting a run as a JUnit report for build servers, with one test case per item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from autorubric.eval._export._run import ExportedRun, item_id_of
from autorubric.eval._export._scores import answer_in_words
from autorubric.eval._items import ItemResult
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import VerdictCounts

if TYPE_CHECKING:
    from autorubric.metrics import ConfidenceInterval, MetricsResult

# Characters that XML 1.0 cannot contain, even escaped.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(run: ExportedRun, fail_under: float | None, max_lost: float) -> bytes:
    """Return the XML of a test suite with one test case per item.

    An item without a score is reported as an error, not as a failure, since it was not judged. With
    `fail_under`, an item is an error if more than `max_lost` of its verdicts were lost or assumed; otherwise
    a lower score is a failure that lists the item's criteria. The properties of the suite contain the
    verdict counts and, if items are labelled, sensitivity and specificity.
    """
    name = _legal(run.experiment_name)
    suite = ElementTree.Element("testsuite", name=name, timestamp=run.started_at.isoformat())
    counts, seconds, labelled = {"tests": 0, "failures": 0, "errors": 0}, 0.0, False
    for result in run.item_results:
        labelled = labelled or result.item.ground_truth is not None or bool(result.item.ratings)
        case = _case(result, name, fail_under, max_lost)
        counts["tests"] += 1
        counts["errors"] += case.find("error") is not None
        counts["failures"] += case.find("failure") is not None
        seconds += result.duration_seconds
        suite.append(case)
    figures = [*_verdicts(run.verdicts), ("items.partly_scored", str(run.partly_scored_items))]
    if labelled:
        figures += _true_rates(run.compute_metrics())
    suite.insert(0, _properties_of(figures))
    told = {key: str(count) for key, count in counts.items()} | {"time": f"{seconds:.3f}"}
    suite.attrib.update(told)
    root = ElementTree.Element("testsuites", told)
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
    if score is None:
        fault = ElementTree.SubElement(case, "error", message=_legal(result.error or "no score"))
        fault.text = _criteria(report)
    elif fail_under is not None and report is not None and report.verdicts.exceeds(max_lost):
        message = "; ".join(report.verdicts.messages())
        fault = ElementTree.SubElement(case, "error", message=_legal(message))
        fault.text = _criteria(report)
    elif fail_under is not None and score < fail_under:
        message = f"the score {score:.3f} is below {fail_under:g}"
        fault = ElementTree.SubElement(case, "failure", message=message)
        fault.text = _criteria(report)
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


def _criteria(report: EnsembleEvaluationReport | None) -> str:
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
