"""The base of the dataset class: items, the data that they share, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, get_args

from autorubric.criteria.values import Submission
from autorubric.datasets.fields import FieldMap, describe_columns
from autorubric.datasets.item import (
    DataItem,
    TruthRule,
    canonical_sha256,
    ratings_of,
    seen_by_judges,
    truth_of,
)
from autorubric.datasets.lazy import LazyItems
from autorubric.datasets.read import Contents, DatasetReader
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json
from autorubric.support.reading_errors import Faults


class BaseDataset:
    """Items that share a prompt, a rubric and a reference answer, in memory or read on access."""

    def __init__(
        self,
        prompt: Json = None,
        rubric: Rubric | Mapping[str, Any] | Sequence[Any] | None = None,
        items: Iterable[DataItem | Mapping[str, Any]] = (),
        name: str | None = None,
        reference_submission: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        """Create a dataset of these items.

        Raises:
            DatasetError: If the rubric or items have errors, ids are not unique, or labels do not match their
                rubric. All errors are reported.
        """
        header = {
            "prompt": prompt,
            "rubric": rubric,
            "name": name,
            "reference_submission": reference_submission,
            "metadata": metadata,
        }
        placed = ((("items", position), item) for position, item in enumerate(items))
        self._fill(DatasetReader(Faults("RubricDataset")).contents(header, placed))

    def _fill(self, contents: Contents) -> None:
        self.prompt = contents.prompt
        self.rubric = contents.rubric
        self.name = contents.name
        self.reference_submission = contents.reference_submission
        self.metadata = contents.metadata
        self._items = contents.items
        self._truth_rule = contents.truth_rule
        self._fields, self._pairs = contents.fields, contents.pairs
        self._ids: set[str] | None = None

    @classmethod
    def _of(cls, contents: Contents) -> Self:
        dataset = cls.__new__(cls)
        dataset._fill(contents)
        return dataset

    def _contents(self) -> Contents:
        return Contents(
            self.prompt,
            self.rubric,
            self.name,
            self.reference_submission,
            self.metadata,
            self._items,
            self._truth_rule,
        )

    @property
    def field_map(self) -> FieldMap | None:
        """Column mapping that the dataset was read with.

        None if the dataset was not read from a table, or if the table was in the dataset format.
        """
        return self._fields

    def columns_line(self) -> str | None:
        """Describe the columns that the dataset was read from; None if it was not read from a table."""
        return describe_columns(self._pairs) if self._pairs else None

    @property
    def items(self) -> Sequence[DataItem]:
        """The items, in order; use `add_item` to append an item."""
        return self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[DataItem]:
        return iter(self._items)

    def __getitem__(self, position: int) -> DataItem:
        return self._items[position]

    def add_item(self, submission: Json | DataItem, **fields: Any) -> DataItem:
        """Append an item and return it.

        Args:
            submission: The submission, or a complete item.
            **fields: Other fields of the `DataItem`, if `submission` is not a complete item.

        Raises:
            DatasetError: If the item has errors or its id is already used; the dataset is then unchanged.
        """
        given = submission if isinstance(submission, DataItem) else {"submission": submission, **fields}
        reader = DatasetReader(Faults("RubricDataset.add_item"))
        item = reader.contents({"rubric": self.rubric}, [((), given)]).items[0]
        item_id = item.id or str(len(self))
        if self._ids is None:
            self._ids = {self.item_id(i) for i in range(len(self))}
        if item_id in self._ids:
            reader.faults.add(("id",), f"the dataset already has an item {item_id!r}; ids must be unique")
            reader.faults.raise_as(DatasetError)
        self._ids.add(item_id)
        if not isinstance(self._items, list):
            self._items = list(self._items)
        self._items.append(item)
        return item

    def item_id(self, i: int) -> str:
        """Return the item's id, or its position as a string if it has no id."""
        return self._items[i].id or str(range(len(self))[i])

    def item_ids(self) -> Iterator[str]:
        """Return the ids of all items, in order; see `item_id`."""
        items = self._items
        return items.ids() if isinstance(items, LazyItems) else map(self.item_id, range(len(self)))

    def get_item_rubric(self, i: int) -> Rubric:
        """Return the item's rubric, which defaults to the dataset's rubric.

        Raises:
            ArgumentError: If neither the item nor the dataset has a rubric.
        """
        rubric = self._rubric_of(i)
        if rubric is None:
            raise ArgumentError(
                f"neither item {self.item_id(i)!r} nor the dataset has a rubric; use --rubric FILE "
                "(rubric= in Python)"
            )
        return rubric

    def rubrics(self) -> Iterator[Rubric]:
        """Yield the shared rubric, then the items' own rubrics in order."""
        if self.rubric is not None:
            yield self.rubric
        yield from (item.rubric for item in self._items if item.rubric is not None)

    def _rubric_of(self, i: int) -> Rubric | None:
        own = self._items[i].rubric
        return self.rubric if own is None else own

    def get_item_prompt(self, i: int) -> str | None:
        """Return the text of the item's prompt, which defaults to the dataset's prompt."""
        return Submission(text=None).with_prompt(self.item_prompt(i))[1]

    def item_prompt(self, i: int) -> Json:
        """Return the item's prompt as given, with its images; it defaults to the dataset's prompt."""
        own = self._items[i].prompt
        return self.prompt if own is None else own

    def get_item_reference_submission(self, i: int) -> str | None:
        """Return the item's reference answer, which defaults to the dataset's reference answer."""
        own = self._items[i].reference_submission
        return self.reference_submission if own is None else own

    def item_truth(self, i: int) -> dict[str, Json] | None:
        """Return the item's ground-truth labels by criterion name, or None if it has no labels.

        A label that is missing from `ground_truth` is computed from `ratings` with the rule set by
        `with_truth`. By default, it is the median on an ordinal scale (the lower of two middle options), the
        mean of numbers (or their lower median if the mean is not an allowed answer), and otherwise the most
        frequent label, if there is no tie. Ratings are compared after parsing (`yes` equals `MET`), and
        CANNOT_ASSESS is ignored. NA is treated like any other label; on an ordinal scale, it is chosen if
        more raters chose NA than an option. Criteria that have no label are omitted.

        Raises:
            ArgumentError: If the rule requires ordered options or option values that a criterion lacks.
        """
        return truth_of(self._items[i], self._rubric_of(i), self._truth_rule)

    def with_truth(self, rule: TruthRule) -> Self:
        """Return a copy of the dataset with another rule for combining several raters' labels.

        Datasets derived from the copy keep the rule, but files do not store it.

        Args:
            rule: `"mode"`, `"majority"` (more than half of the raters), `"median"` or `"mean"`. The last two
                require ordered options (`"mean"` also option values), and always produce a label.

        Raises:
            ArgumentError: If the rule is unknown.
        """
        if rule not in get_args(TruthRule):
            raise ArgumentError(f"truth must be one of {list(get_args(TruthRule))}; got {rule!r}")
        return self._of(self._contents()._replace(truth_rule=rule))

    def item_ratings(self, i: int) -> dict[str, dict[str, Json]]:
        """Return the item's unparsed ratings by rater and criterion name, without missing labels."""
        return ratings_of(self._items[i], self._rubric_of(i))

    def item_fingerprint(self, i: int) -> str:
        """Return the SHA-256 of the item's data for judges: submission, prompt and reference answer."""
        return canonical_sha256(
            seen_by_judges(self._items[i], self.item_prompt(i), self.get_item_reference_submission(i))
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the ids and fingerprints of all items, in order."""
        return canonical_sha256([[self.item_id(i), self.item_fingerprint(i)] for i in range(len(self))])

    @property
    def criterion_names(self) -> tuple[str, ...]:
        """Criterion names in the shared rubric or, if there is none, in the items' rubrics, in order."""
        rubrics = [self.rubric] if self.rubric is not None else self.rubrics()
        return tuple(dict.fromkeys(name for rubric in rubrics for name in rubric.names))

    @property
    def num_criteria(self) -> int:
        """Number of distinct criterion names; see `criterion_names`."""
        return len(self.criterion_names)

    @property
    def total_positive_weight(self) -> float:
        """Sum of the positive weights in the dataset's rubric; see `Rubric.total_positive_weight`.

        Raises:
            ArgumentError: If the dataset has no rubric.
        """
        return self._own_rubric(None).total_positive_weight

    def _own_rubric(self, given: Rubric | None) -> Rubric:
        rubric = self.rubric if given is None else given
        if rubric is None:
            raise ArgumentError("the dataset has no shared rubric; use get_item_rubric(i)")
        return rubric

    def compute_weighted_score(
        self,
        verdicts: Sequence[Json] | Mapping[str, Json],
        normalize: bool = True,
        rubric: Rubric | None = None,
    ) -> float | None:
        """Compute the score for labels, using `rubric` or the dataset's rubric; see `Rubric.compute_score`.

        Raises:
            ArgumentError: If there is no rubric, or the labels do not match the rubric.
        """
        return self._own_rubric(rubric).compute_score(verdicts, normalize)

    def subset(self, positions: Iterable[int]) -> Self:
        """Return a dataset of the items at these positions; items keep their current ids."""
        items = {(at := self.item_id(i)): self._items[i].model_copy(update={"id": at}) for i in positions}
        return type(self)._of(self._contents()._replace(items=list(items.values())))

    def __eq__(self, other: object) -> bool:
        return self._contents() == other._contents() if isinstance(other, BaseDataset) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"RubricDataset({name}{len(self)} items, {self.num_criteria} criteria)"

    def _repr_html_(self) -> str:
        from autorubric.support.blocks import TableBlock, card

        first = range(min(len(self), 5))
        rows = tuple(
            (self.item_id(at), str(self._items[at].submission), len(self.item_truth(at) or {}))
            for at in first
        )
        return card([TableBlock(title=repr(self), columns=("item", "submission", "labels"), rows=rows)])
