"""The prompt and the reply format of a critique: scores, issues, a summary and suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from autorubric.apps.tool.request import EvaluationMode
from autorubric.apps.tool.response import (
    SEVERITIES,
    CriterionNames,
    Issue,
    plain_text,
    read_issues,
    read_suggestions,
)
from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.declaration import object_schema
from autorubric.criteria.ratings import NumericalRatingCriterion
from autorubric.criteria.values import Answer, Level
from autorubric.errors import ReplyError
from autorubric.judges.prompts import MATERIAL_RULE
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

TEMPLATE: Final = f"""\
You are a careful, impartial critic of work by agents and people. Evaluate the submission. The context, if \
there is any, describes its purpose. Only read and evaluate; do not perform any actions. {MATERIAL_RULE}

{{material}}

Criteria:

{{criterion}}

{{instruction}}
First look for the evidence, then decide. Reply with one JSON object and nothing else."""
"""The prompt template for all critics, to which the form adds the criteria and the instruction."""

_SCORES: Final = (
    'Judge each criterion separately. "criteria_scores" has one object for each criterion, with its name as '
    '"criterion" and these fields.'
)
_ISSUES: Final = (
    '"issues" lists what is wrong, at most {most} per criterion, worst first. Each issue has a "criterion" '
    '(the one it counts against), a "severity" (low, medium, high or critical), a "location" (a line, a '
    'range or a file in the submission; empty if there is none), a "description" that can be checked, and a '
    '"suggestion" for a fix. List only problems that you can point to. An empty list is a valid answer.'
)
_SUMMARY: Final = '"summary" states in one or two sentences what matters most.'
_SUGGESTIONS: Final = '"suggestions" lists what to do next, most useful first; it can be empty.'


_TEXT: Final = {"type": "string"}
_BESIDE: Final = frozenset({"issues", "summary", "suggestions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueFindings:
    """The parsed contents of a reply."""

    answers: Mapping[str, Answer]  # by the names of the criteria
    issues: tuple[Issue, ...] = ()
    summary: str = ""
    suggestions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # parts of the reply that were omitted, with the reasons


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow")

    criterion: str


class CritiqueForm(BaseCriterion):
    """A criterion that combines several criteria in one question, which may also ask for issues."""

    level: ClassVar[Level] = "text"

    # Combined criteria, each of which parses its own answer.
    parts: tuple[BaseCriterion, ...] = Field(exclude=True)
    mode: EvaluationMode = "detailed"  # information to ask for in addition to the scores
    content_note: str = ""  # a note about the content for the critic
    max_issues: int = 10  # maximum number of issues per criterion
    # Whether `{"passed": …}` is accepted for a rating, as its highest or lowest value.
    is_pass_fail: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the combined criteria."""
        return tuple(part.name or "" for part in self.parts)

    @cached_property
    def _known_names(self) -> CriterionNames:
        return CriterionNames(self.names)

    @cached_property
    def evaluation_schema(self) -> type[BaseModel]:
        """Return the pydantic model of a reply, whose entries may have any fields besides `criterion`."""
        fields: dict[str, Any] = {"criteria_scores": (list[_Entry], Field(description="one a criterion"))}
        if self.mode == "detailed":
            fields["issues"] = (list[Issue], Field(default_factory=list))
        if self.mode != "score_only":
            fields["summary"] = (str, "")
        if self.mode == "detailed":
            fields["suggestions"] = (list[str], Field(default_factory=list))
        return create_model("Critique", **fields)

    @cached_property
    def wire_schema(self) -> dict[str, Json]:
        """Return the JSON schema sent to a model; criteria with identical answer fields share an entry."""
        shapes: list[tuple[Mapping[str, Json], list[str]]] = []
        for part in self.parts:
            properties = part.wire_schema["properties"]
            same = next((names for shape, names in shapes if shape == properties), None)
            if same is None:
                shapes.append((properties, [part.name or ""]))
            else:
                same.append(part.name or "")
        entries = [
            object_schema({"criterion": {**_TEXT, "enum": names}, **properties})
            for properties, names in shapes
        ]
        items = entries[0] if len(entries) == 1 else {"anyOf": entries}
        return object_schema({"criteria_scores": {"type": "array", "items": items}, **self._beside()})

    def _beside(self) -> dict[str, Json]:
        if self.mode == "score_only":
            return {}
        if self.mode == "summary":
            return {"summary": _TEXT}
        issue = {
            "criterion": {**_TEXT, "enum": list(self.names)},
            "severity": {**_TEXT, "enum": list(SEVERITIES)},
            **dict.fromkeys(("location", "description", "suggestion"), _TEXT),
        }
        return {
            "issues": {"type": "array", "items": object_schema(issue)},
            "summary": _TEXT,
            "suggestions": {"type": "array", "items": _TEXT},
        }

    def render(self, shown: Shown | None = None) -> str:
        """Return the text of the criteria for the judge."""
        return "\n\n".join(part.render(Shown()) for part in self.parts)

    def instruction(self) -> str:
        """Return the note about the content, and the format of the answer."""
        hows: dict[str, list[str]] = {}
        for part in self.parts:
            hows.setdefault(part.instruction(), []).append(part.name or "")
        if len(hows) == 1:
            answers = list(hows)
        else:
            answers = [f"- For {', '.join(names)}: {how}" for how, names in hows.items()]
        lines = [self.content_note, _SCORES, *answers]
        if self.mode == "detailed":
            lines.append(_ISSUES.format(most=self.max_issues))
        if self.mode != "score_only":
            lines.append(_SUMMARY)
        if self.mode == "detailed":
            lines.append(_SUGGESTIONS)
        return "\n".join(line for line in lines if line)

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Check that `findings` can parse the reply, and return it as the evaluation of an answer."""
        payload = reply.model_dump() if isinstance(reply, BaseModel) else reply
        found = self.findings(payload)
        return Answer(code="critique", reason=found.summary, evaluation=dict(payload))

    def findings(self, payload: Json) -> CritiqueFindings:
        """Parse the contents of a reply."""
        if not isinstance(payload, Mapping):
            raise ReplyError(f"{short_repr(payload)} is not a critique; return one object")
        faults: list[str] = []
        notes: list[str] = []
        answers = self._answers(self._scores(payload), faults, notes)
        faults += [f"criteria_scores has no {name!r}" for name in self.names if name not in answers]
        if faults:
            raise ReplyError("; ".join(dict.fromkeys(faults)))
        detailed = self.mode == "detailed"
        return CritiqueFindings(
            answers=answers,
            issues=read_issues(payload.get("issues"), self._known_names, notes) if detailed else (),
            summary=plain_text(payload.get("summary")) if self.mode != "score_only" else "",
            suggestions=read_suggestions(payload.get("suggestions"), notes) if detailed else (),
            notes=tuple(notes),
        )

    def _scores(self, payload: Mapping[str, Json]) -> Json:
        """Return the scores of a reply, also from outside `criteria_scores` if they are unambiguous."""
        if "criteria_scores" in payload:
            return payload["criteria_scores"]
        rest = {key: value for key, value in payload.items() if key not in _BESIDE}
        if named := {key: value for key, value in rest.items() if self._known_names.find(key)}:
            return named
        return {self.names[0]: rest} if rest and len(self.names) == 1 else None

    def _answers(self, given: Json, faults: list[str], notes: list[str]) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for named, entry in self._entries(given, faults):
            name = self._known_names.find(named)
            if name is None:
                notes.append(f"score omitted: criterion {short_repr(named)} was not requested")
                continue
            try:
                answer = _read_part(self.parts[self.names.index(name)], entry, self.is_pass_fail)
            except ReplyError as error:
                faults.append(str(error))
                answer = Answer(code=None, cannot_assess=True)
            if found.setdefault(name, answer).code != answer.code:
                faults.append(f"criteria_scores has two different answers for {name!r}; return one")
        return found

    def _entries(self, given: Json, faults: list[str]) -> Iterator[tuple[str, Json]]:
        """Yield names with their answers from a list of entries or a mapping of names."""
        if isinstance(given, Mapping):
            yield from ((str(name), entry) for name, entry in given.items())
            return
        if given is None:
            return
        if not isinstance(given, list | tuple):
            faults.append(f"criteria_scores is {short_repr(given)}; return a list")
            return
        for number, entry in enumerate(given, 1):
            if isinstance(entry, Mapping) and "criterion" in entry:
                yield str(entry["criterion"]), {k: v for k, v in entry.items() if k != "criterion"}
            elif isinstance(entry, Mapping) and len(self.names) == len(given) == 1:
                yield self.names[0], entry
            else:
                faults.append(f'criteria_scores: entry {number} is not an object with a "criterion"')


def _read_part(part: BaseCriterion, entry: Json, is_pass_fail: bool) -> Answer:
    if entry is None:
        return Answer(code=None, cannot_assess=True)
    if isinstance(entry, Mapping) and "score" in entry and entry["score"] is None:
        return Answer(code=None, cannot_assess=True, reason=plain_text(entry.get("explanation")))
    if is_pass_fail and isinstance(part, NumericalRatingCriterion) and isinstance(entry, Mapping):
        passed = entry.get("passed")
        if isinstance(passed, bool) and "score" not in entry:
            rest = {key: value for key, value in entry.items() if key != "passed"}
            entry = {**rest, "score": part.max_value if passed else part.min_value}
    return part.read(entry)
