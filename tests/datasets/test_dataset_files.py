"""Datasets from and to files and frames."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundInt, TextField, register_kind
from autorubric.datasets import DataItem, RubricDataset
from autorubric.datasets.labels import save_truth
from autorubric.errors import ArgumentError, DatasetError, MissingDependencyError, RubricError
from autorubric.rubric import Rubric


@register_kind("test_points")
class PointsCriterion(BaseCriterion):
    """Whole points and extra ones."""

    points: BoundInt = BoundInt(min_val=0, max_val=10)
    extra: BoundInt = BoundInt(min_val=0, max_val=2)
    explanation: TextField = TextField()


@register_kind("test_level")
class LevelCriterion(BaseCriterion):
    """A level."""

    rung: BoundInt = BoundInt(min_val=0, max_val=10)


OPTIONS = [{"label": "1.0", "value": 0.0}, {"label": "2.0", "value": 1.0}, {"label": "NA", "na": True}]
RUBRIC = Rubric(
    [
        {"name": "met", "requirement": "x"},
        {"name": "a scale", "requirement": "x", "options": OPTIONS},
        {"name": "points", "type": "test_points"},
        {"name": "level", "type": "test_level"},
    ],
    guidelines="Be fair.",
)
SETTINGS = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SUBMISSION = (
    st.none()
    | TEXT
    | st.builds(lambda thinking, output: {"thinking": thinking, "output": output}, TEXT, TEXT)
    | st.dictionaries(
        TEXT.filter(lambda name: name not in ("thinking", "output")), TEXT, min_size=1, max_size=3
    )
    | st.lists(
        st.builds(
            lambda role, content: {"role": role, "content": content},
            st.sampled_from(["user", "tool_1"]),
            TEXT,
        ),
        min_size=1,
        max_size=2,
    )
)
TRUTH = {
    "met": st.sampled_from(["MET", "UNMET", "CANNOT_ASSESS"]),
    "a scale": st.sampled_from(["1.0", "2.0", "NA", "CANNOT_ASSESS"]),
    "points": st.builds(
        lambda points, text: {"points": points, "extra": 1, "explanation": text}, st.integers(0, 10), TEXT
    ),
    "level": st.integers(0, 10),
}
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ITEM = st.fixed_dictionaries(
    {"submission": SUBMISSION},
    optional={
        "description": TEXT,
        "prompt": TEXT,
        "reference_submission": TEXT,
        "ground_truth": st.fixed_dictionaries({}, optional=TRUTH).filter(bool),
        "metadata": st.dictionaries(TEXT, JSON, max_size=2),
    },
)
LABELS_IN_ORDER = st.tuples(*(label | st.none() for label in TRUTH.values())).map(list)
RICH_ITEM = st.builds(
    lambda item, more: {**item, **more},
    ITEM,
    st.fixed_dictionaries(
        {},
        optional={
            "ground_truth": LABELS_IN_ORDER,
            "ratings": st.dictionaries(TEXT, LABELS_IN_ORDER, max_size=2),
            "reasons": st.dictionaries(st.sampled_from(RUBRIC.names), TEXT, max_size=2),
            "rubric": st.just(RUBRIC),
        },
    ),
)


def with_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items with an id each."""
    return [{**item, "id": f"item {place}"} for place, item in enumerate(items)]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "yaml"])
@SETTINGS
@given(
    items=st.lists(RICH_ITEM, max_size=3),
    shared=st.fixed_dictionaries(
        {},
        optional={
            "prompt": TEXT,
            "reference_submission": TEXT,
            "name": TEXT,
            "metadata": st.dictionaries(TEXT, JSON),
        },
    ),
)
def test_round_trip_loses_nothing(suffix: str, items: Any, shared: Any, tmp_path: Path) -> None:
    """A dataset comes back from JSON, JSON lines and YAML as it was."""
    dataset = RubricDataset(rubric=RUBRIC, items=items, **shared)
    path = tmp_path / f"d.{suffix}"
    dataset.to_file(path)
    assert RubricDataset.from_file(path) == dataset


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@SETTINGS
@given(items=st.lists(ITEM, max_size=3).map(with_ids))
@example(items=[{"submission": "x", "id": "a", "metadata": {"": "", "a": "1", "b": None}}])
def test_tables_keep_items(suffix: str, items: Any, tmp_path: Path) -> None:
    """Items come back from a table as they were: texts, structured submissions, labels and metadata."""
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    path = tmp_path / f"d.{suffix}"
    dataset.to_file(path)
    assert RubricDataset.from_file(path, rubric=RUBRIC).items == dataset.items


@SETTINGS
@given(items=st.lists(ITEM, max_size=3).map(with_ids))
def test_frames_keep_items(items: Any) -> None:
    """Items come back from a DataFrame as they were."""
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    assert RubricDataset.from_dataframe(dataset.to_dataframe(), rubric=RUBRIC).items == dataset.items


def test_dict_and_json_round_trip() -> None:
    """A dataset comes back from its mapping, its text, and a bare list of items."""
    dataset = RubricDataset("p", RUBRIC, [DataItem(submission="x", id="a")], name="n", metadata={"k": [1]})
    assert RubricDataset.from_dict(dataset.to_dict()) == dataset
    assert RubricDataset.from_json(dataset.to_json()) == dataset
    assert dataset.to_dict()["format"] == 1
    assert RubricDataset.from_json('[{"submission": "x"}]') == RubricDataset(items=[DataItem(submission="x")])


def test_from_json_takes_a_path(tmp_path: Path) -> None:
    """`from_json` takes a path too."""
    dataset = RubricDataset(items=[DataItem(submission="x")])
    path = tmp_path / "d.json"
    path.write_text(dataset.to_json(), encoding="utf-8")
    assert RubricDataset.from_json(path) == RubricDataset.from_json(str(path)) == dataset


def test_json_lines_header(tmp_path: Path) -> None:
    """The first line is a header if it has the key `format`; without one all lines are items."""
    path = tmp_path / "d.jsonl"
    path.write_text('{"submission": "x"}\n{"submission": "y"}\n', encoding="utf-8")
    assert len(RubricDataset.from_file(path)) == 2
    path.write_text('{"format": 1, "name": "n"}\n{"submission": "x"}\n', encoding="utf-8")
    dataset = RubricDataset.from_file(path)
    assert (dataset.name, len(dataset), dataset.item_id(0)) == ("n", 1, "0")


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        ("json", '{"items": [\n{"submission": "x"},\n{"submission": "y",\n "promt": "z"}]}', 4),
        ("yaml", "items:\n- submission: x\n- submission: y\n  promt: z\n", 4),
        ("jsonl", '{"format": 1}\n{"submission": "x"}\n\n{"submission": "y", "promt": "z"}', 4),
    ],
)
def test_faults_have_lines(suffix: str, text: str, line: int, tmp_path: Path) -> None:
    """A fault in a file comes with its line."""
    path = tmp_path / f"d.{suffix}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"promt'.*did you mean 'prompt'") as caught:
        RubricDataset.from_file(path)
    assert caught.value.faults[0].line == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "x"}', "a dataset must be a list of items, or a mapping with a list 'items'"),
        ("5", "a dataset must be a list of items"),
        ('{"items": {}}', "a dataset must be a list of items"),
        ('{"items": [], "promt": 1}', "promt (line 1): unknown key 'promt'; did you mean 'prompt'?"),
        ('{"items": [], "format": 2, "new_key": 1}', "1 error\n  - format (line 1): format 2 is newer"),
        ('{"items": [{"submission": "x", "id": [5]}]}', "items[0].id (line 1): expected a string"),
        ('{"items": [{"submission": "x", "id": ""}]}', "items[0].id (line 1): String should have at least 1"),
    ],
)
def test_faulty_files(text: str, message: str) -> None:
    """What is no dataset says what is wrong; a newer format says nothing else."""
    with pytest.raises(DatasetError) as caught:
        RubricDataset.from_json(text)
    assert message in str(caught.value)


def test_missing_files_and_formats(tmp_path: Path) -> None:
    """A missing file and an unknown suffix are named."""
    for suffix in ("json", "csv", "parquet"):
        with pytest.raises(DatasetError, match=r"file not found|No such file"):
            RubricDataset.from_file(tmp_path / f"none.{suffix}")
    with pytest.raises(DatasetError, match=r"is not supported.*\.csv, \.tsv, \.parquet"):
        RubricDataset.from_file(tmp_path / "d.toml")
    with pytest.raises(DatasetError, match="save the file as CSV"):
        RubricDataset().to_file(tmp_path / "d.xlsx")


# Rubrics in files of their own


def folder_with_rubric(tmp_path: Path, reference: str) -> Path:
    """A dataset file in a folder, beside and below which rubrics lie."""
    folder = tmp_path / "data"
    (folder / "rubrics").mkdir(parents=True)
    for place in (tmp_path, folder, folder / "rubrics"):
        RUBRIC.to_file(place / "rubric.yaml")
    path = folder / "d.json"
    items = [{"submission": "x", "rubric": reference}, {"submission": "y", "rubric": reference}]
    path.write_text(json.dumps({"rubric": reference, "items": items}), encoding="utf-8")
    return path


@pytest.mark.parametrize("reference", ["rubric.yaml", "rubrics/rubric.yaml", "./rubric.yaml"])
def test_rubrics_beside_the_dataset(reference: str, tmp_path: Path) -> None:
    """A dataset, and an item, may name a rubric file in the dataset's folder or below."""
    dataset = RubricDataset.from_file(folder_with_rubric(tmp_path, reference))
    assert dataset.rubric == RUBRIC
    assert dataset[0].rubric is dataset.rubric


@pytest.mark.parametrize(
    "reference", ["../rubric.yaml", "rubrics/../../rubric.yaml", "ABSOLUTE", "link.yaml"]
)
def test_rubrics_elsewhere_are_refused(reference: str, tmp_path: Path) -> None:
    """A rubric file outside the dataset's folder is refused, by whatever way it is named."""
    reference = str(tmp_path / "data" / "rubric.yaml") if reference == "ABSOLUTE" else reference
    path = folder_with_rubric(tmp_path, reference)
    (path.parent / "link.yaml").symlink_to(tmp_path / "rubric.yaml")
    with pytest.raises(DatasetError, match="is outside the dataset's folder"):
        RubricDataset.from_file(path)


def test_faults_of_a_rubric_beside(tmp_path: Path) -> None:
    """Faults of the rubric's file are reported with the dataset's, once."""
    path = folder_with_rubric(tmp_path, "bad.yaml")
    (path.parent / "bad.yaml").write_text("- requirement: x\n  wieght: 1\n", encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        RubricDataset.from_file(path)
    assert len(caught.value.faults) == 1
    assert "rubric (line 1): in bad.yaml: [0].wieght (line 2): unknown key" in str(caught.value)
    with pytest.raises(DatasetError, match="file not found"):
        RubricDataset.from_file(folder_with_rubric(tmp_path / "again", "none.yaml"))


def test_a_rubric_given_with_the_file(tmp_path: Path) -> None:
    """A rubric, or its file, given with the file takes the place of the file's own."""
    path = tmp_path / "d.csv"
    path.write_text("submission,truth.met\nx,yes\n", encoding="utf-8")
    RUBRIC.to_file(tmp_path / "r.toml")
    for rubric in (RUBRIC, tmp_path / "r.toml", str(tmp_path / "r.toml")):
        dataset = RubricDataset.from_file(path, rubric=rubric)
        assert dataset.rubric == RUBRIC
        assert dataset.item_truth(0) == {"met": "yes"}
    with pytest.raises(RubricError, match="file not found"):
        RubricDataset.from_file(path, rubric="none.yaml")
    RubricDataset(rubric=[{"name": "other", "requirement": "x"}]).to_file(tmp_path / "d.json")
    assert RubricDataset.from_file(tmp_path / "d.json", rubric=RUBRIC).rubric == RUBRIC


# Tables


def read_csv(tmp_path: Path, text: str, rubric: Rubric | None = RUBRIC) -> RubricDataset:
    """The dataset in a CSV file with this text."""
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode("utf-8"))
    return RubricDataset.from_file(path, rubric=rubric)


def test_a_table_of_another_hand(tmp_path: Path) -> None:
    """A table as people make them: a byte order mark, quotes, blank lines, numbers, empty cells."""
    dataset = read_csv(
        tmp_path,
        "\ufeffid,submission,truth.met,truth.a scale,truth.level,meta.year,meta.note\n"
        '7,"one, ""two""\nthree",yes,1.0,7,2024,007\n'
        "\n"
        "8,,,,,,\n",
    )
    assert dataset[0] == DataItem(
        id="7",
        submission='one, "two"\nthree',
        ground_truth={"met": "yes", "a scale": "1.0", "level": 7},
        metadata={"year": 2024, "note": "007"},
    )
    assert dataset[1] == DataItem(id="8", submission=None)


def test_json_in_a_text_stays_text(tmp_path: Path) -> None:
    """A submission that looks like JSON is a text unless it stands in the column for JSON."""
    text = '{""output"": ""x""}'
    dataset = read_csv(tmp_path, f'submission,submission_json\n"{text}",\n,"{text}"\n')
    assert [item.submission for item in dataset] == ['{"output": "x"}', {"output": "x"}]


def test_long_fields(tmp_path: Path) -> None:
    """A text longer than the CSV reader's usual bound is read."""
    long = "x" * 300_000
    assert read_csv(tmp_path, f"submission\n{long}\n")[0].submission == long


def test_labels_without_a_rubric_stay_text(tmp_path: Path) -> None:
    """Without a rubric a label in a table is the text in its cell."""
    dataset = read_csv(tmp_path, "submission,truth.any\nx,3\n", rubric=None)
    assert dataset.item_truth(0) == {"any": "3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n", "the file is empty"),
        (
            "note,year\nx,1\n",
            "\n  - (line 1): column 'submission' not found. Columns: note, year. Use --submission NAME",
        ),
        ("submision\nx\n", "column 'submission' not found. Did you mean 'submision'?"),
        ("submission,submission\nx,y\n", "the column 'submission' appears twice"),
        ("truth.met,submission,truth.met\nMET,y,MET\n", "the column 'truth.met' appears twice"),
        ("bot_reply,prompt,bot_reply\nx,y,z\n", "the column 'bot_reply' appears twice"),
        ("submission,id\nx\n", "(line 2): the row has 1 cells, but the header has 2"),
        ('submission\n"x\n', "(line 2): invalid CSV: unexpected end of data"),
        ("submission,truth.met\nx,yes\ny,maybe\n", "(line 3): item '1': met: 'maybe' is not a verdict"),
        (
            "submission,truth.met\nx,yes\ny,maybe\nz,perhaps\n",
            ": 1 error\n  - column 'truth.met' (2 cells, first in line 3): item '1': met: 'maybe' is not a "
            "verdict; allowed: MET (also yes, y, true, t, pass, 1), UNMET (also no, n, false, f, fail, 0), ",
        ),
        ('submission,note\nx,"a "b" c"\n', "A cell that contains quotation marks must be in quotation marks"),
        ("submission,note\nx,y,,z\n", "(line 2): the row has 4 cells, but the header has 2"),
        ("submission,submission_json\n,{x\n", "or --meta submission_json to keep it as metadata"),
        ("id,submission\na,x\na,y\n", "rows[1].id (line 3): the id 'a' is already used by item 0"),
        ("id,submission\na,x\na,y\n", "--id COLUMN, or keep the column as metadata with --meta id"),
    ],
)
def test_faulty_tables(text: str, message: str, tmp_path: Path) -> None:
    """A faulty table says what is wrong and on which line."""
    with pytest.raises(DatasetError) as caught:
        read_csv(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        pytest.param(b"sep=;\nsubmission;note\nx;caf\xc3\xa9\n", ["café"], id="separator"),
        pytest.param("sep=;\r\nsubmission;note\r\nx;a,b\r\n".encode("utf-8-sig"), ["a,b"], id="Excel"),
        pytest.param("submission\tnote\nx\tcafé\n".encode("utf-16"), ["café"], id="UTF-16"),
        pytest.param("submission,note\nx,日\n".encode("utf-16-be").join((b"\xfe\xff", b"")), ["日"], id="BE"),
        pytest.param(b"submission,note\nx,a\n,\ny,b\n , \n,,,\n", ["a", "b"], id="empty rows"),
        pytest.param(b"submission,note\nx,a,,\ny,b, \n", ["a", "b"], id="empty cells"),
        pytest.param(b'submission\tnote\n"x\ty"\ta""b\n', ['a""b'], id="quotes around a tab"),
    ],
)
def test_tables_as_spreadsheets_save_them(content: bytes, notes: list[str], tmp_path: Path) -> None:
    """Their encodings, the line that names the delimiter, and rows without a text in any cell."""
    (tmp_path / "d.csv").write_bytes(content)
    dataset = RubricDataset.from_file(tmp_path / "d.csv")
    assert [item.metadata["note"] for item in dataset] == notes


def test_literal_quotation_marks_in_a_file_with_tabs(tmp_path: Path) -> None:
    """They are text if they do not enclose cells, with a warning; a row of another length is an error."""
    with pytest.warns(UserWarning, match="quotation marks do not enclose cells, so they are read as text"):
        dataset = read_csv(tmp_path, 'submission\tnote\nx\t"a" b\n"y" z\t5"\n', None)
    assert [item.metadata["note"] for item in dataset] == ['"a" b', '5"']
    with pytest.raises(DatasetError, match=r"\(line 3\): the row has 1 cells"):
        read_csv(tmp_path, 'submission\tnote\n"a ""b"" c"\tx\n"y\tz"\n', None)


@pytest.mark.parametrize("rows", ["1;a;b;\n2;c;d\n", "1;a;b\n2;c\n3;d;e\n"])
def test_one_row_of_another_length_keeps_the_delimiter(rows: str, tmp_path: Path) -> None:
    """Empty cells at its end, or one too few, do not make a comma in the header the delimiter."""
    text = f"id;submission;note, x\n{rows}"
    if "2;c\n" in rows:
        with pytest.raises(DatasetError, match=r"\(line 3\): the row has 2 cells, but the header has 3"):
            read_csv(tmp_path, text, None)
    else:
        assert [item.metadata["note, x"] for item in read_csv(tmp_path, text, None)] == ["b", "d"]


def test_labels_with_tabs_are_not_saved_among_literal_quotation_marks(tmp_path: Path) -> None:
    """They would divide the row; the file stays as it was."""
    path = tmp_path / "d.tsv"
    path.write_text('submission\tnote\n"x" y\tz\n', encoding="utf-8")
    dataset = RubricDataset.from_file(path)
    with pytest.raises(ArgumentError, match=r"label not saved: 'a..b' has a tab or line break"):
        save_truth(dataset, path, {0: {"note": "a\tb"}}, {"truth": {"note": "note"}})
    assert path.read_text(encoding="utf-8") == 'submission\tnote\n"x" y\tz\n'


def test_metadata_of_other_columns_is_text(tmp_path: Path) -> None:
    """Only a column `meta.<key>` is decoded; a JSON column is metadata in rows that have the text."""
    text = 'submission,version,meta.count,prompt,prompt_json\nx,1.10,1.10,p,"[1]"\ny,true,true,,"""q"""\n'
    first, second = read_csv(tmp_path, text, None)
    assert first.metadata == {"version": "1.10", "prompt_json": "[1]", "count": 1.1}
    assert second.metadata == {"version": "true", "count": True}
    assert (first.prompt, second.prompt) == ("p", "q")


def test_lines_are_counted_after_the_separator(tmp_path: Path) -> None:
    """An error has the line of the file."""
    with pytest.raises(DatasetError, match=r"\(line 4\): the row has 1 cells"):
        read_csv(tmp_path, "sep=;\nsubmission;note\nx;y\nz\n")


def test_other_encodings_are_read_with_a_warning(tmp_path: Path) -> None:
    """The warning has the line and the byte; what Windows-1252 lacks is an error."""
    path = tmp_path / "d.csv"
    path.write_bytes("submission\nplain\nna\u00efve \u2013 \u20ac5\n".encode("cp1252"))
    with pytest.warns(UserWarning, match=r"d\.csv \(line 3\): byte 0xef is not UTF-8.*Windows-1252"):
        dataset = RubricDataset.from_file(path)
    assert dataset[1].submission == "na\u00efve \u2013 \u20ac5"
    path.write_bytes(b"submission\n\x81\n")
    with pytest.raises(DatasetError, match="not UTF-8: byte 0x81"):
        RubricDataset.from_file(path)


def test_tables_of_tabs(tmp_path: Path) -> None:
    """A .tsv file is written and read, and commas in it are text."""
    items = [DataItem(id="a", submission="x, y\tz", metadata={"k": "v"})]
    RubricDataset(items=items).to_file(tmp_path / "d.tsv")
    assert "id\tsubmission" in (tmp_path / "d.tsv").read_text(encoding="utf-8")
    assert list(RubricDataset.from_file(tmp_path / "d.tsv")) == items
    (tmp_path / "one.tsv").write_text("submission\na, b\n", encoding="utf-8")
    assert RubricDataset.from_file(tmp_path / "one.tsv")[0].submission == "a, b"


@pytest.mark.parametrize("suffix", ["csv", "frame"])
def test_other_columns_may_repeat(suffix: str, tmp_path: Path) -> None:
    """Each is kept under a name of its own, with a warning; so is one that another's prefix names."""
    with pytest.warns(UserWarning) as warned:
        if suffix == "csv":
            item = read_csv(tmp_path, "submission,note,note,meta.k,k\nx,a,b,c,d\n")[0]
        else:
            cells = [["x", "a", "b", "c", "d"]]
            frame = pd.DataFrame(cells, columns=["submission", "note", "note", "meta.k", "k"])
            item = RubricDataset.from_dataframe(frame, rubric=RUBRIC)[0]
    assert item.metadata == {"note": "a", "note_2": "b", "k": "c", "k_2": "d"}
    told = " ".join(str(one.message) for one in warned)
    assert "the column 'note' appears twice; one is read as 'note_2'" in told
    assert "column 'meta.k' conflicts with another and is kept as metadata 'k_2'" in told


def test_labels_of_an_unknown_criterion_are_metadata(tmp_path: Path) -> None:
    """With a warning that names the rubric's criteria; a column that the caller names is an error."""
    with pytest.warns(UserWarning, match=r"'truth\.mett' is kept as metadata: .* Criteria: met, "):
        dataset = read_csv(tmp_path, "submission,truth.met,truth.mett\nx,MET,MET\n")
    assert (dataset[0].ground_truth, dataset[0].metadata) == ({"met": "MET"}, {"truth.mett": "MET"})
    with pytest.raises(DatasetError, match="'mett', which is not a criterion"):
        RubricDataset.from_file(tmp_path / "d.csv", rubric=RUBRIC, truth={"mett": "truth.mett"})


@pytest.mark.parametrize("text", ["N/A", "NaN", "-", "null", "None", "NA", "#N/A"])
def test_texts_that_are_not_labels(text: str, tmp_path: Path) -> None:
    """The criterion has no label, unless the rubric has an option of that name."""
    options = [{"label": text, "value": 0.0}, {"label": "good", "value": 1.0}]
    rubric = Rubric(
        [{"name": "met", "requirement": "x"}, {"name": "grade", "requirement": "x", "options": options}]
    )
    dataset = read_csv(tmp_path, f"submission,met,grade\nx,{text},{text}\n", rubric)
    assert dataset[0].ground_truth == {"grade": text}
    frame = pd.DataFrame({"submission": ["x"], "met": [text], "grade": [text]})
    assert RubricDataset.from_dataframe(frame, rubric=rubric) == dataset


def test_what_tables_cannot_hold(tmp_path: Path) -> None:
    """A table refuses to lose item rubrics, ratings and reasons."""
    for field, given_ in {
        "rubric": RUBRIC,
        "ratings": {"r": {"met": "MET"}},
        "reasons": {"met": "so"},
    }.items():
        dataset = RubricDataset(rubric=RUBRIC, items=[DataItem(submission="x", **{field: given_})])
        with pytest.raises(ArgumentError, match=f"cannot hold the {field} of items"):
            dataset.to_file(tmp_path / "d.csv")


def test_tables_hold_what_items_share(tmp_path: Path) -> None:
    """The prompt and reference of the dataset are written into every row, and ids where there are none."""
    dataset = RubricDataset(
        "p", items=[{"submission": "x"}, {"submission": "y", "prompt": ""}], reference_submission="r"
    )
    dataset.to_file(tmp_path / "d.csv")
    again = RubricDataset.from_file(tmp_path / "d.csv")
    assert [(i.id, i.prompt, i.reference_submission) for i in again] == [("0", "p", "r"), ("1", "", "r")]
    assert again.item_fingerprint(1) == dataset.item_fingerprint(1)
    assert (
        (tmp_path / "d.csv")
        .read_bytes()
        .startswith(b"id,submission,description,prompt,prompt_json,reference_submission\r\n")
    )


def test_columns_come_in_order(tmp_path: Path) -> None:
    """Labels stand in the rubric's order, whatever order the items name them in."""
    items = [
        {"submission": "x", "ground_truth": {"level": 3}},
        {"submission": "y", "ground_truth": {"met": "no"}},
    ]
    frame = RubricDataset(rubric=RUBRIC, items=items).to_dataframe()
    assert list(frame.columns)[-2:] == ["truth.met", "truth.level"]


def test_parquet_of_another_hand(tmp_path: Path) -> None:
    """Numbers, nulls and booleans in a Parquet file are read as what they are."""
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "submission": ["x", None],
            "truth.met": [True, None],
            "truth.level": [7.0, float("nan")],
            "meta.tags": [["a"], None],
        }
    )
    path = tmp_path / "d.parquet"
    frame.to_parquet(path)
    dataset = RubricDataset.from_file(path, rubric=RUBRIC)
    assert dataset[0].ground_truth == {"met": True, "level": 7.0}
    assert dataset[0].metadata == {"tags": ["a"]}
    assert dataset[1] == DataItem(id="2", submission=None)


def test_faulty_parquet(tmp_path: Path) -> None:
    """What is no Parquet file, or repeats a column, is named."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "d.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(DatasetError, match="not a valid Parquet file"):
        RubricDataset.from_file(path)
    pq.write_table(
        pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["submission", "submission"]), path
    )
    with pytest.raises(DatasetError, match="the column 'submission' appears twice"):
        RubricDataset.from_file(path)


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow the error says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="pip install pyarrow"):
        RubricDataset.from_file(tmp_path / "d.parquet")
    with pytest.raises(MissingDependencyError, match="pyarrow"):
        RubricDataset(items=[DataItem(submission="x")]).to_file(tmp_path / "d.parquet")


def test_frames_hold_values_themselves() -> None:
    """A DataFrame holds numbers as numbers and submissions as they are; NaN is nothing."""
    frame = pd.DataFrame(
        {
            "id": [10, 11],
            "submission": [{"output": "x"}, "3"],
            "truth.level": [3, None],
            "meta.note": ["3", float("nan")],
            "meta.count": [1, 2],
        }
    )
    dataset = RubricDataset.from_dataframe(frame, rubric=RUBRIC)
    assert dataset[0] == DataItem(
        id="10", submission={"output": "x"}, ground_truth={"level": 3.0}, metadata={"note": "3", "count": 1}
    )
    assert dataset[1] == DataItem(id="11", submission="3", metadata={"count": 2})


def test_frames_hold_numpy_values() -> None:
    """Numpy values inside cells become plain ones."""
    import numpy as np

    frame = pd.DataFrame({"submission": ["x"], "meta.a": [np.array([1, 2])]})
    frame["meta.b"] = pd.Series([np.int64(3)], dtype=object)
    assert RubricDataset.from_dataframe(frame)[0].metadata == {"a": [1, 2], "b": 3}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"note": ["x"]}, "column 'submission' not found. Columns: note"),
        ({"submission": [5]}, r"rows\[0\].submission: submission must be .*; got int"),
        ({"submission": [None], "submission_json": [5]}, "submission_json must contain JSON"),
    ],
)
def test_faulty_frames(cells: dict[str, Any], message: str) -> None:
    """A faulty frame says what is wrong and where."""
    with pytest.raises(DatasetError, match=message):
        RubricDataset.from_dataframe(pd.DataFrame(cells))


def test_a_streamed_file_gives_the_items_of_the_whole_one(tmp_path: Path) -> None:
    """Blank lines, a byte order mark and line ends of Windows change nothing; order does not matter."""
    head = '\ufeff{"format": 1, "name": "n"}\r\n\n'
    text = head + '{"id": "a", "submission": "x"}\r\n  \n{"submission": "é\u2028"}\n'
    (tmp_path / "d.jsonl").write_text(text, encoding="utf-8", newline="")
    streamed = RubricDataset.stream(tmp_path / "d.jsonl")
    whole = RubricDataset.from_file(tmp_path / "d.jsonl")
    assert streamed == whole
    assert whole == streamed
    assert streamed.name == "n"
    assert [streamed[-1].submission, streamed[0].submission] == ["é\u2028", "x"]
    assert list(streamed.item_ids()) == list(whole.item_ids()) == ["a", "1"]
    assert streamed.items[:1] == whole.items[:1]
    streamed.add_item("z", id="c")
    assert len(streamed) == 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the file is empty"),
        (b'{"format": 9}\n{"submission": "x"}', "newer"),
        (b'{"submission": "x"}\n{"submission": "\xff"}', r"line 2\): not UTF-8: byte 0xff"),
        (
            b'{"submission": "x", "id": "1"}\n\n{"submission": "y"}',
            r"line 3\): the id '1' is already used by item 0",
        ),
        (b'{"submission": "x"}\n{"submission": NaN}', r"line 2\): NaN is not a JSON number"),
        (b'{"submission": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper"),
    ],
)
def test_faults_of_a_streamed_file_are_typed(tmp_path: Path, content: bytes, told: str) -> None:
    """Each is a DatasetError that names the line, at the latest when the file is gone through."""
    (tmp_path / "d.jsonl").write_bytes(content)
    with pytest.raises(DatasetError, match=told):
        list(RubricDataset.stream(tmp_path / "d.jsonl"))


@pytest.mark.parametrize("name", ["none.jsonl", "d.json", "none.parquet"])
def test_what_cannot_be_streamed_is_refused(tmp_path: Path, name: str) -> None:
    """A missing file and a format that is read whole are DatasetErrors."""
    with pytest.raises(DatasetError):
        RubricDataset.stream(tmp_path / name)


def test_a_file_that_names_rubric_files_has_no_digest_once_read(tmp_path: Path) -> None:
    """What an item takes from another file may change unseen; a rubric that the header names is known."""
    (tmp_path / "r.json").write_text('[{"name": "c", "requirement": "r"}]', encoding="utf-8")
    rows = ['{"format": 1, "rubric": "r.json"}', '{"submission": "x"}']
    (tmp_path / "d.jsonl").write_text("\n".join(rows), encoding="utf-8")
    dataset = RubricDataset.stream(tmp_path / "d.jsonl")
    assert dataset[0].rubric is None
    assert dataset.source_digest() is not None
    (tmp_path / "e.jsonl").write_text('{"submission": "x", "rubric": "r.json"}', encoding="utf-8")
    other = RubricDataset.stream(tmp_path / "e.jsonl")
    assert other.get_item_rubric(0).names == ("c",)
    assert other.source_digest() is None
    assert RubricDataset(items=[]).source_digest() is None


@pytest.mark.parametrize("columns", [["submission", "submission_json"], ["submission_json", "submission"]])
def test_an_empty_cell_never_replaces_json_whatever_the_order_of_columns(columns: list[str]) -> None:
    frame = pd.DataFrame({"submission": ["", "text"], "submission_json": ['{"output": "b"}'] * 2})[columns]
    first, second = RubricDataset.from_dataframe(frame).items
    assert first.submission == {"output": "b"}
    assert (second.submission, second.metadata) == ("text", {"submission_json": '{"output": "b"}'})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_of_all_batches_are_read_alike(tmp_path: Path, suffix: str) -> None:
    items = [
        DataItem(
            submission=[None, "é", {"output": f"text {at}"}][at % 3],
            prompt=["Why?", None][at % 2],
            ground_truth=[{"a": "MET", "b": None}, {"b": "UNMET"}, None][at % 3],
            metadata=[{"x": None}, {}, {"y": [at], "x": "null"}, {"submission_json": "1"}][at % 4],
        )
        for at in range(300)
    ]
    rubric = Rubric([{"name": "a", "requirement": "It is."}, {"name": "b", "requirement": "It has."}])
    dataset = RubricDataset(rubric=rubric, items=items)
    dataset.to_file(path := tmp_path / f"items.{suffix}")
    found = [RubricDataset.from_file(path, rubric=rubric)]
    if suffix == "parquet":
        found.append(RubricDataset.stream(path, rubric=rubric))
    for one in found:
        for at, (item, wanted) in enumerate(zip(one.items, items, strict=True)):
            assert (item.submission, item.prompt, item.metadata) == (
                *(wanted.submission, wanted.prompt, wanted.metadata),
            )
            assert one.item_truth(at) == dataset.item_truth(at)
