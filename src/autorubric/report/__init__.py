"""Self-contained HTML pages that need no server or network: a run's report, and a labelling page."""

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
    "DEFAULT_MAX_CHARS", "CritiqueView", "Marks", "RunView", "annotation_page", "critique_page",
    "critique_section", "marks_of", "report_html", "write_annotation_page", "write_report",
]  # fmt: skip

_HOMES = {
    "_page": ("DEFAULT_MAX_CHARS", "report_html", "write_report"),
    "_critique_groups": ("CritiqueView",),
    "_marks": ("Marks", "marks_of"),
    "_view": ("RunView",),
    "_annotate": ("annotation_page", "write_annotation_page"),
    "_critique": ("critique_page", "critique_section"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
