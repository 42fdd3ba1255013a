"""What an evaluator is given, and the template that is used where none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import BaseModel

from autorubric._chat_tokens import neutralise_tokens
from autorubric.criteria import BaseCriterion, Shown, candidate_id
from autorubric.critic._template import text_of
from autorubric.judges import JudgeRequest
from autorubric.prompts import MATERIAL_RULE, delimit, item_tag, render_examples
from autorubric.values import Submission

DEFAULT_TEMPLATE: Final = f"""\
Judge by one criterion, in the criterion's own words. {MATERIAL_RULE}

{{material}}

Criterion:
{{criterion}}

{{examples}}{{instruction}}
First look for the evidence, then decide. Reply with one JSON object and nothing else."""
"""Delimits what is judged; leaves out what is not given. Serves single and batch evaluation."""

VARIABLES: Final = ("criterion", "output", "outputs", "input", "inputs", "reference", "context")
OWN_VARIABLES: Final = ("instruction", "material", "examples")
"""Further variables; a keyword argument of the same name goes before."""

_BATCH_RULE: Final = (
    'There are {count} outputs, numbered. Reply with {{"evaluations": [...]}}, one object for each output, '
    "in their order. Judge every output by itself."
)


_DECIDE: Final = "Decide in any case; cannot_assess is to be left out here."
"""An evaluation has no word for an abstention; only in a panel may there be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What an evaluator is asked.

    Attributes:
        role: The role of the message: `"user"`.
        content: The filled template.
        format_override: The pydantic class that the reply is to be an instance of.
    """

    role: str
    content: str
    format_override: type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One output to judge.

    Attributes:
        output: The output as a template is given it.
        input: The prompt that it answers; None if not given.
        submission: The output as judges take it.
        criterion: The criterion as it faces the output.
        shown: How the criterion is shown.
    """

    output: Any
    input: Any
    submission: Submission
    criterion: BaseCriterion
    shown: Shown

    @property
    def value(self) -> Any:
        """Return the value that a template shows; compared candidates have letters."""
        if not self.shown.names:
            return self.output
        return "\n\n".join(
            f"Candidate {candidate_id(place)}:\n{self.submission.candidates[name]}"
            for place, name in enumerate(self.shown.names)
        )

    @property
    def text(self) -> str:
        """The output as a text."""
        return text_of(self.value)

    def cut_to(self, submission: Submission) -> Case:
        """Return the case with a shortened submission."""
        if submission is self.submission:
            return self
        return replace(self, submission=submission, output=submission.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The arguments of a call apart from the outputs.

    Attributes:
        reference: The reference to compare with; None if there is none.
        context: What else is to be known.
        further: The caller's own variables.
        batch: Whether the outputs are numbered, even if there is but one.
        request: The request of a panel; None if an evaluation is asked for.
    """

    reference: Any
    context: Any
    further: Mapping[str, Any] = field(default_factory=dict)
    batch: bool = False
    request: JudgeRequest | None = None


COMPOSED: Final = frozenset({"criterion", "instruction", "material", "examples"})
"""Template variables that the library composes; the others hold what callers give."""


def variables(cases: Sequence[Case], call: Call, *, beside: bool) -> dict[str, Any]:
    """Return the values of all template variables.

    Args:
        cases: The outputs.
        call: What else is given.
        beside: Whether in a batch each output follows its input.
    """
    first = cases[0]
    output, given = first.value, first.input
    if call.batch:
        output = "\n\n".join(_numbered(case, number, beside) for number, case in enumerate(cases, 1))
        given = "\n\n".join(
            _numbered_input(case, number) for number, case in enumerate(cases, 1) if case.input is not None
        )
    return {
        "criterion": neutralise_tokens(first.criterion.render(first.shown)),
        **dict.fromkeys(("output", "outputs"), output),
        **dict.fromkeys(("input", "inputs"), given),
        "reference": call.reference,
        "context": call.context,
        "instruction": _instruction(first.criterion, call, len(cases)),
        "material": _material(cases, call),
        "examples": _examples(cases, call),
        **call.further,
    }


def _instruction(criterion: BaseCriterion, call: Call, count: int) -> str:
    lines = [_BATCH_RULE.format(count=count)] if call.batch else []
    lines.append(neutralise_tokens(criterion.instruction()))
    if call.request is None:
        lines.append(_DECIDE)
    return "\n".join(lines)


def _numbered(case: Case, number: int, beside: bool) -> str:
    own = f"Output {number}:\n{case.text}"
    return own if case.input is None or not beside else f"{_numbered_input(case, number)}\n\n{own}"


def _numbered_input(case: Case, number: int) -> str:
    return f"Input {number}:\n{text_of(case.input)}"


def _tag(cases: Sequence[Case], call: Call) -> str:
    given = [None if one is None else text_of(one) for one in (call.context, call.reference)]
    own = [text for case in cases for text in (text_of(case.input), case.text)]
    thoughts = [case.submission.thinking for case in cases if case.submission.thinking is not None]
    return item_tag(*given, *own, *thoughts)


def _examples(cases: Sequence[Case], call: Call) -> str:
    """Return the judged examples of a panel, with the blank line that sets them off from what follows."""
    shown = render_examples(call.request.examples, _tag(cases, call)) if call.request else []
    return "".join(f"{block}\n\n" for block in shown)


def _material(cases: Sequence[Case], call: Call) -> str:
    """Return all inputs, each part between delimiters that its texts cannot contain."""
    tag = _tag(cases, call)
    parts = []
    if call.context is not None:
        parts.append(delimit("context", text_of(call.context), tag))
    if call.reference is not None:
        parts.append(delimit("reference", text_of(call.reference), tag))
    for number, case in enumerate(cases, 1):
        parts += _delimited(case, tag, str(number) if call.batch else None)
    return "\n\n".join(parts)


def _delimited(case: Case, tag: str, number: str | None) -> list[str]:
    parts = []
    if case.input is not None:
        parts.append(delimit("query", text_of(case.input), tag, name=number))
    if case.submission.thinking is not None:
        parts.append(delimit("thinking", case.submission.thinking, tag, name=number))
    if not case.shown.names:
        return [*parts, delimit("submission", case.text, tag, name=number)]
    for place, name in enumerate(case.shown.names):
        letter = candidate_id(place)
        label = letter if number is None else f"{number} {letter}"
        parts.append(delimit("candidate", case.submission.candidates[name], tag, name=label))
    return parts
