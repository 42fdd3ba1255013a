"""The critique pass: drafts from JSON lines, each put to a teacher, and those to revise refined.

    stats = generate_critiques("drafts.jsonl", "out", teacher="gpt-6-luna")
    stats["verdict_distribution"]
    refine("out/critiques_v1.jsonl", "drafts.jsonl", "out", teacher="gpt-6-luna")

A draft is `{"id", "prompt", "output", "contract"}`; the contract is what a program found when it checked the
output. Records are appended as they come, so that a pass that was stopped, however it was, goes on with
`resume=True`.
"""

from autorubric.critique._evidence import resolve_evidence
from autorubric.critique._generate import generate_critiques, generate_critiques_async
from autorubric.critique._prompts import TeacherPrompt, load_critique_prompt_template
from autorubric.critique._provenance import TeacherReply
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
