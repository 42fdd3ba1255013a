"""`autorubric validate` and `autorubric export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [("rubric.yaml", "rubric", "3 criteria"), ("texts.json", "dataset", "4 items, 3 criteria")],
)
def test_files_without_fault(cli: Cli, dataset: str, name: str, kind: str, told: str) -> None:
    """What a file is, is told by its content, and what it holds is said."""
    done = cli("validate", name)
    assert (done.code, done.out) == (0, "")
    assert f"valid {kind} with {told}" in done.err
    assert cli("validate", name, "--json").json["faults"] == []


def test_all_faults_are_told_with_lines(cli: Cli, tmp_path: Path) -> None:
    """Not the first alone, in words and as JSON."""
    (tmp_path / "r.yaml").write_text(
        "criteria:\n- weigth: 3\n- requirement: x\n  weight: heavy\n", encoding="utf-8"
    )
    done = cli("validate", "r.yaml")
    assert done.code == 2
    assert "(line 2)" in done.err
    assert "(line 4)" in done.err
    told = cli("validate", "r.yaml", "--json")
    assert told.code == 2
    assert (told.json["kind"], told.json["valid"]) == ("rubric", False)
    assert {fault["line"] for fault in told.json["faults"]} == {2, 4}


def test_text_that_is_no_yaml(cli: Cli, tmp_path: Path) -> None:
    """A fault of the syntax is one as others are, with its line."""
    (tmp_path / "r.yaml").write_text("criteria:\n- {a\n", encoding="utf-8")
    done = cli("validate", "r.yaml", "--json")
    assert done.code == 2
    assert len(done.json["faults"]) == 1


def test_labels_are_checked_against_another_rubric(cli: Cli, rubric: str, tmp_path: Path) -> None:
    """`--rubric` is what the labels of a dataset are to fit."""
    items = [
        {"submission": "x", "ground_truth": {"capitol": "MET"}},
        {"submission": "y", "ground_truth": {"form": "big"}},
    ]
    (tmp_path / "d.json").write_text(json.dumps(items), encoding="utf-8")
    assert cli("validate", "d.json").code == 0
    done = cli("validate", "d.json", "--rubric", rubric, "--json")
    assert done.code == 2
    assert len(done.json["faults"]) == 2
    assert "did you mean 'capital'" in done.json["faults"][0]["message"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("tone", "Tone", id="case"),
        pytest.param("good tone", "goodtone", id="blank"),
        pytest.param("tone", "to\u200bne", id="invisible"),
        pytest.param("tone", "to\ufe0fne", id="variation selector"),
        pytest.param("tone", "t\u043ene", id="Cyrillic"),
        pytest.param("TONE", "\u03a4ONE", id="Greek"),
        pytest.param("tone", "\uff54one", id="full width"),
        pytest.param("claim 1", "claim l", id="digit"),
        pytest.param("TONE", "\u13a2ONE", id="Cherokee"),
        pytest.param("tone", "t\u0585ne", id="Armenian"),
        pytest.param("tone", "\U0001d42d\U0001d428\U0001d427\U0001d41e", id="mathematical"),
        pytest.param("part IV", "part \u2163", id="Roman numeral"),
        pytest.param("fact-check", "fact\u2013check", id="dash"),
        pytest.param("author's tone", "author\u2019s tone", id="quote"),
    ],
)
def test_names_that_look_alike_get_a_warning(cli: Cli, tmp_path: Path, one: str, other: str) -> None:
    """The names are given in ASCII, and the file is valid all the same, as a rubric and in a dataset."""
    rubric = {"criteria": [{"name": name, "requirement": "x"} for name in (one, "grammar", other)]}
    (tmp_path / "r.json").write_text(json.dumps(rubric), encoding="utf-8")
    done = cli("validate", "r.json")
    assert done.code == 0
    assert f"warning: the criterion names {one!a} and {other!a} are too similar" in done.err
    items = {"rubric": rubric, "items": [{"submission": "a"}, {"submission": "b"}]}
    (tmp_path / "d.json").write_text(json.dumps(items), encoding="utf-8")
    assert len(cli("validate", "d.json", "--json").json["warnings"]) == 1
    if one.strip().casefold() != other.strip().casefold():  # such labels are an error
        choice = {"name": "tone", "requirement": "x", "options": [one, "grammar", other]}
        (tmp_path / "o.json").write_text(json.dumps({"criteria": [choice]}), encoding="utf-8")
        done = cli("validate", "o.json")
        assert done.code == 0
        assert f"warning: the option labels (of 'tone') {one!a} and {other!a} are" in done.err


def test_names_that_do_not_look_alike_get_no_warning(cli: Cli, tmp_path: Path) -> None:
    """Numbered names, other words and names with accents are told apart."""
    names = ["claim 1", "claim 2", "fail", "fall", "caf\u00e9", "cafe", "\u0442\u043e\u043d"]
    rubric = {"criteria": [{"name": name, "requirement": "x"} for name in names]}
    (tmp_path / "r.json").write_text(json.dumps(rubric), encoding="utf-8")
    assert cli("validate", "r.json", "--json").json["warnings"] == []


def test_spellings_of_a_rater_get_a_warning(cli: Cli, tmp_path: Path) -> None:
    """Names of raters and criteria are compared after folding; unknown criteria stay an error."""
    rubric = {"criteria": [{"name": "caf\u00e9", "requirement": "It is."}]}
    (tmp_path / "r.json").write_text(json.dumps(rubric), encoding="utf-8")
    rated = [{"ann": {"Cafe\u0301": "yes"}}, {"Ann\u200b": {"caf\u00e9 ": "no"}}]
    rows = [
        json.dumps({"submission": "x", "ratings": one, "ground_truth": {"CAFE\u0301": 1}}) for one in rated
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(rows), encoding="utf-8")
    done = cli("validate", "d.jsonl", "--rubric", "r.json", "--json").json
    assert done["valid"] and "raters are read as equal: 'Ann\\u200b' as 'ann'" in done["warnings"][0]
    (tmp_path / "d.jsonl").write_text(rows[0].replace("CAFE", "KAFE"), encoding="utf-8")
    assert "unknown criterion" in cli("validate", "d.jsonl", "--rubric", "r.json").err


def test_a_dataset_taken_for_a_rubric(cli: Cli, dataset: str) -> None:
    """`--as` says what the file is meant to be."""
    assert cli("validate", dataset, "--as", "rubric").code == 2


def test_a_file_that_is_not_there(cli: Cli) -> None:
    """It is a fault of the file."""
    done = cli("validate", "nosuch.yaml", "--json")
    assert done.code == 2
    assert "file not found" in done.json["faults"][0]["message"]


@pytest.fixture
def run(cli: Cli, dataset: str) -> str:
    """The folder of a run."""
    assert cli("eval", dataset, "--judge", "lexical", "--name", "r").code == 0
    return str(Path("experiments") / "r")


def test_export_to_standard_output(cli: Cli, run: str) -> None:
    """Without a file the content goes to standard output, ready for a pipe."""
    lines = cli("export", run, "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == ["a", "b", "c", "d"]
    assert cli("export", run, "--format", "csv", "--table", "votes").out.startswith("item,item_id,criterion,")
    assert cli("export", run, "--format", "markdown").out.startswith("## Run r")


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "markdown", "junit"])
def test_export_to_a_file(cli: Cli, run: str, form: str, tmp_path: Path) -> None:
    """The file is written, and said on standard error alone."""
    done = cli("export", run, "--format", form, "-o", "out")
    assert (done.code, done.out) == (0, "")
    assert "Wrote out" in done.err
    assert (tmp_path / "out").stat().st_size > 100


def test_export_of_failures(cli: Cli, run: str) -> None:
    """`--fail-under` makes failures of low scores, which are for a build server to read."""
    done = cli("export", run, "--format", "junit", "--fail-under", "1.1")
    assert done.code == 0
    assert done.out.count("<failure") == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "parquet"],
        ["--format", "csv", "--fail-under", "0.5"],
        ["--format", "junit", "--table", "votes"],
        ["--format", "xml"],
        [],
    ],
)
def test_exports_that_cannot_be(cli: Cli, run: str, arguments: list[str]) -> None:
    """What does not go together ends with 2."""
    assert cli("export", run, *arguments).code == 2


def test_export_of_no_run(cli: Cli) -> None:
    """A folder without a run is refused."""
    assert cli("export", "nosuch", "--format", "csv").code == 2


def test_an_empty_submission_is_an_error(cli: Cli, tmp_path: Path, rubric: str) -> None:
    """Blank and missing texts are reported by item; null in all items is read elsewhere."""
    texts = ["a text", "", "  \n", None]
    lines = [json.dumps({"id": f"i{at}", "submission": text}) for at, text in enumerate(texts)]
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = cli("validate", "d.jsonl", "--rubric", rubric)
    assert done.code == 2
    assert "item 'i1': the submission is empty" in done.err and "item 'i2'" in done.err
    assert "item 'i3': the submission is missing, although other items have one" in done.err
    assert "i0" not in done.err
    told = cli("validate", "d.jsonl", "--rubric", rubric, "--json").json
    assert not told["valid"] and len(told["faults"]) == 3
    (tmp_path / "d.jsonl").write_text(lines[-1], encoding="utf-8")
    assert cli("validate", "d.jsonl", "--rubric", rubric).code == 0


_BLANK_TURNS = [{"role": "user", "content": " "}, {"role": "assistant", "content": "\u200b"}]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("head.csv", "id,submission\n", "no items"),
        ("none.json", json.dumps({"items": []}), "no items"),
        ("none.jsonl", "", ""),
        ("blank.csv", "id,submission\na,Paris.\nb,\n", "item 'b': the submission is missing"),
        ("blanks.csv", "id,reply\na,\n", "item 'a': the submission is missing"),
        ("blank.jsonl", '{"id": "a", "submission": "\\u200b "}\n', "item 'a': the submission is empty"),
        (
            "turns.json",
            json.dumps({"items": [{"id": "a", "submission": _BLANK_TURNS}]}),
            "item 'a': the submission is empty",
        ),
    ],
)
@pytest.mark.parametrize("command", ["validate", "eval"])
def test_what_has_nothing_to_judge_is_an_error(
    cli: Cli, tmp_path: Path, rubric: str, command: str, name: str, content: str, told: str
) -> None:
    """An empty text, and a table without rows; nothing is graded, not even the other items."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    options = ("--judge", "lexical", "--name", "none") if command == "eval" else ()
    done = cli(command, name, "--rubric", rubric, *options)
    assert done.code == 2 and told in done.err
    assert not Path("experiments").exists()


@pytest.mark.parametrize(
    "call", [("",), (" \u200b\n",), ("--file", "empty.txt"), ("--file", "blank.csv", "--item-id", "b")]
)
def test_an_empty_text_is_not_graded(cli: Cli, tmp_path: Path, rubric: str, call: tuple[str, ...]) -> None:
    """From the command line, a file, or a row of a table."""
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "blank.csv").write_text("id,reply\na,Paris.\nb,\n", encoding="utf-8")
    done = cli("grade", *call, "--rubric", rubric, "--judge", "lexical")
    assert (done.code, done.out) == (2, "")
    assert "the text is empty" in done.err or "the submission is missing" in done.err
