"""Tables and rows of other people's making, read as they are."""

from __future__ import annotations

import importlib.util
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from autorubric import Rubric, RubricDataset
from autorubric.errors import ArgumentError, DatasetError
from tests.ci import skip_but_in_ci

RUBRIC = Rubric(
    [
        {"name": "clear", "requirement": "It is clear."},
        {
            "name": "grade",
            "requirement": "How good it is.",
            "options": [{"label": "1", "value": 0.0}, {"label": "2", "value": 1.0}],
        },
    ]
)
ROWS = [
    {"key": 7, "response": "One.", "question": "Count!", "gold": "1", "label_clear": "yes", "label_grade": 2},
    {"key": 8, "response": "Two.", "question": "Count!", "gold": "2", "label_clear": "no", "label_grade": 1},
]
FIELDS: dict[str, Any] = {
    "id": "key",
    "submission": "response",
    "prompt": "question",
    "reference": "gold",
    "truth": "label_",
}


def check(dataset: RubricDataset) -> None:
    """The dataset is that of `ROWS`."""
    assert [dataset.item_id(i) for i in range(2)] == ["7", "8"]
    assert [item.submission for item in dataset] == ["One.", "Two."]
    assert (dataset.get_item_prompt(0), dataset.get_item_reference_submission(1)) == ("Count!", "2")
    read = [RUBRIC.by_name(name).parse_truth(label) for name, label in (dataset.item_truth(0) or {}).items()]
    assert [answer.label for answer in read if answer] == ["MET", "2"]
    assert not any(item.metadata for item in dataset)


def test_a_frame() -> None:
    """A DataFrame is read by the columns that its owner names."""
    check(RubricDataset.from_dataframe(pd.DataFrame(ROWS), rubric=RUBRIC, **FIELDS))


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "parquet"])
def test_a_file(suffix: str, tmp_path: Path) -> None:
    """So is a file in each format."""
    path = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        path.write_text(pd.DataFrame(ROWS).to_csv(index=False), encoding="utf-8")
    elif suffix == "parquet":
        pd.DataFrame(ROWS).to_parquet(path)
    elif suffix == "json":
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    check(RubricDataset.from_file(path, rubric=RUBRIC, **FIELDS))


class HubFeature:
    """A class label as Hugging Face's library has it."""

    def __init__(self) -> None:
        self.names = ["no", "yes"]


class HubDataset:
    """What a Hugging Face dataset can do, as far as it is used."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.column_names = list(rows[0])
        self.features = {"label_clear": HubFeature()}

    def __iter__(self) -> Any:
        return iter(self.rows)


class DatasetDict(dict[str, HubDataset]):
    """Splits by name, as Hugging Face's library holds them."""


def test_an_object_that_can_do_what_a_hub_dataset_can() -> None:
    """It is taken for one, its class labels by their names."""
    rows = [{**row, "label_clear": int(row["label_clear"] == "yes")} for row in ROWS]
    dataset = RubricDataset.from_hf(HubDataset(rows), rubric=RUBRIC, **FIELDS)
    check(dataset)
    assert [item.ground_truth["clear"] for item in dataset if isinstance(item.ground_truth, dict)] == [
        "yes",
        "no",
    ]


def test_a_hub_dataset() -> None:
    """A `datasets.Dataset` is accepted as it is, streamed ones too."""
    if importlib.util.find_spec("datasets") is None:
        skip_but_in_ci("the package datasets is not installed")
    import datasets

    hub = datasets.Dataset.from_list(ROWS)
    check(RubricDataset.from_hf(hub, rubric=RUBRIC, **FIELDS))
    check(RubricDataset.from_hf(hub.to_iterable_dataset(), rubric=RUBRIC, **FIELDS))
    with pytest.raises(ArgumentError, match="'train'"):
        RubricDataset.from_hf(datasets.DatasetDict(train=hub))


def test_splits_are_refused() -> None:
    """The message names the splits, one of which is wanted."""
    given = DatasetDict(train=HubDataset(ROWS), test=HubDataset(ROWS))
    with pytest.raises(ArgumentError, match=r"DatasetDict with the splits 'train', 'test'.*\['train'\]"):
        RubricDataset.from_hf(given)


@pytest.mark.parametrize("given", [None, pd.DataFrame(ROWS), ROWS, {}, {"train": ROWS}])
def test_what_is_no_hub_dataset_is_refused(given: Any) -> None:
    """The message says what to use in its place."""
    with pytest.raises(ArgumentError, match="from_dataframe"):
        RubricDataset.from_hf(given)


def test_what_is_not_named_becomes_metadata() -> None:
    """Other columns are kept, dates as texts; the house's own columns keep their meaning."""
    frame = pd.DataFrame(
        {
            "response": ["a"],
            "submission": [3],
            "prompt": ["p"],
            "model": ["m"],
            "at": pd.to_datetime(["2024-02-03"]),
        }
    )
    item = RubricDataset.from_dataframe(frame, submission="response")[0]
    assert (item.submission, item.prompt) == ("a", "p")
    assert item.metadata == {"submission": 3, "model": "m", "at": "2024-02-03T00:00:00"}
    chosen = RubricDataset.from_dataframe(frame, submission="response", metadata=["model"])[0]
    assert chosen.metadata == {"model": "m"}


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        (pd.Timestamp("2024-02-03"), "2024-02-03T00:00:00"),
        (date(2024, 2, 3), "2024-02-03"),
        (Decimal("1.50"), "1.50"),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pd.Timedelta(days=1), "1 days 00:00:00"),
        (pd.Period("2024-02", "M"), "2024-02"),
        ({"b", "a"}, ["a", "b"]),
        (float("inf"), "inf"),
        ([1, Decimal(2), {"at": date(2024, 2, 3)}], [1, "2", {"at": "2024-02-03"}]),
        (np.array([1.5, 2.0]), [1.5, 2.0]),
        (np.int64(3), 3),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"submission": "text"}])
def test_other_columns_of_a_frame_are_never_an_error(cell: Any, kept: Any, fields: dict[str, Any]) -> None:
    """What JSON lacks becomes text, whether or not columns are named."""
    frame = pd.DataFrame({"text": ["a"], "extra": pd.Series([cell], dtype=object), "none": [None]})
    assert RubricDataset.from_dataframe(frame, **fields)[0].metadata == {"extra": kept}


def test_dates_and_decimals_of_parquet_files_are_metadata(tmp_path: Path) -> None:
    """Also if the file is streamed; labels are read from decimals."""
    rows = {"text": ["a"], "at": [date(2024, 2, 3)], "cost": [Decimal("1.50")], "grade": [Decimal("2")]}
    frame = pd.DataFrame(rows)
    frame.to_parquet(tmp_path / "d.parquet")
    for read in (RubricDataset.from_file, RubricDataset.stream):
        item = read(tmp_path / "d.parquet", rubric=RUBRIC)[0]
        assert (item.metadata, item.ground_truth) == ({"at": "2024-02-03", "cost": "1.50"}, {"grade": "2"})


def test_rows_of_a_file_keep_their_own_labels(tmp_path: Path) -> None:
    """In JSON, labels and metadata under the house's keys stay beside those that are mapped."""
    path = tmp_path / "rows.json"
    row = {"text": "a", "ground_truth": {"clear": "MET"}, "g": "2", "metadata": {"k": 1}, "more": 2}
    path.write_text(json.dumps([row]), encoding="utf-8")
    dataset = RubricDataset.from_file(path, rubric=RUBRIC, submission="text", truth={"grade": "g"})
    assert dataset[0].ground_truth == {"clear": "MET", "grade": "2"}
    assert dataset[0].metadata == {"k": 1, "more": 2}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"submission": "respons"}, "column 'respons' for submission not found. Did you mean 'response'"),
        ({"submission": "response", "reference": "golf"}, "'golf' for reference not found. Did.*'gold'"),
        ({"truth": {"cleer": "label_clear"}}, "'cleer', which is not a criterion.*did you mean 'clear'"),
        ({"truth": {"clear": "label_cleer"}}, "'label_cleer' for truth.clear.*'label_clear'"),
        ({"truth": "lable_"}, "no column begins with 'lable_', the prefix"),
        ({"metadata": ["nosuch"]}, "column 'nosuch' not found. Columns: "),
    ],
)
def test_columns_that_are_not_there(fields: dict[str, Any], message: str) -> None:
    """The nearest right name is told."""
    with pytest.raises(DatasetError, match=message):
        RubricDataset.from_dataframe(pd.DataFrame(ROWS), rubric=RUBRIC, **fields)


def test_all_missing_columns_are_told_at_once() -> None:
    """Not the first alone."""
    with pytest.raises(DatasetError) as caught:
        RubricDataset.from_dataframe(pd.DataFrame(ROWS), submission="x1", prompt="x2", id="x3")
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize(
    "fields",
    [{"submision": "a"}, {"submission": 3}, {"truth": ["a"]}, {"metadata": "a"}, {"truth": {"a": 1}}],
)
def test_fields_that_are_none(fields: dict[str, Any]) -> None:
    """What is no field, or names no column, is refused."""
    with pytest.raises(ArgumentError):
        RubricDataset.from_dataframe(pd.DataFrame(ROWS), **fields)


def test_faults_of_mapped_rows_have_lines(tmp_path: Path) -> None:
    """A row without a submission, and a label that does not fit, come with the line of the file."""
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"text": "a", "l": "MET"}\n{"l": "MET"}\n\n{"text": "b", "l": "so so"}\n', encoding="utf-8"
    )
    with pytest.raises(DatasetError) as caught:
        RubricDataset.from_file(path, rubric=RUBRIC, submission="text", truth={"clear": "l"})
    assert [fault.line for fault in caught.value.faults] == [2, 4]
    assert "'text' is missing" in caught.value.faults[0].message
