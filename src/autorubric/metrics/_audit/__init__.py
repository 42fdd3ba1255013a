"""Audits of judges and rubrics, computed from a stored run or a table of labels."""

from autorubric.metrics._audit._bias_report import bias_report
from autorubric.metrics._audit._bias_results import BiasReport, JudgeBias, TestedBias
from autorubric.metrics._audit._components_results import (
    GeneralisabilityStudy,
    VarianceComponent,
    VarianceComponents,
)
from autorubric.metrics._audit._item_analysis import item_analysis
from autorubric.metrics._audit._item_results import ItemAnalysis
from autorubric.metrics._audit._panel_audit import panel_audit
from autorubric.metrics._audit._panel_results import PanelAudit
from autorubric.metrics._audit._self_consistency import SelfConsistency, self_consistency
from autorubric.metrics._audit._variance_components import variance_components

__all__ = [
    "BiasReport",
    "GeneralisabilityStudy",
    "ItemAnalysis",
    "JudgeBias",
    "PanelAudit",
    "SelfConsistency",
    "TestedBias",
    "VarianceComponent",
    "VarianceComponents",
    "bias_report",
    "item_analysis",
    "panel_audit",
    "self_consistency",
    "variance_components",
]
