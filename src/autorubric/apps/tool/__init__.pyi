from .evaluate import (
    anthropic_definition as anthropic_definition,
    critique_evaluate as critique_evaluate,
    critique_evaluate_sync as critique_evaluate_sync,
    openai_definition as openai_definition,
)
from .providers import Provider as Provider, ProviderTable as ProviderTable
from .refine import (
    Refinement as Refinement,
    RefineRound as RefineRound,
    refine_until as refine_until,
    refine_until_sync as refine_until_sync,
)
from .request import CritiqueRequest as CritiqueRequest
from .response import CriterionScore as CriterionScore, CritiqueResponse as CritiqueResponse, Issue as Issue

__all__: list[str]
