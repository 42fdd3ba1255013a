"""Importer for promptfoo tests, which converts the model-graded assertions of each test to a rubric."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.importers import Number, Submissions, check_submissions
from autorubric.datasets.item import DataItem
from autorubric.errors import DatasetError
from autorubric.rubric.read import free_name
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json, is_number
from autorubric.support.read import Document, read_structured
from autorubric.support.reading_errors import Faults, FilePath, short_repr

_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_NOTHING_LEFT: Final = "without a supported assertion"


def from_promptfoo(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Create a dataset from a promptfoo configuration (YAML or JSON), with one item per test.

    Each model-graded assertion in a test, its assert-sets or `defaultTest` becomes a criterion that is named
    after the assertion's `metric` and has its `weight`:

    - `llm-rubric`: a binary criterion, or with a `threshold` a rating from 0 to 1.
    - `model-graded-closedqa`: a binary criterion.
    - `g-eval`: a rating from 0 to 1 or, for a list of values, a group of ratings scored by their mean.
    - `factuality`: a choice among five relations to the reference, with the scores in `options.factuality`;
      by default, the score is 0 for a contradiction and 1 for the other relations.
    - `answer-relevance`, `context-faithfulness`, `context-recall`, `context-relevance`,
      `conversation-relevance` and `pi`: a rating from 0 to 1. promptfoo computes these from embeddings,
      sentence counts or a scoring service, so scores differ; a warning lists these assertions.

    With the prefix `not-`, the requirement is inverted and the score is 1 minus the assertion's score.
    `{{variables}}` are replaced by the test's `vars`; a warning lists variables without a value. If the file
    has a single prompt, it becomes the prompt of the items; if there are several, a warning is issued. The
    item's metadata contains `vars`, the `threshold` of the test, and `thresholds` by criterion or group,
    including promptfoo's defaults other than 0. With `not-`, a threshold is replaced by 1 minus its value.

    Other assertions, and tests without a supported assertion, are skipped with a warning that states why.
    The dataset's metadata contains `left_out` and `approximated`, the numbers of such assertions by type.

    Args:
        path: Path of the file.
        submissions: Outputs by item id. The id is the test's `description` if it is unique, and otherwise the
            position of the test (from 0) as a string.

    Raises:
        DatasetError: If the file cannot be read or has errors. All errors are reported with line numbers.
        ArgumentError: If `submissions` contains items that are not in the file.
    """
    document = read_structured(path, suffixes=_SUFFIXES, error=DatasetError)
    reader = _PromptfooReader(document, submissions or {})
    items = reader.items()
    check_submissions(submissions or {}, [item.id or "" for item in items], str(path))
    if reader.reasons:
        skipped = "; ".join(f"{_format_counts(n)} ({reason})" for reason, n in reader.reasons.items())
        warnings.warn(f"{path}: skipped {skipped}", stacklevel=2)
    if reader.approximated:
        ratings = f"{_format_counts(reader.approximated)}; promptfoo computes their scores differently"
        warnings.warn(f"{path}: imported as judge ratings: {ratings}", stacklevel=2)
    if reader.n_prompts > 1:
        warnings.warn(
            f"{path}: items have no prompt because the file has {reader.n_prompts} prompts; "
            "keep only one prompt in the file",
            stacklevel=2,
        )
    if reader.unfilled:
        unfilled = _format_counts(reader.unfilled)
        warnings.warn(f"{path}: variables without a value were not replaced: {unfilled}", stacklevel=2)
    found = {"left_out": dict(reader.left_out), "approximated": dict(reader.approximated)}
    metadata: dict[str, Json] = {key: counts for key, counts in found.items() if counts}
    return RubricDataset(items=items, name=Path(path).stem, metadata=metadata)


class _PromptfooReader:
    def __init__(self, document: Document, submissions: Submissions) -> None:
        self._document = document
        self._faults: Faults = document.faults()
        self._submissions = submissions
        self.left_out: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {}
        self.approximated: Counter[str] = Counter()
        self.unfilled: Counter[str] = Counter()
        self.n_prompts = 0

    def items(self) -> list[DataItem]:
        """Return an item for each test that has an assertion for judges."""
        data = self._document.data
        config = {"tests": data} if isinstance(data, list) else data
        if not isinstance(config, Mapping) or not isinstance(config.get("tests"), list):
            message = "a promptfoo file must have 'tests', a list of {'vars', 'assert'} in the same file"
            raise DatasetError.whole(self._document.source, message)
        named = [test for test in config["tests"] if isinstance(test, Mapping)]
        default = config.get("defaultTest") or {}
        shared = {"assert"} & _mapping_or_empty(default).keys()
        if len(named) == len(config["tests"]) and all(
            not {"vars", "assert"} & (test.keys() | shared) or {"criteria", "input"} & test.keys()
            for test in named
        ):
            keys = ", ".join(dict.fromkeys(str(key) for test in named for key in test)) or "none"
            message = "not a promptfoo file: no test has 'vars' or 'assert' without 'criteria' or 'input'"
            raise DatasetError.whole(self._document.source, f"{message}; found: {keys}")
        if not isinstance(default, Mapping):
            self._faults.add(("defaultTest",), f"a test must be a mapping; got {short_repr(default)}")
            default = {}
        prompts = config.get("prompts")
        self.n_prompts = len(prompts) if isinstance(prompts, list) else 0
        prefix: FilePath = () if isinstance(data, list) else ("tests",)
        tests = [((*prefix, place), test) for place, test in enumerate(config["tests"])]
        names = Counter(str(test.get("description")) for _, test in tests if isinstance(test, Mapping))
        found = []
        for place, (at, test) in enumerate(tests):
            if not isinstance(test, Mapping):
                self._faults.add(at, f"a test must be a mapping with 'assert'; got {short_repr(test)}")
                continue
            called = test.get("description")
            item_id = called if isinstance(called, str) and called and names[called] == 1 else str(place)
            if (item := self._item(test, default, item_id, at, _prompt(config))) is not None:
                found.append(item)
        self._faults.raise_as(DatasetError)
        return found

    def _item(
        self,
        test: Mapping[str, Any],
        default: Mapping[str, Any],
        item_id: str,
        at: FilePath,
        prompt: str | None,
    ) -> DataItem | None:
        values, options = (
            {**_mapping_or_empty(default.get(key)), **_mapping_or_empty(test.get(key))}
            for key in ("vars", "options")
        )
        prompt = None if prompt is None else _fill_variables(prompt, values)
        context = _AssertionReader(values, prompt, options, self._faults)
        criteria: list[dict[str, Json]] = []
        thresholds: dict[str, float] = {}
        for place, given in self._asserts(test, default, at):
            self._add_criterion(given, place, context, criteria, thresholds)
        if not criteria:
            self._skip("test", _NOTHING_LEFT)
            return None
        before = len(self._faults)
        rubric = Rubric._read_inside(criteria, self._faults, at)
        if rubric is None or len(self._faults) > before:
            return None
        texts = [prompt or "", *(text for form in criteria for text in _texts(form))]
        names = {name for text in texts for name in _VARIABLE.findall(text)}
        self.unfilled.update(f"{{{{{name}}}}}" for name in names if _value_of(name, values) is _MISSING)
        own = test.get("threshold", default.get("threshold"))
        metadata = {"vars": values, "thresholds": thresholds, "threshold": own}
        return DataItem(
            id=item_id,
            submission=self._submissions.get(item_id),
            description=str(test.get("description") or ""),
            prompt=prompt,
            rubric=rubric,
            metadata={key: value for key, value in metadata.items() if value},
        )

    def _asserts(
        self, test: Mapping[str, Any], default: Mapping[str, Any], at: FilePath
    ) -> Iterable[tuple[FilePath, Any]]:
        """Yield the default assertions and a test's assertions, including assert-sets, with their paths."""
        for whole, place in ((default, ("defaultTest",)), (test, at)):
            for inner, one in self._list_at(whole, place):
                if isinstance(one, Mapping) and one.get("type") == "assert-set":
                    yield from self._list_at(one, inner)
                else:
                    yield inner, one

    def _list_at(self, given: Mapping[str, Any], at: FilePath) -> Iterator[tuple[FilePath, Any]]:
        found = given.get("assert")
        if isinstance(found, list):
            yield from (((*at, "assert", position), one) for position, one in enumerate(found))
        elif found is not None:
            self._faults.add((*at, "assert"), f"assert must be a list; got {short_repr(found)}")

    def _add_criterion(
        self,
        given: Json,
        at: FilePath,
        context: _AssertionReader,
        criteria: list[dict[str, Json]],
        thresholds: dict[str, float],
    ) -> None:
        if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
            self._faults.add(at, f"an assertion must be a mapping with 'type'; got {short_repr(given)}")
            return
        found = context.read(given, at)
        if not isinstance(found, _ImportedAssertion):
            if found is not None:
                self._skip(given["type"], found)
            return
        self.approximated.update([given["type"]] if found.is_approximated else [])
        taken = [str(inner["name"]) for one in criteria for inner in (one, *one.get("criteria", ()))]
        metric = given.get("metric")
        usable = metric if isinstance(metric, str) and metric.strip() else ""
        name = free_name(usable or f"criterion_{len(criteria) + 1}", taken)
        form: dict[str, Json] = found.members[0]
        if len(found.members) > 1:
            form = {"criteria": []}
            for place, member in enumerate(found.members, start=1):
                inner_name = free_name(f"{name}_{place}", [name, *taken])
                taken.append(inner_name)
                form["criteria"].append({"name": inner_name, **member})
        criteria.append({"name": name, "weight": given.get("weight", 1.0), **form})
        if found.threshold is not None:
            thresholds[name] = found.threshold

    def _skip(self, what: str, reason: str) -> None:
        self.left_out[what] += 1
        self.reasons.setdefault(reason, Counter())[what] += 1


def _texts(form: Json) -> Iterator[str]:
    """Yield every string in the mapping of a criterion."""
    if isinstance(form, str):
        yield form
    elif isinstance(form, Mapping | list):
        for part in form.values() if isinstance(form, Mapping) else form:
            yield from _texts(part)


def _prompt(config: Mapping[str, Any]) -> str | None:
    prompts = config.get("prompts")
    only = prompts[0] if isinstance(prompts, list) and len(prompts) == 1 else prompts
    if isinstance(only, Mapping):
        only = only.get("raw")
    return only if isinstance(only, str) and only and not only.startswith("file://") else None


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in sorted(counts.items()))


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

_FACTS: Final = (
    "How do the facts in the submission compare with those in the reference? Ignore style and wording."
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


def _fill_variables(text: str, values: Mapping[str, Any]) -> str:
    """Replace the variables in a text by their values; variables without a value are not changed."""

    def value(found: re.Match[str]) -> str:
        held = _value_of(found[1], values)
        return found[0] if held is _MISSING else str(held)

    return _VARIABLE.sub(value, text)


def _value_of(name: str, values: Mapping[str, Any]) -> Any:
    held: Any = values
    for step in name.split("."):
        if not isinstance(held, Mapping) or step not in held:
            return _MISSING
        held = held[step]
    return held


def _mapping_or_empty(given: Json) -> Mapping[str, Any]:
    """Return the value if it is a mapping, and otherwise an empty mapping."""
    return given if isinstance(given, Mapping) else {}


def _text_of(value: Json) -> str | None:
    """Return a variable as text, with lists joined; None if it is missing or in another file."""
    parts = value if isinstance(value, list) else [value]
    texts = [one for one in parts if isinstance(one, str) and one.strip() and not one.startswith(_FILE)]
    return "\n\n".join(texts) if texts and len(texts) == len(parts) else None


class _Kind(NamedTuple):
    """How assertions of a type become criteria."""

    ask: str = ""
    inputs: tuple[str, ...] = ("value",)  # what follows the question: texts under `value`, or variables
    threshold: float | None = None  # promptfoo's default
    is_rating: bool = True
    is_approximated: bool = True


_CONTEXT: Final = "This is about the context below, not the submission. "
_KINDS: Final[Mapping[str, _Kind]] = {
    "llm-rubric": _Kind(is_approximated=False),
    "model-graded-closedqa": _Kind(is_rating=False, is_approximated=False),
    "g-eval": _Kind(threshold=0.7, is_approximated=False),
    "pi": _Kind(),
    **dict.fromkeys(("factuality", "model-graded-factuality"), _Kind(is_rating=False, is_approximated=False)),
    "answer-relevance": _Kind(
        "To what degree does the submission answer the query, and nothing else?", ("query",), 0.7
    ),
    "context-faithfulness": _Kind(
        "Which share of the statements in the submission does the context support?", ("query", "context")
    ),
    "context-recall": _Kind(
        f"{_CONTEXT}Which share of the statements below does the context support?", ("value", "context")
    ),
    "context-relevance": _Kind(
        f"{_CONTEXT}Which share of the context is needed to answer the query?", ("query", "context")
    ),
    "conversation-relevance": _Kind(
        "Which share of the assistant's messages is relevant to the messages before it?", ()
    ),
}


class _Assertion(BaseModel):
    """An assertion of a test that becomes a criterion."""

    type: str
    value: Any = None
    metric: Any = None
    weight: Number = 1.0
    threshold: Number | None = None
    options: Any = None
    context_transform: Any = Field(default=None, alias="contextTransform")

    @property
    def is_inverse(self) -> bool:
        """Whether the requirement is inverted."""
        return self.type.startswith("not-")

    def threshold_of(self, kind: _Kind) -> float | None:
        """Return the threshold, converted to the score of the criterion."""
        found = kind.threshold if self.threshold is None else self.threshold
        return round(1.0 - found, 12) if found is not None and self.is_inverse else found

    def statement(self, text: str) -> dict[str, Json]:
        """Return the fields of a binary criterion."""
        return {"requirement": f"The submission does not meet this: {text}" if self.is_inverse else text}

    def rating(self, text: str) -> dict[str, Json]:
        """Return the fields of a rating from 0 to 1."""
        turned = "Rate the opposite of what follows: 1 minus the score that it asks for.\n"
        return {"requirement": (turned if self.is_inverse else "") + text, **_RATING}

    def choice(self, text: str, scores: Mapping[str, float]) -> dict[str, Json]:
        """Return the fields of a choice among the relations to a reference."""
        choices = [
            {"label": label, "value": 1.0 - scores[key] if self.is_inverse else scores[key]}
            for key, label, _ in _FACTUALITY
        ]
        return {"requirement": f"{_FACTS}\nReference: {text}", "options": choices, "scale_type": "nominal"}


class _ImportedAssertion(NamedTuple):
    """An assertion in the format of a rubric."""

    members: list[dict[str, Json]]
    # Minimum score, from 0 to 1, for the assertion to pass; None if there is no threshold.
    threshold: float | None
    is_approximated: bool


class _AssertionReader(NamedTuple):
    """The context in which an assertion is read."""

    values: Mapping[str, Any]
    prompt: str | None
    options: Mapping[str, Any]
    faults: Faults

    def read(self, given: Mapping[str, Any], at: FilePath) -> _ImportedAssertion | str | None:
        """Return an assertion, the reason why it is not supported, or None if it has errors."""
        name = str(given["type"]).removeprefix("not-")
        kind = _KINDS.get(name)
        if kind is None:
            traced = name.startswith(("trajectory:", "trace-"))
            return _TRACES if traced else _REASONS.get(name.partition(":")[0], "unknown type")
        before = len(self.faults)
        one = self.faults.validate(_Assertion, given, at)
        if one is None:
            return None
        texts = self._requirements(one, kind, at)
        if isinstance(texts, str):
            return texts
        threshold = one.threshold_of(kind) if kind.is_rating else None
        make: Callable[[str], dict[str, Json]] = one.rating
        if name.endswith("factuality"):
            make = partial(one.choice, scores=self._scores(one, at))
        elif not kind.is_rating or (name == "llm-rubric" and threshold is None):
            make = one.statement
        found = _ImportedAssertion([make(text) for text in texts], threshold, kind.is_approximated)
        return found if len(self.faults) == before else None

    def _requirements(self, one: _Assertion, kind: _Kind, at: FilePath) -> list[str] | str:
        """Return the texts of the criteria, or the reason why an input is not available."""
        if "context" in kind.inputs and one.context_transform is not None:
            return "the context is in the provider's output (contextTransform)"
        texts: list[str] | None = []
        if "value" in kind.inputs and (texts := self._values(one, at)) is None:
            return _OTHER_FILE
        if not kind.ask:
            return texts or []
        parts = [kind.ask, *(f"Statements: {text}" for text in texts or ())]
        for name in kind.inputs:
            text = _text_of(self.values.get(name))
            if name == "query" and len(kind.inputs) == 1 and (text := text or self.prompt) is None:
                return "requires the variable 'query', or a single prompt in the file"
            if name != "value" and text is None:
                return f"requires the variable {name!r} as a string in the file"
            parts += [f"{name.capitalize()}: {text}"] if name != "value" else []
        return ["\n".join(parts)]

    def _values(self, one: _Assertion, at: FilePath) -> list[str] | None:
        """Return the texts under `value`; None if a text is in another file."""
        several = isinstance(one.value, list) and one.value and one.type.endswith("g-eval")
        texts = one.value if several else [one.value]
        if any(isinstance(text, str) and text.startswith(_FILE) for text in texts):
            return None
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                message = f"value must be a non-empty string; got {short_repr(text)}"
                self.faults.add((*at, "value"), message)
                return []
        return [_fill_variables(text, self.values) for text in texts]

    def _scores(self, one: _Assertion, at: FilePath) -> dict[str, float]:
        """Return the scores of the relations to a reference."""
        scores = {key: score for key, _, score in _FACTUALITY}
        for options in (self.options, _mapping_or_empty(one.options)):
            for key, score in _mapping_or_empty(options.get("factuality")).items():
                if key not in scores:
                    continue
                if is_number(score) and math.isfinite(score):
                    scores[key] = float(score)
                else:
                    message = f"{key} must be a number; got {short_repr(score)}"
                    self.faults.add((*at, "options", "factuality", key), message)
        return scores
