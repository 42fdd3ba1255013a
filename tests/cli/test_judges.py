"""What `--judge` understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from autorubric import LexicalJudge, LLMConfig, RecordedJudge, SupervisedJudge
from autorubric.cli._judges import parse_judges
from autorubric.errors import ArgumentError, FileError
from tests.cli.conftest import Cli


def test_names_become_judges_in_order(cli: Cli, dataset: str, votes: str) -> None:
    """Each form gives its judge; a model keeps its name, with colons and slashes."""
    given = ["lexical", f"supervised:{dataset}", f"recorded:{votes}#wrong", "ollama/llama3:8b"]
    lexical, supervised, recorded, model = parse_judges(given, api_base="http://localhost:1/v1")
    assert isinstance(lexical, LexicalJudge)
    assert isinstance(supervised, SupervisedJudge)
    assert isinstance(recorded, RecordedJudge) and recorded.judge_id == "wrong"
    assert isinstance(model, LLMConfig)
    assert (model.model, model.api_base) == ("ollama/llama3:8b", "http://localhost:1/v1")
    assert not model.cache_enabled


def test_a_cache_folder_turns_the_cache_on() -> None:
    """With a folder for it, replies of models are kept there."""
    (model,) = parse_judges(["gpt-4.1-mini"], cache_dir=Path("kept"))
    assert isinstance(model, LLMConfig)
    assert model.cache_enabled and model.cache_dir == Path("kept")


def test_a_file_may_have_the_mark_in_its_name(cli: Cli, votes: str, tmp_path: Path) -> None:
    """A `#` that is part of an existing file's name does not name a rater."""
    lines = (tmp_path / votes).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if ",wrong," not in line)
    (tmp_path / "votes#1.csv").write_text(kept, encoding="utf-8")
    (recorded,) = parse_judges(["recorded:votes#1.csv"])
    assert isinstance(recorded, RecordedJudge) and recorded.judge_id == "right"
    (named,) = parse_judges(["recorded:votes#1.csv#right"])
    assert isinstance(named, RecordedJudge)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "no model name"),
        ("two words", "no model name"),
        ("lexcal", "did you mean 'lexical'"),
        ("Lexical", "did you mean 'lexical'"),
        ("lexical:now", "recorded:CSV#RATER"),
        ("supervised", "supervised:TRAIN"),
        ("recorded:", "recorded:CSV#RATER"),
        ("recorded:votes.csv", "2 raters: right, wrong"),
        ("recorded:votes.csv#nobody", "no rater 'nobody'"),
    ],
)
def test_what_is_no_judge_is_named_with_what_is_allowed(cli: Cli, votes: str, given: str, told: str) -> None:
    """The error repeats the flag and its value and says what would do."""
    with pytest.raises(ArgumentError) as caught:
        parse_judges([given])
    assert f"--judge {given!r}: " in str(caught.value)
    assert told in str(caught.value)


def test_a_wrong_address_is_named() -> None:
    """What the model's settings refuse is told in one line."""
    with pytest.raises(ArgumentError, match="'ftp://x' is no http"):
        parse_judges(["hosted_vllm/m"], api_base="ftp://x")


@pytest.mark.parametrize("given", ["recorded:nope.csv#x", "supervised:nope.json"])
def test_a_missing_file_is_a_file_error(cli: Cli, given: str) -> None:
    """A file that is not there is named."""
    with pytest.raises(FileError, match="nope"):
        parse_judges([given])
