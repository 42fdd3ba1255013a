"""The critique pass, in which a teacher critiques drafts and rewrites those that need revision.

    stats = generate_critiques("drafts.jsonl", "out", teacher="gpt-6-luna")
    stats["verdict_distribution"]
    refine("out/critiques_v1.jsonl", "drafts.jsonl", "out", teacher="gpt-6-luna")

Drafts are JSON lines of the form `{"id", "prompt", "output", "contract"}`. The contract is the result of an
automatic check of the output. Records are appended as they arrive, so that an interrupted pass can be
continued with `resume=True`.
"""

from autorubric.critique._generate import generate_critiques, generate_critiques_async
from autorubric.critique._prompts import TeacherPrompt, load_critique_prompt_template
from autorubric.critique._provenance import TeacherReply
from autorubric.critique._records import resolve_evidence
from autorubric.critique._refine import refine, refine_async
from autorubric.critique._schema import load_critique_schema

__all__ = [
    "TeacherPrompt",
    "TeacherReply",
    "generate_critiques",
    "generate_critiques_async",
    "load_critique_prompt_template",
    "load_critique_schema",
    "refine",
    "refine_async",
    "resolve_evidence",
]
