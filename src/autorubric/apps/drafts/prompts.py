"""The prompts that ask a teacher to critique or to rewrite a draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from autorubric.apps.drafts.drafts import Draft, data_of, json_text
from autorubric.apps.drafts.provenance import CritiqueSchema
from autorubric.errors import ArgumentError
from autorubric.judges.critic_prompt import PromptTemplate
from autorubric.judges.prompts import MATERIAL_RULE, delimit, item_tag, neutralise
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.objects import Json
from autorubric.support.read import read_text
from autorubric.support.reading_errors import short_repr

_CRITIQUE_VARIABLES: Final = ("id", "prompt", "output", "contract", "material", "schema", "rule")
_REWRITE_VARIABLES: Final = ("id", "prompt", "output", "remarks", "contract", "material", "form", "rule")
_JSON_FORM: Final = "The output is JSON, and so is your reply: {kind}."
_KINDS: Final = {
    dict: "an object of the same shape",
    list: "a list of the same shape",
    bool: "true or false",
    float: "a number",
}
_TEXT_FORM: Final = "The output is a text, and so is your reply."

TeacherTask = Literal["critique", "rewrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherPrompt:
    """The prompt passed to a teacher function or to a teacher object's `forward` method.

    Attributes:
        role: Role of the message, always `"user"`.
        content: Text of the prompt: the filled-in template.
        task: The task, `"critique"` or `"rewrite"`.
        draft_id: Id of the draft.
        schema: JSON schema of the critique; None for a rewrite.
    """

    role: str = "user"
    content: str
    task: TeacherTask
    draft_id: str
    schema: Mapping[str, Json] | None = None

    def __str__(self) -> str:
        return self.content


def load_critique_prompt_template(path: str | Path | None = None) -> str:
    """Load the built-in critique prompt template (v1), or a template from a file.

    Raises:
        FileError: If the file cannot be read.
    """
    return _shipped_text("critique_v1.txt") if path is None else read_text(path)


def critique_template(given: str | Path | None) -> PromptTemplate:
    """Return the critique template with this text or path; the built-in one for None."""
    return _template(given, "critique_v1.txt", _CRITIQUE_VARIABLES, "template")


def rewrite_template(given: str | Path | None) -> PromptTemplate:
    """Return the rewrite template with this text or path; the built-in one for None."""
    return _template(given, "rewrite_v1.txt", _REWRITE_VARIABLES, "rewrite")


def _template(given: object, shipped: str, known: tuple[str, ...], parameter: str) -> PromptTemplate:
    if given is not None and not isinstance(given, str | Path):
        raise ArgumentError(f"{parameter} must be a template text or a Path to it; got {short_repr(given)}")
    if given is None:
        given = _shipped_text(shipped)
    template = PromptTemplate.parse(read_text(given) if isinstance(given, Path) else given, known)
    template.fill(dict.fromkeys(known, "text"))
    if not {"output", "material"} & set(template.names):
        raise ArgumentError(f"{parameter} must contain {{output}} or {{material}} to show the output")
    return template


def template_text(template: PromptTemplate) -> str:
    """Return the text of a template, for its digest."""
    return "".join(f"{literal}{variable or ''}" for literal, variable in template.pieces)


def critique_prompt(
    template: PromptTemplate, schema: CritiqueSchema, draft: Draft, *, output: str | None = None
) -> TeacherPrompt:
    """Return the prompt for the critique of a draft."""
    content = template.fill(
        {
            **_material(draft, draft.output_text if output is None else output),
            "schema": neutralise_tokens(schema.text),
            "rule": MATERIAL_RULE,
        },
        composed=_CRITIQUE_VARIABLES,
    )
    return TeacherPrompt(content=content, task="critique", draft_id=draft.id, schema=schema.schema)


def rewrite_prompt(template: PromptTemplate, draft: Draft, critique: Mapping[str, Json]) -> TeacherPrompt:
    """Return the prompt for rewriting a draft based on its critique."""
    shown = _material(draft, draft.output_text, remarks=_remarks(critique))
    values = {**shown, "form": _form(draft), "rule": MATERIAL_RULE}
    content = template.fill(values, composed=_REWRITE_VARIABLES)
    return TeacherPrompt(content=content, task="rewrite", draft_id=draft.id)


def _material(draft: Draft, output: str, remarks: str | None = None) -> dict[str, str]:
    """Return the delimited parts of a draft, individually and joined."""
    prompt = "" if draft.prompt is None else json_text(draft.prompt)
    contract = "" if draft.contract is None else json_text(draft.contract)
    # An id is untrusted text: on one line, it cannot pass for a part of the prompt.
    key = neutralise(" ".join(draft.id.split())[:200])
    tag = item_tag(prompt, output, contract, remarks)
    parts = {"prompt": delimit("query", prompt, tag) if prompt else ""}
    parts["output"] = delimit("submission", output, tag)
    parts["contract"] = delimit("context", contract, tag, name="contract") if contract else ""
    if remarks is not None:
        parts["remarks"] = delimit("context", remarks, tag, name="remarks")
    return {**parts, "id": key, "material": "\n\n".join(part for part in parts.values() if part)}


def _remarks(critique: Mapping[str, Json]) -> str:
    """Return the instructions and issues of a critique as text."""
    lines = []
    instructions = critique.get("rewrite_instructions")
    if isinstance(instructions, str):
        instructions = [instructions]
    if isinstance(instructions, list) and instructions:
        lines += ["Instructions:", *(f"- {json_text(one)}" for one in instructions)]
    issues = critique.get("issues")
    if isinstance(issues, list) and issues:
        lines.append("Issues:")
        lines += [_issue(issue) for issue in issues]
    return "\n".join(lines) or "Improve it as a whole."


def _issue(issue: Json) -> str:
    if not isinstance(issue, Mapping):
        return f"- {json_text(issue)}"
    where = f" (at {issue['evidence_path']})" if issue.get("evidence_path") else ""
    # A custom schema may have other keys.
    kind = ", ".join(str(issue[name]) for name in ("type", "severity") if issue.get(name))
    text = issue.get("message") or json_text({key: value for key, value in issue.items() if value})
    return f"- {kind}: {text}{where}" if kind else f"- {text}{where}"


def _form(draft: Draft) -> str:
    kind = json_kind(draft.output)
    return _TEXT_FORM if kind is None else _JSON_FORM.format(kind=_KINDS[kind])


def json_kind(output: Json) -> type | None:
    """Return `dict` or `list` for such data or its JSON text, `bool` or `float` for scalars, or None."""
    data = data_of(output)
    if isinstance(data, dict | list):
        return type(data)
    if isinstance(output, bool):
        return bool
    return float if isinstance(output, int | float) else None


def _shipped_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
