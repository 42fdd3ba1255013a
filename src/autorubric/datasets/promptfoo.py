"""Importer for promptfoo tests, which converts the model-graded assertions of each test to a rubric."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.importers import Submissions, check_submissions, list_at, number_at
from autorubric.datasets.item import DataItem
from autorubric.datasets.promptfoo_asserts import (
    Test,
    filled,
    mapping_or_empty,
    missing_variables,
    read_assert,
)
from autorubric.errors import DatasetError, Fault
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json
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
        said = "; ".join(f"{_counted(counts)} ({reason})" for reason, counts in reader.reasons.items())
        warnings.warn(f"{path}: skipped {said}", stacklevel=2)
    if reader.approximated:
        said = f"{_counted(reader.approximated)}; promptfoo computes their scores differently"
        warnings.warn(f"{path}: imported as judge ratings: {said}", stacklevel=2)
    if reader.n_prompts > 1:
        warnings.warn(
            f"{path}: items have no prompt because the file has {reader.n_prompts} prompts; "
            "keep only one prompt in the file",
            stacklevel=2,
        )
    if reader.unfilled:
        said = _counted(reader.unfilled)
        warnings.warn(f"{path}: variables without a value were not replaced: {said}", stacklevel=2)
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
        """Yield the default assertions and a test's assertions, including assert-sets, with their paths."""
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
            self._faults.add(at, f"an assertion must be a mapping with 'type'; got {shortened(given)}")
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


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in sorted(counts.items()))
