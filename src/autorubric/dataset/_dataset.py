"""A dataset in all its forms: files, mappings, tables, streams, and the parts it is split into."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from autorubric._files import Faults, dump_structured
from autorubric.dataset import _store, _tables
from autorubric.dataset._earlier import EarlierCopy
from autorubric.dataset._fields import FieldMap
from autorubric.dataset._item import DataItem, canonical_sha256
from autorubric.dataset._lazy import LazyItems
from autorubric.dataset._ratings import attach_ratings
from autorubric.dataset._read import DatasetReader
from autorubric.dataset._sharing import SharingItems
from autorubric.dataset._split import (
    DatasetSplit,
    grouped_positions,
    sizes_of,
    split_positions,
    stratified_positions,
)
from autorubric.dataset._stream import CopiedItems, StreamedItems, line_of, stored_contents, streamed_contents
from autorubric.dataset._truth import stratum_labels
from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.values import Json

if TYPE_CHECKING:
    import pandas as pd


class RubricDataset(SharingItems):
    """Items with a prompt, a rubric and a reference that they share.

    Attributes:
        prompt: What the submissions answer, where an item says nothing else.
        rubric: What they are graded by, where an item has no rubric of its own.
        name: The dataset's name.
        reference_submission: A model answer, where an item has none of its own.
        metadata: Anything else, as JSON.
    """

    def part(self, first: int, step: int) -> Self:
        """The dataset of every `step`-th item from `first` on, with the ids that they have here.

        Where the dataset is streamed, so is the part.
        """
        positions = range(first, len(self), step)
        if isinstance(self._items, LazyItems):
            return type(self)._of(self._contents()._replace(items=self._items.part(positions)))
        return self.subset(positions)

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
            stratum_labels(self._items[i], self._rubric_of(i), self._truth_rule) if stratify else ()
            for i in range(len(self))
        ]
        train, test = split_positions(labels, (n_train, len(self) - n_train), seed or 0)
        return self.subset(train), self.subset(test)

    def split(
        self,
        *,
        train: float = 0.2,
        dev: float = 0.4,
        test: float = 0.4,
        stratify: bool | str | Callable[[DataItem], Hashable] = True,
        group: str | Callable[[DataItem], Hashable] | None = None,
        seed: int | None = None,
    ) -> DatasetSplit:
        """The dataset in three parts that share no item: few-shot examples, tuning, measuring.

        Without groups each part has its share of the items, rounded. Stratified by one thing (a criterion, a
        key of `metadata`, a function), each part has its share of each stratum too, rounded up or down. By
        the labels of several criteria each label is as frequent in all parts as can be: iterative
        stratification (Sechidis et al. 2011), in which labels that are no category count by quarters of
        [0, 1]. With groups, which are never divided, sizes and labels are met as closely as the groups allow.
        Items keep their ids.

        Args:
            train: Share of the items, above 0.
            dev: Share of the items, above 0.
            test: Share of the items, above 0; the three sum to 1.
            stratify: True takes the labels of all criteria (`item_truth`), a name those of that criterion or,
                where no criterion has it, the value of that key of `metadata`; or a function of an item.
                Items without a label or value are a stratum of their own. False divides at random.
            group: Items that belong together, such as texts by one author or answers to one prompt: a key of
                `metadata`, or a function of an item. An item for which the function gives None is alone.
            seed: Decides among equals; None is 0. The same dataset and seed give the same parts.

        Raises:
            ArgumentError: The shares are not above 0 or do not sum to 1, a part would be empty, or an item
                lacks the key that `stratify` or `group` names.
        """
        shares = (train, dev, test)
        sizes = sizes_of(len(self), shares)
        labels = [self._strata_of(i, stratify) for i in range(len(self))]
        if group is not None:
            found = grouped_positions(self._groups(group), labels, shares, seed or 0)
        elif max(map(len, labels)) > 1:
            found = split_positions(labels, sizes, seed or 0)
        else:
            strata = [one[0] if one else None for one in labels]
            found = stratified_positions(strata, shares, seed or 0)
        return DatasetSplit(*map(self.subset, found))

    def _strata_of(self, i: int, stratify: bool | str | Callable[[DataItem], Hashable]) -> Sequence[Hashable]:
        """What an item is stratified by."""
        item, rubric = self._items[i], self._rubric_of(i)
        if callable(stratify):
            return [stratify(item)]
        if isinstance(stratify, bool):
            return stratum_labels(item, rubric, self._truth_rule) if stratify else ()
        if stratify in item.metadata:
            return [json.dumps(item.metadata[stratify], sort_keys=True)]
        labels = [one for one in stratum_labels(item, rubric, self._truth_rule) if one[0] == stratify]
        if not labels and (rubric is None or stratify not in rubric.names):
            raise ArgumentError(self._no_key(i, "stratify", stratify))
        return labels

    def _groups(self, group: str | Callable[[DataItem], Hashable]) -> list[Hashable]:
        """The group of each item; an item that has none is one by itself."""
        if callable(group):
            given = [group(item) for item in self._items]
            return [("alone", i) if one is None else ("group", one) for i, one in enumerate(given)]
        missing = [i for i, item in enumerate(self._items) if group not in item.metadata]
        if missing:
            raise ArgumentError(self._no_key(missing[0], "group", group))
        return [json.dumps(item.metadata[group], sort_keys=True) for item in self._items]

    def _no_key(self, i: int, argument: str, key: str) -> str:
        there = sorted(self._items[i].metadata)
        criteria = f" and no criterion has that name ({', '.join(self._names_of(i))})" * (
            argument == "stratify"
        )
        return (
            f"{argument}={key!r}: item {self.item_id(i)!r} has no metadata {key!r}; it has: "
            f"{', '.join(there) or 'none'}{criteria}; or give a function of an item"
        )

    def _names_of(self, i: int) -> Sequence[str]:
        rubric = self._rubric_of(i)
        return rubric.names if rubric is not None else ("no rubric",)

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
        and `sample`, or with `item_id, criterion` and a column for each person. Rows of other items, and of
        samples after the first (`0`), are left out; so are the
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

    @property
    def is_streamed(self) -> bool:
        """Whether the items stay in their file and are read each time they are asked for."""
        return isinstance(self._items, LazyItems)

    def source_digest(self) -> str | None:
        """What changes whenever the file of a streamed dataset changes, or what its items share.

        None where the items are in memory, or name rubric files that may change unseen.
        """
        sha256 = self._items.source_sha256() if isinstance(self._items, StreamedItems) else None
        return None if sha256 is None else canonical_sha256([sha256, self._header()])

    def _header(self) -> dict[str, Json]:
        return _store.header_snapshot(self._contents())

    def copy_lines(self, earlier: EarlierCopy | None = None) -> Iterator[tuple[bytes, Rubric | None]]:
        """The lines of a copy that `from_copy` reads: what the items share, then an item a line.

        Beside each line stands the rubric that it brings. Unregistered checks stand by their qualified
        names. Items are taken one by one.

        Args:
            earlier: An earlier copy, which is asked about the line of each item.

        Raises:
            ArgumentError: A criterion is of a kind that no file can name.
            DatasetError: A streamed file has faults.
        """
        yield self.header_line(), self.rubric
        if isinstance(self._items, StreamedItems):
            yield from self._items.copy_lines(earlier)
            return
        for position, item in enumerate(self._items):
            line = line_of(item.snapshot())
            if earlier is not None:
                earlier.has(position, line)
            yield line, item.rubric

    def header_line(self) -> bytes:
        """The first line of a copy: what the items share.

        Raises:
            ArgumentError: A criterion is of a kind that no file can name.
        """
        return line_of(self._header())

    def item_lines(self) -> Iterator[bytes]:
        """The line of each item in a copy; read, not made, where the dataset is one."""
        if isinstance(self._items, CopiedItems):
            return iter(self._items.rows)
        return (line_of(item.snapshot()) for item in self._items)

    @classmethod
    def from_copy(
        cls, path: Path, starts: Sequence[int] | None = None, substitutes: Mapping[int, bytes] | None = None
    ) -> Self:
        """The dataset of a file with `copy_lines`, streamed; its checks need not be registered here.

        Args:
            path: The file.
            starts: Offsets of its lines, where they are not in order; from the file otherwise.
            substitutes: Lines in the place of those of the file, by number from 0.

        Raises:
            DatasetError: The copy is damaged, or a newer version wrote it.
            OSError: It cannot be read.
        """
        return cls._of(stored_contents(path, starts, substitutes))

    def reading_items_of(self, other: RubricDataset) -> Self:
        """The dataset with the items of another one, as they are: of a copy of this one."""
        return self._of(self._contents()._replace(items=other._items))

    def with_rubric(self, rubric: Rubric) -> Self:
        """The dataset with another rubric in the place of the one that its items share.

        Items with a rubric of their own keep it. Labels stay as they are, and are not checked anew.
        """
        return self._of(self._contents()._replace(rubric=rubric))

    def with_items(self, items: Iterable[DataItem]) -> Self:
        """The dataset with other items.

        Raises:
            DatasetError: Ids occur twice or labels do not fit their rubric.
        """
        placed = ((("items", position), item) for position, item in enumerate(items))
        header = {**self._contents()._asdict()}
        del header["items"], header["truth_rule"], header["fields"], header["columns"]
        contents = DatasetReader(Faults("RubricDataset.with_items")).contents(header, placed)
        return self._of(contents._replace(truth_rule=self._truth_rule))

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
    def from_file(
        cls, path: str | Path, *, rubric: Rubric | str | Path | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """The dataset in a JSON, JSON lines, YAML, CSV or Parquet file; the suffix says which.

        A file's `rubric` may be the name of a rubric file in its folder or below. In JSON lines the first
        line is a header if it has the key `format`. Tables hold an item a row, in the columns
        `id, submission, description, prompt, reference_submission`, `truth.<criterion>` and `meta.<key>`; an
        empty cell is nothing, and `submission_json` holds what is no plain text.

        A file of your own, whose columns or keys are called otherwise, is read as it is where `fields` say
        which is which; what they do not name and has no field of that name becomes metadata.

        Args:
            path: The file.
            rubric: A rubric, or its file, in place of the one in the dataset file; a table has none.
            **fields: See `FieldMap`: `submission="response"`, `truth={"clear": "is_clear"}`.

        Raises:
            DatasetError: The file cannot be read, or has faults; all are reported.
            RubricError: The rubric's file has faults.
            MissingDependencyError: Parquet without pyarrow.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(_store.contents_of_file(path, given, fields))

    @classmethod
    def stream(cls, path: str | Path, *, rubric: Rubric | str | Path | None = None) -> Self:
        """The dataset in a JSON lines or Parquet file, its items read as they are asked for.

        For files that are too large for memory: what the items share is read at once, an item each time it
        is asked for, and some eight bytes an item are kept. Everything that takes a dataset takes it. A file
        is checked while it is gone through, and what is asked for out of order costs more in Parquet. The
        file must not change meanwhile; a run works on its own copy.

        Args:
            path: The file.
            rubric: A rubric, or its file, in place of the one in the dataset file; a table has none.

        Raises:
            DatasetError: The file cannot be read, or what its items share has faults; later, on reaching an
                item with faults, with all faults from there on.
            RubricError: The rubric's file has faults.
            MissingDependencyError: Parquet without pyarrow.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(streamed_contents(path, given))

    def to_dataframe(self) -> pd.DataFrame:
        """A DataFrame with an item a row, in the columns of `from_file`; cells hold the values themselves.

        Ratings, reasons and rubrics of items are not in it.
        """
        ids = [self.item_id(i) for i in range(len(self))]
        return _tables.frame_of(_tables.table_of(self._contents(), ids, texts=False))

    @classmethod
    def from_dataframe(
        cls, frame: pd.DataFrame, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """The dataset of a DataFrame with the columns of `from_file`; None and NaN are empty cells.

        Args:
            frame: The table, an item a row.
            rubric: The dataset's rubric.
            **fields: Which columns of a frame of your own are which, see `FieldMap`:
                `submission="response"`, `truth={"clear": "is_clear"}`, `truth="label_"`. Columns that they do
                not name and that have no field of that name become metadata. Without any, a column that is
                none of those of `from_file` is a fault.

        Raises:
            ArgumentError: A field is none.
            DatasetError: Columns are unknown or missing, or rows have faults; all are reported.
        """
        return cls._of(_tables.contents_of_frame(frame, rubric, fields))

    @classmethod
    def from_hf(cls, dataset: Any, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]) -> Self:
        """The dataset of a Hugging Face `datasets.Dataset` or `IterableDataset`, as it is.

        Class labels are taken by their names. Columns that `fields` do not name and that are no field of
        `DataItem` become metadata.

        Args:
            dataset: The dataset; one split of a `DatasetDict`.
            rubric: The dataset's rubric.
            **fields: Which columns are which, see `FieldMap`.

        Raises:
            ArgumentError: It is no such dataset, or a field is none.
            DatasetError: Columns are missing, or rows have faults; all are reported.
        """
        return cls._of(_store.contents_of_hf(dataset, rubric, fields))
