"""Drafts graded by a rubric: its criteria become the scores, and its threshold gives the verdict."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from autorubric.criteria import qualified_name
from autorubric.critic import Called, Critic, called_of
from autorubric.critique._drafts import Draft, text_of
from autorubric.critique._heard import Heard
from autorubric.critique._provenance import Answered, ErrorCode, Failure, Provenance, failed
from autorubric.critique._records import UNSAID, graded_score, scores_of
from autorubric.critique._schema import digest_of
from autorubric.critique._teacher import Clock, model_config, parallel_of, provider_name, timeout_of
from autorubric.errors import ArgumentError, JudgeError
from autorubric.graders import CriterionGrader
from autorubric.judges import Judge, ModelJudge
from autorubric.llm import LLMClient, LLMConfig
from autorubric.reporting import GradingTask
from autorubric.rubric import Rubric
from autorubric.types import EnsembleCriterionReport, EnsembleEvaluationReport, JudgeVote
from autorubric.values import Json, Submission

DEFAULT_THRESHOLD: Final = 0.7
"""The score from which a rubric's verdict is pass, on [0, 1]."""
_OUT_OF_TIME: Final = re.compile(
    "ProviderTimeoutError:|JudgeError: (judge|evaluator) .* raised TimeoutError:"
)
"""How the error of a vote begins for which no answer came in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricCritic:
    """Grades drafts by a rubric: its criteria become the scores, and its threshold gives the verdict.

    Attributes:
        rubric: The rubric.
        grader: The teacher as a panel of one.
        threshold: Score from which the verdict is pass; below it is revise.
        about: The teacher's entry in the manifest.
        asked: Provenance known before the teacher is asked.
        parallel: Most drafts to have under way at a time; None if neither teacher nor settings say.
        timeout: Seconds that the critique of one draft may take; None for as long as it takes.
        clock: Seconds from any fixed point on.
    """

    rubric: Rubric
    grader: CriterionGrader
    threshold: float
    about: Mapping[str, Json]
    asked: Provenance
    parallel: int | None
    timeout: float | None = None
    clock: Clock = time.perf_counter

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The model that votes, where one does."""
        return self.grader.models

    def describe(self) -> dict[str, Json]:
        """Return what critiques depend on."""
        return {
            "teacher": dict(self.about),
            "template_hash": None,
            "rubric_hash": digest_of(self.rubric.to_dict()),
            "threshold": self.threshold,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """None: there is a prompt for each criterion, and each judge has its own."""
        return None

    def level(self, critique: Mapping[str, Json]) -> float | None:
        """Return the rubric's score; None in a critique by anything else."""
        score = graded_score(critique)
        return score if set(scores_of(critique)) <= {one.name for one in self.rubric} else None

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]:
        """Return the critique of a draft; a failure where a criterion could not be judged.

        Args:
            draft: The draft.
            begun: Votes that an earlier pass got of it, which are not asked for again; every other one that
                is answered is added, so that it is not lost where a budget ends this pass.

        Raises:
            BudgetError: If there is no room to ask about a criterion; what was in flight has been answered.
        """
        started = self.clock()
        heard = Heard(begun)
        task = self._task(draft)
        try:
            async with asyncio.timeout(self.timeout):
                votes = await self.grader.judge(task, stored=heard.stored, listener=heard)
        except TimeoutError:
            error = TimeoutError(f"no critique within {self.timeout:g} seconds")
            return failed(error, replace(heard.provenance(self.asked), latency_s=self.clock() - started))
        except JudgeError as error:
            return failed(error, replace(heard.provenance(self.asked), latency_s=self.clock() - started))
        report = self.grader.aggregate(task, votes)
        lost = next((vote for one in report.report for vote in one.votes if vote.status == "failed"), None)
        provenance = replace(
            heard.provenance(self.asked, lost),
            latency_s=self.clock() - started,
            usage=report.token_usage.to_dict() if report.token_usage else None,
            cost=report.completion_cost,
        )
        if report.score is None or lost is not None:
            text = None if lost is None else heard.reply_of(lost)
            failure = _failure(lost, report)
            return Answered(answer=None, text=text, provenance=provenance, failure=failure)
        return Answered(
            answer=critique_of(report, draft.id, self.threshold), text=None, provenance=provenance
        )

    def _task(self, draft: Draft) -> GradingTask:
        query = None if draft.prompt is None else text_of(draft.prompt)
        if draft.contract is not None:
            checked = f"What a program found when it checked the submission:\n{text_of(draft.contract)}"
            query = checked if query is None else f"{query}\n\n{checked}"
        submission = Submission.parse(draft.output_text)
        return GradingTask(submission=submission, rubric=self.rubric, query=query, item_id=draft.id)

    async def aclose(self) -> None:
        """Close the teacher."""
        await self.grader.aclose()


def rubric_critic(
    rubric: Rubric, teacher: Any, *, threshold: float | None = None, config: Mapping[str, Json] | None = None
) -> RubricCritic:
    """Return the critic that grades by a rubric with this teacher as judge.

    Args:
        rubric: The rubric.
        teacher: As `judges=[...]` takes it; an object with `forward` or `aforward` answers as for `Critic`.
        threshold: Score from which the verdict is pass, on [0, 1]; None: 0.7.
        config: Settings and fallbacks of a model given by name; the time-out of an async function.

    Raises:
        ArgumentError: If the teacher is none, the threshold is no score, or the settings are none.
    """
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ArgumentError(f"threshold {threshold!r} is not a score; give a number on [0, 1]")
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
    is_later = called is not None and called.later is not None
    provider = provider_name(seat.config) if seat.config else ("function" if called else "judge")
    return RubricCritic(
        rubric=rubric,
        grader=grader,
        threshold=float(least),
        about=about or seat.to_dict(),
        asked=Provenance(provider=provider, asked_model=name, attempted_models=(name,)),
        parallel=_parallel(called, grader.models, config),
        timeout=timeout_of(config) if is_later else None,
    )


def _parallel(
    called: Called | None, models: Sequence[LLMConfig], config: Mapping[str, Json] | None
) -> int | None:
    if called is not None:
        return parallel_of(called, config)
    return min((one.max_parallel_requests for one in models if one.max_parallel_requests), default=None)


def critique_of(report: EnsembleEvaluationReport, draft_id: str, threshold: float) -> dict[str, Json]:
    """Return a grading report in the shape of a critique.

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
        **dict.fromkeys(UNSAID),
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


def _failure(lost: JudgeVote | None, report: EnsembleEvaluationReport) -> Failure:
    """Return why a report gives no critique: a criterion in it could not be judged, or it has no score."""
    if lost is None:
        return Failure(code="PROVIDER_ERROR", message=report.error or "the rubric gave no score")
    told = lost.error or "a criterion could not be judged"
    code: ErrorCode = "PROVIDER_ERROR"
    if lost.unreadable:
        code = "JSON_PARSE_ERROR"
    elif _OUT_OF_TIME.match(told):
        code = "TIMEOUT"
    return Failure(code=code, message=told)
