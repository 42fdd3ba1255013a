"""Conversion of promptfoo's model-graded assertions to criteria."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from autorubric.datasets.importers import number_at
from autorubric.support.objects import Json
from autorubric.support.reading_errors import Faults, FilePath, shortened

_VARIABLE: Final = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+)*)\s*-?\}\}")
_FILE: Final = "file://"
_MISSING: Final = object()
_RATING: Final[Mapping[str, Json]] = {"type": "numerical_rating", "min_value": 0.0, "max_value": 1.0}

# The keys of `options.factuality`, with the label and the default score of each category.
_FACTUALITY: Final = (
    ("subset", "consistent with the reference, with fewer facts", 1.0),
    ("superset", "consistent with the reference, with more facts", 1.0),
    ("agree", "the same facts as the reference", 1.0),
    ("disagree", "contradicts the reference", 0.0),
    ("differButFactual", "differs from the reference, but not in any fact that matters", 1.0),
)

_OTHER_FILE: Final = "the text is in another file, which is not imported"
_NO_JUDGE: Final = "computed by promptfoo without a model"
_EMBEDDINGS: Final = "computed from embeddings"
_SERVICE: Final = "uses a classifier or moderation service instead of a judge"
_SEVERAL: Final = "compares several outputs"
_TRACES: Final = "requires traces of the run"
_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("equals", "contains", "icontains", "regex", "starts-with", "contains-any", "contains-all"),
            *("icontains-any", "icontains-all", "is-json", "contains-json", "contains-html", "is-html"),
            *("is-sql", "contains-sql", "is-xml", "contains-xml", "is-refusal", "javascript", "python"),
            *("ruby", "webhook", "rouge-n", "bleu", "gleu", "meteor", "levenshtein", "latency", "cost"),
            *("perplexity", "perplexity-score", "finish-reason", "word-count", "tool-call-f1"),
            *("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"),
        ),
        _NO_JUDGE,
    ),
    "similar": _EMBEDDINGS,
    **dict.fromkeys(("classifier", "moderation", "guardrails"), _SERVICE),
    **dict.fromkeys(("select-best", "max-score"), _SEVERAL),
    "search-rubric": "requires a judge that searches the web",
    "agent-rubric": "requires an agent that inspects a workspace",
    "human": "decided by a human",
}


class Imported(NamedTuple):
    """An assertion in the format of a rubric.

    threshold: Minimum score, from 0 to 1, for the assertion to pass; None if there is no threshold.
    """

    members: list[dict[str, Json]]
    threshold: float | None = None
    is_approximated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """The context of an assertion in a test."""

    values: Mapping[str, Any]
    prompt: str | None
    options: Mapping[str, Any]


def read_assert(given: Mapping[str, Any], test: Test, at: FilePath, faults: Faults) -> Imported | str | None:
    """Convert an assertion to criteria."""
    kind = str(given["type"]).removeprefix("not-")
    reader = _READERS.get(kind)
    if reader is None:
        return _reason(kind)
    before = len(faults)
    found = reader(_AssertContext(given, kind, given["type"] != kind, test, at, faults))
    return None if len(faults) > before else found


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Replace the variables in a text by their values; variables without a value are not changed."""

    def value(found: re.Match[str]) -> str:
        held = _value_of(found[1], values)
        return found[0] if held is _MISSING else str(held)

    return _VARIABLE.sub(value, text)


def missing_variables(text: str, values: Mapping[str, Any]) -> list[str]:
    """Return the names of the variables in a text that have no value."""
    names = dict.fromkeys(_VARIABLE.findall(text))
    return [name for name in names if _value_of(name, values) is _MISSING]


def _value_of(name: str, values: Mapping[str, Any]) -> Any:
    held: Any = values
    for step in name.split("."):
        if not isinstance(held, Mapping) or step not in held:
            return _MISSING
        held = held[step]
    return held


def mapping_or_empty(given: Json) -> Mapping[str, Any]:
    """Return the value if it is a mapping, and otherwise an empty mapping."""
    return given if isinstance(given, Mapping) else {}


def _reason(kind: str) -> str:
    if kind.startswith(("trajectory:", "trace-")):
        return _TRACES
    return _REASONS.get(kind.partition(":")[0], "unknown type")


@dataclass(frozen=True, slots=True)
class _AssertContext:
    fields: Mapping[str, Any]
    kind: str
    is_inverse: bool
    test: Test
    at: FilePath
    faults: Faults

    def texts(self) -> list[str] | None:
        """Return the texts under `value`; None if a text is in another file."""
        value = self.fields.get("value")
        texts = value if isinstance(value, list) and value and self.kind == "g-eval" else [value]
        if any(isinstance(text, str) and text.startswith(_FILE) for text in texts):
            return None
        read: list[str] = []
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                message = f"value must be a non-empty string; got {shortened(text)}"
                self.faults.add((*self.at, "value"), message)
                return []
            read.append(filled(text, self.test.values))
        return read

    def threshold(self, default: float | None = None) -> float | None:
        """Return the assertion's threshold, converted to the score of the criterion."""
        if self.fields.get("threshold") is not None:
            default = number_at(self.fields, "threshold", 0.0, self.at, self.faults)
        return round(1.0 - default, 12) if default is not None and self.is_inverse else default

    def variable(self, name: str) -> str | None:
        """Return a variable as text, with lists joined; None if it is missing or in another file."""
        value = self.test.values.get(name)
        parts = value if isinstance(value, list) else [value]
        texts = [one for one in parts if isinstance(one, str) and one.strip() and not one.startswith(_FILE)]
        return "\n\n".join(texts) if texts and len(texts) == len(parts) else None

    def statement(self, text: str) -> dict[str, Json]:
        """Return the fields of a binary criterion."""
        return {"requirement": f"The submission does not meet this: {text}" if self.is_inverse else text}

    def rating(self, text: str) -> dict[str, Json]:
        """Return the fields of a rating from 0 to 1."""
        turned = "Rate the opposite of what follows: 1 minus the score that it asks for.\n"
        return {"requirement": (turned if self.is_inverse else "") + text, **_RATING}


def _llm_rubric(given: _AssertContext) -> Imported | str:
    texts = given.texts()
    if texts is None:
        return _OTHER_FILE
    threshold = given.threshold()
    make = given.statement if threshold is None else given.rating
    return Imported([make(text) for text in texts], threshold)


def _closed_qa(given: _AssertContext) -> Imported | str:
    texts = given.texts()
    return _OTHER_FILE if texts is None else Imported([given.statement(text) for text in texts])


def _g_eval(given: _AssertContext) -> Imported | str:
    texts = given.texts()
    if texts is None:
        return _OTHER_FILE
    return Imported([given.rating(text) for text in texts], given.threshold(0.7))


def _pi(given: _AssertContext) -> Imported | str:
    texts = given.texts()
    if texts is None:
        return _OTHER_FILE
    return Imported([given.rating(text) for text in texts], given.threshold(), is_approximated=True)


def _factuality(given: _AssertContext) -> Imported | str:
    texts = given.texts()
    if texts is None:
        return _OTHER_FILE
    scores = {key: score for key, _, score in _FACTUALITY}
    for options in (given.test.options, mapping_or_empty(given.fields.get("options"))):
        own = mapping_or_empty(options.get("factuality"))
        scores |= {
            key: number_at(own, key, score, (*given.at, "options", "factuality"), given.faults)
            for key, score in scores.items()
        }
    choices = [
        {"label": label, "value": 1.0 - scores[key] if given.is_inverse else scores[key]}
        for key, label, _ in _FACTUALITY
    ]
    ask = "How do the facts in the submission compare with those in the reference? Ignore style and wording."
    return Imported(
        [
            {"requirement": f"{ask}\nReference: {text}", "options": choices, "scale_type": "nominal"}
            for text in texts
        ]
    )


def _answer_relevance(given: _AssertContext) -> Imported | str:
    query = given.variable("query") or given.test.prompt
    if query is None:
        return "requires the variable 'query', or a single prompt in the file"
    ask = "To what degree does the submission answer the query, and nothing else?"
    rating = given.rating(f"{ask}\nQuery: {query}")
    return Imported([rating], given.threshold(0.7), is_approximated=True)


def _context(needed: Sequence[str], ask: str) -> Callable[[_AssertContext], Imported | str]:
    """Return a reader for an assertion about the context of a test, with these inputs in its requirement."""

    def read(given: _AssertContext) -> Imported | str:
        if given.fields.get("contextTransform") is not None:
            return "the context is in the provider's output (contextTransform)"
        parts = [ask]
        for name in needed:
            if name == "value":
                texts = given.texts()
                if texts is None:
                    return _OTHER_FILE
                parts += [f"Statements: {text}" for text in texts]
                continue
            text = given.variable(name)
            if text is None:
                return f"requires the variable {name!r} as a string in the file"
            parts.append(f"{name.capitalize()}: {text}")
        return Imported([given.rating("\n".join(parts))], given.threshold(), is_approximated=True)

    return read


_READERS: Final[Mapping[str, Callable[[_AssertContext], Imported | str]]] = {
    "llm-rubric": _llm_rubric,
    "model-graded-closedqa": _closed_qa,
    "g-eval": _g_eval,
    "pi": _pi,
    "factuality": _factuality,
    "model-graded-factuality": _factuality,
    "answer-relevance": _answer_relevance,
    "context-faithfulness": _context(
        ("query", "context"), "Which share of the statements in the submission does the context support?"
    ),
    "context-recall": _context(
        ("value", "context"),
        "This is about the context below, not the submission. Which share of the statements below does the "
        "context support?",
    ),
    "context-relevance": _context(
        ("query", "context"),
        "This is about the context below, not the submission. Which share of the context is needed to answer "
        "the query?",
    ),
    "conversation-relevance": lambda given: Imported(
        [given.rating("Which share of the assistant's messages is relevant to the messages before it?")],
        given.threshold(),
        is_approximated=True,
    ),
}
