"""What a dataset holds: items, and what each of them comes to beside what they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, get_args

from autorubric._files import Faults
from autorubric.dataset._fields import FieldMap, described
from autorubric.dataset._item import DataItem, canonical_sha256, seen_by_judges
from autorubric.dataset._lazy import LazyItems
from autorubric.dataset._read import Contents, DatasetReader
from autorubric.dataset._truth import TruthRule, by_name, truth_of
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric import Rubric
from autorubric.values import Json


class SharingItems:
    """Items with a prompt, a rubric and a reference that they share, in whatever form they came."""

    def __init__(
        self,
        prompt: str | None = None,
        rubric: Rubric | Mapping[str, Any] | Sequence[Any] | None = None,
        items: Iterable[DataItem | Mapping[str, Any]] = (),
        name: str | None = None,
        reference_submission: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        """A dataset of these items.

        Raises:
            DatasetError: The rubric or items have faults, ids repeat, or labels do not fit their rubric;
                all are reported.
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
        self._fields, self._columns = contents.fields, contents.columns
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
        """Which column held what in the table that the dataset was read from.

        None if it was not read from a table, or from one in the dataset format.
        """
        return self._fields

    def columns_line(self) -> str | None:
        """Return `field_map` in one line, with the columns kept as metadata; None without one."""
        return None if self._fields is None else described(self._fields, self._columns)

    @property
    def items(self) -> Sequence[DataItem]:
        """The items, in order; `add_item` adds one."""
        return self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[DataItem]:
        return iter(self._items)

    def __getitem__(self, position: int) -> DataItem:
        return self._items[position]

    def add_item(self, submission: Json | DataItem, **fields: Any) -> DataItem:
        """Adds an item and returns it.

        Args:
            submission: The submission, or an item as a whole.
            **fields: The other fields of a `DataItem`.

        Raises:
            DatasetError: The item has faults, or its id is taken; nothing is added then.
        """
        given = submission if isinstance(submission, DataItem) else {"submission": submission, **fields}
        reader = DatasetReader(Faults("RubricDataset.add_item"))
        item = reader.contents({"rubric": self.rubric}, [((), given)]).items[0]
        item_id = item.id or str(len(self))
        if self._ids is None:
            self._ids = {self.item_id(i) for i in range(len(self))}
        if item_id in self._ids:
            reader.faults.add(("id",), f"the dataset has an item {item_id!r}; ids are unique")
            reader.faults.raise_as(DatasetError)
        self._ids.add(item_id)
        if not isinstance(self._items, list):
            self._items = list(self._items)
        self._items.append(item)
        return item

    def item_id(self, i: int) -> str:
        """The item's id; where it has none, its position as text."""
        return self._items[i].id or str(range(len(self))[i])

    def item_ids(self) -> Iterator[str]:
        """The ids of all items, in order, as `item_id` gives them."""
        items = self._items
        return items.ids() if isinstance(items, LazyItems) else map(self.item_id, range(len(self)))

    def get_item_rubric(self, i: int) -> Rubric:
        """The item's own rubric, else the dataset's.

        Raises:
            ArgumentError: Neither has one.
        """
        rubric = self._rubric_of(i)
        if rubric is None:
            raise ArgumentError(
                f"item {self.item_id(i)!r} has no rubric and neither has the dataset; give either one"
            )
        return rubric

    def rubrics(self) -> Iterator[Rubric]:
        """The rubric that items share, then, item by item, those that items bring."""
        if self.rubric is not None:
            yield self.rubric
        yield from (item.rubric for item in self._items if item.rubric is not None)

    def _rubric_of(self, i: int) -> Rubric | None:
        own = self._items[i].rubric
        return self.rubric if own is None else own

    def get_item_prompt(self, i: int) -> str | None:
        """What the item's submission answers: its own prompt, else the dataset's."""
        own = self._items[i].prompt
        return self.prompt if own is None else own

    def get_item_reference_submission(self, i: int) -> str | None:
        """The item's own model answer, else the dataset's."""
        own = self._items[i].reference_submission
        return self.reference_submission if own is None else own

    def item_truth(self, i: int) -> dict[str, Json] | None:
        """The item's labels by criterion name, as they were given; None where it has none.

        Where `ground_truth` lacks a label, the item's `ratings` make one, by the rule of `with_truth`.
        Without a rule it is the median on an ordinal scale (of two middle options the lower one), the mean of
        numbers (their lower median where the mean is not an allowed answer), and elsewhere the label that
        most raters gave, missing where two are tied. Ratings are compared by what the criterion reads in
        them (`yes` is `MET`); CANNOT_ASSESS is no vote. NA is a label like others; on an ordinal scale it is
        the label where more raters say NA than give an answer. Criteria without a label are left out.

        Raises:
            ArgumentError: The rule of `with_truth` needs an order, or values, that a criterion lacks.
        """
        return truth_of(self._items[i], self._rubric_of(i), self._truth_rule)

    def with_truth(self, rule: TruthRule) -> Self:
        """The dataset with another rule for how several raters' labels become one.

        Datasets made of this one keep the rule; files do not store it.

        Args:
            rule: `"mode"`, `"majority"` (more than half of the raters), `"median"` or `"mean"`; the last two
                need ordered options (`"mean"` also values), and leave no cell without a label.

        Raises:
            ArgumentError: There is no such rule.
        """
        if rule not in get_args(TruthRule):
            raise ArgumentError(f"truth={rule!r}; give one of {list(get_args(TruthRule))}")
        return self._of(self._contents()._replace(truth_rule=rule))

    def item_ratings(self, i: int) -> dict[str, dict[str, Json]]:
        """The item's labels by rater and criterion name, as they were given; missing ones left out."""
        rubric = self._rubric_of(i)
        return {rater: by_name(labels, rubric) for rater, labels in self._items[i].ratings.items()}

    def item_fingerprint(self, i: int) -> str:
        """SHA-256 of what a judge sees of the item: submission, prompt and reference; not of its labels."""
        return canonical_sha256(
            seen_by_judges(self._items[i], self.get_item_prompt(i), self.get_item_reference_submission(i))
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the ids and fingerprints of all items, in order."""
        return canonical_sha256([[self.item_id(i), self.item_fingerprint(i)] for i in range(len(self))])

    @property
    def criterion_names(self) -> tuple[str, ...]:
        """Names of the rubric's criteria; without one, of the items' rubrics, in order of appearance."""
        rubrics = [self.rubric] if self.rubric is not None else self.rubrics()
        return tuple(dict.fromkeys(name for rubric in rubrics for name in rubric.names))

    @property
    def num_criteria(self) -> int:
        """How many names `criterion_names` has."""
        return len(self.criterion_names)

    @property
    def total_positive_weight(self) -> float:
        """Sum of the positive weights of the dataset's rubric.

        Raises:
            ArgumentError: The dataset has none.
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
        """The score of labels under `rubric`, else under the dataset's; see `Rubric.compute_score`.

        Raises:
            ArgumentError: There is no rubric, or the labels do not fit it.
        """
        return self._own_rubric(rubric).compute_score(verdicts, normalize)

    def subset(self, positions: Iterable[int]) -> Self:
        """The dataset of the items at these positions, each once, with the id that it has here."""
        items = {(at := self.item_id(i)): self._items[i].model_copy(update={"id": at}) for i in positions}
        return type(self)._of(self._contents()._replace(items=list(items.values())))

    def __eq__(self, other: object) -> bool:
        return self._contents() == other._contents() if isinstance(other, SharingItems) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RubricDataset({self.name!r}, {len(self)} items, {self.num_criteria} criteria)"

    def _repr_html_(self) -> str:
        from autorubric._blocks import TableBlock, card

        first = range(min(len(self), 5))
        rows = tuple(
            (self.item_id(at), str(self._items[at].submission), len(self.item_truth(at) or {}))
            for at in first
        )
        return card([TableBlock(title=repr(self), columns=("item", "submission", "labels"), rows=rows)])
