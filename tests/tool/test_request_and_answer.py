"""What is asked, what is answered, and what is answered where something is wrong."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

import autorubric
from autorubric.apps.tool import CritiqueRequest, CritiqueResponse, critique_evaluate, critique_evaluate_sync
from autorubric.apps.tool.evaluate import input_schema, output_schema
from autorubric.errors import JudgeError
from autorubric.judges import FunctionJudge, JudgeRequest, Prompt
from tests.doubles import in_loop
from tests.tool.replies import ISSUE, REPLY, REQUEST, Critical, ask, failing, hang, scored

TEXT = Path(__file__).with_name("seed_examples.md").read_text(encoding="utf-8")
SUCCEEDED, FAILED, *CALLS = (
    json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
)
EXAMPLES: list[dict[str, Any]] = [call["arguments"] for call in CALLS]
TWICE = {"criterion": "Correctness", "score": 2}
SUCCESS = {
    "ok", "provider", "overall_score", "scoring_scale", "criteria_scores", "issues", "summary",
    "suggestions", "evaluation_time_ms",
}  # fmt: skip


def test_the_published_records_are_answers() -> None:
    """As they stand, key for key."""
    for record, told in (
        (SUCCEEDED, "✓ 8.5/10 · 1 issue · 2 suggestions"),
        (FAILED, "✗ Content exceeds maximum size (500KB)"),
    ):
        answer = CritiqueResponse.model_validate(record)
        assert answer.to_dict() == record
        assert answer.one_line() == told
        jsonschema.validate(record, output_schema())


def test_a_critic_that_finds_it_gives_the_published_record() -> None:
    """All but the provider, the time and the overall score, which is the mean of the parts."""
    scores = [{"criterion": one["criterion"], "score": one["score"]} for one in SUCCEEDED["criteria_scores"]]
    found = {name: SUCCEEDED[name] for name in ("issues", "summary", "suggestions")}
    answer = ask(REQUEST, {"criteria_scores": scores, **found}).to_dict()
    own = {"provider": "gpt4", "overall_score": 8, "evaluation_time_ms": answer["evaluation_time_ms"]}
    assert answer == {**SUCCEEDED, **own}
    oversize = ask({**REQUEST, "content": "x" * 512_001}, REPLY)
    assert oversize.to_dict() == FAILED


@pytest.mark.parametrize("arguments", EXAMPLES)
def test_the_examples_run(arguments: dict[str, Any]) -> None:
    """The four examples of the tool's description are answered, as tool calls and as arguments."""
    critic = Critical(8)
    jsonschema.validate(arguments, input_schema())
    for request in (arguments, {"tool": "critique.evaluate", "arguments": arguments}):
        answer = ask(request, providers={"local_fm": critic})
        assert answer.ok and answer.provider == "local_fm"
        assert [one.criterion for one in answer.criteria_scores] == arguments["criteria"]
        jsonschema.validate(answer.to_dict(), output_schema())
    assert ("is no valid JSON" in critic.prompts[0]) == (arguments["content_type"] == "session_snapshot")
    assert arguments.get("context", "") in critic.prompts[0]


def test_the_answer_has_the_keys_of_its_description() -> None:
    """A detailed answer has the described keys and no others; scores are whole numbers where they are."""
    answer = ask(REQUEST, REPLY).to_dict()
    assert set(answer) == SUCCESS
    assert answer["criteria_scores"] == [
        {"criterion": "correctness", "score": 9, "label": "Excellent", "explanation": "It adds up."},
        {"criterion": "completeness", "score": 7, "label": "Good", "explanation": "One case."},
    ]
    assert answer["issues"] == [ISSUE]
    assert (answer["overall_score"], answer["scoring_scale"]) == (8, "0-10")
    assert isinstance(answer["overall_score"], int) and isinstance(answer["evaluation_time_ms"], int)
    assert answer["summary"] and len(answer["suggestions"]) == 2
    assert json.loads(json.dumps(answer)) == answer
    assert CritiqueResponse.model_validate(answer).to_dict() == answer


def test_the_described_record_is_an_answer() -> None:
    """A record of the described shape is read and written back as it is, and told in one line."""
    record = {**ask(REQUEST, REPLY).to_dict(), "overall_score": 8.5, "issues": [ISSUE] * 3}
    answer = CritiqueResponse.model_validate(record)
    assert answer.one_line() == "✓ 8.5/10 · 3 issues · 2 suggestions"
    assert answer.to_dict() == record


def test_the_described_error_is_an_answer() -> None:
    """Content of more than 512,000 bytes is refused in the described words; of just as many it is not."""
    too_long = {"ok": False, "error": "Content exceeds maximum size (500KB)", "provider": None}
    assert ask({**REQUEST, "content": "x" * 512_001}, REPLY).to_dict() == too_long
    assert ask({**REQUEST, "content": "é" * 256_001}, REPLY).to_dict() == too_long
    assert ask({**REQUEST, "content": "é" * 256_000}, REPLY).ok
    built = CritiqueRequest(content="x" * 600_000, criteria=("quality",))
    assert ask(built, REPLY).to_dict() == too_long
    assert "Context exceeds" in str(ask({**REQUEST, "context": "x" * 512_001}, REPLY).error)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"criteria": []}, "criteria"),
        ({"criteria": ["a\nb"]}, "the name of a criterion must be one line"),
        ({"content": " \n"}, "content: the content is empty"),
        ({"content": 5}, "content"),
        ({"content": "\ud800"}, "unpaired surrogate"),
        ({"max_issues": 0}, "max_issues"),
        ({"max_issues": 51}, "got 51"),
        ({"scoring_scale": "stars"}, "scoring_scale"),
        ({"evaluation_mode": "long"}, "evaluation_mode"),
        ({"content_type": "poem"}, "content_type"),
        ({"max_isues": 3}, "did you mean 'max_issues'?"),
        ({"workspace_root": "/no/such/folder"}, "is not an existing folder"),
        ({"workspace_root": " "}, "is not an existing folder"),
        ({"criteria": {"style": 1}}, "criteria: must be a list of names"),
        ({"criteria": ["no-such.yaml"]}, "file not found"),
        ({"criteria": ["rubric.yaml", "quality"]}, "cannot be combined with other criteria"),
    ],
)
def test_a_faulty_request_is_an_answer(change: dict[str, Any], told: str) -> None:
    """Whatever is wrong with a request is told in the shape of an error, and nobody is asked."""
    critic = Critical()
    answer = ask({**REQUEST, **change}, critic)
    assert set(answer.to_dict()) == {"ok", "error", "provider"}
    assert told in str(answer.error)
    assert critic.prompts == []


@pytest.mark.parametrize("request_", [None, 5, [], {"tool": "other", "arguments": {}}, {}])
def test_no_request_is_an_answer(request_: Any) -> None:
    """What is no request at all does not raise either."""
    assert ask(request_, REPLY).ok is False


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "30"])
def test_a_faulty_timeout_is_an_answer(timeout: Any) -> None:
    """A timeout that is none is told."""
    assert "timeout" in str(ask(REQUEST, REPLY, timeout=timeout).error)


def test_modes_leave_out_what_is_not_asked() -> None:
    """A summary has no issues and suggestions, bare scores no summary either; nobody is asked for them."""
    seen: list[str] = []

    def critic(prompt: Prompt) -> dict[str, Any]:
        seen.append(prompt.content)
        return REPLY

    beside = {"issues", "suggestions"}
    assert set(ask({**REQUEST, "evaluation_mode": "summary"}, critic).to_dict()) == SUCCESS - beside
    bare = ask({**REQUEST, "evaluation_mode": "score_only"}, critic)
    assert set(bare.to_dict()) == SUCCESS - beside - {"summary"}
    assert bare.one_line() == "✓ 8/10"
    assert not bare.issues and not bare.suggestions and not bare.summary
    assert '"issues"' not in seen[0] and '"summary"' in seen[0] and '"summary"' not in seen[1]


def test_what_could_not_be_assessed_has_no_number() -> None:
    """Neither null nor an abstention becomes a number, and the whole is the mean of the rest."""
    for entry in ({"score": None}, {"score": 0, "cannot_assess": True}):
        reply = {"criteria_scores": [{"criterion": "correctness", **entry}, scored(completeness=6)]}
        reply["criteria_scores"][1] = scored(completeness=6)["criteria_scores"][0]
        answer = ask(REQUEST, reply)
        assert [(one.score, one.label) for one in answer.criteria_scores] == [(None, None), (6, "Fair")]
        assert answer.overall_score == 6
        assert "1 not assessed" in answer.one_line()
    nothing = ask(REQUEST, scored(correctness=None, completeness=None))
    assert nothing.ok and nothing.overall_score is None and nothing.one_line().startswith("? no score")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({}, "criteria_scores has no 'correctness'"),
        (scored(correctness=9), "criteria_scores has no 'completeness'"),
        (scored(correctness=11, completeness=1), "less than or equal to 10"),
        (scored(correctness="x", completeness=1), "correctness"),
        ({"criteria_scores": [*REPLY["criteria_scores"], TWICE]}, "two different answers for 'correctness'"),
        ({"criteria_scores": "9"}, "return a list"),
        ({"criteria_scores": [5]}, "entry 1"),
    ],
)
def test_an_unreadable_reply_is_no_score(reply: dict[str, Any], told: str) -> None:
    """A reply that is no critique makes an error, and never a number."""
    answer = ask(REQUEST, reply)
    assert not answer.ok and answer.overall_score is None
    assert told in str(answer.error)


@pytest.mark.parametrize(
    ("issue", "note"),
    [
        ({**ISSUE, "severity": "grave"}, "severity 'grave' is not one of low, medium, high, critical"),
        ({**ISSUE, "severity": 3}, "severity 3 is not one of"),
        ({**ISSUE, "criterion": "wit"}, "criterion 'wit' was not requested"),
        ({**ISSUE, "criterion": None}, "criterion None was not requested"),
        ({**ISSUE, "description": ""}, "the description is missing"),
        ("It is slow.", "'It is slow.' is not an object"),
    ],
)
def test_an_ambiguous_issue_is_left_out_with_a_note(issue: Any, note: str) -> None:
    """The scores and the other issues of the critique stay, and a note says what was left out and why."""
    answer = ask(REQUEST, {**REPLY, "issues": [ISSUE, issue]})
    assert answer.ok and answer.overall_score == 8
    assert answer.to_dict()["issues"] == [ISSUE]
    assert len(answer.notes) == 1 and answer.notes[0].startswith("issue 2") and note in answer.notes[0]
    assert answer.to_dict()["notes"] == list(answer.notes)
    jsonschema.validate(answer.to_dict(), output_schema())


def test_whatever_else_is_left_out_has_a_note() -> None:
    """A list that is none, a suggestion that is no text and a score that nobody asked for void nothing."""
    reply = {
        **REPLY,
        "criteria_scores": [*REPLY["criteria_scores"], {"criterion": "wit", "score": 1}],
        "issues": "none",
        "suggestions": ["Test it", {"do": "more"}],
    }
    answer = ask(REQUEST, reply)
    assert (answer.overall_score, answer.suggestions) == (8, ("Test it",))
    assert answer.notes == (
        "score omitted: criterion 'wit' was not requested",
        "issues omitted: 'none' is not a list",
        "suggestion 2 omitted: {'do': 'more'} is not a string",
    )
    many = ask(REQUEST, {**REPLY, "issues": ["?"] * 1000})
    assert len(many.notes) == 21 and many.notes[-1] == "and 980 more"


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"severity": "major"}, {"severity": "high"}),
        ({"severity": " Minor"}, {"severity": "low"}),
        ({"severity": "moderate"}, {"severity": "medium"}),
        ({"severity": "Blocker"}, {"severity": "critical"}),
        ({"criterion": "Completeness"}, {}),
        ({"criterion": " **completeness** "}, {}),
        ({"location": 45}, {"location": "line 45"}),
    ],
)
def test_an_unambiguous_issue_is_normalised(change: dict[str, Any], read: dict[str, Any]) -> None:
    """Common words for a severity, and spellings of a criterion, are read as what they mean."""
    answer = ask(REQUEST, {**REPLY, "issues": [{**ISSUE, **change}]})
    assert answer.to_dict()["issues"] == [{**ISSUE, **read}]
    assert answer.notes == () and "notes" not in answer.to_dict()


def test_unambiguous_scores_are_read() -> None:
    """Names that differ in case, entries without their list, and the one criterion without its name."""
    for reply in (
        scored(Correctness=9, COMPLETENESS=7),
        {"correctness": 9, "Completeness": {"score": 7}},
        {"criteria_scores": [*scored(correctness=9, completeness=7)["criteria_scores"]] * 2},
    ):
        assert ask(REQUEST, reply).overall_score == 8
    one = {**REQUEST, "criteria": ["style"]}
    for reply in ({"score": 7}, {"criteria_scores": [{"score": 7}]}, {"style": 7, "summary": "So."}):
        assert ask(one, reply).overall_score == 7
    issue = {key: value for key, value in ISSUE.items() if key != "criterion"}
    assert ask(one, {"score": 7, "issues": issue}).issues[0].criterion == "style"


def test_names_that_look_alike_are_found_by_their_exact_spelling_alone() -> None:
    """Where two criteria differ in punctuation alone, a third spelling means neither of them."""
    request = {**REQUEST, "criteria": ["error handling", "error_handling"]}
    reply = {**scored(**{"error handling": 9, "error_handling": 7}), "issues": []}
    reply["issues"] = [{**ISSUE, "criterion": name} for name in ("error_handling", "Error Handling")]
    answer = ask(request, reply)
    assert [one.criterion for one in answer.issues] == ["error_handling"] and len(answer.notes) == 1


def test_explanations_are_kept_with_their_scores() -> None:
    """Every mode but `score_only` says why a criterion has its score, or has none."""
    unassessed = {"criterion": "completeness", "score": None, "explanation": "The context is missing."}
    reply = {**REPLY, "criteria_scores": [REPLY["criteria_scores"][0], unassessed]}
    for mode in ("detailed", "summary"):
        answer = ask({**REQUEST, "evaluation_mode": mode}, reply)
        told = [one.explanation for one in answer.criteria_scores]
        assert told == ["It adds up.", "The context is missing."]
    bare = ask({**REQUEST, "evaluation_mode": "score_only"}, reply)
    assert [one.explanation for one in bare.criteria_scores] == [None, None]
    assert "explanation" not in bare.to_dict()["criteria_scores"][0]


def test_replies_may_come_in_other_clothes() -> None:
    """JSON text with prose around it, an instance of the asked class, and a mapping of names are read."""

    def instance(prompt: Prompt) -> Any:
        return prompt.format_override.model_validate(REPLY)

    mapping = {**REPLY, "criteria_scores": {"correctness": 9, "completeness": {"score": 7}}}
    text = f"Here it is:\n```json\n{json.dumps(REPLY)}\n```"
    for critic in (lambda _: text, instance, lambda _: mapping):
        assert ask(REQUEST, critic).overall_score == 8


def test_at_most_so_many_issues_of_a_criterion() -> None:
    """The most severe issues of each criterion stay, in the order in which they were told."""
    severities = ["low", "critical", "medium", "high"]
    issues = [{**ISSUE, "severity": one, "description": one} for one in severities]
    issues.append({**ISSUE, "criterion": "correctness", "severity": "low", "description": "other"})
    answer = ask({**REQUEST, "max_issues": 2}, {**REPLY, "issues": issues})
    assert [issue.description for issue in answer.issues] == ["critical", "high", "other"]


def test_a_timeout_is_an_answer() -> None:
    """A critic that hangs is given up after the seconds allowed, and not after those of the default."""
    started = time.monotonic()
    answer = ask(REQUEST, hang, timeout=0.2)
    assert answer.to_dict() == {"ok": False, "error": "Evaluation timed out after 0.2 s", "provider": None}
    assert time.monotonic() - started < 25


@in_loop
async def test_cancelling_is_no_answer(tmp_path: Path) -> None:
    """A cancelled call ends as cancelled, and stands in the audit log as that."""
    log = tmp_path / "audit.jsonl"
    reached = asyncio.Event()

    async def critic(prompt: Any) -> Any:
        reached.set()
        return await hang(prompt)

    task = asyncio.create_task(critique_evaluate(REQUEST, providers={"gpt4": critic}, audit_path=log))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert json.loads(log.read_text(encoding="utf-8"))["error_code"] == "cancelled"


def test_a_bug_in_a_critic_is_an_answer() -> None:
    """Whatever a critic raises, or gives, is told as that provider's failure."""
    for critic in (failing(RuntimeError("broken")), failing(StopIteration()), lambda _: object()):
        answer = ask(REQUEST, critic)
        assert not answer.ok and "gpt4" in str(answer.error)
    assert "got 5" in str(ask(REQUEST, providers={"gpt4": 5}).error)


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_any_reply_gives_an_answer(reply: Any) -> None:
    """No reply raises; a score is there only with `ok`."""
    answer = ask(REQUEST, lambda _: reply)
    assert answer.ok or answer.overall_score is None


@given(
    st.dictionaries(st.sampled_from(sorted(CritiqueRequest.model_fields)) | st.text(), st.none() | st.text())
)
def test_any_request_gives_an_answer(request_: dict[str, Any]) -> None:
    """No request raises."""
    jsonschema.validate(ask(request_, REPLY).to_dict(), output_schema())


def test_a_dry_run_asks_nobody() -> None:
    """A dry run names provider and criteria and the size of the prompt that would be sent."""
    critic = Critical()
    dry = ask({**REQUEST, "dry_run": True, "criteria": ["quality", "wit"]}, critic)
    assert critic.prompts == []
    ask({**REQUEST, "criteria": ["quality", "wit"]}, critic)
    assert dry.to_dict() == {
        "ok": True,
        "dry_run": True,
        "provider": "gpt4",
        "criteria": ["quality", "wit"],
        "prompt_size": len(critic.prompts[0].encode("utf-8")),
    }
    assert dry.one_line() == "dry run · gpt4 · 2 criteria"
    assert not ask({**REQUEST, "dry_run": True, "provider": "claude"}, critic).ok


def test_a_judge_may_be_a_provider() -> None:
    """A judge answers criterion by criterion in its own words; its reasons are the summary."""
    judge = FunctionJudge(function=lambda request: {"score": 4, "explanation": "Short."}, judge_id="own")
    answer = ask(REQUEST, judge)
    assert (answer.overall_score, answer.issues) == (4, ())
    assert answer.summary == "correctness: Short.\ncompleteness: Short."


def test_a_judge_that_fails_is_no_score() -> None:
    """A judge that answers nothing is a provider that failed; one that fails in part scores the rest."""

    def half(request: JudgeRequest) -> Any:
        if request.criterion.name == "correctness":
            raise JudgeError("no idea")
        return 6

    def none(request: JudgeRequest) -> Any:
        raise JudgeError("no idea")

    answer = ask(REQUEST, FunctionJudge(function=half, judge_id="own"))
    assert [one.score for one in answer.criteria_scores] == [None, 6] and answer.overall_score == 6
    failed = ask(REQUEST, FunctionJudge(function=none, judge_id="own"))
    assert not failed.ok and "no idea" in str(failed.error)


def test_progress_grows_to_its_end() -> None:
    """Whoever listens hears steps that grow, up to the last."""
    heard: list[tuple[int, int]] = []
    ask(REQUEST, REPLY, on_progress=lambda done, steps, what: heard.append((done, steps)))
    assert heard == [(1, 3), (2, 3), (3, 3)]


@in_loop
async def test_the_sync_twin_works_inside_a_loop() -> None:
    """The blocking form is safe where a loop runs."""
    assert critique_evaluate_sync(REQUEST, providers={"gpt4": Critical(10)}).overall_score == 10


def test_the_names_are_public() -> None:
    """What the tool offers is importable from the package."""
    assert autorubric.apps.tool.critique_evaluate is critique_evaluate


@pytest.mark.parametrize("name", ["content", "context"])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_are_no_text(name: str, kind: Any) -> None:
    """However many they are: their size was never looked at."""
    found = ask({**REQUEST, name: kind(b"x" * 600_000)}, REPLY)
    assert not found.ok
    assert f"{name}: must be a string; got {kind.__name__}" in str(found.error)


def test_an_audit_path_that_is_none_is_an_answer() -> None:
    """Nothing raises."""
    for path in (5, "\0"):
        found = critique_evaluate_sync(REQUEST, providers={"gpt4": scored}, audit_path=path)  # type: ignore[arg-type]
        assert not found.ok
