"""Parsing of a dataset's parts from the data of a file, with all errors collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from autorubric.datasets.fields import FieldMap
from autorubric.datasets.item import DataItem, JsonDict, PromptValue, TruthRule, label_faults
from autorubric.errors import ArgumentError, DatasetError, FileError
from autorubric.rubric.rubric import Rubric
from autorubric.support.images import image_part
from autorubric.support.objects import Json, fewer_gc_collections
from autorubric.support.read import format_fault
from autorubric.support.reading_errors import Faults, FilePath, short_repr

FORMAT: Final = 1
"""Newest version of the dataset file format that can be read, and the version that is written."""


class Header(BaseModel):
    """The data that the items of a dataset file share."""

    model_config = ConfigDict(extra="forbid")

    format: Any = FORMAT
    name: str | None = None
    prompt: PromptValue = None
    reference_submission: str | None = None
    metadata: JsonDict = Field(default_factory=dict)
    rubric: Any = None


class Contents(NamedTuple):
    """The parts of a dataset."""

    prompt: Json
    rubric: Rubric | None
    name: str | None
    reference_submission: str | None
    metadata: dict[str, Json]
    items: Sequence[DataItem]
    truth_rule: TruthRule | None = None
    fields: FieldMap | None = None
    pairs: Sequence[tuple[str, str]] = ()


class DatasetReader:
    """A parser for the parts of a dataset, which reads each rubric file that the dataset names only once."""

    def __init__(self, faults: Faults, folder: Path | None = None) -> None:
        self.faults = faults
        self.named_files = 0  # rubrics and images read so far
        self._folder = folder
        self._rubrics: dict[str, Rubric | None] = {}

    @fewer_gc_collections()
    def contents(
        self,
        header: Mapping[str, Json],
        items: Iterable[tuple[FilePath, Json]],
        *,
        header_at: FilePath = (),
        rubric: Rubric | None = None,
    ) -> Contents:
        """Return the parts of a dataset."""
        shared = self.shared(header, header_at=header_at, rubric=rubric)
        places, read = [], []
        for path, given in items:
            places.append(path)
            read.append(self.item(given, path))
        _check_items(places, read, shared.rubric, self.faults)
        self.faults.raise_as(DatasetError)
        return shared._replace(items=[item for item in read if item is not None])

    def shared(
        self, header: Mapping[str, Json], *, header_at: FilePath = (), rubric: Rubric | None = None
    ) -> Contents:
        """Return the shared data of a dataset without its items; for the arguments, see `contents`."""
        if fault := format_fault(header.get("format", 1), FORMAT):
            self.faults.add((*header_at, "format"), fault)
            # The keys of another format version are unknown.
            self.faults.raise_as(DatasetError)
        read = self.faults.validate(Header, header, header_at) or Header()
        own = self.rubric(header.get("rubric"), (*header_at, "rubric"))
        rubric = own if rubric is None else rubric
        return Contents(read.prompt, rubric, read.name, read.reference_submission, read.metadata, items=[])

    def item(self, given: Json, at: FilePath) -> DataItem | None:
        """Parse one item; return None if it has errors."""
        if not isinstance(given, dict):
            if isinstance(given, DataItem):
                return given
            if not isinstance(given, Mapping):
                self.faults.add(at, f"an item must be a mapping with 'submission'; got {short_repr(given)}")
                return None
            given = {**given}
        texts = [key for key in ("submission", "prompt") if isinstance(given.get(key), list | dict)]
        if given.get("rubric") is None and not texts:
            return self.faults.validate(DataItem, given, at)
        before = len(self.faults)
        read = {key: self._with_images(given[key], (*at, key)) for key in texts if self._folder is not None}
        read["rubric"] = self.rubric(given.get("rubric"), (*at, "rubric"))
        item = self.faults.validate(DataItem, {**given, **read}, at) if len(self.faults) == before else None
        return item if len(self.faults) == before else None

    def _with_images(self, value: Json, at: FilePath) -> Json:
        """Return a submission or prompt with the images in files that it names."""
        if isinstance(value, list):
            return [self._with_images(one, (*at, place)) for place, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        image = value.get("image_url") if value.get("type") == "image_url" else None
        name, sha256 = (image.get("url"), image.get("sha256")) if isinstance(image, dict) else (image, None)
        if not isinstance(name, str) or ":" in name:
            return {key: self._with_images(one, (*at, key)) for key, one in value.items()}
        path = self._named_file(name, at)
        try:
            return value if path is None else image_part(path, sha256=sha256)
        except (ArgumentError, FileError) as error:
            self.faults.add(at, error.faults[0].message if isinstance(error, FileError) else str(error))
            return value

    def rubric(self, given: Json, at: FilePath) -> Rubric | None:
        """Return the rubric in the data, or in a file that the data names; None if missing or invalid."""
        if given is None or isinstance(given, Rubric):
            return given
        if not isinstance(given, str):
            return Rubric._read_inside(given, self.faults, at)
        if given not in self._rubrics:
            self._rubrics[given] = self._rubric_file(given, at)
        return self._rubrics[given]

    def _rubric_file(self, name: str, at: FilePath) -> Rubric | None:
        if self._folder is None:
            message = f"{name!r} is a file name, which is supported only in dataset files; pass the rubric"
            self.faults.add(at, message)
            return None
        path = self._named_file(name, at)
        try:
            return None if path is None else Rubric.from_file(path)
        except FileError as error:
            for fault in error.faults:
                self.faults.add(at, f"in {name}: {fault}")
            return None

    def _named_file(self, name: str, at: FilePath) -> Path | None:
        """Return the path of a file in or below the dataset's folder."""
        assert self._folder is not None
        self.named_files += 1
        try:
            path = (self._folder / name).resolve()
        # The name contains a NUL, or there is a cycle of symbolic links.
        except (OSError, ValueError, RuntimeError) as error:
            self.faults.add(at, f"{name!r} is not a path: {error}")
            return None
        if Path(name).is_absolute() or not path.is_relative_to(self._folder.resolve()):
            self.faults.add(at, f"{name!r} is outside the dataset's folder; use a file in or below it")
            return None
        return path


def _check_items(
    places: Iterable[FilePath], items: Iterable[DataItem | None], rubric: Rubric | None, faults: Faults
) -> None:
    """Report duplicate ids and labels that do not match their rubric; None is an item with errors."""
    first: dict[str, int] = {}
    for position, (path, item) in enumerate(zip(places, items, strict=True)):
        if item is None:
            continue
        item_id = item.id or str(position)
        before = first.setdefault(item_id, position)
        if before != position:
            faults.add((*path, "id"), repeated_id(item_id, before))
        check_labels(item, item_id, rubric, faults, path)


def repeated_id(item_id: str, first: int) -> str:
    """Return the error message for an id that an earlier item has."""
    return (
        f"the id {item_id!r} is already used by item {first}; ids must be unique, and the default id is the "
        "item's position. Take the ids from another column with --id COLUMN, or keep the column as metadata "
        'with --meta id (id="COLUMN" or metadata=["id"] in Python)'
    )


def check_labels(item: DataItem, item_id: str, rubric: Rubric | None, faults: Faults, at: FilePath) -> None:
    """Report labels of an item that match neither its own rubric nor the dataset's rubric."""
    own = rubric if item.rubric is None else item.rubric
    for fault in label_faults(item, own) if own is not None else ():
        group = fault.reason and (fault.path, fault.reason)
        faults.add((*at, *fault.path), f"item {item_id!r}: {fault.message}", group=group)
