"""Pages that need nothing else: no server, no network, no other file."""

from __future__ import annotations

from autorubric.report._annotate import annotation_page, write_annotation_page

__all__ = ["annotation_page", "write_annotation_page"]
