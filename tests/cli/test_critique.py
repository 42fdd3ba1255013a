"""`autorubric critique` and `autorubric refine`: a gate on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.drafts.teachers import critique, draft, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

JUDGE = ("--judge", "openai/m")


@pytest.fixture
def drafts(tmp_path: Path) -> str:
    """Three drafts in the folder of `cli`."""
    write_lines(tmp_path / "drafts.jsonl", [draft(number) for number in range(3)])
    return "drafts.jsonl"


@pytest.fixture
def server(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """A server that passes every draft; the environment has a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    openai_server.script({"do": "answer", "payload": scored(5, "pass")}, repeat="last")
    return openai_server


@pytest.mark.parametrize(
    ("verdict", "fail_on", "code"),
    [
        ("pass", None, 0),
        ("pass", "revise", 0),
        ("revise", "reject", 0),
        ("revise", "revise", 1),
        ("reject", "reject", 1),
        ("reject", "revise", 1),
        ("reject", None, 0),
    ],
)
def test_it_is_a_gate(
    verdict: str, fail_on: str | None, code: int, cli: Cli, drafts: str, server: OpenAIServer
) -> None:
    """The exit code is 1 where a verdict at the gate, or a worse one, occurs."""
    server.script({"do": "answer", "payload": scored(3, verdict)}, contains="has the id draft_1.")
    gate = () if fail_on is None else ("--fail-on", fail_on)
    done = cli("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base, *gate, "--json")
    assert done.code == code
    assert done.json["records"] == 3
    assert done.json["verdict_distribution"][verdict] >= 1


def test_what_could_not_be_judged_does_not_pass(cli: Cli, drafts: str, server: OpenAIServer) -> None:
    """A critique that cannot be used is 3; tried again with --resume --retry-errors it is 0."""
    server.script({"do": "answer", "content": "no"}, contains="has the id draft_1.")
    server.script(*[{"do": "answer", "content": "no"}] * 2, contains="could not be used")
    call = ("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    done = cli(*call, "--fail-on", "reject")
    assert done.code == 3 and "JSON_PARSE_ERROR" in done.out
    assert cli(*call, "--resume").code == 3
    assert cli(*call, "--resume", "--retry-errors").code == 0


def test_lines_that_give_no_draft_are_told_of(
    cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """Faulty lines stand on stderr with their numbers; the rest is judged, and the code is 3."""
    write_lines(tmp_path / "drafts.jsonl", [draft(0), "nope", draft(0)])
    done = cli("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    assert done.code == 3
    assert "line 2: invalid JSON" in done.err and "line 3: duplicate id, already used on line 1" in done.err


def test_a_dry_run_asks_nobody(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """A rehearsal says what would be asked, and writes nothing."""
    done = cli("critique", drafts, "--out-dir", "out", *JUDGE, "--dry-run", "--limit", "2", "--json")
    assert (done.code, done.json["pending"]) == (0, 2)
    assert server.log() == [] and not (tmp_path / "out").exists()


def test_own_schema_and_template(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """A schema and a template are files."""
    schema = {"type": "object", "required": ["verdict"], "properties": {"verdict": {"enum": ["pass", "no"]}}}
    (tmp_path / "own.json").write_text(json.dumps(schema), encoding="utf-8")
    (tmp_path / "own.txt").write_text("Own words: {material}", encoding="utf-8")
    server.script({"do": "answer", "payload": {"verdict": "pass"}}, repeat="last")
    files = ("--schema", "own.json", "--template", "own.txt")
    done = cli("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base, *files)
    assert done.code == 0
    assert server.log()[0]["body"]["messages"][-1]["content"].startswith("Own words:")


def test_a_rubric_needs_no_model(cli: Cli, drafts: str, rubric: str) -> None:
    """With a rubric an offline judge will do; without one it is told why not."""
    call = ("critique", drafts, "--out-dir", "out", "--judge", "lexical")
    done = cli(*call, "--rubric", rubric, "--threshold", "0.9", "--fail-on", "revise", "--json")
    assert done.code == 1 and set(done.json["avg_scores"]) == {"capital", "rude", "form"}
    done = cli(*call)
    assert done.code == 2 and "does not write critiques" in done.err


def test_faulty_calls(cli: Cli, drafts: str) -> None:
    """A missing file, and an unknown verdict, are 2."""
    assert cli("critique", "none.jsonl", "--out-dir", "out", *JUDGE).code == 2
    assert cli("critique", drafts, "--out-dir", "out", *JUDGE, "--fail-on", "pass").code == 2


def test_refine_rewrites_and_says_how_many_passed(
    cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """Drafts to revise are rewritten; with --json the statistics are one object."""
    server.script({"do": "answer", "payload": critique()}, contains="has the id draft_1.")
    cli("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    server.script(
        {"do": "answer", "payload": {"payload": "new"}}, contains="Rewrite the draft", repeat="last"
    )
    call = ("refine", "out/critiques_v1.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE)
    done = cli(*call, "--api-base", server.api_base, "--json")
    assert (done.code, done.json["refined"], done.json["success_rate"]) == (0, 1, 100.0)
    (record,) = read_lines(tmp_path / "out" / "refined_v1.jsonl")
    assert (record["id"], record["output"]) == ("draft_1", {"payload": "new"})
    done = cli(*call, "--api-base", server.api_base, "--resume", "--min-risk", "high")
    assert done.code == 0 and "refined" in done.out


def test_refine_with_an_error_is_three(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """Where a draft could not be rewritten, the code is 3."""
    write_lines(tmp_path / "critiques.jsonl", [{"id": "gone", "critique": critique()}])
    done = cli("refine", "critiques.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE)
    assert done.code == 3


@pytest.mark.parametrize(
    ("verdict", "fail_under", "code"),
    [
        ("pass", "100", 0),
        ("reject", None, 0),
        ("reject", "0", 0),
        ("reject", "0.5", 1),
        ("revise", "100", 1),
        ("pass", "101", 2),
        ("pass", "nan", 2),
    ],
)
def test_refine_is_a_gate(
    verdict: str,
    fail_under: str | None,
    code: int,
    cli: Cli,
    drafts: str,
    server: OpenAIServer,
    tmp_path: Path,
) -> None:
    """Below the success rate asked for, in percent, the code is 1; without one everything rejected is 0."""
    server.script({"do": "answer", "payload": scored(5, verdict)}, contains="strict, fair", repeat="last")
    server.script({"do": "answer", "payload": {"payload": 1}}, contains="Rewrite the draft", repeat="last")
    write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    call = ["refine", "c.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE, "--max-rounds", "1"]
    gate = [] if fail_under is None else ["--fail-under", fail_under]
    assert cli(*call, "--api-base", server.api_base, *gate).code == code


def test_nothing_to_refine_is_no_failure(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """Where every draft passed already, no success rate is too low, and nobody is asked."""
    write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(5, "pass")}])
    call = (
        "refine",
        "c.jsonl",
        "--drafts",
        drafts,
        "--out-dir",
        "out",
        *JUDGE,
        "--fail-under",
        "100",
        "--json",
    )
    done = cli(*call)
    assert (done.code, done.json["total"], done.json["success_rate"]) == (0, 0, None)
    assert server.log() == []


def test_an_error_is_no_success_rate(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """Where a draft could not be refined the code is 3 at any gate: the rate says nothing of that draft."""
    write_lines(tmp_path / "c.jsonl", [{"id": "gone", "critique": scored(1)}])
    call = ("refine", "c.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE, "--fail-under", "50")
    assert cli(*call).code == 3


def test_critiques_that_all_failed_do_not_pass(cli: Cli, drafts: str, tmp_path: Path) -> None:
    """A gate over critiques of which none has a verdict is 3, and the cause is on stderr."""
    error = {"code": "PROVIDER_ERROR", "message": "ProviderConnectionError: nobody there"}
    failed = {"critique": None, "critique_contract": {"schema_ok": False, "error": error}}
    write_lines(tmp_path / "c.jsonl", [{"id": f"draft_{n}", **failed} for n in range(3)])
    call = ("refine", "c.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE)
    for gate in ((), ("--fail-under", "0"), ("--fail-under", "80")):
        done = cli(*call, *gate)
        assert done.code == 3
        assert "3 of 3 drafts could not be judged; first error: PROVIDER_ERROR: ProviderConn" in done.err
    assert cli(*call, "--fail-under", "0", "--max-lost", "1").code == 0


@pytest.mark.parametrize(
    ("max_lost", "code"), [((), 3), (("--max-lost", "0.4"), 0), (("--max-lost", "0.3"), 3)]
)
def test_a_gate_allows_for_a_share_of_lost_drafts(
    max_lost: tuple[str, ...], code: int, cli: Cli, drafts: str, server: OpenAIServer
) -> None:
    """With a gate, drafts that could not be judged are 3 where they are more than --max-lost."""
    server.script({"do": "answer", "content": "no"}, contains="has the id draft_1.", repeat="last")
    server.script({"do": "answer", "content": "no"}, contains="could not be used", repeat="last")
    call = ("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    done = cli(*call, "--fail-on", "reject", *max_lost)
    assert done.code == code and "1 of 3 drafts could not be judged" in done.err
    assert cli(*call).code == 3


@pytest.mark.parametrize(
    ("count", "max_lost", "code"),
    [(20, (), 0), (19, (), 3), (19, ("--max-lost", "0.1"), 0), (20, ("--max-lost", "0.01"), 3)],
)
def test_a_refinement_allows_for_a_share_of_lost_critiques(
    count: int, max_lost: tuple[str, ...], code: int, cli: Cli, tmp_path: Path, server: OpenAIServer
) -> None:
    """With a gate one failed critique of 20 is 5 %, which passes, and one of 19 is 3."""
    server.script({"do": "answer", "payload": scored(5, "pass")}, contains="strict, fair", repeat="last")
    server.script({"do": "answer", "payload": {"payload": 1}}, contains="Rewrite the draft", repeat="last")
    write_lines(tmp_path / "many.jsonl", [draft(number) for number in range(count)])
    error = {"code": "PROVIDER_ERROR", "message": "ProviderConnectionError: nobody there"}
    failed = {"critique": None, "critique_contract": {"schema_ok": False, "error": error}}
    good = [{"id": f"draft_{number}", "critique": scored(5, "pass")} for number in range(2, count)]
    revised = {"id": "draft_1", "critique": scored(1)}
    write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", **failed}, revised, *good])
    call = ("refine", "c.jsonl", "--drafts", "many.jsonl", "--out-dir", "out", *JUDGE)
    done = cli(*call, "--api-base", server.api_base, "--fail-under", "100", *max_lost)
    assert done.code == code, done.err
    assert f"1 of {count} drafts could not be judged" in done.err


def test_a_removed_draft_does_not_fail_the_gate(
    cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """A rejected draft that is taken out of the drafts file is no reason to fail any more."""
    server.script({"do": "answer", "payload": scored(1, "reject")}, contains="has the id draft_1.")
    call = ("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    assert cli(*call, "--fail-on", "reject").code == 1
    write_lines(tmp_path / "drafts.jsonl", [draft(0), draft(2)])
    done = cli(*call, "--fail-on", "reject", "--resume")
    assert done.code == 0 and "no longer in drafts.jsonl: 1" in done.err


def test_a_dead_server_is_told_of(cli: Cli, tmp_path: Path, server: OpenAIServer) -> None:
    """The screen says why nothing could be judged, and how to go on; the code is 3."""
    write_lines(tmp_path / "many.jsonl", [draft(number) for number in range(100)])
    server.script({"do": "status", "status": 401}, repeat="last")
    call = ("critique", "many.jsonl", "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    done = cli(*call, "--fail-on", "reject")
    assert done.code == 3
    assert "all 5 drafts so far failed with the same error" in done.err and "AuthenticationError" in done.err
    assert "--resume --retry-errors" in done.err and len(server.log()) < 60


@pytest.mark.parametrize("command", ["critique", "refine"])
def test_retry_errors_needs_resume(command: str, cli: Cli, drafts: str, server: OpenAIServer) -> None:
    """Without --resume it is refused, in the words of the command line, and nobody is asked."""
    more = ("--drafts", drafts) if command == "refine" else ()
    done = cli(command, drafts, *more, "--out-dir", "out", *JUDGE, "--retry-errors")
    assert done.code == 2
    assert "--retry-errors requires --resume" in done.err and "resume=True" not in done.err
    assert server.log() == []


@pytest.mark.parametrize("command", ["critique", "refine"])
def test_a_file_with_nothing_in_it_is_faulty(
    command: str, cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """An empty file passes no gate: the code is 2, and the message names it."""
    (tmp_path / "none.jsonl").write_text("\n", encoding="utf-8")
    more = ("--drafts", drafts) if command == "refine" else ()
    done = cli(command, "none.jsonl", *more, "--out-dir", "out", *JUDGE)
    assert done.code == 2 and "none.jsonl" in done.err and "the file is empty" in done.err


def test_a_limit_stops_it_and_resume_goes_on(
    cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """At --max-calls the code is 130 at any gate, with the statistics, and --resume asks for the rest."""
    call = ("critique", drafts, "--out-dir", "out", *JUDGE, "--api-base", server.api_base, "--json")
    done = cli(*call, "--max-calls", "2", "--fail-on", "reject")
    assert (done.code, done.json["stopped"], done.json["left"]) == (130, "max_calls", 1)
    assert "Stopped at --max-calls. To resume, run the command again with --resume." in done.err
    done = cli(*call, "--resume", "--max-calls", "2")
    assert (done.code, done.json["stopped"], done.json["records"], len(server.log())) == (0, None, 3, 3)


def test_a_limit_stops_a_refinement(cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path) -> None:
    """What was rewritten before the limit is not rewritten again."""
    written = {"do": "answer", "payload": {"payload": "new"}}
    server.script(written, contains="Rewrite the draft", repeat="last")
    write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    call = ("refine", "c.jsonl", "--drafts", drafts, "--out-dir", "out", *JUDGE)
    done = cli(*call, "--api-base", server.api_base, "--max-calls", "1", "--fail-under", "100")
    assert done.code == 130 and "the remaining 1 of 1 drafts" in done.err and "--resume" in done.err
    done = cli(*call, "--api-base", server.api_base, "--max-calls", "1", "--resume")
    assert (done.code, len(server.log())) == (0, 2)


@pytest.mark.parametrize("command", ["critique", "refine"])
def test_a_limit_of_dollars_needs_prices(
    command: str, cli: Cli, drafts: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """A model whose price is not known is named, and nobody is asked."""
    write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    files = (drafts,) if command == "critique" else ("c.jsonl", "--drafts", drafts)
    call = (command, *files, "--out-dir", "out", *JUDGE, "--api-base", server.api_base)
    done = cli(*call, "--max-cost", "1")
    assert done.code == 2 and "openai/m" in done.err and "max_calls" in done.err
    assert cli(*call, "--max-cost", "-1").code == cli(*call, "--max-calls", "0").code == 2
    assert server.log() == []
