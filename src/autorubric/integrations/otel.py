"""OpenTelemetry spans for grading. This is the only module that imports opentelemetry.

Attributes and the event follow the semantic conventions for generative AI, version 1.37
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). Additional names start with `autorubric.`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from autorubric.grading.base import Grader, GraderDescription, GradingTask
from autorubric.grading.grader import criterion_grader
from autorubric.llm.config import LLMConfig
from autorubric.llm.names import prefix_of
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.votes import JudgeVote, Listener, VoteCast, VoteExchange, Votes

_PROVIDERS: Final = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Provider names of the semantic conventions, by model name prefix."""


class TracedGrader(Grader):
    """A grader that records spans, as created by `trace_grader`."""

    def __init__(self, grader: Grader, content: bool, provider: TracerProvider | None) -> None:
        self._grader = grader
        self._content = content
        self._provider = provider

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the grader without its tracer provider; another process uses its global provider."""
        return type(self), (self._grader, self._content, None)

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """Return the models that the grader may call."""
        return self._grader.models

    @property
    def inner_grader(self) -> Grader:
        """Return the grader that records no spans."""
        return self._grader.inner_grader

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Reject rubrics that the grader cannot use."""
        self._grader.check_rubrics(rubrics)

    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """Aggregate the votes under the grader's policy without recording a span."""
        return self._grader.aggregate(task, votes)

    def describe(self) -> GraderDescription:
        """Return the description of the wrapped grader."""
        return self._grader.describe()

    async def aclose(self) -> None:
        """Release the resources of the grader's judges."""
        await self._grader.aclose()

    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """Return the grader's votes on a task and record them in a separate span."""
        tracer = trace.get_tracer("autorubric", tracer_provider=self._provider)
        # Error messages may quote replies, so only the type of an error is recorded.
        item = {"autorubric.item.id": task.item_id} if task.item_id else None
        with tracer.start_as_current_span(
            "grade", attributes=item, record_exception=False, set_status_on_exception=False
        ) as span:
            spans = _CallSpans(tracer, self._judges(), listener, self._content)
            try:
                votes = await self._grader.judge(task, stored=stored, listener=spans)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise
            if span.is_recording():
                self._tell(span, self._grader.aggregate(task, votes))
            return votes

    def _judges(self) -> Mapping[str, LLMConfig]:
        """Return the models by judge id."""
        inner = criterion_grader(self._grader)
        members = inner.members if inner is not None else ()
        return {member.judge_id: member.config for member in members if member.config is not None}

    def _tell(self, span: Span, report: EnsembleEvaluationReport) -> None:
        for criterion in report.report:
            span.add_event("gen_ai.evaluation.result", _result(criterion, self._content))
        if report.score is not None:
            span.set_attribute("autorubric.score", report.score)
        else:
            span.set_status(Status(StatusCode.ERROR, "no score"))
        if report.completion_cost is not None:
            span.set_attribute("autorubric.cost", report.completion_cost)


class _CallSpans:
    """A listener for one grading that records a span for each call of a judge.

    A vote contains the duration of its call, so no event is needed when the call starts, and grading without
    a listener does no extra work.
    """

    def __init__(
        self, tracer: Tracer, models: Mapping[str, LLMConfig], inner: Listener | None, content: bool
    ) -> None:
        self._tracer = tracer
        self._models = models
        self._inner = inner
        self._content = content
        self._failed: tuple[tuple[str, str], ...] = ()

    def vote_cast(self, event: VoteCast) -> None:
        """Record a span for a vote, unless the vote belongs to a request that already has a span."""
        if self._inner is not None:
            self._inner.vote_cast(event)
        if event.vote.status != "not_asked" and not self._is_shared(event):
            self._leave_span(event)

    def _is_shared(self, event: VoteCast) -> bool:
        """Return whether the vote belongs to a request that already has a span."""
        exchanged = event.exchanged
        if exchanged is None or event.vote.status != "failed":
            return exchanged is not None and exchanged.shared_with is not None
        # Votes that failed together share one messages object.
        is_known = bool(exchanged.messages) and exchanged.messages is self._failed
        self._failed = exchanged.messages
        return is_known

    def _leave_span(self, event: VoteCast) -> None:
        vote, ended = event.vote, time.time_ns()
        model = self._models.get(vote.judge_id)
        span = self._tracer.start_span(
            f"judge {vote.judge_id}" if model is None else f"chat {model.model}",
            kind=SpanKind.INTERNAL if model is None else SpanKind.CLIENT,
            attributes=_call(event) | ({} if model is None else _request(model)) | _reply(vote),
            start_time=ended - int(1e9 * (vote.latency_seconds or 0.0)),
        )
        if vote.status == "failed":
            # The error's text may quote the reply.
            span.set_status(Status(StatusCode.ERROR, vote.error if self._content else _error_type(vote)))
        if self._content:
            span.set_attributes(_messages_of(event.exchanged, vote))
        span.end(ended)


def _call(event: VoteCast) -> dict[str, Any]:
    return {
        "autorubric.judge.id": event.vote.judge_id,
        "autorubric.criterion": event.criterion,
        "autorubric.sample": event.vote.sample,
        "autorubric.vote.status": event.vote.status,
        "autorubric.vote.wait_seconds": event.vote.wait_seconds,
        **({"autorubric.item.id": event.item_id} if event.item_id else {}),
    }


def _request(model: LLMConfig) -> dict[str, Any]:
    """Return the attributes of the request and its model."""
    prefix = prefix_of(model.model)
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(prefix, prefix or "openai"),
        "gen_ai.request.model": model.model,
        "gen_ai.request.temperature": model.temperature,
        "gen_ai.request.top_p": model.top_p,
        "gen_ai.request.max_tokens": model.max_tokens,
        "gen_ai.request.seed": model.seed,
        "gen_ai.output.type": "json",
    }
    if model.api_base is not None:
        address = urlsplit(model.api_base)
        found["server.address"] = address.hostname
        found["server.port"] = address.port or {"https": 443, "http": 80}.get(address.scheme)
    return {name: value for name, value in found.items() if value is not None}


def _reply(vote: JudgeVote) -> dict[str, Any]:
    """Return the attributes of the reply and its usage."""
    usage = vote.token_usage
    found: dict[str, Any] = {
        "gen_ai.response.model": vote.model,
        "gen_ai.usage.input_tokens": usage.prompt_tokens if usage is not None else None,
        "gen_ai.usage.output_tokens": usage.completion_tokens if usage is not None else None,
        "autorubric.cost": vote.completion_cost,
        "error.type": _error_type(vote) if vote.status == "failed" else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _error_type(vote: JudgeVote) -> str:
    return (vote.error or "").partition(":")[0] or "_OTHER"


def _messages_of(exchanged: VoteExchange | None, vote: JudgeVote) -> dict[str, str]:
    """Return prompts, replies and the reason as messages in the format of the conventions."""
    found = {"autorubric.vote.reason": vote.reason} if vote.reason else {}
    if exchanged is not None:
        asked = [_message(role, content) for role, content in exchanged.messages]
        replied = [_message("assistant", reply) for reply in exchanged.replies]
        found["gen_ai.input.messages"] = json.dumps(asked, ensure_ascii=False)
        found["gen_ai.output.messages"] = json.dumps(replied, ensure_ascii=False)
    return found


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def _result(criterion: EnsembleCriterionReport, content: bool) -> dict[str, Any]:
    """Return the attributes of the event for a criterion."""
    answer = criterion.decision.answer
    # A criterion that was not judged is labelled with its status; a number needs no label.
    words = answer.label if answer else None
    if words is None and criterion.status != "answered":
        words = criterion.status
    found: dict[str, Any] = {
        "gen_ai.evaluation.name": criterion.name,
        "gen_ai.evaluation.score.value": criterion.decision.value,
        "gen_ai.evaluation.score.label": words,
        "gen_ai.evaluation.explanation": (criterion.final_reason or None) if content else None,
        "autorubric.criterion.status": criterion.status,
    }
    if criterion.status == "failed":
        errors = [_error_type(vote) for vote in criterion.votes if vote.status == "failed"]
        found["error.type"] = errors[0] if errors else "_OTHER"
    return {name: value for name, value in found.items() if value is not None}
