"""Composition of the prompts for judges."""

from autorubric.prompts._compose import (
    Example,
    Prompt,
    Question,
    compose,
    compose_batch,
    opaque_ids,
    render_examples,
    shared_prefix,
)
from autorubric.prompts._delimit import delimit, item_tag, neutralise
from autorubric.prompts._shared import Material
from autorubric.prompts._texts import MATERIAL_RULE, SYSTEM_PROMPT

__all__ = [
    "MATERIAL_RULE",
    "SYSTEM_PROMPT",
    "Example",
    "Material",
    "Prompt",
    "Question",
    "compose",
    "compose_batch",
    "delimit",
    "item_tag",
    "neutralise",
    "opaque_ids",
    "render_examples",
    "shared_prefix",
]
