"""Critics of drafts, based on a schema or on the criteria of a rubric."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, Final, TypeAlias

from autorubric.apps.drafts.drafts import UNSAID, Draft, graded_score, is_strict_json, json_text, scores_of
from autorubric.apps.drafts.provenance import (
    Answered,
    CritiqueSchema,
    ErrorCode,
    Provenance,
    SchemaFaultError,
    TeacherFailure,
    failure_result,
    json_digest,
)
from autorubric.apps.drafts.teacher import (
    Teacher,
    TeacherQuestion,
    critique_prompt,
    model_config,
    parallel_of,
    provider_name,
    template_text,
    timeout_of,
)
from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError, JudgeError, ReplyError
from autorubric.grading.base import GradingTask
from autorubric.grading.grader import CriterionGrader
from autorubric.judges.answering import callable_source_of
from autorubric.judges.base import Judge
from autorubric.judges.critic import Critic
from autorubric.judges.critic_prompt import PromptTemplate
from autorubric.judges.model import ModelJudge
from autorubric.judges.vote import Clock
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.reply_json import parse_reply_json
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.votes import JudgeVote, VoteCast, VoteExchange
from autorubric.support.objects import Json


class VoteCollector:
    """A listener that collects the votes on one draft, and keeps them for a pass that resumes."""

    def __init__(self, begun: dict[str, Json]) -> None:
        self._kept: list[dict[str, Json]] = begun.setdefault("votes", [])
        self._events = [_event(one) for one in self._kept]

    @property
    def stored(self) -> dict[str, list[JudgeVote]]:
        """The votes received so far, by criterion name."""
        votes: dict[str, list[JudgeVote]] = {}
        for event in self._events:
            votes.setdefault(event.criterion, []).append(event.vote)
        return votes

    def vote_cast(self, event: VoteCast) -> None:
        self._events.append(event)
        # Failed votes are requested again.
        if event.vote.status in ("answered", "abstained"):
            self._kept.append(_line(event))

    def reply_of(self, vote: JudgeVote) -> str | None:
        """Return the last reply that led to a vote; None if there was no reply."""
        exchanged = self._exchange(vote)
        return exchanged.replies[-1] if exchanged is not None and exchanged.replies else None

    def provenance(self, asked: Provenance, failed: JudgeVote | None = None) -> Provenance:
        votes = [event.vote for event in self._events if event.vote.status != "not_asked"]
        exchanges = [event.exchanged for event in self._events if event.exchanged is not None]
        shown = failed or next((vote for vote in reversed(votes) if vote.model is not None), None)
        shown = shown or next(iter(votes), None)
        attempted = dict.fromkeys(model for one in exchanges for model in one.attempted)
        exchanged = None if shown is None else self._exchange(shown)
        # If a vote failed before a reply arrived, no model answered.
        judge = None if shown is None or shown.status == "failed" else shown.judge_id
        return replace(
            asked,
            selected_model=(shown and shown.model) or judge,
            attempted_models=tuple(attempted) or asked.attempted_models,
            request_id=None if exchanged is None else exchanged.request_id,
            cached=bool(exchanges) and all(one.cached for one in exchanges),
            truncated=any(vote.truncated for vote in votes),
        )

    def _exchange(self, vote: JudgeVote) -> VoteExchange | None:
        return next((event.exchanged for event in self._events if event.vote is vote), None)


def _line(event: VoteCast) -> dict[str, Json]:
    exchange: dict[str, Json] | None = None
    if (exchanged := event.exchanged) is not None:
        exchange = {
            "request_id": exchanged.request_id,
            "attempted": list(exchanged.attempted),
            "cached": exchanged.cached,
        }
    return {"criterion": event.criterion, "vote": event.vote.to_dict(), "exchange": exchange}


def _event(line: dict[str, Any]) -> VoteCast:
    exchange = line["exchange"]
    exchanged = exchange and VoteExchange(**{**exchange, "attempted": tuple(exchange["attempted"])})
    vote = JudgeVote.from_dict(line["vote"])
    return VoteCast(item_id="", criterion=line["criterion"], vote=vote, exchanged=exchanged)


DEFAULT_THRESHOLD: Final = 0.7
"""Default minimum score in [0, 1] for a rubric's verdict to be pass."""
_OUT_OF_TIME: Final = re.compile(
    "ProviderTimeoutError:|JudgeError: (judge|evaluator) .* raised TimeoutError:"
)
"""Pattern for the beginning of the error of a vote that timed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricCritic:
    """A critic that grades drafts with a rubric: criteria become scores, and a threshold sets the verdict."""

    rubric: Rubric
    grader: CriterionGrader  # its only judge is the teacher
    threshold: float  # minimum score for the verdict pass; below it, the verdict is revise
    about: Mapping[str, Json]  # the teacher's entry in the manifest
    asked: Provenance  # what is known before the teacher is called
    parallel: int | None  # maximum number of drafts in progress at a time; None if not set
    timeout: float | None = None  # maximum duration of one critique in seconds; None for no limit
    clock: Clock = time.perf_counter

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.grader.models

    def describe(self) -> dict[str, Json]:
        return {
            "teacher": dict(self.about),
            "template_hash": None,
            "rubric_hash": json_digest(self.rubric.to_dict()),
            "threshold": self.threshold,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """Return None, because each criterion has its own prompt."""
        return None

    def level(self, critique: Mapping[str, Json]) -> float | None:
        """Return the score of a critique made by this rubric; None for other critiques."""
        score = graded_score(critique)
        return score if set(scores_of(critique)) <= {one.name for one in self.rubric} else None

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]:
        """Grade a draft and return the critique, or a failure if a criterion could not be judged."""
        started = self.clock()
        collector = VoteCollector(begun)
        task = self._task(draft)
        try:
            async with asyncio.timeout(self.timeout):
                votes = await self.grader.judge(task, stored=collector.stored, listener=collector)
        except (TimeoutError, JudgeError) as error:
            if isinstance(error, TimeoutError):
                error = TimeoutError(f"no critique was received within {self.timeout:g} seconds")
            provenance = collector.provenance(self.asked)
            return failure_result(error, replace(provenance, latency_s=self.clock() - started))
        report = self.grader.aggregate(task, votes)
        lost = next((vote for one in report.report for vote in one.votes if vote.status == "failed"), None)
        provenance = replace(
            collector.provenance(self.asked, lost),
            latency_s=self.clock() - started,
            usage=report.token_usage.to_dict() if report.token_usage else None,
            cost=report.completion_cost,
        )
        if report.score is None or lost is not None:
            text = None if lost is None else collector.reply_of(lost)
            failure = _failure(lost, report)
            return Answered(answer=None, text=text, provenance=provenance, failure=failure)
        return Answered(
            answer=critique_of(report, draft.id, self.threshold), text=None, provenance=provenance
        )

    def _task(self, draft: Draft) -> GradingTask:
        query = None if draft.prompt is None else json_text(draft.prompt)
        if draft.contract is not None:
            checked = f"What a program found when it checked the submission:\n{json_text(draft.contract)}"
            query = checked if query is None else f"{query}\n\n{checked}"
        submission = Submission.parse(draft.output_text)
        return GradingTask(submission=submission, rubric=self.rubric, query=query, item_id=draft.id)

    async def aclose(self) -> None:
        await self.grader.aclose()


def rubric_critic(
    rubric: Rubric, teacher: Any, *, threshold: float | None = None, config: Mapping[str, Json] | None = None
) -> RubricCritic:
    """Create a critic that grades drafts with a rubric and a teacher as judge."""
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ArgumentError(f"threshold must be a number in [0, 1]; got {threshold!r}")
    if isinstance(teacher, str):
        teacher = model_config(teacher, config)
    if isinstance(teacher, LLMClient):
        teacher = ModelJudge(judge_id=teacher.config.model, client=teacher)
    source = None if isinstance(teacher, Judge) else callable_source_of(teacher)
    if source is not None and source.sync is not teacher and source.asynchronous is not teacher:
        judges: list[Any] = [Critic(evaluator=teacher, criterion=criterion) for criterion in rubric]
        about: Mapping[str, Json] = {"teacher": qualified_name(teacher)}
    else:
        judges, about = [teacher], {}
    grader = CriterionGrader(judges=judges, on_failure="exclude")
    member = grader.members[0]
    name = source.name if source else member.judge_id
    is_async = source is not None and source.asynchronous is not None
    provider = provider_name(member.config) if member.config else ("function" if source else "judge")
    limits = [one.max_parallel_requests for one in grader.models if one.max_parallel_requests]
    return RubricCritic(
        rubric=rubric,
        grader=grader,
        threshold=float(least),
        about=about or member.to_dict(),
        asked=Provenance(provider=provider, asked_model=name, attempted_models=(name,)),
        parallel=min(limits, default=None) if source is None else parallel_of(source, config),
        timeout=timeout_of(config) if is_async else None,
    )


def critique_of(report: EnsembleEvaluationReport, draft_id: str, threshold: float) -> dict[str, Json]:
    """Convert a grading report to a critique, in which each criterion that lowers the score is an issue."""
    assert report.score is not None
    lowering = [(one, lost) for one in report.report if (lost := _lost(one)) > 0]
    issues = [
        {
            "type": one.name,
            "severity": "high" if lost >= 1.0 else "medium" if lost >= 0.5 else "low",
            "message": one.final_reason or one.criterion.requirement,
        }
        for one, lost in lowering
    ]
    return {
        "id": draft_id,
        "verdict": "pass" if report.score >= threshold else "revise",
        "issues": issues,
        "scores": {one.name: one.score_value for one in report.report},
        **dict.fromkeys(UNSAID),
        "rewrite_instructions": [_instruction(one) for one, _ in lowering],
        "score": report.score,
    }


def _lost(report: EnsembleCriterionReport) -> float:
    if report.score_value is None:
        return 0.0
    return report.score_value if report.criterion.weight < 0 else 1.0 - report.score_value


def _instruction(report: EnsembleCriterionReport) -> str:
    verb = "Take out" if report.criterion.weight < 0 else "Make true"
    reason = f" ({report.final_reason})" if report.final_reason else ""
    return f"{verb}: {report.criterion.requirement}{reason}"


def _failure(lost: JudgeVote | None, report: EnsembleEvaluationReport) -> TeacherFailure:
    """Return the reason why a report does not yield a critique: a failed vote, or a missing score."""
    if lost is None:
        return TeacherFailure(code="PROVIDER_ERROR", message=report.error or "the report has no score")
    error = lost.error or "a criterion could not be judged"
    code: ErrorCode = "PROVIDER_ERROR"
    if lost.unreadable:
        code = "JSON_PARSE_ERROR"
    elif _OUT_OF_TIME.match(error):
        code = "TIMEOUT"
    return TeacherFailure(code=code, message=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCritic:
    """A critic that asks a teacher for a critique that follows a schema."""

    teacher: Teacher
    schema: CritiqueSchema
    template: PromptTemplate

    @property
    def parallel(self) -> int | None:
        return self.teacher.parallel

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        return self.teacher.models

    def describe(self) -> dict[str, Json]:
        return {
            "teacher": self.teacher.describe(),
            "template_hash": json_digest(template_text(self.template)),
            "rubric_hash": None,
            "threshold": None,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        return len(critique_prompt(self.template, self.schema, draft).content)

    def level(self, critique: Mapping[str, Json]) -> float | None:
        """Return the mean score of a critique; None if there are no scores or a rubric was used."""
        scores = scores_of(critique)
        return fmean(scores.values()) if scores and graded_score(critique) is None else None

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]:
        """Ask the teacher for the critique of a draft; `begun` is not used, as there is only one question."""
        return await self.teacher.ask(
            TeacherQuestion(
                prompt_of=lambda output: critique_prompt(self.template, self.schema, draft, output=output),
                output=draft.output_text,
                read=partial(self._read, draft.output_text),
                schema=self.schema.on_the_wire,
            )
        )

    def _read(self, material: str, text: str) -> dict[str, Json]:
        try:
            critique: dict[str, Json] = parse_reply_json(text, material=material)
        except ReplyError as error:
            # JSON that is not an object was parsed but is not a critique.
            if is_strict_json(text):
                raise SchemaFaultError(str(error), reply=text) from None
            raise
        written = critique.get("id")
        if isinstance(written, int) and not isinstance(written, bool):
            # A number and its text are the same id, but a schema may only accept one of them.
            with suppress(SchemaFaultError):
                self.schema.check(critique)
                return critique
            critique = {**critique, "id": str(written)}
        self.schema.check(critique)
        return critique

    async def aclose(self) -> None:
        await self.teacher.aclose()


DraftCritic: TypeAlias = RubricCritic | SchemaCritic
