"""`autorubric critique-text`, `autorubric tools` and the usage of `autorubric mcp`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autorubric.apps.tool import anthropic_definition, openai_definition
from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import ISSUE, REPLY, scored

CALL = ("critique-text", "text.md", "--criteria", "correctness,completeness")


@pytest.fixture
def config(tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A text and a provider table in the folder of `cli`; two models, of which one is down."""
    monkeypatch.delenv("AUTORUBRIC_PROVIDERS", raising=False)
    openai_server.script({"do": "answer", "payload": REPLY}, model="m1", repeat="last")
    openai_server.script({"do": "status", "status": 500}, model="down", repeat="last")
    settings = {"api_base": openai_server.api_base, "max_retries": 0}
    providers = {
        "gpt4": {"model": "hosted_vllm/m1", **settings},
        "claude": {"model": "hosted_vllm/down", "fast": True, **settings},
    }
    (tmp_path / "providers.json").write_text(json.dumps({"providers": providers}), encoding="utf-8")
    (tmp_path / "text.md").write_text("# A guide\n\nIt explains.\n", encoding="utf-8")
    return "providers.json"


def test_a_text_is_critiqued(cli: Cli, config: str) -> None:
    """Scores, issues and suggestions are shown; who failed before is told on stderr."""
    done = cli(*CALL, "--config", config)
    assert done.code == 0
    assert done.out.startswith("✓ 8/10 · 1 issue · 2 suggestions · gpt4\n")
    assert "line 45-52" in done.out and "- Test the timeout" in done.out
    assert "claude could not evaluate" in done.err


ISSUES = [
    {**ISSUE, "severity": "low", "description": "A comma is missing", "suggestion": None},
    {**ISSUE, "criterion": "correctness", "severity": "high", "description": "The sum is off"},
    {**ISSUE, "severity": "critical", "description": "The \x1b[31mkey is in it " + "word " * 40},
]


@pytest.mark.parametrize("columns", ["32", "100"])
def test_scores_are_bars_and_issues_stand_under_their_criterion(
    cli: Cli, config: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """Bars are as long as scores, the gravest issue of a criterion stands first, and no line is too wide."""
    reply = {**REPLY, "issues": ISSUES}
    openai_server.script({"do": "answer", "payload": reply}, model="m1", repeat="last")
    monkeypatch.setenv("COLUMNS", columns)
    out = cli(*CALL, "--config", config, "--provider", "gpt4").out
    assert "#" * 9 + "-" in out and "#" * 7 + "-" * 3 in out
    assert "\x1b" not in out and max(map(len, out.splitlines())) <= int(columns)
    assert out.index("Issues: completeness") < out.index("critical") < out.index("low ")
    assert out.index("low ") < out.index("Issues: correctness") < out.index("high")


@pytest.mark.parametrize(
    ("scale", "bar"), [("letter", "#" * 10), ("pass-fail", "#" * 10), ("0-100", "#" * 9)]
)
def test_every_scale_has_a_bar(cli: Cli, config: str, scale: str, bar: str) -> None:
    """Letters, pass and fail fill a bar by their rank."""
    out = cli(*CALL, "--config", config, "--provider", "gpt4", "--scale", scale).out
    assert (
        next(line for line in out.splitlines() if line.startswith("correctness")).split()[1].strip("-") == bar
    )


def test_a_criterion_without_a_score_has_no_bar(cli: Cli, config: str, openai_server: OpenAIServer) -> None:
    """What could not be assessed says so, and is not a score of 0."""
    openai_server.script({"do": "answer", "payload": scored(correctness=9, completeness=None)}, model="m1")
    out = cli(*CALL, "--config", config, "--provider", "gpt4").out
    row = next(line for line in out.splitlines() if line.startswith("completeness"))
    assert "not assessed" in row and "#" not in row and "--" not in row


def test_reasons_are_told_the_worst_criterion_first(
    cli: Cli, config: str, openai_server: OpenAIServer
) -> None:
    """Each criterion has its reason, the lowest score first; what was left out of the reply is told last."""
    reply = {**REPLY, "issues": [ISSUE, {**ISSUE, "criterion": "wit"}]}
    openai_server.script({"do": "answer", "payload": reply}, model="m1")
    out = cli(*CALL, "--config", config, "--provider", "gpt4").out
    rows = [line.split()[0] for line in out.splitlines() if "#" in line]
    assert rows == ["completeness", "correctness"]
    assert out.index("- completeness: One case.") < out.index("- correctness: It adds up.")
    assert out.index("Discarded parts of the reply") < out.index("criterion 'wit' was not requested")


def test_json_is_the_answer_of_the_tool(cli: Cli, config: str) -> None:
    """With --json stdout has the tool's own answer, on the scale and in the mode asked for."""
    call = (*CALL, "--config", config, "--provider", "gpt4", "--json")
    assert cli(*call).json["overall_score"] == 8
    summary = cli(*call, "--mode", "summary", "--scale", "letter").json
    assert summary["overall_score"] == "B" and "issues" not in summary


@pytest.mark.parametrize(
    ("scale", "threshold", "code"),
    [
        ("0-10", "8", 0),
        ("0-10", "8.1", 1),
        ("0-100", "81", 1),
        ("letter", "B", 0),
        ("letter", "c", 0),
        ("letter", "A", 1),
        ("pass-fail", "pass", 0),
    ],
)
def test_it_is_a_gate(cli: Cli, config: str, scale: str, threshold: str, code: int) -> None:
    """Below --fail-under, a value of the scale, the exit code is 1."""
    assert cli(*CALL, "--config", config, "--scale", scale, "--fail-under", threshold).code == code


def test_a_fail_is_below_pass(cli: Cli, config: str, openai_server: OpenAIServer) -> None:
    """A fail ends with 1 where a pass is asked for, and with 0 where nothing is."""
    openai_server.script(
        {"do": "answer", "payload": scored(correctness=6, completeness=6)}, model="m1", repeat="last"
    )
    call = (*CALL, "--config", config, "--provider", "gpt4", "--scale", "pass-fail")
    assert cli(*call, "--fail-under", "pass").code == 1
    assert cli(*call).code == 0
    assert cli(*call[:-1], "letter", "--fail-under", "F").code == 0


@pytest.mark.parametrize(
    "more",
    [
        ("--scale", "stars"),
        ("--provider", "custom:none"),
        ("--config", "none.yaml"),
        ("--fail-under", "A"),
        ("--workspace-root", "none"),
    ],
)
def test_a_faulty_request_is_json_too(cli: Cli, config: str, more: tuple[str, ...]) -> None:
    """With --json whatever is wrong is the tool's error object on stdout."""
    done = cli(*CALL, "--config", config, "--json", *more)
    assert done.code == 2 and set(done.json) == {"ok", "error", "provider"} and done.json["ok"] is False
    missing = cli("critique-text", "none.md", "--criteria", "a", "--config", config, "--json")
    assert missing.code == 2 and "none.md" in missing.json["error"]


def test_standard_input_and_the_environment(cli: Cli, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content may come by a pipe, and the table by the environment."""
    monkeypatch.setenv("AUTORUBRIC_PROVIDERS", config)
    done = cli("critique-text", "-", "--criteria", "quality", "--dry-run", given="Some text.")
    assert done.code == 0 and "dry run" in done.out and "quality" in done.out


def test_what_could_not_be_judged_is_three(cli: Cli, config: str, openai_server: OpenAIServer) -> None:
    """A provider that fails, and a criterion without a score, end with 3."""
    named = cli(*CALL, "--config", config, "--provider", "claude")
    assert named.code == 3 and "'claude' is not available" in named.err
    openai_server.script({"do": "answer", "payload": scored(correctness=9, completeness=None)}, model="m1")
    open_one = cli(*CALL, "--config", config, "--provider", "gpt4", "--fail-under", "1")
    assert open_one.code == 3 and "at least one criterion" in open_one.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--provider", "custom:none"), "is not available"),
        (("--scale", "stars"), "scoring_scale"),
        (("--max-issues", "99"), "max_issues"),
        (("--scale", "letter", "--fail-under", "8"), "must be one of A, B, C, D, F"),
        (("--scale", "pass-fail", "--fail-under", "fail"), "must be pass"),
        (("--fail-under", "nan"), "must be a number from 0 to 10"),
        (("--fail-under", "11"), "must be a number from 0 to 10"),
        (("--fail-under", "-1"), "must be a number from 0 to 10"),
        (("--scale", "0-100", "--fail-under", "100.5"), "must be a number from 0 to 100"),
        (("--config", "none.yaml"), "none.yaml"),
        (("--workspace-root", "none"), "is not an existing folder"),
        (("--timeout", "0"), "--timeout must be a positive number of seconds; got 0"),
        (("--timeout", "inf"), "--timeout must be a positive number of seconds; got inf"),
        (("--criteria", "none.yaml"), "file not found"),
        (("--criteria", "faulty.yaml"), "did you mean 'name'?"),
        (("--criteria", "style,faulty.yaml"), "cannot be combined with other criteria"),
        (("--criteria", "../rubric.yaml", "--workspace-root", "."), "is outside the workspace"),
    ],
)
def test_usage_errors_are_two(
    cli: Cli, config: str, openai_server: OpenAIServer, tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    """A faulty command line or file ends with 2, with --json too, and nobody is asked."""
    (tmp_path / "faulty.yaml").write_text("- {nme: a, requirement: b}\n", encoding="utf-8")
    done = cli(*CALL, "--config", config, *more)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    data = cli(*CALL, "--config", config, "--json", *more)
    assert data.code == 2 and data.json["ok"] is False and told in data.json["error"]
    assert not openai_server.log()


@pytest.mark.parametrize(
    ("more", "size"),
    [
        (("--fail-under", "A"), None),
        (("--timeout", "0"), None),
        (("--scale", "stars"), None),
        (("--provider", "custom:none"), 24),
        (("--criteria", "none.yaml"), 24),
    ],
)
def test_a_refused_request_leaves_an_audit_line(
    cli: Cli, config: str, tmp_path: Path, more: tuple[str, ...], size: int | None
) -> None:
    """What is refused before anybody is asked is written down as what is asked, each call once."""
    table = json.loads((tmp_path / config).read_text(encoding="utf-8"))
    (tmp_path / config).write_text(json.dumps({**table, "audit_path": "audit.jsonl"}), encoding="utf-8")
    assert cli(*CALL, "--config", config, *more).code == 2
    assert cli("critique-text", "none.md", "--criteria", "style", "--config", config).code == 2
    assert cli(*CALL, "--config", config).code == 0
    lines = [json.loads(one) for one in (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(one["ok"], one["error_code"]) for one in lines] == [
        (False, "request"),
        (False, "request"),
        (True, None),
    ]
    assert lines[0].get("content_bytes") == size
    assert all(one["tool"] == "critique.evaluate" and "content" not in one for one in lines)


def test_a_refusal_that_cannot_be_logged_is_told(cli: Cli, config: str, tmp_path: Path) -> None:
    """The audit log that cannot be written is an error of the command."""
    table = json.loads((tmp_path / config).read_text(encoding="utf-8"))
    (tmp_path / config).write_text(json.dumps({**table, "audit_path": "none/a.jsonl"}), encoding="utf-8")
    done = cli(*CALL, "--config", config, "--scale", "stars", "--json")
    assert done.json["ok"] is False and "audit log" in done.json["error"]


def test_no_provider_is_a_usage_error(cli: Cli, config: str) -> None:
    """Without a table the command says how to give one; a missing file is told."""
    assert "AUTORUBRIC_PROVIDERS" in cli(*CALL).err
    assert cli("critique-text", "none.md", "--criteria", "a", "--config", config).code == 2


def test_tools_prints_definitions(cli: Cli) -> None:
    """`tools` prints the function definition in either style, and refuses others."""
    assert cli("tools").json == openai_definition()
    assert cli("tools", "--format", "anthropic").json == anthropic_definition()
    grade = cli("tools", "--tool", "grade").json["function"]
    assert grade["parameters"]["required"] == ["text", "rubric"]
    every = cli("tools", "--tool", "all", "--format", "anthropic").json
    assert [one["name"] for one in every] == ["critique_evaluate", "grade", "compute_metrics"]
    assert every[0] == anthropic_definition()
    assert "unknown tool 'other'" in cli("tools", "--tool", "other").err
    refused = cli("tools", "--format", "other")
    assert refused.code == 2 and "'openai', 'anthropic'" in refused.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--timeout", "0"), "--timeout"),
        (("--root", "none"), "is not an existing folder"),
        (("--port", "70000"), "65535"),
    ],
)
def test_mcp_checks_its_arguments(cli: Cli, config: str, more: tuple[str, ...], told: str) -> None:
    """What cannot be served is a usage error."""
    done = cli("mcp", "--config", config, "--http", *more)
    assert done.code == 2 and told in done.err


@pytest.mark.slow
def test_a_timeout_names_the_error_that_was_retried(
    cli: Cli, config: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A server that answers 500 until the time is over is named with its status."""
    down = {"model": "hosted_vllm/down", "api_base": openai_server.api_base, "max_retries": 1000}
    (tmp_path / "down.json").write_text(json.dumps({"providers": {"claude": down}}), encoding="utf-8")
    for provider in ("auto", "claude"):
        done = cli(*CALL, "--config", "down.json", "--provider", provider, "--timeout", "2")
        assert done.code == 3
        assert "after 2 s" in done.err or "within 2 s" in done.err
        assert "retried after ServerError" in " ".join(done.err.split()) and "HTTP 500" in done.err
