"""Run files: `eval` without arguments, what flags override, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from autorubric import EvalResult, load_run
from autorubric.errors import Fault, FileError
from autorubric.runs.run_file import (
    Budget,
    Columns,
    DataSource,
    FewShotSource,
    FileLengthPenalty,
    JudgeEntry,
    RunFile,
    read_run_file,
)
from autorubric.scoring import CannotAssessConfig
from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer

_FILE = {
    "rubric": "rubric.yaml",
    "data": {"path": "rows.csv", "columns": {"submission": "said", "id": "nr"}},
    "judges": [{"model": "lexical", "name": "words"}],
}


@pytest.fixture
def run_file(cli: Cli, rubric: str) -> Path:
    """A run file with its data in the working directory."""
    rows = "nr,said,where\n1,Paris is the capital of France.,here\n2,It is Lyon.,there\n"
    Path("rows.csv").write_text(rows, encoding="utf-8")
    return _write(_FILE)


def _write(content: object, name: str = "autorubric.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def _score(result: EvalResult) -> float | None:
    report = result.item_results[0].report
    return None if report is None else report.score


def test_eval_without_arguments_uses_the_run_file(cli: Cli, run_file: Path) -> None:
    """Columns, rubric and judges come from it, and the run folder has a copy."""
    done = cli("eval", "--name", "one", "--json")
    assert done.code == 0
    assert done.json["total_items"] == 2
    assert "columns: id=nr, submission=said; metadata: where" in done.err
    copy = Path("experiments/one/autorubric.yaml")
    assert copy.read_text(encoding="utf-8") == run_file.read_text(encoding="utf-8")


def test_without_a_run_file_the_error_says_what_to_do(cli: Cli) -> None:
    """Two ways are named."""
    failed = cli("eval")
    assert failed.code == 2
    assert "autorubric.yaml" in failed.err and "autorubric init" in failed.err and "--judge" in failed.err


def test_flags_override_the_file(cli: Cli, run_file: Path, openai_server: OpenAIServer) -> None:
    """The address, the samples and the name; the file stays as it is."""
    _write(
        {**_FILE, "name": "in-file", "judges": [{"model": "openai/m", "api_base": "http://127.0.0.1:9/v1"}]}
    )
    call = ("--api-base", openai_server.api_base, "--samples", "2", "--name", "by-flag", "--json")
    done = cli("eval", *call)
    assert done.code == 0
    assert done.json["experiment_name"] == "by-flag"
    assert len(openai_server.log()) == 2 * 2 * 3
    assert cli("eval", "--judge", "lexical", "--json").json["experiment_name"] == "in-file"


def test_two_judges_of_one_model_at_two_servers(
    cli: Cli, run_file: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets its own key and no other."""
    monkeypatch.setenv("KEY_ONE", "sk-key-number-one-0001")
    monkeypatch.setenv("KEY_TWO", "sk-key-number-two-0002")
    base = openai_server.api_base
    judges = [
        {"model": "openai/m", "name": "first", "api_base": base, "api_key_env": "KEY_ONE"},
        {
            "model": "openai/m",
            "name": "second",
            "api_base": base.replace("127.0.0.1", "localhost"),
            "api_key_env": "KEY_TWO",
        },
    ]
    _write({**_FILE, "judges": judges})
    assert cli("eval", "--name", "two").code == 0
    sent = {
        (one["headers"]["Host"].split(":")[0], one["headers"]["Authorization"]) for one in openai_server.log()
    }
    assert sent == {
        ("127.0.0.1", "Bearer sk-key-number-one-0001"),
        ("localhost", "Bearer sk-key-number-two-0002"),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judges": [{"model": "m", "api_key": "sk-1234567890"}]}, "api_key_env: OPENAI_API_KEY"),
        ({"judges": [{"model": "m", "api_key_env": "sk-1234567890"}]}, "not the key itself"),
        ({"judges": ["m", "m"]}, "two judges are named 'm'"),
        ({"judges": [{"model": "lexical", "temperature": 0.5}]}, "applies only to models"),
        ({"judges": [{"model": "m", "temprature": 1}]}, "temprature"),
        ({"rubrik": "x"}, "rubrik"),
        ({"format": 9}, "format 9 is newer"),
    ],
)
def test_errors_of_a_run_file_are_reported(
    cli: Cli, run_file: Path, change: dict[str, object], message: str
) -> None:
    """With file and line, and never with a key."""
    _write({**_FILE, **change})
    failed = cli("eval")
    assert failed.code == 2
    assert "autorubric.yaml" in failed.err and message in failed.err and "(line " in failed.err
    assert "sk-1234567890" not in failed.err


_PLACES: dict[tuple[str | int, ...], type[BaseModel]] = {
    (): RunFile,
    ("data",): DataSource,
    ("data", "columns"): Columns,
    ("judges", 0): JudgeEntry,
    ("budget",): Budget,
    ("few_shot",): FewShotSource,
    ("cannot_assess",): CannotAssessConfig,
    ("length_penalty",): FileLengthPenalty,
}


@pytest.mark.parametrize(
    ("place", "key"), [(place, key) for place, model in _PLACES.items() for key in model.model_fields]
)
def test_a_value_of_another_type_is_reported_in_terms_of_the_file(
    tmp_path: Path, place: tuple[str | int, ...], key: str
) -> None:
    """Every key: the message has its path and line, and what is allowed, and nothing of Python."""
    messages: list[Fault] = []
    for wrong in (1.5, "x", True, [[1]], {"a": [1]}):
        content: dict[str, Any] = {"data": {"path": "r.csv"}, "judges": [{"model": "openai/m"}]}
        inner: Any = content
        for step in place:
            inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
        if place == ("few_shot",):
            inner["data"] = "t.csv"
        inner[key] = wrong
        try:
            read_run_file(_write(content, str(tmp_path / "run.yaml")))
        except FileError as error:
            messages += error.faults
    assert messages and all(fault.line for fault in messages)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (*place, key))
    if key != "extra_params":
        assert any(fault.path == path.removeprefix(".") for fault in messages)
    unwanted = r"tuple|instance of|instances|pydantic|NoneType|Input should|type=|dictionary|<class"
    assert not [fault for fault in messages if re.search(unwanted, fault.message)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judges": "lexical"}, "judges (line 6): expected a list; got 'lexical'"),
        ({"budget": 3}, "budget (line 1): expected a mapping with the keys max_cost, max_calls; got 3"),
        ({"llm_calls": "x"}, "expected 'per_criterion' or 'per_item' or a whole number; got 'x'"),
        (
            {"data": {"path": "rows.csv", "columns": {"metadata": 3}}},
            "data.columns.metadata (line 3): expected a list",
        ),
    ],
)
def test_values_of_another_type(cli: Cli, run_file: Path, change: dict[str, object], message: str) -> None:
    """The message says what the file may have there."""
    _write({**_FILE, **change})
    assert message in cli("eval").err


def test_paths_start_from_the_folder_of_the_file(cli: Cli, run_file: Path) -> None:
    """A run file elsewhere finds its data and puts its runs beside itself."""
    Path("sub").mkdir()
    for name in ("rows.csv", "rubric.yaml", "autorubric.yaml"):
        Path(name).rename(Path("sub", name))
    assert cli("eval", "sub/autorubric.yaml", "--name", "one").code == 0
    assert Path("sub/experiments/one/manifest.json").exists()


def test_the_same_file_loads_in_python(cli: Cli, run_file: Path) -> None:
    """Dataset, grader and options; a run of it is the run of the command line."""
    _write({**_FILE, "aggregation": "unanimous", "on_failure": "exclude", "budget": {"max_calls": 7}})
    run = load_run()
    assert [item.submission for item in run.dataset] == ["Paris is the capital of France.", "It is Lyon."]
    assert run.config.max_calls == 7
    assert run.grader.policy.aggregation.on_failure == "exclude"
    result = run.evaluate_sync(experiment_name="py", show_progress=False)
    by_command = cli("eval", "--name", "sh", "--json").json
    assert _score(result) == by_command["items"][0]["score"]
    with pytest.raises(FileError):
        load_run("missing.yaml")


def test_the_schema_knows_every_key_of_an_example(cli: Cli, run_file: Path) -> None:
    """It is JSON schema, and refuses what the reader refuses."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = cli("schema", "--run").json
    jsonschema.validate(_FILE, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**_FILE, "rubrik": 1}, schema)


@pytest.mark.parametrize(
    "template", ["support-reply", "rag-faithfulness", "summary", "essay", "code-review", "agent-run"]
)
def test_every_template_runs(cli: Cli, template: str) -> None:
    """The rubric is valid, all ten rows have labels for all criteria, and the run file names a model."""
    made = cli("init", "made", "--template", template)
    assert made.code == 0
    assert "autorubric eval" in made.err
    done = cli("eval", "made/autorubric.yaml", "--judge", "lexical", "--name", "one", "--json")
    assert (done.code, done.json["total_items"]) == (0, 10)
    run = load_run("made/autorubric.yaml")
    names = set(run.dataset.rubric.names) if run.dataset.rubric else set()
    assert 5 <= len(names) <= 8
    assert all(set(run.dataset.item_truth(i) or {}) == names for i in range(10))
    assert any(criterion.weight < 0 for criterion in run.dataset.rubric or ())
    note = Path("made/rubric.yaml").read_text(encoding="utf-8").splitlines()
    assert note[0].startswith("# Grades") and any("How to adapt it" in line for line in note[:4])


def test_init_writes_through_no_link(cli: Cli) -> None:
    """A link to a file that does not exist is a file that is there."""
    Path("rubric.yaml").symlink_to("elsewhere.yaml")
    refused = cli("init")
    assert (refused.code, "already contains rubric.yaml" in refused.err) == (2, True)
    assert [one.name for one in Path().iterdir()] == ["rubric.yaml"]


def test_messages_of_init(cli: Cli) -> None:
    """The current folder is named in words, and an invalid choice in those of the command line."""
    assert "data.csv to the current folder.\n" in cli("init", ".").err
    assert "Invalid value for '--template': 'nope' is not one of" in cli("init", "--template", "nope").err
    refused = cli("labels", "export", "x.json", "--split", "nope", "-o", "y.json")
    assert (refused.code, "Value error" in refused.err) == (2, False)


def test_init_replaces_nothing_unasked(cli: Cli) -> None:
    """A file that exists is named; --force replaces it."""
    Path("rubric.yaml").write_text("mine", encoding="utf-8")
    refused = cli("init")
    assert refused.code == 2
    assert "already contains rubric.yaml" in refused.err
    assert Path("rubric.yaml").read_text(encoding="utf-8") == "mine"
    assert cli("init", "--force").code == 0
    assert Path("rubric.yaml").read_text(encoding="utf-8") != "mine"
