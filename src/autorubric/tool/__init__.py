"""The tool `critique.evaluate`, with which agents and people get a critique of their work.

    response = await critique_evaluate({"content": code, "criteria": ["correctness", "security"]})
    response.one_line()                                   # ✓ 8.5/10 · 3 issues · 2 suggestions

Errors in requests are returned as `{"ok": false, "error": ...}`.
"""

from autorubric.tool._audit import AuditError, append_line, call_line, log_refusal, text_facts
from autorubric.tool._definitions import (
    DESCRIPTION,
    TITLE,
    WIRE_NAME,
    anthropic_definition,
    input_schema,
    openai_definition,
    output_schema,
    plain_schema,
)
from autorubric.tool._evaluate import Progress, critique_evaluate, critique_evaluate_sync
from autorubric.tool._providers import (
    PROVIDERS_VARIABLE,
    Provider,
    Providers,
    ProviderTable,
    in_turn,
    provider_table,
    unavailable,
)
from autorubric.tool._refine import Refinement, RefineRound, refine_until, refine_until_sync
from autorubric.tool._request import MOST_BYTES, CritiqueRequest, read_request
from autorubric.tool._response import CriterionScore, CritiqueResponse, Issue
from autorubric.tool._task import STANDARD, rubric_of
from autorubric.tool._workspace import Workspace

__all__ = [
    "DESCRIPTION",
    "MOST_BYTES",
    "PROVIDERS_VARIABLE",
    "STANDARD",
    "TITLE",
    "WIRE_NAME",
    "AuditError",
    "CriterionScore",
    "CritiqueRequest",
    "CritiqueResponse",
    "Issue",
    "Progress",
    "Provider",
    "ProviderTable",
    "Providers",
    "RefineRound",
    "Refinement",
    "Workspace",
    "anthropic_definition",
    "append_line",
    "call_line",
    "critique_evaluate",
    "critique_evaluate_sync",
    "in_turn",
    "input_schema",
    "log_refusal",
    "openai_definition",
    "output_schema",
    "plain_schema",
    "provider_table",
    "read_request",
    "refine_until",
    "refine_until_sync",
    "rubric_of",
    "text_facts",
    "unavailable",
]
