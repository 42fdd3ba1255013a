"""Merging labels into a dataset, and saving single labels into the file that it was read from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from autorubric.datasets.csv_files import CSV_SUFFIXES, read_csv, replace_cells
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.fields import TRUTH, FieldMap
from autorubric.datasets.item import DataItem, all_by_name, bind_item
from autorubric.datasets.ratings import Label, read_labels
from autorubric.datasets.store import FORMATS
from autorubric.errors import ArgumentError, DatasetError, ReplyError
from autorubric.support.names import match_name
from autorubric.support.objects import Json
from autorubric.support.reading_errors import Faults, nearest_key, short_repr
from autorubric.support.write import write_text_atomic

DISPUTED: Final = "disputed"
"""Metadata key of items for adjudication, under which their votes are stored by criterion."""

_SOURCES: Final = "label_sources"
_ADJUDICATED: Final = "adjudicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedLabels:
    """A dataset with labels merged from files.

    Attributes:
        dataset: The dataset with the labels.
        n_labels: Number of labels added.
        raters: Names of the annotators who assigned the labels, in order of appearance.
        notices: Messages about labels that were skipped or replaced, with reasons.
    """

    dataset: RubricDataset
    n_labels: int
    raters: tuple[str, ...]
    notices: tuple[str, ...]


def merge_labels(
    dataset: RubricDataset,
    paths: Sequence[str | Path],
    *,
    disputed: RubricDataset | None = None,
    latest: bool = False,
) -> MergedLabels:
    """Merge labels that annotators saved on annotation pages into a dataset.

    Labels become ratings. If a rater labelled the same criterion of an item several times, the last label
    is used. The item's metadata records each label's time, source (file and line) and reason under
    `label_sources`, by rater and criterion. Labels for unknown items or criteria, or for items whose text
    has since changed, are skipped with a notice.

    With `disputed`, the labels become the ground truth of the disputed criteria. The item's metadata records
    under `adjudicated`, by criterion, who decided (`by`), when (`time`), in which file (`source`), why
    (`reason`), based on which votes (`votes`), and which label was replaced (`before`). If adjudicators
    disagree, no label is set, and a notice is added, unless `latest` is True.

    Args:
        dataset: Dataset that the labels belong to.
        paths: Label files (JSON lines).
        disputed: Items labelled for adjudication, as returned by `disputed_items`.
        latest: Whether the latest label is used if adjudicators disagree.

    Raises:
        DatasetError: If a file has errors, labels do not match their criteria, or no label belongs to the
            dataset.
        ArgumentError: If an item's metadata already contains other data under these keys.
    """
    merging = _LabelMerger(dataset)
    kept = merging.keep_last(merging.select_valid(read_labels(paths), [str(path) for path in paths]))
    if disputed is None:
        items = merging.add_ratings(kept)
    else:
        disputed_votes = {
            disputed.item_id(i): item.metadata.get(DISPUTED, {}) for i, item in enumerate(disputed.items)
        }
        kept = merging.select_disputed(kept, disputed_votes, latest=latest)
        items = merging.set_truth(kept, disputed_votes)
    raters = tuple(dict.fromkeys(label.rater for label in kept))
    return MergedLabels(
        dataset=dataset.with_items(items), n_labels=len(kept), raters=raters, notices=tuple(merging.notices)
    )


def _earlier_records(item: DataItem, key: str, item_id: str) -> Mapping[str, Any]:
    """Return the records of earlier merges under a metadata key, which may contain other data."""
    kept = item.metadata.get(key, {})
    if isinstance(kept, Mapping) and all(isinstance(one, Mapping) for one in kept.values()):
        return kept
    raise ArgumentError(
        f"the metadata key {key!r} of item {item_id!r} is reserved for the sources of merged labels; got "
        f"{short_repr(kept)}. Rename the key"
    )


def _latest(labels: Sequence[Label]) -> Label:
    """Return the last label, by time and then by order."""
    return max(enumerate(labels), key=lambda one: (one[1].time, one[0]))[1]


class _LabelMerger:
    def __init__(self, dataset: RubricDataset) -> None:
        self._dataset = dataset
        self._places = {item_id: i for i, item_id in enumerate(dataset.item_ids())}
        self._raters = {rater for item in dataset.items for rater in item.ratings}
        self.notices: list[str] = []

    def select_valid(self, labels: Sequence[Label], files: Sequence[str]) -> list[Label]:
        """Return the labels that belong to the dataset; raise errors for labels with invalid values."""
        faults, fitting = Faults(", ".join(files)), []
        left_out: Counter[str] = Counter()
        for label in labels:
            reason = self._why_skipped(label)
            if reason is not None:
                left_out[reason] += 1
                continue
            place = self._places[label.item_id]
            rubric = self._dataset.get_item_rubric(place)
            name, rater = match_name(label.criterion, rubric.names), match_name(label.rater, self._raters)
            label = label.model_copy(update={"criterion": name, "rater": rater or label.rater})
            criterion = rubric.by_name(label.criterion)
            try:
                bind_item(criterion, self._dataset.items[place]).parse_truth(label.value)
            except ReplyError as error:
                faults.add((), f"{label.source}: item {label.item_id!r}: {error}")
                continue
            fitting.append(label)
        self.notices += [f"skipped {count} labels {reason}" for reason, count in left_out.items()]
        if not fitting and not faults:
            why = "; ".join(self.notices) or "the files contain no labels"
            faults.add((), f"no label belongs to an item of the dataset: {why}")
        faults.raise_as(DatasetError)
        return fitting

    def _why_skipped(self, label: Label) -> str | None:
        place = self._places.get(label.item_id)
        if place is None:
            return f"of {label.item_id!r}, which is not an item; {nearest_key(label.item_id, self._places)}"
        rubric = self._dataset.get_item_rubric(place)
        if match_name(label.criterion, rubric.names) is None:
            hint = nearest_key(label.criterion, rubric.names)
            return f"on {label.criterion!r}, which is not a criterion; {hint}"
        if label.sha256 and label.sha256 != self._dataset.item_fingerprint(place):
            return f"of {label.item_id!r}, whose text has changed since"
        return None

    def keep_last(self, labels: Sequence[Label]) -> list[Label]:
        """Return each rater's last label for each criterion of an item, by time and then by order."""
        found: dict[tuple[str, str, str], list[Label]] = {}
        for label in labels:
            found.setdefault((label.rater, label.criterion, label.item_id), []).append(label)
        kept = []
        for (rater, criterion, item_id), given in found.items():
            chosen = _latest(given)
            if any(one.value != chosen.value for one in given):
                self.notices.append(
                    f"{rater!r} labelled {criterion!r} of {item_id!r} {len(given)} times; the last label "
                    f"counts, {short_repr(chosen.value)} ({chosen.source})"
                )
            kept.append(chosen)
        return kept

    def add_ratings(self, labels: Iterable[Label]) -> list[DataItem]:
        """Return the items with the labels among their ratings."""
        items = list(self._dataset.items)
        for label in labels:
            place = self._places[label.item_id]
            item = items[place]
            own = all_by_name(item.ratings.get(label.rater), self._dataset.get_item_rubric(place))
            kept = _earlier_records(item, _SOURCES, label.item_id)
            mine = kept.get(label.rater, {})
            if label.criterion in own and own[label.criterion] != label.value:
                older = label.time < mine.get(label.criterion, {}).get("time", "")
                given, known = f"{short_repr(label.value)} ({label.source})", short_repr(own[label.criterion])
                what = f"is older than {known}, which is kept" if older else f"replaces {known}"
                cell = f"{label.rater!r} on {label.criterion!r} of {label.item_id!r}"
                self.notices.append(f"{cell}: {given} {what}")
                if older:
                    continue
            source = {key: getattr(label, key) for key in ("time", "source", "reason") if getattr(label, key)}
            ratings: dict[str, Any] = {**item.ratings, label.rater: {**own, label.criterion: label.value}}
            sources = {**kept, label.rater: {**mine, label.criterion: source}}
            update = {"ratings": ratings, "metadata": {**item.metadata, _SOURCES: sources}}
            items[place] = item.model_copy(update=update)
        return items

    def select_disputed(
        self, labels: Iterable[Label], disputed_votes: Mapping[str, Mapping[str, Any]], *, latest: bool
    ) -> list[Label]:
        """Return one label for each disputed criterion of an item: the latest, or none if they differ."""
        cells: dict[tuple[str, str], list[Label]] = {}
        outside = 0
        for label in labels:
            if label.criterion in disputed_votes.get(label.item_id, {}):
                cells.setdefault((label.criterion, label.item_id), []).append(label)
            else:
                outside += 1
        if outside:
            self.notices.append(f"skipped {outside} labels of criteria that were not in dispute")
        kept = []
        for (criterion, item_id), given in cells.items():
            if not latest and any(one.value != given[0].value for one in given):
                votes = ", ".join(f"{one.rater!r} says {short_repr(one.value)}" for one in given)
                self.notices.append(f"{criterion!r} of {item_id!r} was not decided because {votes}")
            else:
                kept.append(_latest(given))
        return kept

    def set_truth(
        self, labels: Iterable[Label], disputed_votes: Mapping[str, Mapping[str, Any]]
    ) -> list[DataItem]:
        """Return the items with the labels as ground truth, and with the sources of the labels."""
        items = list(self._dataset.items)
        for label in labels:
            place = self._places[label.item_id]
            item = items[place]
            truth = all_by_name(item.ground_truth, self._dataset.get_item_rubric(place))
            record = {
                "by": label.rater,
                "time": label.time,
                "source": label.source,
                "reason": label.reason,
                "votes": disputed_votes[label.item_id][label.criterion],
                "before": truth.get(label.criterion),
            }
            kept = {key: value for key, value in record.items() if value not in ("", None)}
            metadata = {
                **item.metadata,
                _ADJUDICATED: {**_earlier_records(item, _ADJUDICATED, label.item_id), label.criterion: kept},
            }
            update = {"ground_truth": {**truth, label.criterion: label.value}, "metadata": metadata}
            items[place] = item.model_copy(update=update)
        return items


LabelCells = Mapping[int, Mapping[str, Json]]
"""Labels by item position and criterion name."""


def check_savable(dataset: RubricDataset, path: str | Path) -> None:
    """Check that `save_truth` can write to the file."""
    suffix = Path(path).suffix.lower()
    writable = suffix in FORMATS and FORMATS[suffix].saves_labels
    if not writable or (suffix not in CSV_SUFFIXES and dataset.field_map):
        what = "a file whose keys differ from the dataset format" if writable else suffix
        raise ArgumentError(
            f"{path}: labels cannot be saved into {what}; use `autorubric labels merge` instead"
        )


def save_truth(
    dataset: RubricDataset, path: str | Path, cells: LabelCells, fields: FieldMap | None = None
) -> None:
    """Save new labels to the file that the dataset was read from; in a CSV file, only their cells change."""
    if Path(path).suffix.lower() not in CSV_SUFFIXES:
        dataset.to_file(path)
        return
    table = read_csv(path)
    if len(table.cells) != len(dataset):
        message = f"label not saved: the file has {len(table.cells)} rows, the dataset {len(dataset)}"
        raise DatasetError.whole(path, message)
    named = (fields or {}).get("truth", TRUTH)
    prefix, own = (named, dict[str, str]()) if isinstance(named, str) else (TRUTH, named)
    columns = {
        place: {
            own.get(criterion, prefix + criterion): (
                label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
            )
            for criterion, label in labels.items()
        }
        for place, labels in cells.items()
    }
    write_text_atomic(path, replace_cells(table, columns))
