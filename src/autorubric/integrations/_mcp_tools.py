"""The tools served to agents, with schemas and implementations that do not depend on the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from autorubric.errors import ArgumentError, JudgeError, MissingDependencyError
from autorubric.graders import CriterionGrader
from autorubric.integrations._mcp_calls import Call, Outcome, ToolServer, answered
from autorubric.judges import Judge
from autorubric.llm import LLMConfig
from autorubric.rubric import Rubric
from autorubric.tool import (
    DESCRIPTION,
    MOST_BYTES,
    TITLE,
    WIRE_NAME,
    Progress,
    Provider,
    Providers,
    Workspace,
    critique_evaluate,
    in_turn,
    input_schema,
    output_schema,
    plain_schema,
    provider_table,
    text_facts,
)
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool that is served to agents.

    Attributes:
        name: The tool's name in the protocol.
        title: The display name.
        description: The description for models.
        input_schema: JSON schema of the arguments.
        output_schema: JSON schema of the structured content.
        call: The function that performs a call; it only raises if the call is cancelled.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json]
    call: Callable[[ToolServer, Mapping[str, Any], Progress | None], Awaitable[Outcome]]


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
) -> Outcome:
    response = await critique_evaluate(
        arguments,
        providers=server.providers,
        timeout=server.timeout,
        on_progress=on_progress,
        rubric_root=server.root,
    )
    return Outcome(content=response.to_dict(), line=response.one_line())


async def _grade(server: ToolServer, arguments: Mapping[str, Any], on_progress: Progress | None) -> Outcome:
    async def work(call: Call) -> Outcome:
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
        providers = server.providers.routed(asked.provider, "text", rubric.names)
        for provider in providers:
            try:
                grading = _graded(asked, rubric, provider)
                report = await in_turn(grading, call.ends, last=provider is providers[-1])
            except (JudgeError, MissingDependencyError) as error:
                call.failed[provider.name] = error
            else:
                call.noted |= _judged(provider.name, report)
                return _graded_outcome(provider.name, report, call.reasons())
        raise call.nobody()

    return await answered("grade", server, work)


async def _graded(asked: GradeArguments, rubric: Rubric, provider: Provider) -> EnsembleEvaluationReport:
    """Grade with one provider and return the report.

    Raises:
        JudgeError: If the provider cannot grade or every judgment failed.
    """
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


def _graded_outcome(provider: str, report: EnsembleEvaluationReport, failed: Mapping[str, str]) -> Outcome:
    fallback = {"fallback_from": dict(failed)} if failed else {}
    content = {"ok": report.score is not None, "provider": provider, **fallback, **_report(report)}
    score = "no score" if report.score is None else f"score {report.score:.3g}"
    left = sum(one.status == "failed" for one in report.report)
    unjudged = f" · {left} not judged" if left else ""
    return Outcome(content=content, line=f"{score} · {len(report.report)} criteria{unjudged}")


def _judged(provider: str, report: EnsembleEvaluationReport) -> dict[str, Json]:
    """Return the fields of the audit line that describe a grading."""
    usage = report.token_usage
    return {
        "provider": provider,
        "model": next((vote.model for one in report.report for vote in one.votes if vote.model), None),
        "tokens": usage.total_tokens if usage else None,
        "cost": report.completion_cost,
        "score": report.score,
    }


def _report(report: EnsembleEvaluationReport) -> dict[str, Json]:
    return {
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


async def _metrics(server: ToolServer, arguments: Mapping[str, Any], on_progress: Progress | None) -> Outcome:
    async def work(call: Call) -> Outcome:
        asked = _read(MetricsArguments, arguments)
        call.noted |= {"run": asked.run, "dataset": asked.dataset}
        run = server.files.path(asked.run)
        dataset = None if asked.dataset is None else server.files.path(asked.dataset)
        for link in (one for one in run.glob("*") if one.is_symlink()):
            server.files.path(str(link))
        found = await asyncio.to_thread(_computed, run, dataset, asked.bootstrap, asked.per_judge)
        return Outcome(content={"ok": True, "run": asked.run, **found}, line=f"metrics of {run.name}")

    return await answered("compute_metrics", server, work)


def _computed(run: Path, dataset: Path | None, bootstrap: bool, per_judge: bool) -> dict[str, Json]:
    # Imported late: metrics load packages that the other tools do not need.
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalResult

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
    """Return the tool with a given name.

    Raises:
        ArgumentError: If there is no tool with this name.
    """
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
