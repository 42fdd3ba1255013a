"""The prompt passed to an evaluator, and prompt templates with plain names."""

from __future__ import annotations

import difflib
import string
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import BaseModel

from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.comparative import candidate_id
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.judges.base import JudgeRequest
from autorubric.judges.prompts import (
    MATERIAL_RULE,
    delimit,
    delimit_given,
    item_tag,
    neutralise,
    render_examples,
    rules_of,
)
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.reading_errors import short_repr

_CONVERSIONS: Final[Mapping[str, Callable[[Any], str]]] = {"r": repr, "s": str, "a": ascii}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    conversion: str | None = None  # r, s or a; None for no conversion
    specification: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the name is valid, the conversion is known, and the specification has no nested fields."""
        converts = self.conversion is None or self.conversion in _CONVERSIONS
        return self.name.isidentifier() and converts and not set("{}") & set(self.specification)

    def show(self, value: Any) -> str:
        """Format the value as `str.format` does; None becomes empty text unless it is converted."""
        if self.conversion is not None:
            value = _CONVERSIONS[self.conversion](value)
        elif value is None:
            value = ""
        try:
            return format(value, self.specification)
        except (ValueError, TypeError, OverflowError) as error:
            what = f"prompt_template: {self} cannot format {short_repr(value)}: {error}"
            raise ArgumentError(f"{what}; pass another value for {self.name}, or change the format") from None

    def __str__(self) -> str:
        conversion = "" if self.conversion is None else f"!{self.conversion}"
        return f"{{{self.name}{conversion}{self.specification and ':' + self.specification}}}"


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A parsed template: literal texts, each with the variable that follows it, if any."""

    pieces: tuple[tuple[str, Variable | None], ...]

    @classmethod
    def parse(cls, text: str, known: Iterable[str]) -> PromptTemplate:
        if not isinstance(text, str):
            given = type(text).__name__
            raise ArgumentError(f"prompt_template must be text with {listed(known)}; got {given}")
        try:
            found = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ArgumentError(f"prompt_template: {error}; {_rule(known)}") from None
        pieces: list[tuple[str, Variable | None]] = []
        for literal, name, specification, conversion in found:
            variable = None
            if name is not None:
                variable = Variable(name=name, conversion=conversion, specification=specification or "")
                if not variable.is_plain:
                    raise ArgumentError(f"prompt_template: {variable} is not a variable; {_rule(known)}")
            pieces.append((literal, variable))
        return cls(tuple(pieces))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variable.name for _, variable in self.pieces if variable is not None))

    def fill(self, values: Mapping[str, Any], *, composed: Container[str] = ()) -> str:
        """Return the text with the values, in which delimiters are harmless unless they are `composed`."""
        parts = []
        for literal, variable in self.pieces:
            parts.append(literal)
            if variable is not None:
                if variable.name not in values:
                    what = f"prompt_template: unknown variable {{{variable.name}}}"
                    raise ArgumentError(f"{what}; {_near(variable.name, values)}")
                shown = variable.show(values[variable.name])
                parts.append(shown if variable.name in composed else neutralise(shown))
        return "".join(parts)


def variable_text(value: Any) -> str:
    return "" if value is None else str(value)


def listed(names: Iterable[str]) -> str:
    """Return the names as variables in braces, separated by commas."""
    return ", ".join(f"{{{name}}}" for name in names)


def _rule(known: Iterable[str]) -> str:
    return (
        f"use {listed(known)}, or a keyword argument of the call, each as a plain name in braces, optionally "
        "with a conversion (!r) or a format (:.2f); write a literal brace twice"
    )


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=len(names), cutoff=0.6)
    return f"available: {listed([*near, *(one for one in names if one not in near)])}"


DEFAULT_TEMPLATE: Final = f"""\
Judge by one criterion, in the criterion's own words. {MATERIAL_RULE}

{{material}}

Criterion:
{{criterion}}

{{examples}}{{instruction}}
First look for the evidence, then decide. Reply with one JSON object and nothing else."""
"""Template for single and batch evaluation; delimits the inputs and omits those that are not given."""

VARIABLES: Final = ("criterion", "output", "outputs", "input", "inputs", "reference", "context")
OWN_VARIABLES: Final = ("instruction", "material", "examples")
"""Further variables; a keyword argument of the same name overrides them."""

_BATCH_RULE: Final = (
    'There are {count} outputs, numbered. Reply with {{"evaluations": [...]}}, one object for each output, '
    "in their order. Judge every output by itself."
)


_DECIDE: Final = "Decide in any case; cannot_assess is to be left out here."
"""An evaluation cannot express an abstention; only votes in a panel can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt passed to an evaluator.

    Attributes:
        role: The role of the message: `"user"`.
        content: The template with its variables filled in.
        format_override: The pydantic class that the reply must match.
    """

    role: str
    content: str
    format_override: type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    output: Any  # as passed to the template
    input: Any  # the prompt that the output answers; None if not given
    submission: Submission  # the output, for judges
    criterion: BaseCriterion  # adapted to the candidates in the output
    shown: Shown

    @property
    def value(self) -> Any:
        """Return the value shown in a template, with compared candidates labelled by letters."""
        if not self.shown.names:
            return self.output
        return "\n\n".join(
            f"Candidate {candidate_id(place)}:\n{self.submission.candidates[name]}"
            for place, name in enumerate(self.shown.names)
        )

    @property
    def text(self) -> str:
        return variable_text(self.value)

    def cut_to(self, submission: Submission) -> Case:
        if submission is self.submission:
            return self
        return replace(self, submission=submission, output=submission.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorCall:
    reference: Any  # None if there is none
    context: Any  # additional information for the evaluator; None if there is none
    further: Mapping[str, Any] = field(default_factory=dict)  # the caller's own template variables
    batch: bool = False  # whether outputs are numbered, even a single one
    request: JudgeRequest | None = None  # the request of a panel; None outside of a panel


COMPOSED: Final = frozenset({"criterion", "instruction", "material", "examples"})
"""Template variables that the library composes; the others hold what callers give."""


def variables(cases: Sequence[Case], call: EvaluatorCall, *, next_to_input: bool) -> dict[str, Any]:
    """Return the template variables; in a batch, `next_to_input` shows each output after its input."""
    first, tag = cases[0], _tag(cases, call)
    output, given = first.value, first.input
    if call.batch:
        outputs, inputs = list[str](), list[str]()
        for number, case in enumerate(cases, 1):
            own = [] if case.input is None else [f"Input {number}:\n{variable_text(case.input)}"]
            inputs += own
            outputs += [*(own if next_to_input else []), f"Output {number}:\n{case.text}"]
        output, given = "\n\n".join(outputs), "\n\n".join(inputs)
    examples = render_examples(call.request.examples, tag) if call.request else []
    return {
        "criterion": neutralise_tokens(first.criterion.render(first.shown)),
        **dict.fromkeys(("output", "outputs"), output),
        **dict.fromkeys(("input", "inputs"), given),
        "reference": call.reference,
        "context": call.context,
        "instruction": _instruction(cases, call),
        "material": _material(cases, call, tag),
        "examples": "".join(f"{block}\n\n" for block in examples),
        **call.further,
    }


def _instruction(cases: Sequence[Case], call: EvaluatorCall) -> str:
    criterion = cases[0].criterion
    lines = [_BATCH_RULE.format(count=len(cases))] if call.batch else []
    for number, case in enumerate(cases, 1):
        lines += [f"Output {number}: {one}" if call.batch else one for one in rules_of(case.submission)]
    lines.append(neutralise_tokens(criterion.instruction()))
    if call.request is None:
        lines.append(_DECIDE)
    return "\n".join(lines)


def _tag(cases: Sequence[Case], call: EvaluatorCall) -> str:
    given = [None if one is None else variable_text(one) for one in (call.context, call.reference)]
    own = [text for case in cases for text in (variable_text(case.input), case.text)]
    thoughts = [case.submission.thinking for case in cases if case.submission.thinking is not None]
    return item_tag(*given, *own, *thoughts)


def _material(cases: Sequence[Case], call: EvaluatorCall, tag: str) -> str:
    """Return all inputs, each part between delimiters that its texts cannot contain."""
    parts = delimit_given({"context": call.context, "reference": call.reference}, tag)
    for at, case in enumerate(cases, 1):
        number = str(at) if call.batch else None
        parts += delimit_given({"query": case.input, "thinking": case.submission.thinking}, tag, number)
        if not case.shown.names:
            parts.append(delimit("submission", case.text, tag, name=number))
        for place, name in enumerate(case.shown.names):
            label = f"{at} {candidate_id(place)}" if call.batch else candidate_id(place)
            parts.append(delimit("candidate", case.submission.candidates[name], tag, name=label))
    return "\n\n".join(parts)
