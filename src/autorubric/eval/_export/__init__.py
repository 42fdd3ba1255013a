"""Exporting runs to files for other programs: tables, a Markdown page, a JUnit report."""

from autorubric.eval._export._export import ExportFormat, ExportTable, exported
from autorubric.eval._export._scores import scores_table

__all__ = ["ExportFormat", "ExportTable", "exported", "scores_table"]
