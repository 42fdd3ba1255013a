"""A dataset in all its forms: files, mappings, tables and streams, and its division into parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from autorubric._files import Faults, dump_structured
from autorubric._frames import Library, in_library
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
    import polars as pl


class RubricDataset(SharingItems):
    """Items that share a prompt, a rubric and a reference.

    Attributes:
        prompt: What the submissions answer; an item's own prompt replaces it.
        rubric: The rubric; an item's own rubric replaces it.
        name: Name of the dataset.
        reference_submission: A model answer; an item's own replaces it.
        metadata: Other data, as JSON.
    """

    def part(self, first: int, step: int) -> Self:
        """Return the dataset of every `step`-th item from `first` on; items keep their ids.

        A part of a streamed dataset is streamed.
        """
        positions = range(first, len(self), step)
        if isinstance(self._items, LazyItems):
            return type(self)._of(self._contents()._replace(items=self._items.part(positions)))
        return self.subset(positions)

    def split_train_test(
        self, n_train: int, *, stratify: bool = True, seed: int | None = None
    ) -> tuple[Self, Self]:
        """Split the dataset into a train part of `n_train` items and a test part of the rest.

        A stratified split gives each label of each criterion the same frequency in both parts, as far as
        possible: iterative stratification (Sechidis et al. 2011) on the labels of `item_truth`. Labels that
        are not categories count by quarters of [0, 1]. Items keep their ids.

        Args:
            n_train: Number of train items, from 1 to one less than the number of items.
            stratify: Whether to stratify by labels; otherwise the split is random.
            seed: Seed for ties; None means 0.

        Raises:
            ArgumentError: If `n_train` leaves a part empty.
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
        """Split the dataset into three disjoint parts, for few-shot examples, tuning and measuring.

        Without groups, each part has its share of the items, rounded. If stratified by one variable (a
        criterion, a key of `metadata` or a function), each part also has its share of each stratum, rounded
        up or down. If stratified by the labels of several criteria, each label has the same frequency in all
        parts, as far as possible: iterative stratification (Sechidis et al. 2011), where labels that are not
        categories count by quarters of [0, 1]. Groups are never divided, and sizes and labels are met as
        closely as the groups allow. Items keep their ids.

        Args:
            train: Share of the items, above 0.
            dev: Share of the items, above 0.
            test: Share of the items, above 0; the three shares sum to 1.
            stratify: True for the labels of all criteria (`item_truth`); a name for the labels of that
                criterion or, if no criterion has it, the value of that key of `metadata`; or a function of an
                item. Items without a label or value form a separate stratum. False for a random split.
            group: Items that belong together, such as texts by one author or answers to one prompt: a key of
                `metadata`, or a function of an item. An item for which the function returns None is a group
                alone.
            seed: Seed for ties; None means 0. The same dataset and seed give the same parts.

        Raises:
            ArgumentError: If the shares are not above 0 or do not sum to 1, a part would be empty, or an item
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
        """Return the strata of an item."""
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
        """Return the group of each item; an item without a group is a group alone."""
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
        """Return the dataset with the ratings of a table added to its items.

        The table is a CSV file with the columns `item_id, criterion, rater, value` and optionally
        `rater_type` and `sample`, or with `item_id, criterion` and a column for each person. Rows of other
        items, and of samples after the first (`0`), are left out, as are the values `NA`, `INVALID` and empty
        cells, unless `labels` maps them or they are an option of the criterion.

        Args:
            path: The table.
            labels: Labels by raw value, such as `{"Yes": "MET"}`; None as a label means no rating.
            raters: Raters to include; None for all of the type.
            rater_type: Type of raters to include; None for every type.

        Raises:
            DatasetError: If the table cannot be read, has no matching rows, or labels do not fit; all errors
                are reported.
        """
        items = {self.item_id(i): (self._items[i], self.get_item_rubric(i)) for i in range(len(self))}
        rated = attach_ratings(path, items, labels=labels or {}, raters=raters, rater_type=rater_type)
        return type(self)._of(self._contents()._replace(items=list(rated.values())))

    def to_dict(self) -> dict[str, Json]:
        """Return the complete dataset as a mapping that `from_dict` reads."""
        return _store.mapping_of(self._contents())

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Read a dataset from a mapping, or from a list of items, with the structure of the JSON files."""
        return cls._of(_store.contents_of_mapping(given))

    @property
    def is_streamed(self) -> bool:
        """Whether the items stay in their file and are read on each access."""
        return isinstance(self._items, LazyItems)

    def source_digest(self) -> str | None:
        """Return a digest that changes with the file of a streamed dataset or with what its items share.

        None if the items are in memory, or refer to rubric files, which may change unnoticed.
        """
        sha256 = self._items.source_sha256() if isinstance(self._items, StreamedItems) else None
        return None if sha256 is None else canonical_sha256([sha256, self._header()])

    def _header(self) -> dict[str, Json]:
        return _store.header_snapshot(self._contents())

    def copy_lines(self, earlier: EarlierCopy | None = None) -> Iterator[tuple[bytes, Rubric | None]]:
        """Return the lines of a copy that `from_copy` reads: the shared data, then one line per item.

        Each line comes with the rubric that it introduces. Unregistered checks are written as their qualified
        names. Items are read one at a time.

        Args:
            earlier: An earlier copy, which may have the line of an item.

        Raises:
            ArgumentError: If a criterion is of a kind that a file cannot name.
            DatasetError: If a streamed file has errors.
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
        """Return the first line of a copy: the data that the items share.

        Raises:
            ArgumentError: If a criterion is of a kind that a file cannot name.
        """
        return line_of(self._header())

    def item_lines(self) -> Iterator[bytes]:
        """Return the line of each item in a copy; read from the file if the dataset is a copy."""
        if isinstance(self._items, CopiedItems):
            return iter(self._items.rows)
        return (line_of(item.snapshot()) for item in self._items)

    @classmethod
    def from_copy(
        cls, path: Path, starts: Sequence[int] | None = None, substitutes: Mapping[int, bytes] | None = None
    ) -> Self:
        """Open a file of `copy_lines` as a streamed dataset; its checks need not be registered here.

        Args:
            path: The file.
            starts: Offsets of its lines if they are not in order; None to read them from the file.
            substitutes: Lines that replace those of the file, by number from 0.

        Raises:
            DatasetError: If the copy is damaged, or a newer version wrote it.
            OSError: If it cannot be read.
        """
        return cls._of(stored_contents(path, starts, substitutes))

    def reading_items_of(self, other: RubricDataset) -> Self:
        """Return the dataset with the items of another dataset, which is a copy of this one."""
        return self._of(self._contents()._replace(items=other._items))

    def with_rubric(self, rubric: Rubric) -> Self:
        """Return the dataset with another shared rubric.

        Items with their own rubric keep it. Labels are kept and not checked again.
        """
        return self._of(self._contents()._replace(rubric=rubric))

    def with_items(self, items: Iterable[DataItem]) -> Self:
        """Return the dataset with other items.

        Raises:
            DatasetError: If ids repeat or labels do not fit their rubric.
        """
        placed = ((("items", position), item) for position, item in enumerate(items))
        header = {**self._contents()._asdict()}
        del header["items"], header["truth_rule"], header["fields"], header["columns"]
        contents = DatasetReader(Faults("RubricDataset.with_items")).contents(header, placed)
        return self._of(contents._replace(truth_rule=self._truth_rule))

    def to_json(self) -> str:
        """Return the complete dataset as JSON text."""
        return dump_structured(self.to_dict(), "json")

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """Read a dataset from JSON text or from a file: a `Path`, or one line that ends in `.json`."""
        return cls._of(_store.contents_of_text(given))

    def to_file(self, path: str | Path) -> None:
        """Write the dataset as JSON, JSON lines, YAML, CSV or Parquet, by the suffix of the path.

        JSON lines begin with a header line for the shared data, which has the key `format`. A table (CSV,
        Parquet) has no rubric, name or metadata of the dataset; shared prompts and references are written
        into every row, and positions as ids if items have none.

        Raises:
            ArgumentError: If a table cannot hold an item's data (a rubric, ratings, reasons), or a check has
                no name.
            FileError: If the suffix is unknown, or the file cannot be written.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        _store.write(path, self._contents(), [self.item_id(i) for i in range(len(self))])

    @classmethod
    def from_file(
        cls, path: str | Path, *, rubric: Rubric | str | Path | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """Read a dataset from a JSON, JSON lines, YAML, CSV or Parquet file, by the suffix of the path.

        A file's `rubric` may be the path of a rubric file in its folder or below. In JSON lines, the first
        line is a header if it has the key `format`. A table has one row per item, with the columns
        `id, submission, description, prompt, reference_submission`, `truth.<criterion>` and `meta.<key>`; an
        empty cell is a missing value, and `submission_json` holds submissions that are not plain text.

        For a file with other columns or keys, `fields` maps them. Columns without a mapping and without a
        field of that name become metadata.

        Args:
            path: The file.
            rubric: A rubric, or its file, that replaces the one in the dataset file; a table has none.
            **fields: See `FieldMap`: `submission="response"`, `truth={"clear": "is_clear"}`.

        Raises:
            DatasetError: If the file cannot be read, or has errors; all are reported.
            RubricError: If the rubric file has errors.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(_store.contents_of_file(path, given, fields))

    @classmethod
    def stream(cls, path: str | Path, *, rubric: Rubric | str | Path | None = None) -> Self:
        """Open a JSON lines or Parquet file as a dataset that reads its items on access.

        For files that do not fit into memory: shared data is read at once, items on each access, and about
        eight bytes per item are kept. All functions that take a dataset accept it. The file is checked while
        it is read, and random access is slower in Parquet. The file must not change meanwhile; a run works on
        its own copy.

        Args:
            path: The file.
            rubric: A rubric, or its file, that replaces the one in the dataset file; a table has none.

        Raises:
            DatasetError: If the file cannot be read or its shared data has errors; later, on reaching an item
                with errors, with all errors from there on.
            RubricError: If the rubric file has errors.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(streamed_contents(path, given))

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per item and the columns of `from_file`; cells hold Python values.

        It leaves out ratings, reasons and rubrics of items. With `library="polars"` it is a polars frame;
        columns of mixed types are text there.
        """
        ids = [self.item_id(i) for i in range(len(self))]
        return in_library(_tables.frame_of(_tables.table_of(self._contents(), ids, texts=False)), library)

    @classmethod
    def from_dataframe(
        cls, frame: pd.DataFrame, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """Read a dataset from a pandas or polars frame with the columns of `from_file`.

        Args:
            frame: The table, one row per item; None and NaN are missing values.
            rubric: The dataset's rubric.
            **fields: The mapping of columns, see `FieldMap`: `submission="response"`, `truth={"clear":
                "is_clear"}`, `truth="label_"`. Columns without a mapping and without a field of that name
                become metadata.

        Raises:
            ArgumentError: If a field is not one of `FieldMap`.
            DatasetError: If columns are missing, or rows have errors; all are reported.
        """
        return cls._of(_tables.contents_of_frame(frame, rubric, fields))

    @classmethod
    def from_hf(cls, dataset: Any, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]) -> Self:
        """Read a dataset from a Hugging Face `datasets.Dataset` or `IterableDataset`.

        Class labels are read by name. Columns that `fields` does not name, and that are not a field of
        `DataItem`, become metadata.

        Args:
            dataset: The dataset; one split of a `DatasetDict`.
            rubric: The dataset's rubric.
            **fields: The mapping of columns, see `FieldMap`.

        Raises:
            ArgumentError: If it is not such a dataset, or a field is not one of `FieldMap`.
            DatasetError: If columns are missing, or rows have errors; all are reported.
        """
        return cls._of(_store.contents_of_hf(dataset, rubric, fields))
