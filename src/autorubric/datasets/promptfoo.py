"""Importer for promptfoo tests, which converts the model-graded assertions of each test to a rubric."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.importers import Submissions, check_submissions
from autorubric.datasets.item import DataItem
from autorubric.errors import DatasetError, Fault
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json, is_number
from autorubric.support.read import Document, read_structured
from autorubric.support.reading_errors import Faults, FilePath, shortened

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
            raise DatasetError(self._document.source, [Fault(path="", message=message)])
        default = config.get("defaultTest") or {}
        if not isinstance(default, Mapping):
            self._faults.add(("defaultTest",), f"a test must be a mapping; got {shortened(default)}")
            default = {}
        prompts = config.get("prompts")
        self.n_prompts = len(prompts) if isinstance(prompts, list) else 0
        prefix: FilePath = () if isinstance(data, list) else ("tests",)
        tests = [((*prefix, place), test) for place, test in enumerate(config["tests"])]
        names = Counter(str(test.get("description")) for _, test in tests if isinstance(test, Mapping))
        found = []
        for place, (at, test) in enumerate(tests):
            if not isinstance(test, Mapping):
                self._faults.add(at, f"a test must be a mapping with 'assert'; got {shortened(test)}")
                continue
            called = test.get("description")
            item_id = called if isinstance(called, str) and called and names[called] == 1 else str(place)
            item = self._item(test, default, item_id, at, _prompt(config))
            if item is not None:
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
        context = _Test(values=values, prompt=prompt, options=options)
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
        self.unfilled.update(
            {f"{{{{{name}}}}}" for text in texts for name in _missing_variables(text, values)}
        )
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
            for position, one in enumerate(_list_at(whole, "assert", place, self._faults)):
                inner: FilePath = (*place, "assert", position)
                if isinstance(one, Mapping) and one.get("type") == "assert-set":
                    for step, given in enumerate(_list_at(one, "assert", inner, self._faults)):
                        yield (*inner, "assert", step), given
                else:
                    yield inner, one

    def _add_criterion(
        self,
        given: Json,
        at: FilePath,
        test: _Test,
        criteria: list[dict[str, Json]],
        thresholds: dict[str, float],
    ) -> None:
        if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
            self._faults.add(at, f"an assertion must be a mapping with 'type'; got {shortened(given)}")
            return
        found = _read_assert(given, test, at, self._faults)
        if found is None:
            return
        if isinstance(found, str):
            self._skip(given["type"], found)
            return
        self.approximated.update([given["type"]] if found.is_approximated else [])
        taken = [str(inner["name"]) for one in criteria for inner in (one, *one.get("criteria", ()))]
        name = self._name(given.get("metric"), f"criterion_{len(criteria) + 1}", taken)
        form: dict[str, Json] = found.members[0]
        if len(found.members) > 1:
            form = {"criteria": []}
            for place, member in enumerate(found.members, start=1):
                inner_name = self._name(None, f"{name}_{place}", [name, *taken])
                taken.append(inner_name)
                form["criteria"].append({"name": inner_name, **member})
        weight = _number_at(given, "weight", 1.0, at, self._faults)
        criteria.append({"name": name, "weight": weight, **form})
        if found.threshold is not None:
            thresholds[name] = found.threshold

    def _skip(self, what: str, reason: str) -> None:
        self.left_out[what] += 1
        self.reasons.setdefault(reason, Counter())[what] += 1

    @staticmethod
    def _name(metric: Json, otherwise: str, taken: Sequence[str]) -> str:
        name = metric if isinstance(metric, str) and metric.strip() else otherwise
        count, free = 1, name
        while free in taken:
            count += 1
            free = f"{name}_{count}"
        return free


def _number_at(given: Mapping[str, Any], key: str, default: float, at: FilePath, faults: Faults) -> float:
    """Return the finite number under a key, or the default; add an error if it is not a number."""
    number = given.get(key, default)
    if is_number(number) and math.isfinite(number):
        return float(number)
    faults.add((*at, key), f"{key} must be a number; got {shortened(number)}")
    return default


def _list_at(given: Mapping[str, Any], key: str, at: FilePath, faults: Faults) -> Sequence[Json]:
    """Return the list under a key, or an empty list if it is missing; add an error if it is not a list."""
    found = given.get(key)
    if found is None or isinstance(found, list):
        return found or []
    faults.add((*at, key), f"{key} must be a list; got {shortened(found)}")
    return []


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


class _Imported(NamedTuple):
    """An assertion in the format of a rubric."""

    members: list[dict[str, Json]]
    # Minimum score, from 0 to 1, for the assertion to pass; None if there is no threshold.
    threshold: float | None = None
    is_approximated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """The context of an assertion in a test."""

    values: Mapping[str, Any]
    prompt: str | None
    options: Mapping[str, Any]


def _read_assert(
    given: Mapping[str, Any], test: _Test, at: FilePath, faults: Faults
) -> _Imported | str | None:
    """Convert an assertion to criteria."""
    kind = str(given["type"]).removeprefix("not-")
    reader = _READERS.get(kind)
    if reader is None:
        traced = kind.startswith(("trajectory:", "trace-"))
        return _TRACES if traced else _REASONS.get(kind.partition(":")[0], "unknown type")
    before = len(faults)
    found = reader(_AssertContext(given, kind, given["type"] != kind, test, at, faults))
    return None if len(faults) > before else found


def _fill_variables(text: str, values: Mapping[str, Any]) -> str:
    """Replace the variables in a text by their values; variables without a value are not changed."""

    def value(found: re.Match[str]) -> str:
        held = _value_of(found[1], values)
        return found[0] if held is _MISSING else str(held)

    return _VARIABLE.sub(value, text)


def _missing_variables(text: str, values: Mapping[str, Any]) -> list[str]:
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


def _mapping_or_empty(given: Json) -> Mapping[str, Any]:
    """Return the value if it is a mapping, and otherwise an empty mapping."""
    return given if isinstance(given, Mapping) else {}


@dataclass(frozen=True, slots=True)
class _AssertContext:
    fields: Mapping[str, Any]
    kind: str
    is_inverse: bool
    test: _Test
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
            read.append(_fill_variables(text, self.test.values))
        return read

    def threshold(self, default: float | None = None) -> float | None:
        """Return the assertion's threshold, converted to the score of the criterion."""
        if self.fields.get("threshold") is not None:
            default = _number_at(self.fields, "threshold", 0.0, self.at, self.faults)
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


_Reader: TypeAlias = Callable[[_AssertContext], _Imported | str]


def _of_texts(make: Callable[[_AssertContext, list[str]], _Imported]) -> _Reader:
    """Return a reader of an assertion whose `value` contains texts."""

    def read(given: _AssertContext) -> _Imported | str:
        texts = given.texts()
        return _OTHER_FILE if texts is None else make(given, texts)

    return read


def _llm_rubric(given: _AssertContext, texts: Sequence[str]) -> _Imported:
    threshold = given.threshold()
    make = given.statement if threshold is None else given.rating
    return _Imported([make(text) for text in texts], threshold)


def _factuality(given: _AssertContext, texts: Sequence[str]) -> _Imported:
    scores = {key: score for key, _, score in _FACTUALITY}
    for options in (given.test.options, _mapping_or_empty(given.fields.get("options"))):
        own = _mapping_or_empty(options.get("factuality"))
        scores |= {
            key: _number_at(own, key, score, (*given.at, "options", "factuality"), given.faults)
            for key, score in scores.items()
        }
    choices = [
        {"label": label, "value": 1.0 - scores[key] if given.is_inverse else scores[key]}
        for key, label, _ in _FACTUALITY
    ]
    ask = "How do the facts in the submission compare with those in the reference? Ignore style and wording."
    return _Imported(
        [
            {"requirement": f"{ask}\nReference: {text}", "options": choices, "scale_type": "nominal"}
            for text in texts
        ]
    )


def _answer_relevance(given: _AssertContext) -> _Imported | str:
    query = given.variable("query") or given.test.prompt
    if query is None:
        return "requires the variable 'query', or a single prompt in the file"
    ask = "To what degree does the submission answer the query, and nothing else?"
    rating = given.rating(f"{ask}\nQuery: {query}")
    return _Imported([rating], given.threshold(0.7), is_approximated=True)


def _context(needed: Sequence[str], ask: str) -> _Reader:
    """Return a reader for an assertion about the context of a test, with these inputs in its requirement."""

    def read(given: _AssertContext) -> _Imported | str:
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
        return _Imported([given.rating("\n".join(parts))], given.threshold(), is_approximated=True)

    return read


_READERS: Final[Mapping[str, _Reader]] = {
    "llm-rubric": _of_texts(_llm_rubric),
    "model-graded-closedqa": _of_texts(lambda given, texts: _Imported([given.statement(t) for t in texts])),
    "g-eval": _of_texts(
        lambda given, texts: _Imported([given.rating(t) for t in texts], given.threshold(0.7))
    ),
    "pi": _of_texts(
        lambda given, texts: _Imported(
            [given.rating(text) for text in texts], given.threshold(), is_approximated=True
        )
    ),
    **dict.fromkeys(("factuality", "model-graded-factuality"), _of_texts(_factuality)),
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
    "conversation-relevance": lambda given: _Imported(
        [given.rating("Which share of the assistant's messages is relevant to the messages before it?")],
        given.threshold(),
        is_approximated=True,
    ),
}
