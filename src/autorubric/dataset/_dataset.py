"""A dataset: items with a prompt, a rubric and a reference that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from autorubric._files import Faults, dump_structured
from autorubric.dataset import _store, _tables
from autorubric.dataset._item import DataItem, canonical_sha256, seen_by_judges
from autorubric.dataset._ratings import attach_ratings
from autorubric.dataset._read import Contents, DatasetReader
from autorubric.dataset._split import split_positions
from autorubric.dataset._truth import by_name, stratum_labels, truth_of
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric import Rubric
from autorubric.values import Json

if TYPE_CHECKING:
    import pandas as pd


class RubricDataset:
    """Items with a prompt, a rubric and a reference that they share.

    Attributes:
        prompt: What the submissions answer, where an item says nothing else.
        rubric: What they are graded by, where an item has no rubric of its own.
        name: The dataset's name.
        reference_submission: A model answer, where an item has none of its own.
        metadata: Anything else, as JSON.
    """

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
        self._ids = {self.item_id(i) for i in range(len(self))}

    @classmethod
    def _of(cls, contents: Contents) -> Self:
        dataset = cls.__new__(cls)
        dataset._fill(contents)
        return dataset

    def _contents(self) -> Contents:
        return Contents(
            self.prompt, self.rubric, self.name, self.reference_submission, self.metadata, self._items
        )

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
        if item_id in self._ids:
            reader.faults.add(("id",), f"the dataset has an item {item_id!r}; ids are unique")
            reader.faults.raise_as(DatasetError)
        self._ids.add(item_id)
        self._items.append(item)
        return item

    def item_id(self, i: int) -> str:
        """The item's id; where it has none, its position as text."""
        return self._items[i].id or str(range(len(self))[i])

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

        Where `ground_truth` lacks a label, the majority of the item's `ratings` stands in: the label that
        most raters gave. Ratings are compared by what the criterion reads in them (`yes` is `MET`), NA is
        a label like others, and CANNOT_ASSESS is no vote. On an interval level it is their mean, or their
        lower median where the mean is no allowed answer. Where two labels are tied the label is missing.
        Criteria without a label are left out.
        """
        return truth_of(self._items[i], self._rubric_of(i))

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
        rubrics = [self.rubric] if self.rubric is not None else [item.rubric for item in self._items]
        return tuple(dict.fromkeys(name for rubric in rubrics if rubric is not None for name in rubric.names))

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
            raise ArgumentError("the dataset has no rubric of its own; use get_item_rubric(i)")
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

    def split_train_test(
        self, n_train: int, *, stratify: bool = True, seed: int | None = None
    ) -> tuple[Self, Self]:
        """The dataset as a train part of `n_train` items and a test part of the rest.

        Stratified, each label of each criterion is as frequent in one part as in the other, as far as it
        can be: iterative stratification (Sechidis et al. 2011) over the labels of `item_truth`; labels that
        are no category count by quarters of [0, 1]. Items keep their ids.

        Args:
            n_train: From 1 to one less than there are items.
            stratify: Whether labels decide; else the split is random.
            seed: Decides among equals; None is 0.

        Raises:
            ArgumentError: `n_train` leaves a part empty.
        """
        if isinstance(n_train, bool) or not isinstance(n_train, int) or not 0 < n_train < len(self):
            raise ArgumentError(f"n_train is {n_train!r}; give a whole number from 1 to {len(self) - 1}")
        labels = [
            stratum_labels(self._items[i], self._rubric_of(i)) if stratify else () for i in range(len(self))
        ]
        train, test = split_positions(labels, n_train, seed or 0)
        return self.subset(train), self.subset(test)

    def with_ratings(
        self,
        path: str | Path,
        *,
        labels: Mapping[str, Json] | None = None,
        raters: Collection[str] | None = None,
        rater_type: str | None = "human",
    ) -> Self:
        """The dataset with the ratings of a long table added to its items.

        The table is a CSV file with the columns `item_id, criterion, rater, value` and perhaps `rater_type`
        and `sample`. Rows of other items, and of samples after the first (`0`), are left out; so are the
        values `NA`, `INVALID` and nothing, unless `labels` maps them or they are an option of the criterion.

        Args:
            path: The table.
            labels: What raw values stand for, as `{"Yes": "MET"}`; None as a label is no rating.
            raters: Whose ratings to take; None takes all of the type.
            rater_type: Which type of raters to take; None takes every type.

        Raises:
            DatasetError: The table cannot be read, holds nothing wanted, or labels do not fit; all faults
                are reported.
        """
        items = {self.item_id(i): (self._items[i], self.get_item_rubric(i)) for i in range(len(self))}
        rated = attach_ratings(path, items, labels=labels or {}, raters=raters, rater_type=rater_type)
        return type(self)._of(self._contents()._replace(items=list(rated.values())))

    def to_dict(self) -> dict[str, Json]:
        """The dataset as a mapping that `from_dict` reads; nothing is lost."""
        return _store.mapping_of(self._contents())

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """The dataset of a mapping, or of a list of items, as JSON files hold it."""
        return cls._of(_store.contents_of_mapping(given))

    def snapshot(self) -> dict[str, Json]:
        """The dataset as a mapping for a store, unregistered checks by qualified name; see `restore`."""
        return _store.snapshot_of(self._contents())

    @classmethod
    def restore(cls, given: Mapping[str, Any]) -> Self:
        """The dataset that `snapshot` stored; its checks need not be registered in this process."""
        return cls._of(_store.contents_of_snapshot(given))

    def with_items(self, items: Iterable[DataItem]) -> Self:
        """The dataset with other items.

        Raises:
            DatasetError: Ids occur twice or labels do not fit their rubric.
        """
        placed = ((("items", position), item) for position, item in enumerate(items))
        header = {**self._contents()._asdict()}
        del header["items"]
        return self._of(DatasetReader(Faults("RubricDataset.with_items")).contents(header, placed))

    def to_json(self) -> str:
        """The dataset as JSON text; nothing is lost."""
        return dump_structured(self.to_dict(), "json")

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """The dataset of a JSON text, or of a file: a `Path`, or one line that ends in `.json`."""
        return cls._of(_store.contents_of_text(given))

    def to_file(self, path: str | Path) -> None:
        """Writes the dataset as JSON, JSON lines, YAML, CSV or Parquet; the suffix says which.

        JSON lines begin with a line for what the items share, which the key `format` tells from an item.
        A table (CSV, Parquet) has neither rubric nor name nor metadata of its own; prompts and references
        that items share are written into every row, and ids where items have none.

        Raises:
            ArgumentError: A table cannot hold what an item has (a rubric, ratings, reasons), or a check
                has no name.
            FileError: The suffix is unknown, or the file cannot be written.
            MissingDependencyError: Parquet without pyarrow.
        """
        _store.write(path, self._contents(), [self.item_id(i) for i in range(len(self))])

    @classmethod
    def from_file(cls, path: str | Path, *, rubric: Rubric | str | Path | None = None) -> Self:
        """The dataset in a JSON, JSON lines, YAML, CSV or Parquet file; the suffix says which.

        A file's `rubric` may be the name of a rubric file in its folder or below. In JSON lines the first
        line is a header if it has the key `format`. Tables hold an item a row, in the columns
        `id, submission, description, prompt, reference_submission`, `truth.<criterion>` and `meta.<key>`; an
        empty cell is nothing, and `submission_json` holds what is no plain text.

        Args:
            path: The file.
            rubric: A rubric, or its file, in place of the one in the dataset file; a table has none.

        Raises:
            DatasetError: The file cannot be read, or has faults; all are reported.
            RubricError: The rubric's file has faults.
            MissingDependencyError: Parquet without pyarrow.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(_store.contents_of_file(path, given))

    def to_dataframe(self) -> pd.DataFrame:
        """A DataFrame with an item a row, in the columns of `from_file`; cells hold the values themselves.

        Ratings, reasons and rubrics of items are not in it.
        """
        ids = [self.item_id(i) for i in range(len(self))]
        return _tables.frame_of(_tables.table_of(self._contents(), ids, texts=False))

    @classmethod
    def from_dataframe(cls, frame: pd.DataFrame, *, rubric: Rubric | None = None) -> Self:
        """The dataset of a DataFrame with the columns of `from_file`; None and NaN are empty cells.

        Raises:
            DatasetError: Columns are unknown, or rows have faults; all are reported.
        """
        return cls._of(_tables.contents_of_frame(frame, rubric))

    def __eq__(self, other: object) -> bool:
        return self._contents() == other._contents() if isinstance(other, RubricDataset) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RubricDataset({self.name!r}, {len(self)} items, {self.num_criteria} criteria)"
