"""The one reply that a critique is read from: a score for each criterion, issues, summary, suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from autorubric._files import shortened
from autorubric.criteria import BaseCriterion, Shown, TextField, object_schema
from autorubric.errors import ReplyError
from autorubric.tool._request import EvaluationMode
from autorubric.tool._response import Issue, Severity
from autorubric.tool._texts import instruction_text
from autorubric.values import Answer, Json, Level

_SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
_LONGEST_LOCATION: Final = 500
_TEXT: Final = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a reply says.

    Attributes:
        answers: The answer to each criterion, by name.
        issues: What is wrong, in the reply's order.
        summary: The critique in a sentence or two.
        suggestions: What to do next.
    """

    answers: Mapping[str, Answer]
    issues: tuple[Issue, ...] = ()
    summary: str = ""
    suggestions: tuple[str, ...] = ()


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow")

    criterion: str


class CritiqueSheet(BaseCriterion):
    """Several criteria as one question, with what is wrong beside the scores. Measures nothing itself.

    Attributes:
        parts: The criteria; each reads its own answer.
        mode: What is asked beside the scores.
        content_note: What the critic is told of the content.
        max_issues: Most issues of one criterion.
    """

    level: ClassVar[Level] = "text"

    parts: tuple[BaseCriterion, ...] = Field(exclude=True)
    mode: EvaluationMode = "detailed"
    content_note: str = ""
    max_issues: int = 10

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the criteria."""
        return tuple(part.name or "" for part in self.parts)

    @cached_property
    def evaluation_schema(self) -> type[BaseModel]:
        """The pydantic class of a reply; each entry of `criteria_scores` has its criterion's own fields."""
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
        """The JSON schema sent to a model; criteria of one shape share an entry's schema."""
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
            "severity": {**_TEXT, "enum": list(_SEVERITIES)},
            **dict.fromkeys(("location", "description", "suggestion"), _TEXT),
        }
        return {
            "issues": {"type": "array", "items": object_schema(issue)},
            "summary": _TEXT,
            "suggestions": {"type": "array", "items": _TEXT},
        }

    def render(self, shown: Shown | None = None) -> str:
        """The criteria as a judge reads them."""
        return "\n\n".join(part.render(Shown()) for part in self.parts)

    def instruction(self) -> str:
        """What is known of the content, and how to answer."""
        hows: dict[str, list[str]] = {}
        for part in self.parts:
            hows.setdefault(part.instruction(), []).append(part.name or "")
        return instruction_text(self.content_note, hows, self.mode, self.max_issues)

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """The reply itself, once `findings` can read it.

        Raises:
            ReplyError: It cannot; the message can be sent back to the judge.
        """
        payload = reply.model_dump() if isinstance(reply, BaseModel) else reply
        found = self.findings(payload)
        return Answer(code="critique", reason=found.summary, evaluation=dict(payload))

    def findings(self, payload: Json) -> Findings:
        """What a reply says.

        Raises:
            ReplyError: A criterion has no readable answer, or an issue is none; all faults are named.
        """
        if not isinstance(payload, Mapping):
            raise ReplyError(f"{shortened(payload)} is no critique; give one object")
        faults: list[str] = []
        answers = dict(self._answers(payload.get("criteria_scores"), faults))
        faults += [f"criteria_scores has no {name!r}" for name in self.names if name not in answers]
        detailed = self.mode == "detailed"
        issues = tuple(self._issues(payload.get("issues"), faults)) if detailed else ()
        told = _text(payload.get("summary")) if self.mode != "score_only" else ""
        suggestions = tuple(_texts(payload.get("suggestions"), faults)) if detailed else ()
        if faults:
            raise ReplyError("; ".join(dict.fromkeys(faults)))
        return Findings(answers=answers, issues=issues, summary=told, suggestions=suggestions)

    def _answers(self, given: Json, faults: list[str]) -> Iterator[tuple[str, Answer]]:
        seen: set[str] = set()
        for name, entry in _entries(given, faults):
            if name not in self.names or name in seen:
                faults.append(f"criteria_scores: {shortened(name)} is unknown or repeated")
                continue
            seen.add(name)
            try:
                yield name, _read_part(self.parts[self.names.index(name)], entry)
            except ReplyError as error:
                faults.append(str(error))
                yield name, Answer(code=None, cannot_assess=True)

    def _issues(self, given: Json, faults: list[str]) -> Iterator[Issue]:
        for number, entry in enumerate(_listed(given, "issues", faults), 1):
            if not isinstance(entry, Mapping):
                faults.append(f"issue {number} is {shortened(entry)}; give an object")
                continue
            severity = str(entry.get("severity", "")).strip().lower()
            description = _text(entry.get("description"))
            if entry.get("criterion") not in self.names:
                named = shortened(entry.get("criterion"))
                faults.append(f"issue {number}: {named} is no criterion; allowed: {', '.join(self.names)}")
            elif severity not in _SEVERITIES:
                faults.append(f"issue {number}: severity is one of {', '.join(_SEVERITIES)}")
            elif not description:
                faults.append(f"issue {number} has no description")
            else:
                yield Issue(
                    criterion=entry["criterion"],
                    severity=severity,
                    location=_text(entry.get("location"))[:_LONGEST_LOCATION] or None,
                    description=description,
                    suggestion=_text(entry.get("suggestion")) or None,
                )


def most_severe(issues: Sequence[Issue], most: int) -> tuple[Issue, ...]:
    """The issues without those that are too many for one criterion, the least severe first to go."""
    ranked = sorted(range(len(issues)), key=lambda at: -_SEVERITIES.index(issues[at].severity))
    kept: set[int] = set()
    counts: dict[str, int] = {}
    for at in ranked:
        name = issues[at].criterion
        if counts.get(name, 0) < most:
            counts[name] = counts.get(name, 0) + 1
            kept.add(at)
    return tuple(issue for at, issue in enumerate(issues) if at in kept)


def _entries(given: Json, faults: list[str]) -> Iterator[tuple[str, Json]]:
    """Names with what was answered, from a list of entries or a mapping of names."""
    if isinstance(given, Mapping):
        yield from ((str(name), entry) for name, entry in given.items())
        return
    for number, entry in enumerate(_listed(given, "criteria_scores", faults), 1):
        if isinstance(entry, Mapping) and "criterion" in entry:
            yield str(entry["criterion"]), {k: v for k, v in entry.items() if k != "criterion"}
        else:
            faults.append(f'criteria_scores: entry {number} is no object with a "criterion"')


def _read_part(part: BaseCriterion, entry: Json) -> Answer:
    if entry is None:
        return Answer(code=None, cannot_assess=True)
    if not isinstance(entry, Mapping):
        return part.read(entry)
    if "score" in entry and entry["score"] is None:
        return Answer(code=None, cannot_assess=True, reason=_text(entry.get("explanation")))
    texts = {name: "" for name, field in part.eval_fields.items() if isinstance(field, TextField)}
    return part.read({**texts, **entry})


def _listed(given: Json, name: str, faults: list[str]) -> Sequence[Json]:
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return given
    faults.append(f"{name} is {shortened(given)}; give a list")
    return ()


def _texts(given: Json, faults: list[str]) -> list[str]:
    return [text for text in map(_text, _listed(given, "suggestions", faults)) if text]


def _text(given: Json) -> str:
    return given.strip() if isinstance(given, str) else ""
