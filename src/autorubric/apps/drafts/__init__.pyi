from .drafts import resolve_evidence as resolve_evidence
from .generate import (
    generate_critiques as generate_critiques,
    generate_critiques_async as generate_critiques_async,
)
from .provenance import TeacherReply as TeacherReply, load_critique_schema as load_critique_schema
from .refinement import refine as refine, refine_async as refine_async
from .teacher import (
    TeacherPrompt as TeacherPrompt,
    load_critique_prompt_template as load_critique_prompt_template,
)

__all__: list[str]
