from .audit import (
    AuditError as AuditError,
    append_line as append_line,
    call_line as call_line,
    log_refusal as log_refusal,
    text_facts as text_facts,
)
from .evaluate import (
    DESCRIPTION as DESCRIPTION,
    TITLE as TITLE,
    WIRE_NAME as WIRE_NAME,
    Progress as Progress,
    anthropic_definition as anthropic_definition,
    critique_evaluate as critique_evaluate,
    critique_evaluate_sync as critique_evaluate_sync,
    input_schema as input_schema,
    openai_definition as openai_definition,
    output_schema as output_schema,
    plain_schema as plain_schema,
)
from .providers import (
    PROVIDERS_VARIABLE as PROVIDERS_VARIABLE,
    Provider as Provider,
    Providers as Providers,
    ProviderTable as ProviderTable,
    in_turn as in_turn,
    provider_table as provider_table,
    unavailable as unavailable,
)
from .refine import (
    Refinement as Refinement,
    RefineRound as RefineRound,
    refine_until as refine_until,
    refine_until_sync as refine_until_sync,
)
from .request import (
    MOST_BYTES as MOST_BYTES,
    CritiqueRequest as CritiqueRequest,
    read_request as read_request,
)
from .response import CriterionScore as CriterionScore, CritiqueResponse as CritiqueResponse, Issue as Issue
from .task import STANDARD as STANDARD, rubric_of as rubric_of
from .workspace import Workspace as Workspace

__all__: list[str]
