"""From a draft to its critique: by a schema, or by the criteria of a rubric."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from autorubric._files import shortened
from autorubric.criteria import qualified_name
from autorubric.critic import Critic, Template, called_of
from autorubric.critique._drafts import Draft, text_of
from autorubric.critique._prompts import critique_prompt, critique_template, template_text
from autorubric.critique._provenance import Answered, ErrorCode, Failure, Provenance, failed
from autorubric.critique._records import is_strict_json
from autorubric.critique._schema import CritiqueSchema, SchemaFaultError, digest_of
from autorubric.critique._teacher import Clock, Question, Teacher, model_config, provider_name, teacher_of
from autorubric.errors import ArgumentError, JudgeError, ReplyError
from autorubric.graders import CriterionGrader
from autorubric.judges import Judge, ModelJudge
from autorubric.llm import LLMClient, parse_json
from autorubric.rubric import Rubric
from autorubric.types import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.values import Json

DEFAULT_THRESHOLD = 0.7
"""The score from which a rubric's verdict is pass, on [0, 1]."""


class DraftCritic(Protocol):
    """Makes critiques of drafts; failures are answers too.

    Attributes:
        in_turn: Whether it is to be asked for one at a time.
    """

    @property
    def in_turn(self) -> bool: ...

    def describe(self) -> dict[str, Json]: ...

    def prompt_length(self, draft: Draft) -> int | None: ...

    async def critique(self, draft: Draft) -> Answered[dict[str, Json]]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCritic:
    """Asks a teacher for a critique that follows a schema.

    Attributes:
        teacher: Who answers.
        schema: What the critique must look like.
        template: The prompt's template.
    """

    teacher: Teacher
    schema: CritiqueSchema
    template: Template

    @property
    def in_turn(self) -> bool:
        """As the teacher."""
        return self.teacher.in_turn

    def describe(self) -> dict[str, Json]:
        """What critiques depend on."""
        return {
            "teacher": self.teacher.describe(),
            "template_hash": digest_of(template_text(self.template)),
            "rubric_hash": None,
            "threshold": None,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """Characters of the prompt."""
        return len(critique_prompt(self.template, self.schema, draft).content)

    async def critique(self, draft: Draft) -> Answered[dict[str, Json]]:
        """The critique of a draft."""
        return await self.teacher.ask(
            Question(
                prompt_of=lambda output: critique_prompt(self.template, self.schema, draft, output=output),
                output=draft.output_text,
                read=self._read,
                schema=self.schema.on_the_wire,
            )
        )

    def _read(self, text: str) -> dict[str, Json]:
        try:
            critique: dict[str, Json] = parse_json(text)
        except ReplyError as error:
            # What is JSON, and yet no object, was read: it is no critique.
            if is_strict_json(text):
                raise SchemaFaultError(str(error), reply=text) from None
            raise
        self.schema.check(critique)
        return critique

    async def aclose(self) -> None:
        """Closes the teacher."""
        await self.teacher.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricCritic:
    """Grades drafts by a rubric: its criteria become the scores, and its threshold gives the verdict.

    Attributes:
        rubric: The rubric.
        grader: The teacher as a panel of one.
        threshold: Score from which the verdict is pass; below it is revise.
        about: What a manifest says of the teacher.
        asked: What is known of the teacher before it is asked.
        one_at_a_time: Whether the teacher is a plain function, which is asked for one draft at a time.
        clock: Seconds from any fixed point on.
    """

    rubric: Rubric
    grader: CriterionGrader
    threshold: float
    about: Mapping[str, Json]
    asked: Provenance
    one_at_a_time: bool
    clock: Clock = time.perf_counter

    @property
    def in_turn(self) -> bool:
        """Whether the teacher is a plain function."""
        return self.one_at_a_time

    def describe(self) -> dict[str, Json]:
        """What critiques depend on."""
        return {
            "teacher": dict(self.about),
            "template_hash": None,
            "rubric_hash": digest_of(self.rubric.to_dict()),
            "threshold": self.threshold,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """None: there is a prompt for each criterion, and each judge has its own."""
        return None

    async def critique(self, draft: Draft) -> Answered[dict[str, Json]]:
        """The critique of a draft; a failure where a criterion could not be judged."""
        started = self.clock()
        query = None if draft.prompt is None else text_of(draft.prompt)
        if draft.contract is not None:
            checked = f"What a program found when it checked the submission:\n{text_of(draft.contract)}"
            query = checked if query is None else f"{query}\n\n{checked}"
        try:
            report = await self.rubric.grade(draft.output_text, self.grader, query=query, item_id=draft.id)
        except JudgeError as error:
            return failed(error, self._provenance(None, self.clock() - started))
        provenance = self._provenance(report, self.clock() - started)
        failure = _failure(report)
        if failure is not None:
            return Answered(answer=None, text=None, provenance=provenance, failure=failure)
        return Answered(
            answer=critique_of(report, draft.id, self.threshold), text=None, provenance=provenance
        )

    async def aclose(self) -> None:
        """Closes the teacher."""
        await self.grader.aclose()

    def _provenance(self, report: EnsembleEvaluationReport | None, seconds: float) -> Provenance:
        votes = [vote for one in report.report for vote in one.votes] if report else []
        # A vote that failed before a reply came has no model that answered.
        names = [vote.model or (None if vote.status == "failed" else vote.judge_id) for vote in votes]
        models = [name for name in names if name is not None]
        asked = self.asked
        return Provenance(
            provider=asked.provider,
            asked_model=asked.asked_model,
            selected_model=models[0] if models else None,
            attempted_models=asked.attempted_models,
            latency_s=seconds,
            usage=report.token_usage.to_dict() if report and report.token_usage else None,
            cost=report.completion_cost if report else None,
            truncated=any(vote.truncated for vote in votes),
        )


def critic_of(
    teacher: Any,
    *,
    config: Mapping[str, Json] | None,
    schema: CritiqueSchema,
    template: str | Path | None,
    rubric: Rubric | str | Path | None,
    threshold: float | None,
) -> DraftCritic:
    """Who makes the critiques: a teacher by schema and template, or a rubric with the teacher as judge.

    Raises:
        ArgumentError: The arguments cannot work together.
        FileError: A file cannot be read.
    """
    if rubric is None:
        if threshold is not None:
            raise ArgumentError("threshold says when a rubric's verdict is pass; give a rubric with it")
        return SchemaCritic(
            teacher=teacher_of(teacher, config), schema=schema, template=critique_template(template)
        )
    if template is not None:
        raise ArgumentError("a rubric has its own prompts; leave out template, or the rubric")
    if not isinstance(rubric, Rubric | str | Path):
        raise ArgumentError(f"rubric is {shortened(rubric)}; give a Rubric, or its file")
    if not isinstance(rubric, Rubric):
        rubric = Rubric.from_file(rubric)
    return rubric_critic(rubric, teacher, threshold=threshold, config=config)


def rubric_critic(
    rubric: Rubric,
    teacher: Any,
    *,
    threshold: float | None = None,
    config: Mapping[str, Json] | None = None,
) -> RubricCritic:
    """The critic that grades by a rubric with this teacher as judge.

    Args:
        rubric: The rubric.
        teacher: As `judges=[...]` takes it; an object with `forward` or `aforward` answers as for `Critic`.
        threshold: Score from which the verdict is pass, on [0, 1]; None: 0.7.
        config: Settings and fallbacks of a model given by name.

    Raises:
        ArgumentError: The teacher is none, or the threshold is no score.
    """
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ArgumentError(f"threshold {threshold!r} is no score; give a number on [0, 1]")
    if isinstance(teacher, str):
        teacher = model_config(teacher, config)
    if isinstance(teacher, LLMClient):
        teacher = ModelJudge(judge_id=teacher.config.model, client=teacher)
    called = None if isinstance(teacher, Judge) else called_of(teacher)
    if called is not None and called.sync is not teacher and called.later is not teacher:
        judges: list[Any] = [Critic(evaluator=teacher, criterion=criterion) for criterion in rubric]
        about: Mapping[str, Json] = {"teacher": qualified_name(teacher)}
    else:
        judges, about = [teacher], {}
    grader = CriterionGrader(judges=judges, on_failure="exclude")
    seat = grader.seats[0]
    name = called.name if called else seat.judge_id
    provider = provider_name(seat.config) if seat.config else ("function" if called else "judge")
    return RubricCritic(
        rubric=rubric,
        grader=grader,
        threshold=float(least),
        about=about or seat.to_dict(),
        asked=Provenance(provider=provider, asked_model=name, attempted_models=(name,)),
        one_at_a_time=called is not None and called.later is None,
    )


def critique_of(report: EnsembleEvaluationReport, draft_id: str, threshold: float) -> dict[str, Json]:
    """A grading report in the shape of a critique.

    The criteria's values on [0, 1] are the scores; a criterion that takes something off the score is an
    issue, of high severity where it takes all it can, medium from a half on, and low below. What a rubric
    says nothing of is None.
    """
    assert report.score is not None
    short = [(one, _lost(one)) for one in report.report]
    issues = [
        {
            "type": one.name,
            "severity": _severity(lost),
            "message": one.final_reason or one.criterion.requirement,
        }
        for one, lost in short
        if lost > 0
    ]
    return {
        "id": draft_id,
        "verdict": "pass" if report.score >= threshold else "revise",
        "issues": issues,
        "scores": {one.name: one.score_value for one in report.report},
        "hallucination": None,
        "verification": None,
        "schema": None,
        "rewrite_instructions": [_instruction(one) for one, lost in short if lost > 0],
        "score": report.score,
    }


def _lost(report: EnsembleCriterionReport) -> float:
    if report.score_value is None:
        return 0.0
    return report.score_value if report.criterion.weight < 0 else 1.0 - report.score_value


def _severity(lost: float) -> str:
    return "high" if lost >= 1.0 else "medium" if lost >= 0.5 else "low"


def _instruction(report: EnsembleCriterionReport) -> str:
    verb = "Take out" if report.criterion.weight < 0 else "Make true"
    reason = f" ({report.final_reason})" if report.final_reason else ""
    return f"{verb}: {report.criterion.requirement}{reason}"


def _failure(report: EnsembleEvaluationReport) -> Failure | None:
    """Why a report gives no critique: it has no score, or a criterion in it could not be judged."""
    failed_votes = [vote for one in report.report for vote in one.votes if vote.status == "failed"]
    if report.score is not None and not failed_votes:
        return None
    code: ErrorCode = "PROVIDER_ERROR"
    if failed_votes and failed_votes[0].unreadable:
        code = "JSON_PARSE_ERROR"
    elif failed_votes and (failed_votes[0].error or "").startswith("ProviderTimeoutError"):
        code = "TIMEOUT"
    told = failed_votes[0].error if failed_votes else report.error
    return Failure(code=code, message=told or "the rubric gave no score")
