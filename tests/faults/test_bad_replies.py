"""Replies that are no verdict, over real HTTP: asked for again, or an abstention with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from autorubric import Criterion, CriterionGrader, LLMConfig, Rubric
from autorubric.criteria import BaseCriterion, BoundInt, register_kind
from autorubric.scoring import JudgeVote
from tests.faults.runs import config
from tests.servers.fixtures import OpenAIServer

TRANSPORTS = ("openai_compatible", "litellm")
RIGHT = '{"reason": "It does.", "verdict": "MET"}'
UNREADABLE: dict[str, dict[str, Any]] = {
    "malformed": {"content": '{"verdict": MET, "reason": it does}'},
    "prose": {"content": "I would say that it is met."},
    "empty": {"content": ""},
    "blank": {"content": " \n\t "},
    "null": {"content": None},
    "truncated": {"content": '{"reason": "It does, becau', "finish_reason": "length"},
    "truncated in a fence": {"content": '```json\n{"reason": "It d', "finish_reason": "length"},
    "nothing but reasoning": {
        "content": "",
        "finish_reason": "length",
        "message": {"reasoning_content": "Let me think"},
    },
    "a list": {"content": "[]"},
    "another verdict": {"content": '{"reason": "It does.", "verdict": "PERHAPS"}'},
}
READABLE = {
    "fenced": f"```json\n{RIGHT}\n```",
    "a fence without its end": f"```json\n{RIGHT}",
    "prose around": f"Here is my answer:\n{RIGHT}\nI hope it helps.",
    "thinking before": f"<think>MET or UNMET?</think>{RIGHT}",
    "a trailing comma": '{"reason": "It does.", "verdict": "MET",}',
}
REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "in the message": ({"do": "refusal", "refusal": "I cannot judge this."}, "I cannot judge this."),
    "a filter's end": ({"do": "answer", "content": "", "finish_reason": "content_filter"}, "content filter"),
    "a filter's end, half way": (
        {"do": "answer", "content": '{"reason": "It', "finish_reason": "content_filter"},
        "content filter",
    ),
    "a filter's status": (
        {
            "do": "status",
            "status": 400,
            "code": "content_filter",
            "message": "The prompt triggered the content management policy. Please modify your prompt.",
        },
        "triggered the content management policy",
    ),
}


def _vote(judge: LLMConfig, **options: Any) -> JudgeVote:
    rubric = Rubric([Criterion(name="kind", requirement="It is kind.")])
    report = rubric.grade_sync("Thank you.", CriterionGrader(llm_config=judge, **options))
    return report.report[0].votes[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("fault", UNREADABLE)
def test_what_cannot_be_read_is_asked_for_again(
    fault: str, transport: str, openai_server: OpenAIServer
) -> None:
    """The second question quotes the reply and says what was wrong; the verdict is the second reply's."""
    content = UNREADABLE[fault]
    first = {
        "do": "answer",
        **content,
        "message": {"content": content["content"], **content.get("message", {})},
    }
    openai_server.script(first, {"do": "answer", "content": RIGHT})
    vote = _vote(config(openai_server, transport=transport))
    assert (vote.status, vote.answer, vote.reason) == ("answered", "MET", "It does.")
    asked, again = (seen["body"]["messages"] for seen in openai_server.log())
    assert again[: len(asked)] == asked
    assert [message["role"] for message in again[len(asked) :]] == ["assistant", "user"]
    assert "could not be used" in again[-1]["content"]
    assert ("too long and was cut off" in again[-1]["content"]) == ("finish_reason" in content)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("form", READABLE)
def test_a_verdict_in_wrapping_is_read_at_once(
    form: str, transport: str, openai_server: OpenAIServer
) -> None:
    """Fences, prose and thinking around the object cost no second question."""
    openai_server.script({"do": "answer", "content": READABLE[form]})
    vote = _vote(config(openai_server, transport=transport))
    assert (vote.status, vote.answer) == ("answered", "MET")
    assert len(openai_server.log()) == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("first", [None, "malformed"])
@pytest.mark.parametrize("form", REFUSALS)
def test_a_refusal_is_an_abstention_with_its_reason(
    form: str, first: str | None, transport: str, openai_server: OpenAIServer
) -> None:
    """However a refusal comes, also to a second question: no verdict, no failure, and no further call."""
    step, words = REFUSALS[form]
    before = [{"do": "answer", **UNREADABLE[first]}] if first else []
    openai_server.script(*before, step)
    vote = _vote(config(openai_server, transport=transport), on_failure="raise")
    assert (vote.status, vote.answer) == ("abstained", None)
    assert "refused" in vote.reason
    assert words in vote.reason
    assert len(openai_server.log()) == 1 + len(before)


@register_kind("test_mark")
class Mark(BaseCriterion):
    """A kind whose answer may be a number alone."""

    takes_bare = True

    mark: BoundInt = BoundInt(min_val=1, max_val=10)


def test_a_number_that_was_cut_off_is_asked_for_again(openai_server: OpenAIServer) -> None:
    """A bare `1` at the most tokens allowed may be the beginning of `10`; one that ended by itself is 1."""
    cut, whole = ({"do": "answer", "content": "1", "finish_reason": end} for end in ("length", "stop"))
    rubric = Rubric([Mark(name="mark", requirement="How good is it?")])
    answers = []
    for steps in ([cut, {"do": "answer", "content": '{"mark": 10}'}], [whole]):
        openai_server.script(*steps)
        report = rubric.grade_sync("Text.", CriterionGrader(llm_config=config(openai_server)))
        answers.append(report.report[0].votes[0].value)
    assert answers == [1.0, 0.0]
    assert len(openai_server.log()) == 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_stays_unreadable_is_a_failed_vote(transport: str, openai_server: OpenAIServer) -> None:
    """Asked three times, a judge that gives no verdict has a failed vote, with all replies counted."""
    openai_server.script({"do": "answer", "content": "Hm."}, repeat="last")
    vote = _vote(config(openai_server, transport=transport))
    assert (vote.status, vote.unreadable) == ("failed", True)
    assert vote.token_usage is not None
    assert vote.token_usage.total_tokens == 360
    assert len(openai_server.log()) == 3
