"""The tools served to agents, with the time limits, errors and audit lines of their calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from autorubric.apps.tool.audit import AuditError, append_line, call_line, text_facts
from autorubric.apps.tool.evaluate import (
    DESCRIPTION,
    TITLE,
    WIRE_NAME,
    Progress,
    critique_evaluate,
    input_schema,
    output_schema,
    plain_schema,
)
from autorubric.apps.tool.providers import (
    Provider,
    Providers,
    ProviderTable,
    await_provider,
    provider_table,
    unavailable,
)
from autorubric.apps.tool.request import MOST_BYTES
from autorubric.apps.tool.workspace import Workspace
from autorubric.errors import ArgumentError, AutorubricError, FileError, JudgeError, MissingDependencyError
from autorubric.grading.grader import CriterionGrader
from autorubric.judges.base import Judge
from autorubric.llm.config import LLMConfig
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.support.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """The configuration of the served tools."""

    providers: ProviderTable
    # The folder that must contain all rubric files, run folders and datasets.
    root: Path = field(default_factory=Path.cwd)
    timeout: float = 30.0  # maximum duration of a call in seconds
    heartbeat: float = 5.0  # seconds between heartbeats to a client that requested progress

    @property
    def files(self) -> Workspace:
        """Return the workspace that must contain all files named by agents."""
        return Workspace.at(str(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The result of a call."""

    content: Mapping[str, Json]  # the structured content, whose key `ok` tells whether the call succeeded
    line: str  # a summary of the content on one line

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.content["ok"] is True


class NobodyError(AutorubricError):
    """Raised if every provider failed."""


@dataclass(kw_only=True)
class ToolCall:
    """The state of a running call."""

    seconds: float  # maximum duration in seconds
    # Start time, measured by `time.perf_counter`.
    started: float = field(default_factory=time.perf_counter, init=False)
    noted: dict[str, Json] = field(default_factory=dict)  # additional fields of the audit line
    named: str | None = None  # the provider named in the call; None if the call did not name a provider
    # Errors by the names of the providers that failed.
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """Return the deadline, measured by `time.perf_counter`."""
        return self.started + self.seconds

    def reasons(self) -> dict[str, str]:
        """Return error messages by the names of the providers that failed."""
        return {name: f"{type(error).__name__}: {error}" for name, error in self.failed.items()}

    def nobody(self) -> NobodyError:
        """Create the error for a call in which every provider failed."""
        if self.named is not None:
            return NobodyError(unavailable(self.named, self.reasons()[self.named]))
        told = "; ".join(f"{name}: {why}" for name, why in self.reasons().items())
        return NobodyError(f"No provider could grade. {told}")

    def timeout_message(self) -> str:
        """Return the message for a call that timed out."""
        if self.named is not None:
            return unavailable(self.named, f"no answer within {self.seconds:g} s")
        before = "".join(f"; {name}: {why}" for name, why in self.reasons().items())
        return f"the call took more than {self.seconds:g} s{before}"


async def run_call(
    tool: str, server: ToolServer, work: Callable[[ToolCall], Awaitable[ToolOutcome]]
) -> ToolOutcome:
    """Run a call and write its audit line; an error is returned as an outcome that reports it."""
    call, log = ToolCall(seconds=server.timeout), server.providers.audit_path
    try:
        # The call must not run if the audit log is not writable.
        if log is not None:
            append_line(log, None)
        try:
            outcome, code = await _outcome(call, work)
        except asyncio.CancelledError:
            _write_down(log, tool, call, ok=False, code="cancelled")
            raise
        _write_down(log, tool, call, ok=outcome.ok, code=code)
    except AuditError as error:
        return _error_outcome(str(error))
    return outcome


async def _outcome(
    call: ToolCall, work: Callable[[ToolCall], Awaitable[ToolOutcome]]
) -> tuple[ToolOutcome, str | None]:
    """Run the work and return the outcome with its error code; None if the call succeeded."""
    try:
        async with asyncio.timeout(call.seconds):
            return await work(call), None
    except TimeoutError:
        return _error_outcome(call.timeout_message()), "timeout"
    except NobodyError as raised:
        return _error_outcome(str(raised)), "provider"
    except (ArgumentError, FileError) as raised:
        return _error_outcome(str(raised)), "request"
    except AutorubricError as raised:
        return _error_outcome(str(raised)), "failed"
    # A bug is also reported to the agent, so that it can continue.
    except Exception as raised:
        return _error_outcome(f"Unexpected {type(raised).__name__}: {raised}"), "internal"


def _error_outcome(error: str) -> ToolOutcome:
    return ToolOutcome(content={"ok": False, "error": error, "provider": None}, line=f"✗ {error}")


def _write_down(log: Path | None, tool: str, call: ToolCall, *, ok: bool, code: str | None) -> None:
    if log is None:
        return
    seconds = time.perf_counter() - call.started
    kinds: dict[str, Json] = {name: type(error).__name__ for name, error in call.failed.items()}
    line = call_line(tool, ok=ok, error_code=code, seconds=seconds)
    append_line(log, {**line, "failed_providers": kinds, **call.noted})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool that is served to agents."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json]  # JSON schema of the structured content
    # The function that performs a call; it only raises if the call is cancelled.
    call: Callable[[ToolServer, Mapping[str, Any], Progress | None], Awaitable[ToolOutcome]]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


ArgumentsT = TypeVar("ArgumentsT", bound=_Arguments)


class GradeArguments(_Arguments):
    """The arguments of the tool `grade`."""

    text: str = Field(description="The text to grade, at most 500 KB.")
    rubric: str | dict[str, Any] | list[Any] = Field(
        description="The rubric: the path of a rubric file in the server's folder, or the rubric itself."
    )
    provider: str = Field(default="auto", description="The judge: auto, or a name of the provider table.")
    query: str | None = Field(default=None, description="The question that the text answers.")
    reference: str | None = Field(default=None, description="A good answer for comparison.")

    @field_validator("text", "query", "reference")
    @classmethod
    def _check_size(cls, text: str | None) -> str | None:
        if text is not None and len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
            raise ValueError("the text exceeds the maximum size (500 KB)")
        return text


class MetricsArguments(_Arguments):
    """The arguments of the tool `compute_metrics`."""

    run: str = Field(description="The run folder, inside the server's folder.")
    dataset: str | None = Field(default=None, description="A labelled dataset; default: the run's labels.")
    bootstrap: bool = Field(default=False, description="Also compute bootstrap intervals over items.")
    per_judge: bool = Field(default=False, description="Also compute the metrics of each judge.")


async def _critique(
    server: ToolServer, arguments: Mapping[str, Any], on_progress: Progress | None
) -> ToolOutcome:
    response = await critique_evaluate(
        arguments,
        providers=server.providers,
        timeout=server.timeout,
        on_progress=on_progress,
        rubric_root=server.root,
    )
    return ToolOutcome(content=response.to_dict(), line=response.one_line())


async def _grade(
    server: ToolServer, arguments: Mapping[str, Any], on_progress: Progress | None
) -> ToolOutcome:
    async def work(call: ToolCall) -> ToolOutcome:
        asked = _read(GradeArguments, arguments)
        call.noted |= {"asked_provider": asked.provider, **text_facts(asked.text)}
        if server.providers.audit_content:
            call.noted |= {"content": asked.text, "context": asked.query, "reference": asked.reference}
        rubric = (
            Rubric.from_file(server.files.path(asked.rubric))
            if isinstance(asked.rubric, str)
            else Rubric.from_dict(asked.rubric)
        )
        call.noted["criteria"] = list(rubric.names)
        call.named = None if asked.provider == "auto" else asked.provider
        providers = server.providers.route(asked.provider, "text", rubric.names)
        for provider in providers:
            try:
                grading = _grade_text(asked, rubric, provider)
                report = await await_provider(grading, call.ends, last=provider is providers[-1])
            except (JudgeError, MissingDependencyError) as error:
                call.failed[provider.name] = error
            else:
                call.noted |= _audit_fields(provider.name, report)
                return _grade_outcome(provider.name, report, call.reasons())
        raise call.nobody()

    return await run_call("grade", server, work)


async def _grade_text(asked: GradeArguments, rubric: Rubric, provider: Provider) -> EnsembleEvaluationReport:
    """Grade with one provider and return the report."""
    if provider.fault:
        raise JudgeError(provider.fault)
    if not isinstance(provider.evaluator, str | LLMConfig | Judge):
        raise JudgeError(f"provider {provider.name!r} cannot grade: it is neither a model nor a judge")
    # A criterion that could not be judged is reported as such and never counts as an answer.
    async with CriterionGrader(judges=[provider.evaluator], on_failure="exclude") as grader:
        report = await rubric.grade(
            asked.text, grader, query=asked.query, reference_submission=asked.reference
        )
    if all(one.status == "failed" for one in report.report):
        raise JudgeError(report.error or "every judgment failed")
    return report


def _grade_outcome(provider: str, report: EnsembleEvaluationReport, failed: Mapping[str, str]) -> ToolOutcome:
    fallback = {"fallback_from": dict(failed)} if failed else {}
    content = {
        "ok": report.score is not None,
        "provider": provider,
        **fallback,
        "error": report.error,
        "score": report.score,
        "criteria": [
            {
                "name": one.name,
                "weight": one.criterion.weight,
                "status": one.status,
                "answer": one.final_answer,
                "value": one.score_value,
                "reason": one.final_reason,
            }
            for one in report.report
        ],
    }
    score = "no score" if report.score is None else f"score {report.score:.3g}"
    left = sum(one.status == "failed" for one in report.report)
    unjudged = f" · {left} not judged" if left else ""
    return ToolOutcome(content=content, line=f"{score} · {len(report.report)} criteria{unjudged}")


def _audit_fields(provider: str, report: EnsembleEvaluationReport) -> dict[str, Json]:
    """Return the fields of the audit line that describe a grading."""
    usage = report.token_usage
    return {
        "provider": provider,
        "model": next((vote.model for one in report.report for vote in one.votes if vote.model), None),
        "tokens": usage.total_tokens if usage else None,
        "cost": report.completion_cost,
        "score": report.score,
    }


async def _metrics(
    server: ToolServer, arguments: Mapping[str, Any], on_progress: Progress | None
) -> ToolOutcome:
    async def work(call: ToolCall) -> ToolOutcome:
        asked = _read(MetricsArguments, arguments)
        call.noted |= {"run": asked.run, "dataset": asked.dataset}
        run = server.files.path(asked.run)
        dataset = None if asked.dataset is None else server.files.path(asked.dataset)
        for link in (one for one in run.glob("*") if one.is_symlink()):
            server.files.path(str(link))
        found = await asyncio.to_thread(_metrics_outcome, run, dataset, asked.bootstrap, asked.per_judge)
        return ToolOutcome(content={"ok": True, "run": asked.run, **found}, line=f"metrics of {run.name}")

    return await run_call("compute_metrics", server, work)


def _metrics_outcome(run: Path, dataset: Path | None, bootstrap: bool, per_judge: bool) -> dict[str, Json]:
    # Imported late: metrics load packages that the other tools do not need.
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.runs.result import EvalResult

    labelled = None if dataset is None else RubricDataset.from_file(dataset)
    result = EvalResult.from_experiment(run)
    found = result.compute_metrics(labelled, bootstrap=bootstrap, per_judge=per_judge)
    if not found.na_stats.n_cells:
        raise ArgumentError("the run has no labels to compare with; pass a labelled dataset")
    return {
        "metrics": found.to_dict(),
        "verdicts": result.verdicts.to_dict(),
        "notices": list(result.notices),
    }


def _read(kind: type[ArgumentsT], given: Mapping[str, Any]) -> ArgumentsT:
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise ArgumentError("; ".join(faults)) from None


def _answer_schema(**properties: Json) -> dict[str, Json]:
    shared: dict[str, Json] = {"ok": {"type": "boolean"}, "error": {"type": ["string", "null"]}}
    return {"type": "object", "properties": {**shared, **properties}, "required": ["ok"]}


TOOLS: Final = (
    ServedTool(
        name=WIRE_NAME,
        title=TITLE,
        description=DESCRIPTION,
        input_schema=input_schema(),
        output_schema=output_schema(),
        call=_critique,
    ),
    ServedTool(
        name="grade",
        title="grade",
        description=(
            "Grade a text against a rubric. Returns an answer with a reason for each criterion and a score "
            "from 0 to 1."
        ),
        input_schema=plain_schema(GradeArguments.model_json_schema()),
        output_schema=_answer_schema(
            provider={"type": ["string", "null"]},
            fallback_from={"type": "object"},
            score={"type": ["number", "null"]},
            criteria={"type": "array", "items": {"type": "object"}},
        ),
        call=_grade,
    ),
    ServedTool(
        name="compute_metrics",
        title="compute_metrics",
        description=(
            "Measure how far the judges of a stored run agree with the labels given by people: accuracy, "
            "kappa and other metrics, overall and per criterion. No judge is called."
        ),
        input_schema=plain_schema(MetricsArguments.model_json_schema()),
        output_schema=_answer_schema(
            run={"type": "string"},
            metrics={"type": "object"},
            verdicts={"type": "object"},
            notices={"type": "array"},
        ),
        call=_metrics,
    ),
)
"""The served tools, in the order in which they are listed."""


def tool_named(name: str) -> ServedTool:
    """Return the tool with a given name."""
    found = next((one for one in TOOLS if one.name == name), None)
    if found is None:
        raise ArgumentError(f"unknown tool {name!r}; use one of {', '.join(one.name for one in TOOLS)}")
    return found


async def call_tool(
    name: str,
    arguments: Mapping[str, Any],
    *,
    providers: Providers = None,
    root: str | Path = ".",
    timeout: float = 30.0,  # noqa: ASYNC109 - the public contract
) -> dict[str, Json]:
    """Call a tool as an MCP client would and return the result, or `{"ok": false, "error": …}` on failure.

    Args:
        name: The tool: `critique_evaluate`, `grade` or `compute_metrics`.
        arguments: The arguments, as written by the model.
        providers: Evaluators by name, a `ProviderTable`, or the path of a provider table.
        root: The folder that must contain all rubric files, run folders and datasets.
        timeout: Maximum duration of the call in seconds.

    Raises:
        ArgumentError: If the tool, the table or the folder does not exist.
        FileError: If the table cannot be read or has errors.
    """
    tool = tool_named(name)
    folder = Workspace.at(str(root)).root
    server = ToolServer(providers=provider_table(providers), root=folder, timeout=timeout)
    return dict((await tool.call(server, arguments, None)).content)
