"""Composition of prompts, in which the part shared by all criteria of an item is an identical prefix."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from autorubric._chat_tokens import neutralise_tokens
from autorubric._kept import Kept
from autorubric.criteria import AS_DECLARED, BaseCriterion, Shown, longest_reply, object_schema
from autorubric.llm import Message, ReplySchema
from autorubric.prompts._delimit import delimit, neutralise
from autorubric.prompts._shared import Material, shared_of
from autorubric.prompts._texts import (
    BATCH_INSTRUCTION,
    CRITERIA_HEAD,
    CRITERION_HEAD,
    EXAMPLES_HEAD,
    MATERIAL_RULE,
    SYSTEM_PROMPT,
)
from autorubric.values import Json

_AROUND: Final = 40
"""Characters per criterion of a batched reply for its id and its enclosing syntax."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A labelled text shown to a judge as an example.

    Attributes:
        text: Text of the example.
        answer: Label assigned by a human annotator.
        reason: Reason for the label, if it is shown; empty otherwise.
    """

    text: str
    answer: str
    reason: str = ""


class Question(NamedTuple):
    """One criterion as shown to a judge.

    Attributes:
        criterion: The criterion to judge.
        shown: Order in which its options or candidates are shown.
        examples: Labelled examples of the criterion.
    """

    criterion: BaseCriterion
    shown: Shown = AS_DECLARED
    examples: Sequence[Example] = ()


class Prompt(NamedTuple):
    """A prompt that is ready to send.

    Attributes:
        messages: The system message and one user message.
        schema: Schema that the reply must match.
    """

    messages: tuple[Message, ...]
    schema: ReplySchema


def shared_prefix(material: Material) -> str:
    """Return the part of the user message that is the same for all criteria of an item."""
    return shared_of(material).prefix


def compose(material: Material, question: Question, *, system_prompt: str | None = None) -> Prompt:
    """Compose the prompt for one criterion."""
    criterion, shown, examples = question
    shared = shared_of(material)
    block, schema = _DECLARED.of(criterion)
    if shown is not AS_DECLARED or examples:
        block = _block(criterion, shown, render_examples(examples, shared.tag))
    return _prompt(shared.prefix, block, schema, system_prompt)


def _block(criterion: BaseCriterion, shown: Shown, examples: Sequence[str] = ()) -> str:
    head = f"{CRITERION_HEAD}\n{criterion.render(shown)}"
    return neutralise_tokens("\n\n".join([head, *examples, criterion.instruction()]))


def _schema(criterion: BaseCriterion) -> ReplySchema:
    schema = criterion.wire_schema
    return ReplySchema(
        name="evaluation", schema=schema, strict=criterion.strict, max_chars=longest_reply(schema)
    )


_DECLARED: Final = Kept[BaseCriterion, tuple[str, ReplySchema]](
    lambda criterion: (_block(criterion, AS_DECLARED), _schema(criterion))
)


def compose_batch(
    material: Material, questions: Sequence[tuple[str, Question]], *, system_prompt: str | None = None
) -> Prompt:
    """Compose one prompt for several criteria, each with its id, in the order of `questions`."""
    shared = shared_of(material)
    blocks = [
        "\n\n".join(
            [
                f"[{key}] {question.criterion.render(question.shown)}",
                *render_examples(question.examples, shared.tag),
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
    block = neutralise_tokens("\n\n".join([CRITERIA_HEAD, *blocks, f"{BATCH_INSTRUCTION}\n{how}"]))
    strict = all(question.criterion.strict for _, question in questions)
    lengths = [longest_reply(question.criterion.wire_schema) for _, question in questions]
    longest = [_AROUND + length for length in lengths if length is not None]
    schema = ReplySchema(
        name="evaluations",
        schema=_batch_schema(questions),
        strict=strict,
        max_chars=sum(longest) if len(longest) == len(lengths) else None,
    )
    return _prompt(shared.prefix, block, schema, system_prompt)


def opaque_ids(count: int, rng: random.Random) -> list[str]:
    """Return distinct ids that carry no information about the criteria."""
    return [f"c{number:04x}" for number in rng.sample(range(0x1000, 0x10000), count)]


def render_examples(examples: Sequence[Example], tag: str) -> list[str]:
    """Return a list of one block that contains the delimited examples; empty if there are no examples."""
    if not examples:
        return []
    shown = [EXAMPLES_HEAD]
    for example in examples:
        judged = f"Judged: {neutralise(example.answer)}" + (
            f" — {neutralise(example.reason)}" if example.reason else ""
        )
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


@lru_cache(maxsize=64)
def _system_message(content: str) -> Message:
    return Message(role="system", content=content)


def _prompt(prefix: str, block: str, schema: ReplySchema, system_prompt: str | None) -> Prompt:
    if system_prompt:
        # A custom system prompt is not changed, so the rule that texts are not instructions comes first here.
        prefix = f"{MATERIAL_RULE}\n\n{prefix}"
    system = _system_message(system_prompt or SYSTEM_PROMPT)
    return Prompt((system, Message("user", prefix + block, len(prefix))), schema)
