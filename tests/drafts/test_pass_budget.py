"""Passes within a budget: they end at the limit, lose no answer, and go on without asking for it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, LLMConfig, Rubric, generate_critiques
from autorubric.apps.drafts import TeacherPrompt, generate_critiques_async, refine, refine_async
from autorubric.errors import ArgumentError
from autorubric.llm import LLMClient, generate_sync
from autorubric.llm.budget import SpendingLimit, spending_within
from autorubric.llm.transport import Message
from tests.doubles import in_loop
from tests.drafts.teachers import critique, draft, good, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

PRICED = {"input_cost_per_token": 0.00001, "output_cost_per_token": 0.00001}
LIMIT = 0.022
"""US dollars: room for one estimate, of two cents, and for the true cost, 0.12 cents, of 18 requests."""
RUBRIC = Rubric(
    [Criterion(name=name, requirement=f"The text is {name}.") for name in ("short", "clear", "kind")]
)
LEFT = "ignore:the pass was stopped:RuntimeWarning"


def _config(server: OpenAIServer, **options: Any) -> LLMConfig:
    given: dict[str, Any] = {"max_retries": 0, "transport": "openai_compatible", **options}
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key="sk-x", **given)


def _drafts(folder: Path, count: int) -> Path:
    return write_lines(folder / "drafts.jsonl", [draft(n, output=f"text {n}") for n in range(count)])


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _asked(server: OpenAIServer) -> list[str]:
    return [one["body"]["messages"][-1]["content"] for one in server.log()]


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    """A server that passes every draft, answers every criterion, and rewrites."""
    openai_server.script({"do": "answer", "payload": {"verdict": "MET", "reason": "So."}}, repeat="last")
    passing = {"do": "answer", "payload": scored(5, "pass")}
    openai_server.script(passing, contains="strict, fair", repeat="last")
    written = {"do": "answer", "content": "a better text"}
    openai_server.script(written, contains="Rewrite the draft", repeat="last")
    return openai_server


def test_it_ends_at_the_limit_and_goes_on(server: OpenAIServer, tmp_path: Path) -> None:
    """No request beyond the limit is sent, every answer is a record, and a resume asks for the rest alone."""
    drafts, config = _drafts(tmp_path, 6), _config(server)
    with pytest.warns(
        RuntimeWarning,
        match="stopped: the limit max_calls=4 was reached; resume to process the remaining 2 of 6 drafts",
    ):
        stats = generate_critiques(drafts, tmp_path, config, max_calls=4)
    assert (len(server.log()), len(read_lines(tmp_path / "critiques_v1.jsonl"))) == (4, 4)
    assert (stats["stopped"], stats["left"]) == ("max_calls", 2)
    assert (stats["total"], stats["processed"], stats["verdict_distribution"]["pass"]) == (6, 4, 4)
    assert _json(tmp_path / "critiques_v1_stats.json") == stats
    manifest = _json(tmp_path / "critiques_v1_manifest.json")
    assert (manifest["finished"], manifest["stopped"], manifest["left"]) == (False, "max_calls", 2)
    assert manifest["counts"]["critique_schema_ok"] == 4
    again = generate_critiques(drafts, tmp_path, config, resume=True, max_calls=4)
    assert (len(server.log()), again["records"]) == (6, 6)
    assert (again["stopped"], again["left"], again["processed"]) == (None, 0, 2)
    assert _json(tmp_path / "critiques_v1_manifest.json")["finished"] is True


@pytest.mark.filterwarnings(LEFT)
def test_a_limit_of_dollars(server: OpenAIServer, tmp_path: Path) -> None:
    """Requests are sent as long as their mean cost fits in; the records' costs stay within the limit."""
    drafts, config = _drafts(tmp_path, 24), _config(server, **PRICED, max_tokens=200)
    stats = generate_critiques(drafts, tmp_path, config, max_cost=LIMIT)
    assert stats["stopped"] == "max_cost" and 12 < stats["records"] < 24
    assert stats["records"] == len(server.log()) and stats["cost"] <= LIMIT
    rest = generate_critiques(drafts, tmp_path, config, resume=True, max_cost=5)
    assert (rest["records"], rest["stopped"], len(server.log())) == (24, None, 24)


@pytest.mark.parametrize("options", [{}, {"rubric": RUBRIC}])
def test_an_unknown_price_is_refused(options: dict[str, Any], server: OpenAIServer, tmp_path: Path) -> None:
    """With max_cost a model without a price is named before anything is asked or written."""
    drafts, config = _drafts(tmp_path, 1), _config(server, fallbacks=("openai/spare",))
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": critique()}])
    with pytest.raises(ArgumentError, match=r"openai/m .*openai/spare"):
        generate_critiques(drafts, tmp_path / "out", config, max_cost=1.0, **options)
    with pytest.raises(ArgumentError, match=r"openai/m .*openai/spare"):
        refine(rows, drafts, tmp_path / "out", config, max_cost=1.0, **options)
    assert server.log() == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "limits",
    [{"max_calls": 0}, {"max_calls": 1.5}, {"max_calls": True}, {"max_cost": 0}, {"max_cost": float("nan")}],
)
def test_limits_that_are_none(limits: dict[str, Any], tmp_path: Path) -> None:
    """A limit is a number above 0."""
    drafts = _drafts(tmp_path, 1)
    with pytest.raises(ArgumentError, match=next(iter(limits))):
        generate_critiques(drafts, tmp_path / "out", good, **limits)
    with pytest.raises(ArgumentError, match=next(iter(limits))):
        refine(drafts, drafts, tmp_path / "out", good, **limits)


@pytest.mark.filterwarnings(LEFT)
def test_votes_on_a_draft_that_is_not_finished_are_kept(server: OpenAIServer, tmp_path: Path) -> None:
    """By a rubric a draft takes several requests; those answered before the limit are never sent again."""
    drafts, config = _drafts(tmp_path, 2), _config(server)
    stats = generate_critiques(drafts, tmp_path, config, rubric=RUBRIC, max_calls=4)
    assert (stats["records"], stats["left"]) == (1, 1)
    assert (tmp_path / "critiques_v1_unfinished.json").exists()
    generate_critiques(drafts, tmp_path, config, rubric=RUBRIC, resume=True)
    asked = _asked(server)
    assert len(asked) == len(set(asked)) == 6
    records = {one["id"]: one for one in read_lines(tmp_path / "critiques_v1.jsonl")}
    assert set(records) == {"draft_0", "draft_1"}
    for record in records.values():
        assert record["critique"]["scores"] == {"short": 1.0, "clear": 1.0, "kind": 1.0}
        assert record["teacher"]["usage"]["total_tokens"] == 360
        assert (record["teacher"]["selected_model"], record["teacher"]["attempted_models"]) == (
            "m",
            ["openai/m"],
        )
    assert not (tmp_path / "critiques_v1_unfinished.json").exists()


@pytest.mark.filterwarnings(LEFT, "ignore:the rubric is another:RuntimeWarning")
@pytest.mark.parametrize("changed", ["draft", "rubric"])
def test_votes_on_what_has_changed_since_are_not_used(
    changed: str, server: OpenAIServer, tmp_path: Path
) -> None:
    """A vote is on a text by a criterion: where either is another now, it is asked for again."""
    drafts, config, rubric = _drafts(tmp_path, 1), _config(server), RUBRIC
    generate_critiques(drafts, tmp_path, config, rubric=rubric, max_calls=2)
    if changed == "draft":
        write_lines(drafts, [draft(0, output="another text")])
    else:
        rubric = Rubric([Criterion(name=one.name, requirement="It is good.") for one in RUBRIC])
    generate_critiques(drafts, tmp_path, config, rubric=rubric, resume=True)
    assert len(server.log()) == 2 + 3


@pytest.mark.filterwarnings(LEFT, "ignore:the rubric is another:RuntimeWarning")
def test_votes_by_another_rubric_stay(server: OpenAIServer, tmp_path: Path) -> None:
    """A resume with the wrong rubric throws away nothing: with the right one it goes on where it was."""
    drafts, config = _drafts(tmp_path, 1), _config(server)
    other = Rubric([Criterion(name="good", requirement="It is good."), RUBRIC[0]])
    generate_critiques(drafts, tmp_path, config, rubric=RUBRIC, max_calls=2)
    generate_critiques(drafts, tmp_path, config, rubric=other, resume=True, max_calls=1)
    generate_critiques(drafts, tmp_path, config, rubric=RUBRIC, resume=True)
    assert len(server.log()) == 2 + 1 + 1


@pytest.mark.filterwarnings(LEFT)
def test_a_rewriting_is_kept(server: OpenAIServer, tmp_path: Path) -> None:
    """A draft that was rewritten, and could not be critiqued any more, goes on with its critique."""
    drafts, config = _drafts(tmp_path, 1), _config(server)
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    stats = refine(rows, drafts, tmp_path, config, max_calls=1)
    assert (stats["stopped"], stats["left"], stats["processed"]) == ("max_calls", 1, 0)
    assert _json(tmp_path / "refined_v1_stats.json") == stats
    assert _json(tmp_path / "refined_v1_manifest.json")["finished"] is False
    stats = refine(rows, drafts, tmp_path, config, resume=True, max_calls=1)
    assert (stats["stopped"], stats["refined"], len(server.log())) == (None, 1, 2)
    (record,) = read_lines(tmp_path / "refined_v1.jsonl")
    assert (record["output"], record["rounds"]) == ("a better text", 1)
    assert record["history"][0]["teacher"]["rewrite"]["request_id"] == "chatcmpl-1"
    assert not (tmp_path / "refined_v1_unfinished.json").exists()


def _two_rounds(server: OpenAIServer) -> None:
    """Has a draft pass in the second round, by marks and by a rubric."""
    server.reset()
    votes = [{"verdict": verdict, "reason": "So."} for verdict in ("MET", "UNMET", "UNMET", *["MET"] * 3)]
    for contains, payloads in {None: votes, "strict, fair": [scored(3), scored(5, "pass")]}.items():
        server.script(*({"do": "answer", "payload": one} for one in payloads), contains=contains)
    texts = ({"do": "answer", "content": f"better {number}"} for number in (1, 2))
    server.script(*texts, contains="Rewrite the draft")


@pytest.mark.filterwarnings(LEFT)
@pytest.mark.parametrize("options", [{}, {"rubric": RUBRIC}])
def test_one_request_at_a_time_gets_to_the_same_end(
    options: dict[str, Any], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A refinement stopped after every single request asks for nothing twice, and ends as one in a go."""
    drafts, config = _drafts(tmp_path, 1), _config(openai_server, max_parallel_requests=1)
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    _two_rounds(openai_server)
    refine(rows, drafts, tmp_path / "whole", config, **options)
    needed = len(openai_server.log())
    _two_rounds(openai_server)
    for number in range(1, needed + 1):
        stats = refine(rows, drafts, tmp_path / "cut", config, resume=True, max_calls=1, **options)
        assert (stats["stopped"] is None, len(openai_server.log())) == (number == needed, number)
    one, other = (read_lines(tmp_path / name / "refined_v1.jsonl")[0] for name in ("whole", "cut"))
    for name in ("output", "critique", "rounds", "mean_scores", "reason"):
        assert one[name] == other[name]
    assert (other["output"], other["rounds"], needed) == ("better 2", 2, 8 if options else 4)


@pytest.mark.filterwarnings(LEFT)
@in_loop
async def test_a_budget_around_a_pass_loses_no_answer(server: OpenAIServer, tmp_path: Path) -> None:
    """Within a limit of the caller's own, what is in flight is answered and written, and the pass ends."""
    drafts, config = _drafts(tmp_path, 6), _config(server)
    rows = write_lines(tmp_path / "c.jsonl", [{"id": f"draft_{n}", "critique": scored(1)} for n in range(6)])
    with spending_within(SpendingLimit(max_calls=4)):
        stats = await generate_critiques_async(drafts, tmp_path, config)
    assert (stats["records"], stats["stopped"], stats["left"]) == (4, "max_calls", 2)
    with spending_within(SpendingLimit(max_calls=9)):
        stats = await refine_async(rows, drafts, tmp_path, config)
    assert stats["stopped"] == "max_calls"
    stats = await refine_async(rows, drafts, tmp_path, config, resume=True)
    assert (stats["refined"], len(server.log())) == (6, 4 + 2 * 6)


def _by_itself(server: OpenAIServer) -> Callable[[TeacherPrompt], str]:
    config = _config(server)
    return lambda prompt: generate_sync("", prompt.content, config)


def _later(server: OpenAIServer) -> Callable[[TeacherPrompt], Any]:
    client = LLMClient(_config(server))

    async def teacher(prompt: TeacherPrompt) -> Any:
        message = Message(role="user", content=prompt.content)
        return (await client.ask([message], read=lambda payload: payload)).answer

    return teacher


@pytest.mark.filterwarnings(LEFT)
@pytest.mark.parametrize("made_of", [_by_itself, _later])
def test_a_function_that_asks_through_the_library_is_within_it(
    made_of: Callable[[OpenAIServer], Any], server: OpenAIServer, tmp_path: Path
) -> None:
    """A limit that a function runs into is no failure of the function: the draft has no record yet."""
    drafts, teacher = _drafts(tmp_path, 4), made_of(server)
    stats = generate_critiques(drafts, tmp_path, teacher, max_calls=3)
    assert (stats["records"], stats["error_counts"]["PROVIDER_ERROR"], stats["left"]) == (3, 0, 1)
    stats = generate_critiques(drafts, tmp_path, teacher, resume=True)
    assert (stats["records"], len(server.log())) == (4, 4)


@pytest.mark.filterwarnings(LEFT)
def test_two_passes_share_a_limit(server: OpenAIServer, tmp_path: Path) -> None:
    """One limit of dollars around two blocking calls, each of which waits for room, holds for both."""
    drafts = _drafts(tmp_path, 24)
    config = _config(server, **PRICED, max_tokens=200)
    with spending_within(SpendingLimit(max_cost=LIMIT)):
        first = generate_critiques(drafts, tmp_path / "a", config, limit=3)
        second = generate_critiques(drafts, tmp_path / "b", config)
    assert (first["stopped"], first["records"], second["stopped"]) == (None, 3, "max_cost")
    assert first["cost"] + (second["cost"] or 0.0) <= LIMIT


@pytest.mark.filterwarnings(LEFT)
def test_a_pass_from_the_start_leaves_nothing_of_the_last(server: OpenAIServer, tmp_path: Path) -> None:
    """Without resume, votes of a draft that was not finished are moved away with the records."""
    drafts, config = _drafts(tmp_path, 1), _config(server)
    generate_critiques(drafts, tmp_path, config, rubric=RUBRIC, max_calls=2)
    with pytest.warns(RuntimeWarning, match=r"critiques_v1_unfinished\.previous\.json"):
        generate_critiques(drafts, tmp_path, config, rubric=RUBRIC)
    assert len(server.log()) == 2 + 3
