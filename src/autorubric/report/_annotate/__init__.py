"""The page on which people label items offline, without the answers of judges or other raters."""

from autorubric.report._annotate._page import annotation_page, write_annotation_page

__all__ = ["annotation_page", "write_annotation_page"]
