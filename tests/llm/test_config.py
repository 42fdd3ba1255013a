"""Specs of models: what they take, what they refuse, and what they never show."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric.errors import FileError
from autorubric.llm import LLMConfig, ThinkingConfig, ThinkingLevel

SECRET = "sk-SENTINEL-0123456789"


def secretive() -> LLMConfig:
    """A config with a secret in every place that may have one."""
    return LLMConfig(
        model="openai/m",
        api_key=SECRET,
        extra_headers={"X-Gate": SECRET, "X-Team": "blue-" + SECRET},
        extra_params={"aws_session_token": SECRET, "options": {"password": SECRET}, "user": "u"},
        fallbacks=[{"model": "other", "api_key": SECRET}],
    )


def test_the_defaults_are_those_of_the_documentation() -> None:
    """A model's name is enough; everything else has its documented default."""
    assert LLMConfig(model="m").to_dict() == {
        "model": "m",
        "temperature": None,
        "max_tokens": None,
        "max_reason_chars": 600,
        "top_p": None,
        "timeout": 60.0,
        "max_retries": 3,
        "retry_min_wait": 1.0,
        "retry_max_wait": 60.0,
        "max_parallel_requests": None,
        "requests_per_minute": None,
        "tokens_per_minute": None,
        "cache_enabled": False,
        "cache_dir": ".autorubric_cache",
        "cache_ttl": None,
        "api_base": None,
        "transport": "auto",
        "fallbacks": [],
        "thinking": None,
        "prompt_caching": True,
        "seed": None,
        "extra_params": {},
        "logprobs": None,
        "truncate": None,
        "takes_images": None,
        "input_cost_per_token": None,
        "output_cost_per_token": None,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Field required"),
        ({"model": " "}, "' ' is not a model name"),
        ({"model": "a b"}, "'a b' is not a model name"),
        ({"model": "m", "temprature": 1}, "unknown parameter 'temprature'; did you mean 'temperature'?"),
        ({"model": "m", "zzz": 1}, "unknown parameter 'zzz'; allowed: 'api_base', "),
        ({"model": "m", "temperature": 3}, "less than or equal to 2; got 3"),
        ({"model": "m", "temperature": float("nan")}, "finite number; got nan"),
        ({"model": "m", "max_tokens": 0}, "greater than or equal to 1; got 0"),
        ({"model": "m", "top_p": 0}, "greater than 0; got 0"),
        ({"model": "m", "timeout": -1}, "greater than 0; got -1"),
        (
            {"model": "m", "retry_max_wait": 0.5},
            "retry_max_wait must be at least retry_min_wait; got 0.5 and 1.0",
        ),
        ({"model": "m", "transport": "http"}, "in the entry point group 'autorubric.transports'; got 'http'"),
        (
            {"model": "m", "transport": "openai_compatible"},
            "requires api_base, such as 'https://api.openai.com/v1'",
        ),
        ({"model": "m", "truncate": "head"}, "'start', 'middle' or 'end'; got 'head'"),
        ({"model": "m", "thinking": "hard"}, "'none', 'low', 'medium' or 'high'"),
        ({"model": "m", "thinking": {"levl": "low"}}, "unknown parameter 'levl'; did you mean 'level'?"),
        ({"model": "m", "api_base": "localhost:8000"}, "'localhost:8000' is not an http(s) URL"),
        ({"model": "m", "api_base": "http://h:99999/v1"}, "is not an http(s) URL"),
        ({"model": "m", "api_base": "http://h/a b"}, "contains spaces or control characters"),
        ({"model": "m", "api_base": "http://u:p@h/"}, "pass credentials as api_key or extra_headers"),
        ({"model": "m", "api_base": "http://h/?key=x"}, "pass credentials as api_key or extra_headers"),
        ({"model": "m", "api_key": "a\nb"}, "the key has line breaks"),
        ({"model": "m", "api_key": 3}, "valid string"),
        ({"model": "m", "extra_headers": {"X Y": "v"}}, "'X Y' is not a valid header name"),
        ({"model": "m", "extra_headers": {"X": "a\r\nEvil: 1"}}, "the value of header 'X' has line breaks"),
        ({"model": "m", "extra_headers": {"X": "sha256:1a2b3c4d"}}, "header 'X' is a digest from a manifest"),
        ({"model": "m", "extra_params": {"my_key": "sha256:1a2b3c4d"}}, "my_key in extra_params is a digest"),
        (
            {"model": "m", "extra_params": {"n": 2}},
            "extra_params must not contain n, which the library sets itself",
        ),
        (
            {"model": "m", "extra_params": {"input_cost_per_token": 1}},
            "must not contain input_cost_per_token, which the",
        ),
        ({"model": "m", "input_cost_per_token": 1}, "output_cost_per_token is None; set both (0 if free)"),
        ({"model": "m", "input_cost_per_token": -1, "output_cost_per_token": 0}, "equal to 0; got -1"),
        ({"model": "m", "output_cost_per_token": float("inf")}, "finite number; got inf"),
        ({"model": "m", "input_cost_per_token": "dear"}, "valid number"),
        ({"model": "m", "extra_params": {"x": {1}}}, "extra_params must be plain JSON"),
        ({"model": "m", "fallbacks": [{"model": "f", "fallbacks": ["g"]}]}, "'f' has its own fallbacks"),
        ({"model": "m", "fallbacks": [3]}, "valid dictionary or instance of LLMConfig"),
        ({"model": "m", "fallbacks": 3}, "valid tuple"),
    ],
)
def test_a_wrong_parameter_is_refused_with_what_is_right(given: dict[str, Any], said: str) -> None:
    """The error says what was given, what is allowed, and the nearest right name."""
    with pytest.raises(ValidationError) as caught:
        LLMConfig(**given)
    assert said in str(caught.value)


def test_all_faults_of_a_constructor_come_at_once() -> None:
    """Unknown and wrong parameters, nested ones too, are told together."""
    nested = {"thinking": {"x": 1}, "fallbacks": [{"model": "f", "y": 1}]}
    wrong: dict[str, Any] = {"model": "m", "temprature": 1, "timeout": -1, **nested}
    with pytest.raises(ValidationError) as caught:
        LLMConfig(**wrong)
    assert caught.value.error_count() == 4


def test_a_config_is_frozen() -> None:
    """A spec cannot change after it was made."""
    with pytest.raises(ValidationError):
        LLMConfig(model="m").model = "other"  # type: ignore[misc]


def test_names_and_levels_stand_for_what_they_name() -> None:
    """A fallback may be a name, thinking a level; a key has its blanks cut, an empty one is none."""
    config = LLMConfig(model="m", fallbacks="x", thinking="HIGH", api_key=f" {SECRET}\n")
    assert config.fallbacks == ("x",)
    assert config.thinking == ThinkingConfig(level=ThinkingLevel.HIGH)
    assert config.api_key is not None and config.api_key.get_secret_value() == SECRET
    assert LLMConfig(model="m", api_key=" ").api_key is None


@pytest.mark.parametrize(
    ("thinking", "params"),
    [
        (ThinkingConfig(), {"reasoning_effort": "medium"}),
        (ThinkingConfig(level=ThinkingLevel.NONE), {"reasoning_effort": "none"}),
        (ThinkingConfig(level=ThinkingLevel.NONE, budget_tokens=9), {"reasoning_effort": "none"}),
        (ThinkingConfig(budget_tokens=2000), {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    ],
)
def test_thinking_becomes_request_parameters(thinking: ThinkingConfig, params: dict[str, Any]) -> None:
    """A budget is sent in place of the level, and no thinking is said as such."""
    assert LLMConfig(model="m", thinking=thinking).request_params() == params


def test_request_parameters_leave_out_what_was_not_set() -> None:
    """What is None is the provider's to choose; zero is a choice."""
    config = LLMConfig(model="m", temperature=0, seed=0, extra_params={"user": "u"})
    assert config.request_params() == {"temperature": 0.0, "seed": 0, "user": "u"}


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    """No repr, dump, file, manifest, parameter or error shows a key, header or secret parameter."""
    config = secretive()
    path = tmp_path / "model.yaml"
    config.to_yaml(path)
    shown = [repr(config), str(config), repr(config.model_dump()), config.model_dump_json()]
    shown += [json.dumps(config.to_dict()), path.read_text(encoding="utf-8"), repr(config.request_params())]
    shown += [repr(copy.copy(config)), repr(config.extra_headers), repr([config]), f"{config.api_key}"]
    for wrong in (
        {"temprature": 1},
        {"api_base": f"http://{SECRET}@h"},
        {"retry_max_wait": 0.0},
        {"timeout": 0},
    ):
        with pytest.raises(ValidationError) as caught:
            LLMConfig(**{"model": "m", "api_key": SECRET, "extra_headers": {"a": SECRET}, **wrong})
        shown += [str(caught.value), caught.value.json(), repr(caught.value.errors())]
    assert SECRET not in "\n".join(shown)


def test_secrets_are_there_for_sending() -> None:
    """What is hidden is still sent."""
    config = secretive()
    assert config.headers() == {"X-Gate": SECRET, "X-Team": "blue-" + SECRET}
    assert config.secret_params() == {"aws_session_token": SECRET, "options": {"password": SECRET}}
    assert config.request_params() == {"user": "u"}
    assert set(config.secrets()) == {SECRET, "blue-" + SECRET}
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 — our own bytes; workers get specs so


def test_public_headers_keep_names_and_harmless_values() -> None:
    """A header whose name says that it holds a secret keeps its name alone."""
    config = LLMConfig(model="m", extra_headers={"X-Api-Key": "k", "anthropic-beta": "b"})
    assert config.public_headers() == {"X-Api-Key": "", "anthropic-beta": "b"}


def test_a_fallback_by_name_takes_the_settings() -> None:
    """The same provider keeps address and key; another gets neither, nor a secret; no price is handed on."""
    config = LLMConfig(
        model="hosted_vllm/a",
        api_base="http://h/v1",
        api_key=SECRET,
        transport="openai_compatible",
        temperature=0.5,
        extra_params={"x_token": SECRET, "user": "u"},
        input_cost_per_token=1e-6,
        output_cost_per_token=2e-6,
        fallbacks=("hosted_vllm/b", "anthropic/c", LLMConfig(model="d", seed=1)),
    )
    same, other, own = config.fallback_configs()
    assert (same.model, same.api_base, same.api_key) == ("hosted_vllm/b", "http://h/v1", config.api_key)
    assert (other.api_base, other.api_key, other.transport, other.temperature) == (None, None, "auto", 0.5)
    assert other.extra_params == {"user": "u"}
    assert own == LLMConfig(model="d", seed=1)
    assert same.fallbacks == other.fallbacks == ()
    assert {one.input_cost_per_token for one in (same, other)} == {None}
    assert {one.output_cost_per_token for one in (same, other)} == {None}


def test_a_file_keeps_everything_but_secrets(tmp_path: Path) -> None:
    """What is written is read back the same."""
    config = LLMConfig(
        model="m",
        thinking="low",
        fallbacks=("x", LLMConfig(model="ü", top_p=0.5)),
        cache_ttl=5.0,
        seed=3,
        input_cost_per_token=1e-7,
        output_cost_per_token=0,
    )
    path = tmp_path / "model.yaml"
    config.to_yaml(path)
    assert LLMConfig.from_yaml(path) == LLMConfig.model_validate(config.to_dict()) == config
    secretive().to_yaml(path)
    assert "sha256" not in path.read_text(encoding="utf-8")
    read = LLMConfig.from_yaml(path)
    assert (read.extra_headers, read.extra_params) == ({}, {"user": "u"})


def test_a_file_tells_all_its_faults_with_their_places(tmp_path: Path) -> None:
    """One error names the file and the path of each fault in it."""
    path = tmp_path / "model.yaml"
    path.write_text(
        "temprature: 1\ntimeout: -1\nfallbacks: [{model: z, tmeout: 1}, 3]\nthinking: {level: low, x: 1}\n",
        encoding="utf-8",
    )
    with pytest.raises(FileError) as caught:
        LLMConfig.from_yaml(path)
    assert caught.value.source == str(path)
    assert {(fault.path, fault.line) for fault in caught.value.faults} == {
        ("model", 1),
        ("temprature", 1),
        ("timeout", 2),
        ("fallbacks[0].tmeout", 3),
        ("fallbacks[1]", 3),
        ("thinking.x", 4),
    }


@pytest.mark.parametrize(
    "content",
    [
        b"model: [",
        b"a: 1\nb: [1,\nc: 'x",
        b"- model",
        b"1: 2",
        b"",
        b"model: \xff",
        b"model: !!python/object:os.system x",
        b"x: " + b"[" * 5000,
        b"x: 2001-99-99",
        b"model: m\nmodel: n",
        b'api_key: "sk-SENTINEL',
        b"a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b]",
    ],
)
def test_a_file_that_is_no_config_is_a_file_error(tmp_path: Path, content: bytes) -> None:
    """Whatever stands in the file, the error is typed and says what is wrong with it."""
    path = tmp_path / "model.yaml"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        LLMConfig.from_yaml(path)
    assert str(path) in str(caught.value)
    assert "SENTINEL" not in str(caught.value)


def test_a_file_that_cannot_be_opened_is_a_file_error(tmp_path: Path) -> None:
    """Reading what is not there, and writing where there is no folder, are typed errors."""
    with pytest.raises(FileError, match="file not found"):
        LLMConfig.from_yaml(tmp_path / "none.yaml")
    with pytest.raises(FileError, match="cannot be written"):
        LLMConfig(model="m").to_yaml(tmp_path / "none" / "model.yaml")


def test_a_file_may_hold_a_key(tmp_path: Path) -> None:
    """A key that a user wrote into a file is read; its faults never show it."""
    path = tmp_path / "model.yaml"
    path.write_text(f"model: m\napi_key: {SECRET}\ntimeout: 0\n", encoding="utf-8")
    with pytest.raises(FileError) as caught:
        LLMConfig.from_yaml(path)
    assert SECRET not in str(caught.value)
    path.write_text(f"model: m\napi_key: {SECRET}\n", encoding="utf-8")
    assert LLMConfig.from_yaml(path).secrets() == (SECRET,)
