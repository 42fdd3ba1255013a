"""Tests of promptfoo: what its `llm-rubric` asserts ask becomes a rubric for each test."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from autorubric._files import Document, Faults, FilePath, read_structured, shortened
from autorubric.dataset._dataset import RubricDataset
from autorubric.dataset._importers._reading import Submissions, check_submissions, list_at, number_at
from autorubric.dataset._item import DataItem
from autorubric.errors import DatasetError, Fault
from autorubric.rubric import Rubric
from autorubric.values import Json

_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_VARIABLE: Final = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+)*)\s*-?\}\}")
_WANTED: Final = "llm-rubric"


def from_promptfoo(path: str | Path, *, submissions: Submissions | None = None) -> RubricDataset:
    """The dataset of a promptfoo configuration (YAML or JSON), an item a test.

    Every assert `{"type": "llm-rubric", "value", "threshold", "weight", "metric"}` of a test, of its
    assert-sets and of `defaultTest` becomes a criterion: met or not, or, where it has a `threshold`, a number
    from 0 to 1. `{{variables}}` are filled in from the test's `vars`. A prompt that stands in the file, where
    there is one alone, is that of the items. The item's metadata holds `vars`, `thresholds` by criterion and
    `threshold`, the test's own.

    Asserts of other types, and tests without any of this one, are left out; a warning tells which, and the
    dataset's metadata holds `left_out`, counts by type.

    Args:
        path: The file.
        submissions: Outputs by the item's id, which is the test's `description`, or its position (from 0) as
            a text where it has none or another test has it too.

    Raises:
        DatasetError: The file cannot be read, or has faults; all are reported, with lines.
        ArgumentError: There are submissions of items that the file does not have.
    """
    document = read_structured(path, suffixes=_SUFFIXES, error=DatasetError)
    reader = _Reader(document, submissions or {})
    items = reader.items()
    check_submissions(submissions or {}, [item.id or "" for item in items], str(path))
    if reader.left_out:
        told = ", ".join(f"{count} × {what}" for what, count in sorted(reader.left_out.items()))
        warnings.warn(f"{path}: left out, since no judge is asked for these: {told}", stacklevel=2)
    metadata: dict[str, Json] = {"left_out": dict(reader.left_out)} if reader.left_out else {}
    return RubricDataset(items=items, name=Path(path).stem, metadata=metadata)


class _Reader:
    def __init__(self, document: Document, submissions: Submissions) -> None:
        self._document = document
        self._faults: Faults = document.faults()
        self._submissions = submissions
        self.left_out: Counter[str] = Counter()

    def items(self) -> list[DataItem]:
        """An item for each test with an assert that a judge is asked for."""
        data = self._document.data
        config = {"tests": data} if isinstance(data, list) else data
        if not isinstance(config, Mapping) or not isinstance(config.get("tests"), list):
            message = "a promptfoo file has 'tests', a list of {'vars', 'assert'}; other files are not read"
            raise DatasetError(self._document.source, [Fault(path="", message=message)])
        default = config.get("defaultTest") or {}
        if not isinstance(default, Mapping):
            self._faults.add(("defaultTest",), f"a test is a mapping; got {shortened(default)}")
            default = {}
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
        values = {**_mapping(default.get("vars")), **_mapping(test.get("vars"))}
        criteria: list[dict[str, Json]] = []
        thresholds: dict[str, float] = {}
        for place, given in self._asserts(test, default, at):
            self._criterion(given, place, values, criteria, thresholds)
        if not criteria:
            self.left_out["test without an llm-rubric"] += 1
            return None
        before = len(self._faults)
        rubric = Rubric._read_inside(criteria, self._faults, at)
        if rubric is None or len(self._faults) > before:
            return None
        own = test.get("threshold", default.get("threshold"))
        told = {"vars": values, "thresholds": thresholds, "threshold": own}
        return DataItem(
            id=item_id,
            submission=self._submissions.get(item_id),
            description=str(test.get("description") or ""),
            prompt=None if prompt is None else _filled(prompt, values),
            rubric=rubric,
            metadata={key: value for key, value in told.items() if value},
        )

    def _asserts(
        self, test: Mapping[str, Any], default: Mapping[str, Any], at: FilePath
    ) -> Iterable[tuple[FilePath, Any]]:
        """The asserts of a test, those of its sets and the default ones first, each with where it stands."""
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
        values: Mapping[str, Any],
        criteria: list[dict[str, Json]],
        thresholds: dict[str, float],
    ) -> None:
        if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
            self._faults.add(at, f"an assert is a mapping with 'type'; got {shortened(given)}")
            return
        text = given.get("value")
        if given["type"] != _WANTED or (isinstance(text, str) and text.startswith("file://")):
            self.left_out[given["type"] if given["type"] != _WANTED else "llm-rubric in another file"] += 1
            return
        if not isinstance(text, str) or not text.strip():
            self._faults.add((*at, "value"), f"value is what the judge is asked; got {shortened(text)}")
            return
        name = self._name(given.get("metric"), [str(one["name"]) for one in criteria])
        weight = number_at(given, "weight", 1.0, at, self._faults)
        criterion: dict[str, Json] = {"name": name, "requirement": _filled(text, values), "weight": weight}
        if given.get("threshold") is not None:
            thresholds[name] = number_at(given, "threshold", 0.0, at, self._faults)
            criterion |= {"type": "numerical_rating", "min_value": 0.0, "max_value": 1.0}
        criteria.append(criterion)

    @staticmethod
    def _name(metric: Json, taken: list[str]) -> str:
        name = metric if isinstance(metric, str) and metric.strip() else f"criterion_{len(taken) + 1}"
        count, free = 1, name
        while free in taken:
            count += 1
            free = f"{name}_{count}"
        return free


def _mapping(given: Json) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _prompt(config: Mapping[str, Any]) -> str | None:
    prompts = config.get("prompts")
    only = prompts[0] if isinstance(prompts, list) and len(prompts) == 1 else prompts
    if isinstance(only, Mapping):
        only = only.get("raw")
    return only if isinstance(only, str) and only and not only.startswith("file://") else None


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """The text with its variables filled in; those without a value stay as they are."""

    def value(found: re.Match[str]) -> str:
        held: Any = values
        for step in found[1].split("."):
            if not isinstance(held, Mapping) or step not in held:
                return found[0]
            held = held[step]
        return held if isinstance(held, str) else str(held)

    return _VARIABLE.sub(value, text)
