"""The function `critique_evaluate`, and the definitions of the tool for models."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from autorubric.apps.tool.audit import AuditError, Trace, append_line, audit_line
from autorubric.apps.tool.form import CritiqueFindings
from autorubric.apps.tool.providers import (
    CritiqueJudge,
    Provider,
    Providers,
    ProviderTable,
    await_provider,
    in_daemon_thread,
    provider_table,
    unavailable,
)
from autorubric.apps.tool.request import CritiqueRequest, RequestLike, read_request
from autorubric.apps.tool.response import (
    CriterionScore,
    CritiqueResponse,
    format_score,
    label_text,
    most_severe,
)
from autorubric.apps.tool.task import ToolTask, confine_issue, task_of
from autorubric.errors import ArgumentError, AutorubricError, FileError, JudgeError, MissingDependencyError
from autorubric.grading.grader import CriterionGrader
from autorubric.judges.base import Judge
from autorubric.judges.critic_prompt import Prompt
from autorubric.judges.function import FunctionJudge
from autorubric.llm.retry import listen_to_retries
from autorubric.scoring.reports import CriterionReport, EnsembleEvaluationReport
from autorubric.support.concurrency import is_cancelled, sync_twin
from autorubric.support.objects import Json

Progress: TypeAlias = Callable[[int, int, str], Awaitable[None] | None]
"""A progress callback that takes the completed steps, the total steps, and the current step's description."""


_MOST_NOTES: Final = 20
"""Maximum number of notes on a reply that are listed individually."""


async def critique_evaluate(
    request: RequestLike,
    *,
    providers: Providers = None,
    timeout: float = 30.0,  # noqa: ASYNC109 - the public contract
    audit_path: str | Path | None = None,
    audit_content: bool = False,
    on_progress: Progress | None = None,
    rubric_root: str | Path | None = None,
) -> CritiqueResponse:
    """Evaluate content against criteria and return a critique, or a response with `ok=False` on error.

    The function raises no exception other than `CancelledError`, if the caller cancels it. The only files it
    accesses are a rubric file named in `criteria`, the provider table and the audit log.

    Args:
        request: The request, or its arguments as a mapping.
        providers: Evaluators by name, a `ProviderTable`, or the path of a provider table; None for the path
            in the environment variable `AUTORUBRIC_PROVIDERS`.
        timeout: Maximum duration in seconds. If several providers are tried, each but the last gets half of
            the remaining time, so that a hanging provider leaves time for the next. A sync function that has
            not returned by the deadline keeps running in its thread.
        audit_path: Path of the audit log, to which one JSON line is appended; None for the table's path.
        audit_content: Whether to include content and context in the line, even if the table excludes them.
        on_progress: A callback that receives the call's progress.
        rubric_root: The folder that must contain the rubric file after links are resolved, regardless of the
            request. If the request has no `workspace_root`, the file's path is relative to this folder. None
            allows any folder; set a folder if you do not control the requests.
    """
    started = time.perf_counter()
    trace = Trace()
    log: Path | None = None
    try:
        log = Path(audit_path) if audit_path is not None else None
        table = provider_table(providers)
        log, audit_content = log or table.audit_path, audit_content or table.audit_content
        if log is not None:
            append_line(log, None)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise ArgumentError(f"timeout must be a positive number of seconds; got {timeout!r}")
        ends = started + timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                response = await _answer(request, table, trace, on_progress, (started, ends), rubric_root)
        except TimeoutError:
            if limit.expired():
                raise _TimedOutError from None
            raise
    # A response is returned in any case, even after a bug in an evaluator or in this module.
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            trace.error_code = "cancelled"
            _log_response(log, trace, CritiqueResponse.of_error("cancelled"), started, audit_content)
            raise
        trace.error_code, message = _describe_error(error, timeout, trace)
        response = CritiqueResponse.of_error(message)
    return _log_response(log, trace, response, started, audit_content)


def _log_response(
    log: Path | None, trace: Trace, response: CritiqueResponse, started: float, content: bool
) -> CritiqueResponse:
    """Write the audit line and return the response; return an error if the line cannot be written."""
    if log is None or trace.error_code == "audit":
        return response
    try:
        seconds = time.perf_counter() - started
        append_line(log, audit_line(trace, response, seconds=seconds, content=content))
    except AuditError as error:
        return CritiqueResponse.of_error(str(error))
    return response


critique_evaluate_sync = sync_twin(critique_evaluate)
"""Call `critique_evaluate` from synchronous code, even inside a running event loop."""


class _TimedOutError(Exception):
    pass


class _ProvidersFailedError(Exception):
    pass


def _describe_error(error: BaseException, timeout: float, trace: Trace) -> tuple[str, str]:
    """Return the kind of an error and the message for the caller."""
    match error:
        case _TimedOutError():
            if trace.request is not None and trace.request.provider != "auto":
                why = "".join(f", {reason}" for reason in trace.retry_reasons().values())
                return "timeout", unavailable(trace.request.provider, f"no answer within {timeout:g} s{why}")
            reasons = {**trace.reasons(), **trace.retry_reasons()}
            before = "".join(f"; {name}: {why}" for name, why in reasons.items())
            return "timeout", f"Evaluation timed out after {timeout:g} s{before}"
        case _ProvidersFailedError():
            return "provider", str(error)
        case AuditError():
            return "audit", str(error)
        case ArgumentError() | FileError():
            return "request", str(error)
        case AutorubricError():
            return "failed", f"{type(error).__name__}: {error}"
        case _:
            return "internal", f"Unexpected {type(error).__name__}: {error}"


async def _answer(
    request: RequestLike,
    table: ProviderTable,
    trace: Trace,
    on_progress: Progress | None,
    span: tuple[float, float],
    rubric_root: str | Path | None,
) -> CritiqueResponse:
    trace.request = read_request(request)
    task = task_of(trace.request, table, rubric_root)
    trace.content_type = task.content_type
    steps = len(task.providers) + 2
    await _report_progress(on_progress, 1, steps, "the request is valid")
    if task.request.dry_run:
        return await _dry_run(task)
    for number, provider in enumerate(task.providers, 2):
        await _report_progress(on_progress, number, steps, f"{provider.name} evaluates")
        try:
            with listen_to_retries(partial(trace.retried.__setitem__, provider.name)):
                report, findings = await await_provider(
                    _evaluate_with(task, provider, trace), span[1], last=number == steps - 1
                )
        except (JudgeError, MissingDependencyError) as error:
            trace.failed[provider.name] = error
        else:
            await _report_progress(on_progress, steps, steps, "done")
            seconds = time.perf_counter() - span[0]
            return _response(task, provider.name, report, findings, trace.reasons(), seconds)
    asked, failed = task.request.provider, trace.reasons()
    if asked != "auto":
        raise _ProvidersFailedError(unavailable(asked, failed[asked]))
    reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
    raise _ProvidersFailedError(f"No provider could evaluate. {reasons}")


async def _report_progress(on_progress: Progress | None, done: int, steps: int, what: str) -> None:
    waiting = None if on_progress is None else on_progress(done, steps, what)
    if waiting is not None:
        await waiting


async def _dry_run(task: ToolTask) -> CritiqueResponse:
    """Return the response for a dry run, using an evaluator that only measures the prompt."""
    sizes: list[int] = []

    async def measure(prompt: Prompt) -> None:
        sizes.append(len(prompt.content.encode("utf-8")))
        raise JudgeError("this is a dry run")

    await _grade(task, _judge_of("dry run", measure, task))
    return CritiqueResponse(
        ok=True,
        dry_run=True,
        provider=next(one.name for one in task.providers if not one.fault),
        criteria=task.rubric.names,
        prompt_size=sum(sizes),
    )


def _judge_of(name: str, evaluator: Any, task: ToolTask) -> CritiqueJudge:
    return CritiqueJudge(
        judge_id=name, evaluator=evaluator, request=task.request, content_note=task.content_note
    )


async def _grade(task: ToolTask, judge: Judge) -> EnsembleEvaluationReport:
    # An unreadable reply is excluded here and does not count as a low score.
    grader = CriterionGrader(
        judges=[judge], llm_calls="per_item", on_failure="exclude", shuffle_options=False
    )
    async with grader:
        return await task.rubric.grade(task.request.content, grader)


async def _evaluate_with(
    task: ToolTask, provider: Provider, trace: Trace
) -> tuple[EnsembleEvaluationReport, CritiqueFindings]:
    """Evaluate with one provider and return the report on its answers, with its other findings."""
    if provider.fault:
        raise JudgeError(provider.fault)
    judge = provider.evaluator
    if isinstance(judge, FunctionJudge):
        judge = replace(judge, function=in_daemon_thread(judge.function))
    elif not isinstance(judge, Judge) or isinstance(judge, type):
        judge = _judge_of(provider.name, judge, task)
    report = await _grade(task, judge)
    trace.usage, trace.cost = report.token_usage, report.completion_cost
    trace.model = next((vote.model for one in report.report for vote in one.votes if vote.model), None)
    if isinstance(judge, CritiqueJudge) and judge.failure is not None:
        raise judge.failure
    if all(one.status == "failed" for one in report.report):
        raise JudgeError(report.error or "every judgment failed")
    findings = judge.findings if isinstance(judge, CritiqueJudge) else None
    if findings is None:
        # A judge that only answers criteria: its reasons are the summary.
        reasons = [f"{one.name}: {one.final_reason}" for one in report.report if one.final_reason]
        findings = CritiqueFindings(answers={}, summary="\n".join(reasons))
    return report, findings


def _response(
    task: ToolTask,
    provider: str,
    report: EnsembleEvaluationReport,
    findings: CritiqueFindings,
    failed: dict[str, str],
    seconds: float,
) -> CritiqueResponse:
    request, scale = task.request, task.request.scoring_scale
    fields: dict[str, object] = {
        "ok": True,
        "provider": provider,
        "overall_score": format_score(report.score, scale),
        "scoring_scale": scale,
        "criteria_scores": tuple(_score(one, request) for one in report.report),
    }
    if request.evaluation_mode == "detailed":
        kept = most_severe(findings.issues, request.max_issues)
        fields["issues"] = tuple(confine_issue(issue, task.workspace) for issue in kept)
    if request.evaluation_mode != "score_only":
        fields["summary"] = findings.summary
    if request.evaluation_mode == "detailed":
        fields["suggestions"] = findings.suggestions
    fields["evaluation_time_ms"] = round(seconds * 1000)
    if failed:
        fields["fallback_from"] = failed
    if findings.notes:
        more = len(findings.notes) - _MOST_NOTES
        fields["notes"] = (*findings.notes[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else []))
    return CritiqueResponse.model_validate(fields)


def _score(report: CriterionReport, request: CritiqueRequest) -> CriterionScore:
    good = report.decision.value
    if good is not None and report.criterion.weight < 0:
        # An applied penalty lowers the quality.
        good = 1.0 - good
    fields: dict[str, object] = {
        "criterion": report.name,
        "score": format_score(good, request.scoring_scale),
        "label": label_text(good),
    }
    if request.evaluation_mode != "score_only" and report.final_reason:
        fields["explanation"] = report.final_reason
    return CriterionScore.model_validate(fields)


WIRE_NAME: Final = "critique_evaluate"
"""Name of the tool in protocols, without a dot because clients reject dots."""

TITLE: Final = "critique.evaluate"
"""Display name of the tool."""

DESCRIPTION: Final = (
    "Evaluate code, text, a tool result or a session snapshot against criteria, and get scores, issues with "
    "severity and location, and suggestions. Use it on your own work before you hand it in, revise by what "
    "it says, and evaluate again. It only reads: it changes no file and runs nothing. Content may be sent "
    "to an external model unless a local provider is named."
)


def input_schema() -> dict[str, Json]:
    """Return the JSON schema of the tool's arguments."""
    schema: dict[str, Json] = plain_schema(CritiqueRequest.model_json_schema())
    return schema


def output_schema() -> dict[str, Json]:
    """Return the JSON schema of the tool's responses."""
    schema: dict[str, Json] = plain_schema(CritiqueResponse.model_json_schema(mode="validation"))
    return schema


def openai_definition(
    name: str = WIRE_NAME, description: str = DESCRIPTION, schema: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return a tool definition for the `tools` parameter of OpenAI-style chat APIs.

    Args:
        name: Name of the tool in the API.
        description: Description of the tool for models.
        schema: JSON schema of the tool's arguments; None for the arguments of `critique_evaluate`.
    """
    function = {"name": name, "description": description, "parameters": dict(schema or input_schema())}
    return {"type": "function", "function": function}


def anthropic_definition(
    name: str = WIRE_NAME, description: str = DESCRIPTION, schema: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return a tool definition for the `tools` parameter of Anthropic-style message APIs.

    The arguments are the same as for `openai_definition`.
    """
    return {"name": name, "description": description, "input_schema": dict(schema or input_schema())}


def plain_schema(schema: Any) -> Any:
    """Return a schema without null defaults or the titles and class docstrings that pydantic adds."""
    if isinstance(schema, list):
        return [plain_schema(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        key: {name: plain_schema(one) for name, one in value.items()}
        if key in ("properties", "$defs")
        else plain_schema(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
    # The docstring of a class lists its attributes for readers of the code, not for models.
    if "properties" in kept:
        kept.pop("description", None)
    return kept
