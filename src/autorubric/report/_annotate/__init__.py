"""The page on which people label items: offline, blind to the judges and to each other."""

from autorubric.report._annotate._page import annotation_page, write_annotation_page

__all__ = ["annotation_page", "write_annotation_page"]
