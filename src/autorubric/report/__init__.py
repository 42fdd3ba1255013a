"""Self-contained HTML pages, without server, network or other files: a run's report, and a labeling page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.report._annotate import annotation_page, write_annotation_page
    from autorubric.report._critique import critique_page, critique_section
    from autorubric.report._critique_groups import CritiqueView
    from autorubric.report._marks import Marks, marks_of
    from autorubric.report._page import DEFAULT_MAX_CHARS, report_html, write_report
    from autorubric.report._view import RunView

__all__ = [
    "DEFAULT_MAX_CHARS",
    "CritiqueView",
    "Marks",
    "RunView",
    "annotation_page",
    "critique_page",
    "critique_section",
    "marks_of",
    "report_html",
    "write_annotation_page",
    "write_report",
]

_HOMES = {
    "DEFAULT_MAX_CHARS": "_page",
    "CritiqueView": "_critique_groups",
    "Marks": "_marks",
    "RunView": "_view",
    "annotation_page": "_annotate",
    "critique_page": "_critique",
    "critique_section": "_critique",
    "marks_of": "_marks",
    "report_html": "_page",
    "write_annotation_page": "_annotate",
    "write_report": "_page",
}

__getattr__ = loading(__name__, _HOMES)
