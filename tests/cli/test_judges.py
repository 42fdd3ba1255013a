"""What `--judge` understands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import JudgeSpec, LexicalJudge, LLMConfig, RecordedJudge
from autorubric.cli.panel import aggregation_policies
from autorubric.errors import ArgumentError, FileError
from autorubric.judges import SupervisedJudge
from autorubric.judges.panel import named_judges
from tests.cli.conftest import Cli


def test_names_become_judges_in_order(cli: Cli, dataset: str, votes: str) -> None:
    """Each form gives its judge; a model keeps its name, with colons and slashes."""
    given = ["lexical", f"supervised:{dataset}", f"recorded:{votes}#wrong", "ollama/llama3:8b"]
    lexical, supervised, recorded, model = named_judges(given, api_base="http://localhost:1/v1")
    assert isinstance(lexical, LexicalJudge)
    assert isinstance(supervised, SupervisedJudge)
    assert isinstance(recorded, RecordedJudge) and recorded.judge_id == "wrong"
    assert isinstance(model, LLMConfig)
    assert (model.model, model.api_base) == ("ollama/llama3:8b", "http://localhost:1/v1")
    assert not model.cache_enabled


def test_a_cache_folder_turns_the_cache_on() -> None:
    """With a folder for it, replies of models are kept there."""
    (model,) = named_judges(["gpt-6-luna"], cache_dir=Path("kept"))
    assert isinstance(model, LLMConfig)
    assert model.cache_enabled and model.cache_dir == Path("kept")


def test_a_file_may_have_the_mark_in_its_name(cli: Cli, votes: str, tmp_path: Path) -> None:
    """A `#` that is part of an existing file's name does not name a rater."""
    lines = (tmp_path / votes).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if ",wrong," not in line)
    (tmp_path / "votes#1.csv").write_text(kept, encoding="utf-8")
    (recorded,) = named_judges(["recorded:votes#1.csv"])
    assert isinstance(recorded, RecordedJudge) and recorded.judge_id == "right"
    (named,) = named_judges(["recorded:votes#1.csv#right"])
    assert isinstance(named, RecordedJudge)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "not a model name"),
        ("two words", "not a model name"),
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
        named_judges([given])
    assert f"--judge {given!r}: " in str(caught.value)
    assert told in str(caught.value)


def test_a_wrong_address_is_named() -> None:
    """What the model's settings refuse is told in one line."""
    with pytest.raises(ArgumentError, match="'ftp://x' is not an http"):
        named_judges(["hosted_vllm/m"], api_base="ftp://x")


@pytest.mark.parametrize("given", ["recorded:nope.csv#x", "supervised:nope.json"])
def test_a_missing_file_is_a_file_error(cli: Cli, given: str) -> None:
    """A file that is not there is named."""
    with pytest.raises(FileError, match="nope"):
        named_judges([given])


def test_a_judge_is_named_before_an_equals_sign(cli: Cli, votes: str) -> None:
    """`name=model` names the judge; a file name with an equals sign is not taken apart."""
    strict, other, plain = named_judges(["strict=gpt-6-luna", f"people=recorded:{votes}#right", "lexical"])
    assert isinstance(strict, JudgeSpec) and isinstance(strict.llm_config, LLMConfig)
    assert (strict.judge_id, strict.llm_config.model) == ("strict", "gpt-6-luna")
    assert isinstance(other, JudgeSpec) and other.judge_id == "people"
    assert isinstance(plain, LexicalJudge)
    Path("a=b.csv").write_bytes(Path(votes).read_bytes())
    (recorded,) = named_judges(["recorded:a=b.csv#right"])
    assert isinstance(recorded, RecordedJudge)


def test_temperature_and_samples_apply_to_models() -> None:
    """Models get the temperature and the samples; judges that are not models keep their one vote."""
    model, lexical = named_judges(["gpt-6-luna", "lexical"], temperature=0.7, samples=3)
    assert isinstance(model, JudgeSpec) and isinstance(model.llm_config, LLMConfig)
    assert (model.samples, model.llm_config.temperature) == (3, 0.7)
    assert isinstance(lexical, LexicalJudge)


@pytest.mark.parametrize("options", [{"samples": 3}, {"temperature": 0.5}])
def test_options_of_models_need_a_model(options: dict[str, Any]) -> None:
    """Options that no judge can follow are refused, not ignored."""
    with pytest.raises(
        ArgumentError, match=f"--{next(iter(options))} applies only to models, but no judge is"
    ):
        named_judges(["lexical"], **options)


def test_one_judge_twice_needs_names() -> None:
    """The error shows how to give each a name; with names a model may judge twice."""
    with pytest.raises(ArgumentError, match="--judge a=m/x --judge b=m/x"):
        named_judges(["m/x", "m/x"])
    assert len(named_judges(["a=m/x", "b=m/x"])) == 2


def test_aggregation_is_set_by_level() -> None:
    """A plain method is for binary criteria; `level=method` is for another level."""
    given = aggregation_policies(["unanimous", "ordinal=median", "nominal=mode", "ranking=bradley_terry"])
    assert given == {
        "aggregation": "unanimous",
        "ordinal_aggregation": "median",
        "nominal_aggregation": "mode",
        "ranking_aggregation": "bradley_terry",
    }
    assert aggregation_policies(None) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("median", "did you mean ordinal=median?"),
        ("ordinal=majority", "mean, median, weighted_mean, mode, min, max"),
        ("cardinal=mean", "available: binary, ordinal, nominal, ranking"),
    ],
)
def test_an_unknown_aggregation_is_refused(given: str, message: str) -> None:
    """The error says what its level allows, or which level has the method."""
    with pytest.raises(ArgumentError, match="--aggregation") as caught:
        aggregation_policies([given])
    assert message in str(caught.value)


def test_a_panel_is_configured_on_the_command_line(cli: Cli, votes: str, dataset: str) -> None:
    """Names and the aggregation reach the run: the vote of either judge is enough under `any`."""
    panel = ["--judge", f"good=recorded:{votes}#right", "--judge", f"bad=recorded:{votes}#wrong"]
    done = cli("eval", dataset, *panel, "--aggregation", "any", "--name", "one")
    assert done.code == 0, done.err
    manifest = json.loads(Path("experiments/one/manifest.json").read_text(encoding="utf-8"))
    assert list(manifest["asking"]["judges"]) == ["good", "bad"]
    assert manifest["deciding"]["aggregation"]["aggregation"] == "any"
