"""Reading structured text with lines, gathering faults, and writing in one piece."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from autorubric.errors import ArgumentError, DatasetError, FileError, RubricError
from autorubric.support.json_text import compact_json, read_compact
from autorubric.support.read import (
    dump_structured,
    format_fault,
    format_of,
    parse_structured,
    read_structured,
    text_or_path,
)
from autorubric.support.reading_errors import Faults, nearest_key, path_text, short_repr, type_changes
from autorubric.support.write import write_bytes_atomic, write_text_atomic

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
DATA = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=12)


def fault_of(text: str, form: str) -> str:
    """The message of the one error that a text gives."""
    with pytest.raises(FileError) as caught:
        parse_structured(text, form)
    return str(caught.value)


@settings(deadline=None)
@example({"<<": 1, "\x85": "\u2028 \t\r\n "})
@given(DATA)
def test_yaml_round_trip(data: Any) -> None:
    """Whatever JSON can carry comes back from YAML as it was, texts that look like something else too."""
    assert parse_structured(dump_structured(data, "yaml"), "yaml").data == data


@settings(deadline=None)
@given(DATA)
def test_json_round_trip(data: Any) -> None:
    """Whatever JSON can carry comes back from JSON as it was."""
    assert parse_structured(dump_structured(data, "json"), "json").data == data


@settings(deadline=None)
@given(DATA)
@example("\ud800")
@example({"\udfff": ["\ud800 \udc00", "\u2028"]})
@example(json.loads("[" * 250 + "]" * 250))
def test_compact_json_round_trip(data: Any) -> None:
    """Whatever JSON can carry comes back from one line as it was: lone surrogates and depth too."""
    line = compact_json(data)
    assert b"\n" not in line and json.loads(line) == data
    assert read_compact(line) == read_compact(json.dumps(data).encode("ascii")) == data


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a": 1} x', b"\xff", b'"\xff"', b"nul"])
def test_what_is_no_compact_json_is_refused(raw: bytes) -> None:
    """Broken JSON and broken UTF-8 are value errors."""
    with pytest.raises(ValueError):
        read_compact(raw)


@pytest.mark.parametrize(
    "text",
    [
        "Yes",
        "no",
        "ON",
        "off",
        "y",
        "2024-01-01",
        "1:30",
        "1_000",
        "0b1",
        "=",
        "<<",
        "null",
        "~",
        "1e3",
        "0x1f",
    ],
)
def test_look_alikes_are_quoted(text: str) -> None:
    """A text that a reader of either YAML version takes for something else is written in quotes."""
    assert parse_structured(dump_structured([text], "yaml"), "yaml").data == [text]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("Yes", "Yes"), ("off", "off"), ("2024-01-01", "2024-01-01"), ("1:30", "1:30")),
        *(("true", True), ("FALSE", False), ("null", None), ("~", None), ("", None)),
        *(("012", 12), ("0x1F", 31), ("0o17", 15), ("-3", -3), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0)),
        *(("'true'", "true"), ("1_000", "1_000"), ("1e", "1e")),
    ],
)
def test_yaml_scalars_follow_version_1_2(written: str, read: object) -> None:
    """Only true and false are booleans, and dates stay text."""
    found = parse_structured(f"a: {written}\n", "yaml").data["a"]
    assert found == read
    assert type(found) is type(read)


def test_yaml_is_readable() -> None:
    """YAML is written in block style, with accents, line breaks and repeated parts as they are."""
    shared = {"label": "né"}
    text = dump_structured({"b": [shared, shared], "a": "one\ntwo\n"}, "yaml")
    assert text == "b:\n- label: né\n- label: né\na: |\n  one\n  two\n"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "a:\n  b:\n  - x: 1\n    y: 2\n  - 3\n"),
        ("json", '{"a":\n {"b": [\n{"x": 1,\n"y": 2},\n 3]}}'),
    ],
)
def test_lines_are_known(form: str, text: str) -> None:
    """A path inside a document has its line; what is not there has that of the nearest thing above it."""
    line_of = parse_structured(text, form).line_of
    assert line_of(()) == 1
    assert line_of(("a", "b", 0, "y")) == 4
    assert line_of(("a", "b", 1)) == 5
    assert line_of(("a", "b", 7)) == line_of(("a", "b"))
    assert line_of(("a", "b", 1, "deeper")) == 5
    assert line_of(("elsewhere",)) == 1


@settings(deadline=None)
@given(DATA.filter(lambda data: isinstance(data, (dict, list))), st.sampled_from([None, 1, "\t"]))
def test_json_lines_agree_with_the_yaml_parser(data: Any, indent: Any) -> None:
    """The lines found in indented JSON are those on which keys and elements stand."""
    text = json.dumps(data, indent=indent)
    line_of = parse_structured(text, "json").line_of
    lines = text.split("\n")

    def check(held: Any, path: tuple[str | int, ...]) -> None:
        for step, child in held.items() if isinstance(held, dict) else enumerate(held):
            line = line_of((*path, step))
            assert line is not None
            begins = json.dumps(step) if isinstance(step, str) else json.dumps(child)[:1]
            assert begins in lines[line - 1]
            if isinstance(child, (dict, list)):
                check(child, (*path, step))

    check(data, ())


def test_toml_has_no_lines() -> None:
    """TOML is read without lines."""
    document = parse_structured("a = 1\n", "toml")
    assert document.data == {"a": 1}
    assert document.line_of(("a",)) is None


def test_json_lines_know_their_lines() -> None:
    """Each row of JSON lines has the line it stands on, blank lines and U+2028 notwithstanding."""
    document = parse_structured('{"a": 1}\n\n{"a": "\u2028"}\n', "jsonl")
    assert document.data == [{"a": 1}, {"a": "\u2028"}]
    assert document.line_of((1, "a")) == 3
    assert document.line_of(()) is None


def test_all_broken_json_lines_are_reported() -> None:
    """Every line that is no JSON is named at once."""
    with pytest.raises(FileError) as caught:
        parse_structured('{"a": 1}\n{"a"\n{"a": NaN}\n', "jsonl")
    assert [fault.line for fault in caught.value.faults] == [2, 3]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("json", '{"a": 1,\n"a": 2}', "(line 2): the key 'a' is repeated; it first occurs on line 1"),
        (
            "json",
            '{"x": {"a": 1,\n"b": 3,\n"a": 2}}',
            "x (line 3): the key 'a' is repeated; it first occurs on line 1",
        ),
        ("yaml", "a: 1\nb: 2\na: 3", "(line 3): the key 'a' is repeated; it first occurs on line 1"),
        ("toml", "a = 1\na = 2", "invalid TOML"),
        ("json", '{"a": 1', "(line 1): invalid JSON"),
        ("json", '{"a":\n\n oops}', "(line 3): invalid JSON"),
        ("yaml", "a: 1\nb: [1", "(line 2): invalid YAML"),
        ("yaml", "a: 1\n---\nb: 2", "(line 2): invalid YAML"),
        ("yaml", "a: 1\nb: \x01", "(line 2): invalid YAML: the character '\\x01' is not allowed"),
        ("yaml", "a: *nowhere", "(line 1): invalid YAML: found undefined alias"),
        ("json", "[1,\nNaN]", "(line 2): NaN is not a JSON number"),
        ("json", "[-Infinity]", "(line 1): -Infinity is not a JSON number"),
        ("json", "[1e999]", "(line 1): 1e999 is not a JSON number"),
        ("toml", "a = inf", "contains an unsupported number"),
        ("toml", "a = 2024-01-01", "quote dates and times"),
        ("json", '["\\ud800"]', "contains an unpaired surrogate"),
        ("yaml", '"\\ud800"', "contains an unpaired surrogate"),
        (
            "jsonl",
            '{"a": "x"}\n\n{"a": ["y", "cut \\ud83d"]}',
            "[1].a[1] (line 3): the string contains an unp",
        ),
        (
            "json",
            '[{"a": "\\ud83d\\ude00"},\n{"a": 1,\n"cut \\ud83d": 2}]',
            "(line 3): the string contains an",
        ),
        ("yaml", 'a: 1\nb: "cut \\ud83d"', "b (line 2): the string contains an unpaired surrogate"),
        ("yaml", "<<: {a: 1}", "merge keys (<<) are not supported"),
        ("yaml", "? [a]\n: 1", "a key must be a string"),
        ("yaml", "a: !!python/name:os.system", "is not supported; remove it"),
        ("yaml", "a: !!set {b}", "is not supported; remove it"),
        ("yaml", "a: !x [b]", "is not supported; remove it"),
        ("yaml", "a: !!int b", "a (line 1): 'b' is not a valid int"),
        ("json", "9" * 5000, "invalid JSON"),
        ("yaml", "9" * 5000, "is not a valid int"),
        ("json", " \n", "the content is empty"),
        ("yaml", "# only a comment\n", "the content is empty"),
        ("jsonl", "\n\n", "the content is empty"),
    ],
)
def test_bad_texts_say_what_is_wrong(form: str, text: str, expected: str) -> None:
    """A text that cannot be taken gives one error with the line, where the format gives one."""
    assert expected in fault_of(text, form)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    """A character written as a pair of escapes is read as the character."""
    assert parse_structured('["\\ud83d\\ude00"]', "json").data == ["😀"]


@pytest.mark.parametrize("form", ["json", "yaml", "toml"])
@pytest.mark.parametrize("depth", [300, 50_000])
def test_deep_nesting_is_an_error(form: str, depth: int) -> None:
    """However deep a text nests, it gives a typed error."""
    text = "[" * depth + "]" * depth
    assert "nested deeper than 250 levels" in fault_of(f"a = {text}" if form == "toml" else text, form)


def test_aliases_are_bounded() -> None:
    """A small text whose aliases multiply is refused, and so is one that contains itself."""
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases expand to too much data" in fault_of("\n".join(layers), "yaml")
    assert "nested deeper" in fault_of("a: &a [*a]", "yaml")


def test_few_aliases_are_fine() -> None:
    """An alias stands for what it names, as a value of its own."""
    data = parse_structured("a: &scale [1, 2]\nb: *scale\n", "yaml").data
    assert data == {"a": [1, 2], "b": [1, 2]}
    assert data["a"] is not data["b"]


def test_files_by_suffix(tmp_path: Path) -> None:
    """The suffix of a file says its format, whatever its case; a byte order mark is no part of the text."""
    for name, text in {"a.YML": "a: 1", "a.json": '{"a": 1}', "a.toml": "a = 1"}.items():
        (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
        assert read_structured(tmp_path / name).data == {"a": 1}


def test_unreadable_files(tmp_path: Path) -> None:
    """A file that is missing, a folder, not UTF-8 or of an unknown format is named with the reason."""
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "latin.json").write_bytes(b'{"a":\n"\xe9"}')
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    expected = {
        "none.json": "file not found",
        "folder.json": "this is a folder",
        "latin.json": "(line 2): the file is not UTF-8: byte 0xe9 at position 7",
        "empty.yaml": "the content is empty",
        "a.txt": "suffix '.txt' is not supported; supported: .yaml",
        "nul\0.json": "cannot be read",
        "latin.json/below.json": "cannot be read",
    }
    for name, message in expected.items():
        with pytest.raises(DatasetError) as caught:
            read_structured(tmp_path / name, error=DatasetError)
        assert message in str(caught.value)
        assert caught.value.source == str(tmp_path / name)


def test_formats_can_be_limited() -> None:
    """A caller may allow fewer suffixes than are known."""
    with pytest.raises(RubricError, match=r"supported: \.json"):
        format_of("a.yaml", suffixes={".json": "json"}, error=RubricError)


def test_dumping_what_a_format_cannot_hold() -> None:
    """TOML has no null, and lines of JSON are not dumped as a whole."""
    with pytest.raises(ArgumentError, match="use YAML or JSON"):
        dump_structured({"a": None}, "toml")
    with pytest.raises(ArgumentError, match="unknown format 'jsonl'"):
        dump_structured([], "jsonl")


@pytest.mark.parametrize(
    ("given", "is_path"),
    [("r.json", True), (Path("r"), True), ('{"a": 1}', False), ("a\nr.json", False), ("r.yaml", False)],
)
def test_text_or_path(given: str | Path, is_path: bool) -> None:
    """A `Path` is a path, and so is one line that ends in the format's suffix."""
    assert text_or_path(given, "json") == (Path(given) if is_path else None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, None),
        (2, "newer than this version supports (1); upgrade"),
        (0, "'format' must be a positive integer"),
        (True, "'format' must be a positive integer"),
        ("1", "'format' must be a positive integer"),
        (None, "'format' must be a positive integer"),
    ],
)
def test_format_numbers(given: object, expected: str | None) -> None:
    """This version reads format 1; a newer one asks for an upgrade, anything else is no number."""
    fault = format_fault(given, 1)
    assert fault is expected if expected is None else expected in (fault or "")


def test_nearest_key() -> None:
    """An unknown key gets the nearest right one, or the list of the right ones."""
    assert nearest_key("wieght", ["weight", "name"]) == "did you mean 'weight'?"
    assert nearest_key("zzz", ["weight", "name"]) == "allowed: 'weight', 'name'"
    assert nearest_key("zzz", []) == "allowed: none"


def test_paths_in_words() -> None:
    """Paths are written as one would in code; keys that are no words are quoted."""
    assert path_text(("criteria", 2, "options", 0, "value")) == "criteria[2].options[0].value"
    assert path_text(("truth", "is it so?")) == "truth['is it so?']"
    assert path_text(()) == ""


def test_long_values_are_shortened() -> None:
    """What was given is shown up to a bound."""
    assert short_repr("a" * 10) == repr("a" * 10)
    assert len(short_repr("a" * 10_000)) == 80


class Inner(BaseModel):
    """A part of a part."""

    model_config = ConfigDict(extra="forbid")
    size: int


class Outer(BaseModel):
    """What a file might hold."""

    model_config = ConfigDict(extra="forbid")
    parts: list[Inner] = []
    named: dict[str, Inner] = {}
    choice: int | list[int] = 0


def faults_of(data: Any) -> list[str]:
    """What is wrong with the data of an `Outer`, as text."""
    faults = Faults("f", lambda path: len(path))
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(data)
    faults.add_validation(caught.value, Outer, data, ("top",))
    with pytest.raises(FileError) as raised:
        faults.raise_as(FileError)
    return [f"{fault.path}@{fault.line} {fault.message}" for fault in raised.value.faults]


def test_validation_faults_stand_where_they_are() -> None:
    """Every fault that validation finds has its path in the file, what was given, and what is allowed."""
    found = faults_of(
        {"parts": [{"size": "x"}, {"siez": 1}], "named": {"a b": {"size": 1, "colour": 2}}, "chioce": 1}
    )
    assert found == [
        "top.parts[0].size@4 expected a whole number; got 'x'",
        "top.parts[1]@3 the key 'size' is missing",
        "top.parts[1].siez@4 unknown key 'siez'; did you mean 'size'?",
        "top.named['a b'].colour@4 unknown key 'colour'; allowed: 'size'",
        "top.chioce@2 unknown key 'chioce'; did you mean 'choice'?",
    ]


def test_faults_of_unions_name_no_branches() -> None:
    """Where several types were possible the path is that of the value."""
    assert {line.split(" ")[0] for line in faults_of({"choice": "x"})} == {"top.choice@2"}
    assert "top.choice[1]@3" in {line.split(" ")[0] for line in faults_of({"choice": [1, "x"]})}


def test_the_same_fault_counts_once() -> None:
    """A fault that is found twice is reported once."""
    faults = Faults("f")
    faults.add(("a",), "wrong")
    faults.add(("a",), "wrong")
    assert len(faults) == 1


def test_no_faults_raise_nothing() -> None:
    """Nothing is raised where nothing was found."""
    Faults("f").raise_as(FileError)


def test_retyped_values_are_found() -> None:
    """A text where a number is meant, and the like, is told although validation would take it."""
    given_ = {"a": "1", "b": [True, 2], "c": {"d": 1}, "e": 3, "f": None, "g": [1]}
    kept = {"a": 1.0, "b": [1, 2.0], "c": {"d": 1.0}, "e": 3.0, "f": 1, "g": "x"}
    assert sorted(type_changes(given_, kept)) == [
        (("a",), "the value must be a number; got '1', a string"),
        (("b", 0), "the value must be a number; got True, a boolean"),
    ]


def test_writing_replaces_at_once(tmp_path: Path) -> None:
    """A file is written whole, keeps its permissions, and leaves nothing beside it."""
    path = tmp_path / "a.txt"
    write_text_atomic(path, "eins\n")
    path.chmod(0o640)
    write_text_atomic(path, "zwei é\n")
    assert path.read_bytes() == "zwei é\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_save_removes_what_dead_processes_left(is_killed: bool, tmp_path: Path) -> None:
    """The temporary file of a killed process goes, and that of a process that still writes stays."""
    program = """if True:
        import sys
        from autorubric.support.write import write_parts_atomic

        def parts():
            print("begun", flush=True)
            yield sys.stdin.readline().encode()

        write_parts_atomic(sys.argv[1], parts())
    """
    command = [sys.executable, "-c", program, str(tmp_path / "other.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None and writer.stdout is not None
        assert writer.stdout.readline() == "begun\n"
        if is_killed:
            writer.kill()
            writer.wait()
        write_text_atomic(tmp_path / "data.json", "{}")
        assert len(list(tmp_path.iterdir())) == (1 if is_killed else 2)
        if not is_killed:
            writer.communicate("[1]\n")
            assert (tmp_path / "other.json").read_text(encoding="utf-8") == "[1]\n"


def test_writing_through_a_link(tmp_path: Path) -> None:
    """A link stays a link; what it names is replaced."""
    (tmp_path / "real.txt").write_text("old", encoding="utf-8")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_bytes_atomic(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new"


def test_writing_where_it_cannot_be(tmp_path: Path) -> None:
    """A missing folder, a folder in the file's place and half a character are errors; nothing stays."""
    with pytest.raises(FileError, match="folder not found"):
        write_text_atomic(tmp_path / "none" / "a.txt", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        write_text_atomic(tmp_path / "folder", "x")
    with pytest.raises(ArgumentError, match="unpaired surrogate"):
        write_text_atomic(tmp_path / "a.txt", "\ud800")
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("number", [".nan", "-.INF", "1e999"])
def test_a_yaml_number_that_is_not_finite_stays_a_text(number: str) -> None:
    """Whoever needs a number there refuses it, beside the other faults of the file."""
    assert parse_structured(f"a: {number}", "yaml", source="s", error=FileError).data == {"a": number}
