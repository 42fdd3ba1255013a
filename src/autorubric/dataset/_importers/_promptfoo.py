"""Tests of promptfoo: what its model-graded assertions ask becomes a rubric for each test."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from autorubric._files import Document, Faults, FilePath, read_structured, shortened
from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._importers._promptfoo_asserts import (
    Test,
    filled,
    mapping_or_empty,
    missing_variables,
    read_assert,
)
from autorubric.dataset._importers._reading import Submissions, check_submissions, list_at, number_at
from autorubric.dataset._item import DataItem
from autorubric.errors import DatasetError, Fault
from autorubric.rubric import Rubric
from autorubric.values import Json

_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_NOTHING_LEFT: Final = "it has no assertion that a judge can answer"


def from_promptfoo(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """Return the dataset of a promptfoo configuration (YAML or JSON), an item a test.

    Each model-graded assertion of a test, of its assert-sets and of `defaultTest` becomes a criterion with
    its `weight`, named by its `metric`:

    - `llm-rubric`: met or not; with a `threshold` a rating from 0 to 1.
    - `model-graded-closedqa`: met or not.
    - `g-eval`: a rating from 0 to 1; for a list of values a group of ratings, whose score is their mean.
    - `factuality`: a choice among five relations to the reference, with the scores that `options.factuality`
      sets; 0 for a contradiction and 1 for the others where it does not.
    - `answer-relevance`, `context-faithfulness`, `context-recall`, `context-relevance`,
      `conversation-relevance` and `pi`: a rating from 0 to 1. promptfoo computes these from embeddings,
      counts of sentences or a scoring service, so scores differ; a warning says which assertions these are.

    With the prefix `not-`, the requirement is the opposite and the score 1 minus the assertion's.
    `{{variables}}` are filled in from the test's `vars`; a warning names those without a value. A prompt in
    the file, where it is the only one, is the prompt of the items; of several none is, and a warning says so.
    The item's metadata holds `vars`, `thresholds` by criterion or group (those of promptfoo where it has a
    default other than 0; 1 minus it with `not-`) and `threshold`, the test's own.

    Other assertions, and tests without any of these, are left out; a warning says which and why. The
    dataset's metadata holds `left_out` and `approximated`, counts by type.

    Args:
        path: The file.
        submissions: Outputs by the item's id, which is the test's `description`, or its position (from 0) as
            a text where it has none or another test has it too.

    Raises:
        DatasetError: If the file cannot be read, or has errors; all are reported, with lines.
        ArgumentError: If there are submissions of items that the file does not have.
    """
    document = read_structured(path, suffixes=_SUFFIXES, error=DatasetError)
    reader = _Reader(document, submissions or {})
    items = reader.items()
    check_submissions(submissions or {}, [item.id or "" for item in items], str(path))
    if reader.reasons:
        said = "; ".join(f"{_counted(counts)} ({reason})" for reason, counts in reader.reasons.items())
        warnings.warn(f"{path}: left out: {said}", stacklevel=2)
    if reader.approximated:
        said = f"{_counted(reader.approximated)}; promptfoo computes them in another way, so scores differ"
        warnings.warn(f"{path}: imported as ratings of a judge: {said}", stacklevel=2)
    if reader.n_prompts > 1:
        warnings.warn(
            f"{path}: items have no prompt: the file has {reader.n_prompts} prompts and an item has one; "
            "leave one prompt in the file",
            stacklevel=2,
        )
    if reader.unfilled:
        said = _counted(reader.unfilled)
        warnings.warn(f"{path}: variables without a value stay in the text as they are: {said}", stacklevel=2)
    found = {"left_out": dict(reader.left_out), "approximated": dict(reader.approximated)}
    metadata: dict[str, Json] = {key: counts for key, counts in found.items() if counts}
    return RubricDataset(items=items, name=Path(path).stem, metadata=metadata)


class _Reader:
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
        """Return an item for each test with an assert that a judge is asked for."""
        data = self._document.data
        config = {"tests": data} if isinstance(data, list) else data
        if not isinstance(config, Mapping) or not isinstance(config.get("tests"), list):
            message = "a promptfoo file has 'tests', a list of {'vars', 'assert'}; other files are not read"
            raise DatasetError(self._document.source, [Fault(path="", message=message)])
        default = config.get("defaultTest") or {}
        if not isinstance(default, Mapping):
            self._faults.add(("defaultTest",), f"a test is a mapping; got {shortened(default)}")
            default = {}
        prompts = config.get("prompts")
        self.n_prompts = len(prompts) if isinstance(prompts, list) else 0
        prefix: FilePath = () if isinstance(data, list) else ("tests",)
        tests = [((*prefix, place), test) for place, test in enumerate(config["tests"])]
        names = Counter(str(test.get("description")) for _, test in tests if isinstance(test, Mapping))
        found = []
        for place, (at, test) in enumerate(tests):
            if not isinstance(test, Mapping):
                self._faults.add(at, f"a test is a mapping with 'assert'; got {shortened(test)}")
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
            {**mapping_or_empty(default.get(key)), **mapping_or_empty(test.get(key))}
            for key in ("vars", "options")
        )
        prompt = None if prompt is None else filled(prompt, values)
        context = Test(values=values, prompt=prompt, options=options)
        criteria: list[dict[str, Json]] = []
        thresholds: dict[str, float] = {}
        for place, given in self._asserts(test, default, at):
            self._criterion(given, place, context, criteria, thresholds)
        if not criteria:
            self._leave_out("test", _NOTHING_LEFT)
            return None
        before = len(self._faults)
        rubric = Rubric._read_inside(criteria, self._faults, at)
        if rubric is None or len(self._faults) > before:
            return None
        texts = [prompt or "", *(text for form in criteria for text in _texts(form))]
        self.unfilled.update(
            {f"{{{{{name}}}}}" for text in texts for name in missing_variables(text, values)}
        )
        own = test.get("threshold", default.get("threshold"))
        told = {"vars": values, "thresholds": thresholds, "threshold": own}
        return DataItem(
            id=item_id,
            submission=self._submissions.get(item_id),
            description=str(test.get("description") or ""),
            prompt=prompt,
            rubric=rubric,
            metadata={key: value for key, value in told.items() if value},
        )

    def _asserts(
        self, test: Mapping[str, Any], default: Mapping[str, Any], at: FilePath
    ) -> Iterable[tuple[FilePath, Any]]:
        """Yield the asserts of a test with their places, those of its sets and the default ones first."""
        for whole, place in ((default, ("defaultTest",)), (test, at)):
            for position, one in enumerate(list_at(whole, "assert", place, self._faults)):
                inner: FilePath = (*place, "assert", position)
                if isinstance(one, Mapping) and one.get("type") == "assert-set":
                    for step, given in enumerate(list_at(one, "assert", inner, self._faults)):
                        yield (*inner, "assert", step), given
                else:
                    yield inner, one

    def _criterion(
        self,
        given: Json,
        at: FilePath,
        test: Test,
        criteria: list[dict[str, Json]],
        thresholds: dict[str, float],
    ) -> None:
        if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
            self._faults.add(at, f"an assert is a mapping with 'type'; got {shortened(given)}")
            return
        found = read_assert(given, test, at, self._faults)
        if found is None:
            return
        if isinstance(found, str):
            self._leave_out(given["type"], found)
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
        weight = number_at(given, "weight", 1.0, at, self._faults)
        criteria.append({"name": name, "weight": weight, **form})
        if found.threshold is not None:
            thresholds[name] = found.threshold

    def _leave_out(self, what: str, reason: str) -> None:
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


def _texts(form: Json) -> Iterator[str]:
    """Yield every text in the form of a criterion."""
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


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in sorted(counts.items()))
