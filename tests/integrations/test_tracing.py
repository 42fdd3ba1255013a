"""Spans of grading: their attributes, parents and errors, and that texts stay out of them unasked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from autorubric import (
    ArgumentError,
    CriterionGrader,
    DataItem,
    Grader,
    JudgeSpec,
    LexicalJudge,
    LLMConfig,
    RecordedJudge,
    Rubric,
    RubricDataset,
    estimate,
    evaluate_sync,
)
from autorubric.apps.redteam import red_team_sync
from autorubric.apps.strategy import RubricThreshold
from autorubric.criteria import Submission
from autorubric.errors import JudgeError
from autorubric.grading import GradingTask
from autorubric.judges import ModelAsker
from autorubric.rewards import as_reward
from autorubric.tracing import trace_grader
from tests.servers.fixtures import OpenAIServer

RUBRIC = Rubric(
    [
        {"name": "apology", "requirement": "The reply apologises.", "weight": 6},
        {"name": "refund", "requirement": "The reply offers a refund.", "weight": 10},
    ]
)
TEXT, REASON, KEY = "We are sorry indeed.", "it says so itself", "sk-very-secret-key"


class Traces:
    """Spans kept in memory."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def of(self, grader: Grader, **options: Any) -> Grader:
        return trace_grader(grader, tracer_provider=self.provider, **options)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._kept.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    @property
    def text(self) -> str:
        return "\n".join(span.to_json() for span in self.spans)


@pytest.fixture
def traces() -> Traces:
    return Traces()


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _model(server: OpenAIServer, **options: Any) -> LLMConfig:
    settings = {"model": "openai/judge", "api_base": server.api_base, "api_key": KEY, "max_retries": 0}
    return LLMConfig(**{**settings, **options})


def _says(verdict: str) -> dict[str, Any]:
    return {"do": "answer", "payload": {"verdict": verdict, "reason": REASON}}


def test_a_span_for_the_text_and_one_for_each_call(openai_server: OpenAIServer, traces: Traces) -> None:
    """Attributes are those of the conventions; each criterion has its event; no text is in any of it."""
    openai_server.script(_says("MET"), _says("UNMET"))
    grader = traces.of(CriterionGrader(llm_config=_model(openai_server, temperature=0.5, max_tokens=300)))
    report = RUBRIC.grade_sync(TEXT, grader, query="Where is it?", item_id="item-7")
    (item,) = traces.named("grade")
    calls = traces.named("chat openai/judge")
    assert len(calls) == 2 and len(traces.spans) == 3
    assert item.parent is None and item.status.status_code is StatusCode.UNSET
    assert _attributes(item)["autorubric.item.id"] == "item-7"
    assert _attributes(item)["autorubric.score"] == report.score
    port = int(openai_server.url.rpartition(":")[2])
    for call in calls:
        assert call.kind is SpanKind.CLIENT
        assert call.parent is not None and call.parent.span_id == item.context.span_id
        assert call.start_time is not None and call.end_time is not None
        assert call.start_time < call.end_time
        found = _attributes(call)
        usage = (found.pop("gen_ai.usage.input_tokens"), found.pop("gen_ai.usage.output_tokens"))
        assert all(isinstance(count, int) and count > 0 for count in usage)
        criterion = found.pop("autorubric.criterion")
        assert criterion in RUBRIC.names
        assert isinstance(found.pop("autorubric.vote.wait_seconds"), float)
        assert found == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "openai/judge",
            "gen_ai.request.temperature": 0.5,
            "gen_ai.request.max_tokens": 300,
            "gen_ai.response.model": "judge",
            "gen_ai.output.type": "json",
            "server.address": "127.0.0.1",
            "server.port": port,
            "autorubric.judge.id": "openai/judge",
            "autorubric.item.id": "item-7",
            "autorubric.sample": 0,
            "autorubric.vote.status": "answered",
        }
    assert [event.name for event in item.events] == ["gen_ai.evaluation.result"] * 2
    for event, criterion_report in zip(item.events, report.report, strict=True):
        assert dict(event.attributes or {}) == {
            "gen_ai.evaluation.name": criterion_report.name,
            "gen_ai.evaluation.score.value": criterion_report.decision.value,
            "gen_ai.evaluation.score.label": str(criterion_report.final_verdict),
            "autorubric.criterion.status": "answered",
        }


def test_content_is_there_only_where_it_is_asked_for(openai_server: OpenAIServer, traces: Traces) -> None:
    """Prompts, replies and reasons are in spans with `content=True` alone, and keys never."""
    for content in (False, True):
        openai_server.reset()
        openai_server.script(_says("MET"), _says("UNMET"))
        grader = CriterionGrader(llm_config=_model(openai_server))
        RUBRIC.grade_sync(TEXT, traces.of(grader, content=content), query="Where is it?")
        for text in (TEXT, REASON, "Where is it?"):
            assert (text in traces.text) == content
        assert KEY not in traces.text
    call = traces.named("chat openai/judge")[-1]
    asked = json.loads(_attributes(call)["gen_ai.input.messages"])
    replied = json.loads(_attributes(call)["gen_ai.output.messages"])
    assert [message["role"] for message in asked] == ["system", "user"]
    assert TEXT in asked[-1]["parts"][0]["content"]
    assert REASON in replied[0]["parts"][0]["content"]
    explained = [dict(event.attributes or {}) for event in traces.named("grade")[-1].events]
    assert all(REASON in str(one["gen_ai.evaluation.explanation"]) for one in explained)


def test_an_abstention_has_a_label(traces: Traces) -> None:
    """The event of a criterion on which the panel abstained says so, and has no value."""
    grader = traces.of(CriterionGrader(judges=[lambda request: "CANNOT_ASSESS"]))
    RUBRIC.grade_sync(TEXT, grader)
    told = [dict(event.attributes or {}) for event in traces.named("grade")[0].events]
    assert [one["gen_ai.evaluation.score.label"] for one in told] == ["abstained"] * len(RUBRIC)
    assert all("gen_ai.evaluation.score.value" not in one for one in told)


def test_failures_are_told_by_their_type(openai_server: OpenAIServer, traces: Traces) -> None:
    """A call that failed, and a text without a score, are errors; what the provider said stays out."""
    openai_server.script({"do": "status", "status": 429, "message": TEXT}, repeat="last")
    grader = traces.of(CriterionGrader(llm_config=_model(openai_server)))
    assert RUBRIC.grade_sync(TEXT, grader).score is None
    (item,) = traces.named("grade")
    assert item.status.status_code is StatusCode.ERROR
    for call in traces.named("chat openai/judge"):
        assert call.status.status_code is StatusCode.ERROR
        assert _attributes(call)["error.type"] == "RateLimitError"
        assert _attributes(call)["autorubric.vote.status"] == "failed"
    assert [dict(event.attributes or {})["error.type"] for event in item.events] == ["RateLimitError"] * 2
    assert TEXT not in traces.text


def test_what_grading_raises_ends_its_span(traces: Traces) -> None:
    """An exception passes through; its span has the type of it, and not its message."""

    def broken(request: Any) -> str:
        raise RuntimeError(TEXT)

    grader = traces.of(CriterionGrader(judges=[broken], on_failure="raise"))
    with pytest.raises(JudgeError):
        RUBRIC.grade_sync(TEXT, grader)
    (item,) = traces.named("grade")
    assert item.status.status_code is StatusCode.ERROR and _attributes(item)["error.type"] == "JudgeError"
    assert TEXT not in traces.text


@pytest.mark.parametrize("fails", [False, True])
def test_criteria_that_share_a_request_share_a_span(
    openai_server: OpenAIServer, traces: Traces, fails: bool
) -> None:
    """One request about both criteria is one call, also where it fails; both have their event."""
    if fails:
        openai_server.script({"do": "status", "status": 401}, repeat="last")
    grader = CriterionGrader(llm_config=_model(openai_server), llm_calls="per_item")
    if not fails:
        (calls,) = grader.requests(GradingTask(submission=Submission.parse(TEXT), rubric=RUBRIC))
        judge = calls[0].member.judge
        assert isinstance(judge, ModelAsker)
        prompt = judge.prompt_for([call.request for call in calls])
        assert prompt is not None
        keys = re.findall(r"^\[(c[0-9a-f]{4})\]", prompt.messages[-1].content, re.MULTILINE)
        said = [{"id": key, "reason": REASON, "verdict": "MET"} for key in keys]
        openai_server.script({"do": "answer", "payload": {"evaluations": said}})
    RUBRIC.grade_sync(TEXT, traces.of(grader))
    assert len(openai_server.log()) == 1
    assert len(traces.named("chat openai/judge")) == 1
    assert len(traces.named("grade")[0].events) == 2


def test_judges_without_a_model_and_votes_left_out(traces: Traces) -> None:
    """Other judges have spans of their own name; what was not asked has none."""
    judges = [JudgeSpec(lambda request: "MET", f"judge-{place}") for place in range(3)]
    grader = CriterionGrader(judges=judges, stop_when_decided=True)
    report = Rubric([RUBRIC[0]]).grade_sync(TEXT, traces.of(grader))
    assert report.calls_saved == 1
    calls = [span for span in traces.spans if span.name != "grade"]
    assert [span.name for span in calls] == ["judge judge-0", "judge judge-1"]
    assert all(span.kind is SpanKind.INTERNAL for span in calls)
    assert not any(name.startswith("gen_ai.") for name in _attributes(calls[0]))


def test_spans_lie_in_the_callers(traces: Traces, tmp_path: Path) -> None:
    """A span around a grading, a run or a reward is the parent, across threads and loops."""
    grader = traces.of(CriterionGrader(judges=[LexicalJudge()]))
    dataset = RubricDataset(rubric=RUBRIC, items=[DataItem(submission=TEXT, id=name) for name in "abc"])
    reward = as_reward(RUBRIC, grader)
    tracer = traces.provider.get_tracer("test")
    for count, work in (
        (1, lambda: RUBRIC.grade_sync(TEXT, grader)),
        (3, lambda: evaluate_sync(dataset, grader, experiments_dir=tmp_path, show_progress=False)),
        (2, lambda: reward(["q"] * 2, ["a", "b"])),
    ):
        with tracer.start_as_current_span("caller") as caller:
            work()
        items = [
            span
            for span in traces.named("grade")
            if span.parent is not None and span.parent.span_id == caller.get_span_context().span_id
        ]
        assert len(items) == count
    # Outside of any span again: nothing is left behind.
    RUBRIC.grade_sync(TEXT, grader)
    assert traces.named("grade")[-1].parent is None


def test_a_traced_run_is_the_run_of_its_grader(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A traced run resumes without tracing, and nothing is asked again."""
    dataset = RubricDataset(rubric=RUBRIC, items=[DataItem(submission=TEXT, id=name) for name in "ab"])
    grader = CriterionGrader(llm_config=_model(openai_server))
    options: dict[str, Any] = {"experiment_name": "run", "experiments_dir": tmp_path, "show_progress": False}
    first = evaluate_sync(dataset, Traces().of(grader), **options)
    asked = len(openai_server.log())
    second = evaluate_sync(dataset, grader, **options)
    assert asked == 4 and len(openai_server.log()) == asked
    assert first.get_scores() == second.get_scores()


def test_functions_that_need_a_criterion_grader_take_a_traced_one(openai_server: OpenAIServer) -> None:
    """The estimate, the check of recorded judges and the check of scores see the grader inside."""
    dataset = RubricDataset(rubric=RUBRIC, items=[DataItem(submission=TEXT, id="a", ground_truth=None)])
    model = CriterionGrader(llm_config=_model(openai_server))
    assert estimate(dataset, Traces().of(model)).calls == estimate(dataset, model).calls == 2
    recorded = CriterionGrader(judges=[RecordedJudge(judge_id="r", votes={})])
    with pytest.raises(ArgumentError, match="recorded judges repeat stored votes"):
        red_team_sync(dataset, Traces().of(recorded))
    with pytest.raises(ArgumentError, match="from 0 to 1 for a normalized score"):
        RubricThreshold(RUBRIC, Traces().of(model), min_score=2.0)


def _ended(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_GRADING = """
import sys
from autorubric import CriterionGrader, LexicalJudge, Rubric
from autorubric.tracing import trace_grader
rubric = Rubric([{"requirement": "The reply is short."}])
grader = CriterionGrader(judges=[LexicalJudge()])
"""


def test_nothing_of_it_is_loaded_unasked() -> None:
    """Who does not trace loads no opentelemetry; who does, without a provider, grades as ever."""
    told = _ended(_GRADING + "rubric.grade_sync('Yes.', grader); print('opentelemetry' in sys.modules)")
    assert told == "False\n"
    told = _ended(
        _GRADING + "from opentelemetry import trace\nbefore = trace.get_tracer_provider()\n"
        "traced = trace_grader(grader)\n"
        "assert rubric.grade_sync('Yes.', traced).score == rubric.grade_sync('Yes.', grader).score\n"
        "print(trace.get_tracer_provider() is before)"
    )
    assert told == "True\n"


def test_without_the_package_it_says_what_to_install() -> None:
    """A missing package is named with the extra that brings it."""
    told = _ended(
        "import sys; sys.modules['opentelemetry'] = None\n" + _GRADING + "try:\n    trace_grader(grader)\n"
        "except ImportError as error:\n    print(error)"
    )
    assert "pip install opentelemetry-sdk" in told
