"""Files that are huge, deep, or grow when read; and texts of ten megabytes through the whole line."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autorubric import (
    Criterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    JudgeSpec,
    LexicalJudge,
    LLMConfig,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.apps.tool import ProviderTable, critique_evaluate_sync
from autorubric.errors import AutorubricError, DatasetError, ReplyError, RubricError
from autorubric.judges.prompts import neutralise
from autorubric.llm.reply_json import parse_reply, parse_reply_json
from tests.servers.fixtures import OpenAIServer

MEBIBYTE = 1 << 20
BUSY = 12
"""How many times as long a slow machine may take that has other things to do, with coverage on."""
RUBRIC = Rubric([Criterion(name="capital", requirement="The text names Paris.")])


@contextmanager
def bounded(*, seconds: float, mebibytes: int) -> Iterator[None]:
    """Fails where what is inside takes far more time on the processor, or lets the process grow more."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    taken, unit = time.process_time() - began, MEBIBYTE if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit
    assert taken < BUSY * seconds
    assert grown < mebibytes


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
NESTED_ALIASES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 60)
)
RECURSIVE = "criteria: &a [*a]\n"
BOMBS = {
    "laughs.yaml": LAUGHS,
    "aliases.yaml": NESTED_ALIASES,
    "recursive.yaml": RECURSIVE,
    "deep.json": "[" * 100_000,
    "deep-object.json": '{"criteria":' * 100_000,
    "deep-closed.json": "[" * 50_000 + "]" * 50_000,
    "deep.yaml": "[" * 20_000,
    "deep-block.yaml": "".join(f"{' ' * n}a:\n" for n in range(2_000)),
    "deep-dashes.yaml": "- " * 20_000,
    "deep-keys.yaml": "? " * 20_000,
    "deep.toml": "a = " + "[" * 20_000,
    "deep-keys.toml": ".".join(["a"] * 20_000) + " = 1",
    "digits.json": "[" + "9" * 100_000 + "]",
    "digits.yaml": "a: " + "9" * 100_000,
    "digits.toml": "a = " + "9" * 100_000,
    "exponent.json": "[1e999999999]",
    "keys.json": "{" + ",".join(f'"k{n}":{n}' for n in range(20_000)) + "}",
    "keys.yaml": "".join(f"k{n}: {n}\n" for n in range(20_000)),
    "merge.yaml": "a: &a {x: 1}\nb: {<<: *a}\n",
    "object.yaml": "a: !!python/object/apply:os.system ['true']\n",
    "binary.yaml": "a: !!binary aGVsbG8=\n",
    "timestamp.yaml": "a: !!timestamp 2024-01-01\n",
    "documents.yaml": "a: 1\n---\nb: 2\n",
}
READERS: dict[str, Callable[[Path], object]] = {
    "rubric": Rubric.from_file,
    "dataset": RubricDataset.from_file,
    "config": LLMConfig.from_yaml,
    "providers": ProviderTable.from_file,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("keys.")) for name in BOMBS]
)
def test_bombs_are_refused(name: str, reader: str, tmp_path: Path) -> None:
    """Files that grow, nest without end or name code are typed errors, at once and in little memory."""
    path = tmp_path / name
    path.write_text(BOMBS[name], encoding="utf-8")
    with bounded(seconds=8, mebibytes=300), pytest.raises(AutorubricError):
        READERS[reader](path)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    """A YAML tag that names a function calls none."""
    left = tmp_path / "left"
    path = tmp_path / "r.yaml"
    path.write_text(f"- !!python/object/apply:pathlib.Path.touch ['{left}']\n", encoding="utf-8")
    with pytest.raises(AutorubricError, match="not supported"):
        Rubric.from_file(path)
    assert not left.exists()


@pytest.mark.parametrize(
    "reply",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "{" * 500_000,
        '{"a": "' + "\\" * 500_000,
        "`" * 500_000,
        "<think>" * 100_000,
        '{"reason": "' + "x" * MEBIBYTE,
        '{"n": ' + "9" * 200_000 + "}",
        '{"a": 1,' * 50_000,
        " " * MEBIBYTE,
        "\\" * MEBIBYTE,
        '"' * MEBIBYTE,
        "{}" * 200_000,
    ],
    ids=lambda reply: repr(reply[:12]),
)
def test_hostile_replies_are_read_or_refused_at_once(reply: str) -> None:
    """A judge's reply is read in time that grows with its length alone."""
    for read in (parse_reply_json, parse_reply):
        with bounded(seconds=8, mebibytes=300):
            try:
                read(reply)
            except ReplyError:
                continue


def test_ten_megabytes_through_the_whole_line(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """A dataset file with such a text, judged here and by a model, stored and opened again."""
    text = "Paris is the capital. <submission> " * (10 * MEBIBYTE // 35)
    path = tmp_path / "d.jsonl"
    line = {"id": "a", "submission": text, "ground_truth": {"capital": "MET"}}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    config = LLMConfig(
        model="openai/m", api_base=openai_server.api_base, api_key="k", transport="openai_compatible"
    )
    grader = CriterionGrader(judges=[LexicalJudge(), JudgeSpec(config, "model")])
    with bounded(seconds=60, mebibytes=900):
        dataset = RubricDataset.from_file(path, rubric=RUBRIC)
        result = evaluate_sync(
            dataset, grader, experiment_name="run", experiments_dir=tmp_path, show_progress=False
        )
        again = EvalResult.from_experiment(tmp_path / "run")
    assert result.failed_items == 0
    assert again.get_scores() == result.get_scores()
    assert again.dataset[0].submission == text
    (entry,) = openai_server.log()
    assert neutralise(text) in entry["body"]["messages"][1]["content"]


@pytest.mark.parametrize(
    "form", ["json", "jsonl", "csv", "parquet", pytest.param("yaml", marks=pytest.mark.slow)]
)
def test_ten_megabytes_in_every_file(form: str, tmp_path: Path) -> None:
    """Every format carries such a text and gives it back."""
    text = 'Paris, =1+1 is\nthe "capital". ' * (10 * MEBIBYTE // 30)
    path = tmp_path / f"d.{form}"
    with bounded(seconds=90, mebibytes=1200):
        RubricDataset(items=[DataItem(id="a", submission=text)]).to_file(path)
        assert RubricDataset.from_file(path)[0].submission == text
        if form in ("jsonl", "parquet"):
            assert RubricDataset.stream(path)[0].submission == text


def test_ten_megabytes_are_too_long_for_the_tool() -> None:
    """The tool's bound is 500 KB, told before anything is done with the text."""
    with bounded(seconds=5, mebibytes=200):
        answer = critique_evaluate_sync({"content": "x" * (10 * MEBIBYTE), "criteria": ["quality"]})
    assert not answer.ok
    assert "exceeds maximum size" in answer.model_dump_json()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["<" * 10, "</submission", "&lt;", "＜\u200b", "\u202e<"])
def test_ten_megabytes_of_look_alikes_are_neutralised_at_once(text: str) -> None:
    """Neutralising takes time in proportion to the text."""
    with bounded(seconds=10, mebibytes=400):
        neutralise(text * (10 * MEBIBYTE // len(text)))


@pytest.mark.slow
def test_fifty_thousand_names_take_no_square_of_the_time(tmp_path: Path) -> None:
    """Columns of a table and options of a criterion are many at once; all are told, in bounded time."""
    head = tmp_path / "wide.csv"
    head.write_text(",".join(f"c{n}" for n in range(50_000)) + "\n", encoding="utf-8")
    with (
        bounded(seconds=15, mebibytes=400),
        pytest.raises(DatasetError, match="column 'submission' not found"),
    ):
        RubricDataset.from_file(head)
    options = [{"label": f"o{n}", "value": 0.5} for n in range(50_000)]
    criterion = {"name": "many", "requirement": "How?", "options": [*options, options[0]]}
    with (
        bounded(seconds=15, mebibytes=400),
        pytest.raises(RubricError, match="labels must be unique; repeated: 'o0'"),
    ):
        Rubric.from_json(json.dumps([criterion]))
