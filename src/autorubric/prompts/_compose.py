"""Prompts from sections: what all criteria of an item share comes first, byte for byte the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from autorubric.criteria import BaseCriterion, Shown, candidate_id, object_schema
from autorubric.llm import Message, ReplySchema
from autorubric.prompts._delimit import delimit, item_tag, neutralise
from autorubric.prompts._texts import (
    BATCH_INSTRUCTION,
    CRITERIA_HEAD,
    CRITERION_HEAD,
    EXAMPLES_HEAD,
    GUIDELINES_HEAD,
    MATERIAL_RULE,
    SYSTEM_PROMPT,
)
from autorubric.values import Json, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A judged text shown to a judge before it judges.

    Attributes:
        text: The text.
        answer: The label that people gave it.
        reason: Why, where it is to be shown; empty otherwise.
    """

    text: str
    answer: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What all criteria of an item share.

    Attributes:
        submission: What is judged.
        query: What it answers.
        reference: A good answer to compare with.
        guidelines: The rubric's guidelines.
        order: Names of the candidates in the order shown, where they are compared; they stand in the place
            of the submission then.
    """

    submission: Submission
    query: str | None = None
    reference: str | None = None
    guidelines: str | None = None
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One criterion as it is put to a judge.

    Attributes:
        criterion: The criterion.
        shown: How it is shown.
        examples: Judged examples of it.
    """

    criterion: BaseCriterion
    shown: Shown = field(default_factory=Shown)
    examples: Sequence[Example] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt ready to send.

    Attributes:
        messages: The system message and one user message.
        schema: The schema of the reply.
    """

    messages: tuple[Message, ...]
    schema: ReplySchema


def shared_prefix(material: Material) -> str:
    """The part of the user message that all criteria of an item share."""
    submission = material.submission
    tag = _tag(material)
    parts = []
    if material.guidelines:
        parts.append(f"{GUIDELINES_HEAD}\n{material.guidelines}")
    if material.query is not None:
        parts.append(delimit("query", material.query, tag))
    if material.reference is not None:
        parts.append(delimit("reference", material.reference, tag))
    if submission.thinking is not None:
        parts.append(delimit("thinking", submission.thinking, tag))
    if material.order:
        # Letters for names: neither "gpt-5" nor "baseline" is to speak for a text.
        parts += [
            delimit("candidate", submission.candidates[name], tag, name=candidate_id(place))
            for place, name in enumerate(material.order)
        ]
    else:
        parts.append(delimit("submission", submission.text or "", tag))
    return "\n\n".join(parts) + "\n\n"


def _tag(material: Material) -> str:
    submission = material.submission
    others = list(submission.candidates.values())[1:]
    return item_tag(submission.text, submission.thinking, material.query, material.reference, *others)


def compose(material: Material, question: Question, *, system_prompt: str | None = None) -> Prompt:
    """The prompt for one criterion."""
    criterion = question.criterion
    block = "\n\n".join(
        [
            f"{CRITERION_HEAD}\n{criterion.render(question.shown)}",
            *render_examples(question.examples, _tag(material)),
            criterion.instruction(),
        ]
    )
    schema = ReplySchema(name="evaluation", schema=criterion.wire_schema, strict=criterion.strict)
    return _prompt(shared_prefix(material), block, schema, system_prompt)


def compose_batch(
    material: Material, questions: Sequence[tuple[str, Question]], *, system_prompt: str | None = None
) -> Prompt:
    """The prompt for several criteria in one request, each with its id, in the order given."""
    tag = _tag(material)
    blocks = [
        "\n\n".join(
            [
                f"[{key}] {question.criterion.render(question.shown)}",
                *render_examples(question.examples, tag),
            ]
        )
        for key, question in questions
    ]
    instructions = dict.fromkeys(question.criterion.instruction() for _, question in questions)
    if len(instructions) == 1:
        how = next(iter(instructions))
    else:
        how = "\n".join(
            f"- for {', '.join(k for k, q in questions if q.criterion.instruction() == text)}: {text}"
            for text in instructions
        )
    block = "\n\n".join([CRITERIA_HEAD, *blocks, f"{BATCH_INSTRUCTION}\n{how}"])
    strict = all(question.criterion.strict for _, question in questions)
    schema = ReplySchema(name="evaluations", schema=_batch_schema(questions), strict=strict)
    return _prompt(shared_prefix(material), block, schema, system_prompt)


def opaque_ids(count: int, rng: random.Random) -> list[str]:
    """Different ids that say nothing about what they stand for."""
    return [f"c{number:04x}" for number in rng.sample(range(0x1000, 0x10000), count)]


def render_examples(examples: Sequence[Example], tag: str) -> list[str]:
    """The examples as one block, their texts delimited with the tag; no block where there are none."""
    if not examples:
        return []
    shown = [EXAMPLES_HEAD]
    for example in examples:
        judged = f"Judged: {example.answer}" + (f" — {neutralise(example.reason)}" if example.reason else "")
        shown.append(f"{delimit('example', example.text, tag)}\n{judged}")
    return ["\n\n".join(shown)]


def _batch_schema(questions: Sequence[tuple[str, Question]]) -> dict[str, Json]:
    shapes: list[dict[str, Json]] = []
    for _, question in questions:
        properties = question.criterion.wire_schema["properties"]
        shape = object_schema({"id": {"type": "string"}, **properties})
        if shape not in shapes:
            shapes.append(shape)
    items = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    return object_schema({"evaluations": {"type": "array", "items": items}})


def _prompt(prefix: str, block: str, schema: ReplySchema, system_prompt: str | None) -> Prompt:
    if system_prompt:
        # A user's own system prompt stands as it is; that texts are no instructions is said all the same.
        prefix = f"{MATERIAL_RULE}\n\n{prefix}"
    return Prompt(
        messages=(
            Message(role="system", content=system_prompt or SYSTEM_PROMPT),
            Message(role="user", content=prefix + block, cache_prefix=len(prefix)),
        ),
        schema=schema,
    )
