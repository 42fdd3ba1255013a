"""What an evaluator is given, and the template that is used where none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from autorubric.criteria import BaseCriterion, Shown, candidate_id
from autorubric.critic._template import text_of
from autorubric.prompts import MATERIAL_RULE, delimit, item_tag
from autorubric.values import Submission

DEFAULT_TEMPLATE: Final = f"""\
Judge by one criterion, in the criterion's own words. {MATERIAL_RULE}

{{material}}

Criterion:
{{criterion}}

{{instruction}}
First look for the evidence, then decide. Reply with one JSON object and nothing else."""
"""Delimits what is judged; leaves out what is not given. Serves single and batch evaluation."""

VARIABLES: Final = ("criterion", "output", "outputs", "input", "inputs", "reference", "context")
OWN_VARIABLES: Final = ("instruction", "material")
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
        role: Who speaks: `"user"`.
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
        output: The output as given.
        input: What it answers; None where not given.
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
    def text(self) -> str:
        """The output as a template shows it; candidates that are compared stand under letters."""
        if not self.shown.names:
            return text_of(self.output)
        return "\n\n".join(
            f"Candidate {candidate_id(place)}:\n{self.submission.candidates[name]}"
            for place, name in enumerate(self.shown.names)
        )


def variables(
    cases: Sequence[Case],
    given: Mapping[str, Any],
    further: Mapping[str, Any],
    *,
    batch: bool,
    may_abstain: bool,
) -> dict[str, Any]:
    """The values of all template variables.

    Args:
        cases: The outputs.
        given: `reference` and `context`.
        further: The caller's own variables.
        batch: Whether the outputs are numbered, even if there is but one.
        may_abstain: Whether the reply may say that it cannot be judged.
    """
    criterion, shown = cases[0].criterion, cases[0].shown
    instruction = criterion.instruction() if may_abstain else f"{criterion.instruction()}\n{_DECIDE}"
    if batch:
        outputs = "\n\n".join(_numbered(case, number) for number, case in enumerate(cases, 1))
        inputs = "\n\n".join(
            f"Input {number}:\n{text_of(case.input)}"
            for number, case in enumerate(cases, 1)
            if case.input is not None
        )
        instruction = f"{_BATCH_RULE.format(count=len(cases))}\n{instruction}"
    else:
        outputs, inputs = cases[0].text, text_of(cases[0].input)
    values = {
        "criterion": criterion.render(shown),
        "output": outputs,
        "outputs": outputs,
        "input": inputs,
        "inputs": inputs,
        **given,
        **further,
    }
    values.setdefault("instruction", instruction)
    values.setdefault("material", _material(cases, given, batch=batch))
    return values


def _numbered(case: Case, number: int) -> str:
    before = "" if case.input is None else f"Input {number}:\n{text_of(case.input)}\n\n"
    return f"{before}Output {number}:\n{case.text}"


def _material(cases: Sequence[Case], given: Mapping[str, Any], *, batch: bool) -> str:
    """All that is given, each part between delimiters that its texts cannot have been written to contain."""
    context, reference = (
        None if given[name] is None else text_of(given[name]) for name in ("context", "reference")
    )
    own = [text for case in cases for text in (text_of(case.input), case.text)]
    tag = item_tag(context, reference, *own)
    parts = []
    if context is not None:
        parts.append(delimit("context", context, tag))
    if reference is not None:
        parts.append(delimit("reference", reference, tag))
    for number, case in enumerate(cases, 1):
        parts += _delimited(case, tag, str(number) if batch else None)
    return "\n\n".join(parts)


def _delimited(case: Case, tag: str, number: str | None) -> list[str]:
    parts = []
    if case.input is not None:
        parts.append(delimit("query", text_of(case.input), tag, name=number))
    if not case.shown.names:
        return [*parts, delimit("submission", case.text, tag, name=number)]
    for place, name in enumerate(case.shown.names):
        letter = candidate_id(place)
        label = letter if number is None else f"{number} {letter}"
        parts.append(delimit("candidate", case.submission.candidates[name], tag, name=label))
    return parts
