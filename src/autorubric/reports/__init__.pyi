from . import items as items
from .critique import (
    CritiqueView as CritiqueView,
    critique_page as critique_page,
    critique_section as critique_section,
)
from .labelling import annotation_page as annotation_page, write_annotation_page as write_annotation_page
from .page import report_html as report_html, write_report as write_report
from .read_run import RunView as RunView

__all__: list[str]
