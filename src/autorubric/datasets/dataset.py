"""The dataset class, which reads and writes files, mappings, tables and streams, and splits datasets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack, overload

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Submission
from autorubric.datasets import store as _store, tables as _tables
from autorubric.datasets.base import BaseDataset
from autorubric.datasets.fields import FieldMap
from autorubric.datasets.item import DataItem, canonical_sha256, stratum_labels
from autorubric.datasets.lazy import LazyItems
from autorubric.datasets.ratings import attach_ratings
from autorubric.datasets.split import grouped_positions, sizes_of, split_positions, stratified_positions
from autorubric.datasets.stream import CopiedItems, PreviousSnapshot, StreamedItems, line_of, stored_contents
from autorubric.errors import ArgumentError
from autorubric.rubric.rubric import Rubric
from autorubric.support.frames import Library, in_library
from autorubric.support.objects import Json, is_whole
from autorubric.support.read import dump_structured

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class DatasetSplit(NamedTuple):
    """A dataset split into three parts.

    Attributes:
        train: Items for fitting and few-shot examples.
        dev: Items for tuning prompts and rubrics.
        test: Items for the final evaluation.
    """

    train: RubricDataset
    dev: RubricDataset
    test: RubricDataset


class RubricDataset(BaseDataset):
    """A dataset of items that share a prompt, a rubric and a reference answer.

    Attributes:
        prompt: Prompt that the submissions answer; an item's own prompt takes precedence.
        rubric: Rubric for all items; an item's own rubric takes precedence.
        name: Name of the dataset.
        reference_submission: Reference answer for all items; an item's own takes precedence.
        metadata: Additional data, as JSON.
    """

    def part(self, first: int, step: int) -> Self:
        """Return a dataset of every `step`-th item, starting at position `first`; items keep their ids."""
        positions = range(first, len(self), step)
        if isinstance(self._items, LazyItems):
            return type(self)._of(self._contents()._replace(items=self._items.part(positions)))
        return self.subset(positions)

    def split_train_test(
        self, n_train: int, *, stratify: bool = True, seed: int | None = None
    ) -> tuple[Self, Self]:
        """Split the dataset into a training part of `n_train` items and a test part of the remaining items.

        A stratified split keeps each label's relative frequency as equal as possible in both parts, for each
        criterion, by iterative stratification (Sechidis et al. 2011) on the labels of `item_truth`. Labels
        that are not categories are binned into quarters of [0, 1]. Items keep their ids.

        Args:
            n_train: Number of training items, from 1 to one less than the number of items.
            stratify: Whether to stratify by labels; otherwise the split is random.
            seed: Random seed; None means 0.

        Raises:
            ArgumentError: If `n_train` is not an integer in this range.
        """
        if not is_whole(n_train) or not 0 < n_train < len(self):
            raise ArgumentError(f"n_train must be an integer from 1 to {len(self) - 1}; got {n_train!r}")
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
        """Split the dataset into three disjoint parts for few-shot examples, tuning and evaluation.

        Without groups, each part contains the requested fraction of the items, rounded. If stratified by one
        variable (a criterion, a `metadata` key or a function), each part also contains that fraction of each
        stratum, rounded up or down. If stratified by the labels of several criteria, iterative stratification
        (Sechidis et al. 2011) keeps label frequencies as equal as possible across the parts; labels that are
        not categories are binned into quarters of [0, 1]. Groups are never divided, and part sizes and label
        frequencies are matched as closely as the groups allow. Items keep their ids.

        Args:
            train: Fraction of the items in the training part, above 0.
            dev: Fraction of the items in the development part, above 0.
            test: Fraction of the items in the test part, above 0; the three fractions must sum to 1.
            stratify: True for the labels of all criteria (`item_truth`), False for a random split, a function
                of an item, or a name: a `metadata` key or, for items that do not have the key, a criterion.
                Items that have no label form a separate stratum.
            group: `metadata` key, or function of an item, that identifies items that belong together, such as
                texts by the same author. An item for which the function returns None forms its own group.
            seed: Random seed; None means 0. The same dataset and seed always yield the same parts.

        Raises:
            ArgumentError: If the fractions are not positive or do not sum to 1, a part would be empty, or an
                item does not have the key passed as `stratify` or `group`.
        """
        shares = (train, dev, test)
        sizes = sizes_of(len(self), shares)
        labels = [self._strata_of(i, stratify) for i in range(len(self))]
        if group is not None:
            found = grouped_positions(self.groups(group), labels, shares, seed or 0)
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

    def groups(self, group: str | Callable[[DataItem], Hashable], argument: str = "group") -> list[Hashable]:
        """Return the group of each item; see `split` for `group`, and `argument` is its name in errors."""
        if callable(group):
            given = [group(item) for item in self._items]
            return [("alone", i) if one is None else ("group", one) for i, one in enumerate(given)]
        missing = [i for i, item in enumerate(self._items) if group not in item.metadata]
        if missing:
            raise ArgumentError(self._no_key(missing[0], argument, group))
        return [json.dumps(item.metadata[group], sort_keys=True) for item in self._items]

    def _no_key(self, i: int, argument: str, key: str) -> str:
        there, rubric = sorted(self._items[i].metadata), self._rubric_of(i)
        names = rubric.names if rubric is not None else ("none",)
        criteria = f"; criteria: {', '.join(names)}" * (argument == "stratify")
        return (
            f"{argument}={key!r}: item {self.item_id(i)!r} has no metadata key {key!r}; keys: "
            f"{', '.join(there) or 'none'}{criteria}. You can also pass a function of an item"
        )

    def with_ratings(
        self,
        path: str | Path,
        *,
        labels: Mapping[str, Json] | None = None,
        raters: Collection[str] | None = None,
        rater_type: str | None = "human",
    ) -> Self:
        """Return a copy of the dataset with the ratings of a table added to its items.

        The table is a CSV or TSV file with the columns `item_id, criterion, rater, value` and optionally
        `rater_type` and `sample`, or with `item_id, criterion` and one column per annotator. Rows of other
        items, and of samples after the first (`0`), are skipped, as are empty cells and values such as `NA`,
        `-` and `INVALID`, unless `labels` maps them or they are an option of the criterion.

        Args:
            path: Path of the table.
            labels: Labels by raw value, such as `{"Yes": "MET"}`; a value mapped to None is not a rating.
            raters: Raters to include; by default, all raters of the type.
            rater_type: Type of raters to include; None includes all types.

        Raises:
            DatasetError: If the table cannot be read, has no matching rows, or contains invalid labels. All
                errors are reported.
        """
        items = {self.item_id(i): (self._items[i], self.get_item_rubric(i)) for i in range(len(self))}
        rated = attach_ratings(path, items, labels=labels or {}, raters=raters, rater_type=rater_type)
        return type(self)._of(self._contents()._replace(items=list(rated.values())))

    def to_dict(self) -> dict[str, Json]:
        """Return the complete dataset as a mapping for `from_dict`."""
        return _store.mapping_of(self._contents())

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Create a dataset from a mapping or a list of items, structured like a JSON dataset file."""
        return cls._of(_store.contents_of_mapping(given))

    @property
    def is_streamed(self) -> bool:
        """Whether the items remain in their file and are read on each access."""
        return isinstance(self._items, LazyItems)

    def source_digest(self) -> str | None:
        """Return a digest of a streamed dataset; None if its items are in memory or refer to rubric files."""
        sha256 = self._items.source_sha256() if isinstance(self._items, StreamedItems) else None
        return None if sha256 is None else canonical_sha256([sha256, self._header()])

    def _header(self) -> dict[str, Json]:
        return _store.header_snapshot(self._contents())

    def copy_lines(self, earlier: PreviousSnapshot | None = None) -> Iterator[tuple[bytes, Rubric | None]]:
        """Yield the header and the items as lines for `from_copy`, each with the rubric that it introduces.

        The items that are unchanged are marked in `earlier`.
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
        """Return the first line of a copy, which contains the data that the items share."""
        return line_of(self._header())

    def item_lines(self) -> Iterator[bytes]:
        """Return an iterator over the items' lines in a copy; a copied dataset reads them from its file."""
        if isinstance(self._items, CopiedItems):
            return iter(self._items.rows)
        return (line_of(item.snapshot()) for item in self._items)

    @classmethod
    def from_copy(
        cls, path: Path, starts: Sequence[int] | None = None, substitutes: Mapping[int, bytes] | None = None
    ) -> Self:
        """Open a file written by `copy_lines`; its checks need not be registered.

        starts: Offsets of the lines, if they are not in order; substitutes: other lines, by number from 0.
        """
        return cls._of(stored_contents(path, starts, substitutes))

    def reading_items_of(self, other: RubricDataset) -> Self:
        """Return this dataset with its items read from `other`, which must be a copy of this dataset."""
        return self._of(self._contents()._replace(items=other._items))

    def with_rubric(self, rubric: Rubric) -> Self:
        """Return a copy of the dataset with a different shared rubric.

        Items that have their own rubric keep it. Labels are kept without being validated again.
        """
        return self._of(self._contents()._replace(rubric=rubric))

    def with_items(self, items: Iterable[DataItem]) -> Self:
        """Return a copy of the dataset with different items.

        Raises:
            DatasetError: If ids are not unique or labels do not match their rubric.
        """
        own = self._contents()
        made = type(self)(own.prompt, own.rubric, items, own.name, own.reference_submission, own.metadata)
        made._truth_rule = own.truth_rule
        return made

    def to_json(self) -> str:
        """Return the complete dataset as JSON text."""
        return dump_structured(self.to_dict(), "json")

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """Read a dataset from JSON text or from a file: a `Path`, or a file name with the suffix `.json`."""
        return cls._of(_store.contents_of_text(given))

    def to_file(self, path: str | Path) -> None:
        """Write the dataset as JSON, JSON lines, YAML, CSV, TSV or Parquet; the suffix determines the format.

        A JSON lines file begins with a header line that has the key `format` and contains the shared data. A
        table (CSV, Parquet) omits the dataset's rubric, name and metadata; shared prompts and references are
        written to every row, and the default id of an item is its position.

        Raises:
            ArgumentError: If an item has data that a table cannot store (a rubric, ratings or reasons), or a
                check is not registered.
            FileError: If the suffix is unknown, or the file cannot be written.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        _store.write(path, self._contents(), [self.item_id(i) for i in range(len(self))])

    @classmethod
    def from_file(
        cls, path: str | Path, *, rubric: Rubric | str | Path | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """Read a dataset from a JSON, JSON lines, YAML, CSV, TSV or Parquet file; the suffix sets the format.

        The `rubric` in a file may be the path of a rubric file in the same folder or below. In JSON lines,
        the first line is a header if it has the key `format`. A table has one row per item, with the columns
        `id, submission, description, prompt, reference_submission`, `truth.<criterion>` and `meta.<key>`; an
        empty cell is a missing value, and `submission_json` holds submissions that are not plain text.

        If a file has other columns or keys, `fields` maps them. Columns that are neither mapped nor named
        like a field become metadata.

        Args:
            path: Path of the file.
            rubric: Rubric, or path of a rubric file, that replaces the rubric in the dataset file.
            **fields: Column mapping, such as `submission="response"` or `truth={"clear": "is_clear"}`; see
                `FieldMap`.

        Raises:
            DatasetError: If the file cannot be read or has errors. All errors are reported.
            RubricError: If the rubric file has errors.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        if (read := _store.find_importer(path)) is None:
            return cls._of(_store.contents_of_file(path, given, fields))
        imported: RubricDataset = read(Path(path))
        return cls._of(imported._contents()._replace(rubric=given or imported.rubric))

    @classmethod
    def stream(cls, path: str | Path, *, rubric: Rubric | str | Path | None = None) -> Self:
        """Open a JSON lines or Parquet file as a dataset that reads its items on access.

        Use this for files that do not fit into memory: shared data is read immediately, items are read and
        validated on each access, and only about eight bytes per item stay in memory. All functions that take
        a dataset accept the result. Random access is slower in Parquet files. The file must not change while
        the dataset is in use; a run works on its own copy.

        Args:
            path: Path of the file.
            rubric: Rubric, or path of a rubric file, that replaces the rubric in the dataset file.

        Raises:
            DatasetError: If the file cannot be read or its shared data has errors. Errors in items are raised
                when the first invalid item is reached, together with the errors that follow it.
            RubricError: If the rubric file has errors.
            MissingDependencyError: If the format is Parquet and pyarrow is not installed.
        """
        given = Rubric.from_file(rubric) if isinstance(rubric, (str, Path)) else rubric
        return cls._of(_store.streamed_contents(path, given))

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per item, the columns of `from_file` and Python values.

        The items' ratings, reasons and rubrics are omitted. With `library="polars"`, return a polars
        DataFrame, in which columns of mixed types are text.
        """
        ids = [self.item_id(i) for i in range(len(self))]
        return in_library(
            _tables.frame_of(_tables.table_of_items(self._contents(), ids, texts=False)), library
        )

    @classmethod
    def from_dataframe(
        cls, frame: pd.DataFrame, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]
    ) -> Self:
        """Create a dataset from a pandas or polars DataFrame with the columns of `from_file`.

        Args:
            frame: DataFrame with one row per item; None and NaN are missing values.
            rubric: Rubric of the dataset.
            **fields: Column mapping, such as `submission="response"`, `truth={"clear": "is_clear"}` or
                `truth="label_"`; see `FieldMap`. Columns that are neither mapped nor named like a field
                become metadata.

        Raises:
            ArgumentError: If a name in `fields` is not a field of `FieldMap`.
            DatasetError: If columns are missing or rows have errors. All errors are reported.
        """
        return cls._of(_tables.contents_of_frame(frame, rubric, fields))

    @classmethod
    def from_hf(cls, dataset: Any, *, rubric: Rubric | None = None, **fields: Unpack[FieldMap]) -> Self:
        """Create a dataset from a Hugging Face `datasets.Dataset` or `IterableDataset`.

        Class labels are converted to their names. Columns that are neither in `fields` nor named like a field
        of `DataItem` become metadata.

        Args:
            dataset: Hugging Face dataset, such as one split of a `DatasetDict`.
            rubric: Rubric of the dataset.
            **fields: Column mapping; see `FieldMap`.

        Raises:
            ArgumentError: If `dataset` is not a Hugging Face dataset, or a name in `fields` is
                not a field of `FieldMap`.
            DatasetError: If columns are missing or rows have errors. All errors are reported.
        """
        return cls._of(_store.contents_of_hf(dataset, rubric, fields))


class LabelledAnswer(NamedTuple):
    """The true answer to one criterion of one item."""

    position: int
    submission: Submission
    criterion: BaseCriterion
    answer: Answer


def labelled_answers(dataset: RubricDataset) -> Iterator[LabelledAnswer]:
    """Yield the true answers of the items with a text and without images, in order of items and criteria."""
    for position, item in enumerate(dataset.items):
        submission, truth = Submission.parse(item.submission), dataset.item_truth(position)
        if submission.text is None or submission.images or not truth:
            continue
        rubric = dataset.get_item_rubric(position)
        for name, label in truth.items():
            criterion = rubric.by_name(name).bind(submission)
            answer = criterion.parse_truth(label)
            if answer is not None:
                yield LabelledAnswer(position, submission, criterion, answer)
