"""A provider as a judge of several criteria at once, which keeps what it found beside the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from autorubric.critic import Critic
from autorubric.errors import JudgeError, ReplyError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.tool._request import CritiqueRequest
from autorubric.tool._sheet import CritiqueSheet, Findings
from autorubric.tool._texts import TEMPLATE


@dataclass(kw_only=True)
class CritiqueJudge:
    """Asks one evaluator about all criteria of a request at once.

    Attributes:
        judge_id: The provider's name.
        evaluator: Who answers; whatever a `Critic` takes.
        request: What is asked.
        content_note: What the critic is told of the content.
        findings: What the reply says; None before it came.
        reply: What it took; likewise.
        failure: Why there is none.
    """

    judge_id: str
    evaluator: Any
    request: CritiqueRequest
    content_note: str
    findings: Findings | None = field(default=None, init=False)
    reply: JudgeReply | None = field(default=None, init=False)
    failure: JudgeError | None = field(default=None, init=False)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """The answer to one criterion."""
        return (await self.ask_many([request]))[0]

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> list[JudgeReply]:
        """The answers to several criteria, from one request to the evaluator.

        Raises:
            JudgeError: The evaluator could not answer, or refused.
        """
        sheet = CritiqueSheet(
            name="critique",
            parts=tuple(one.criterion for one in requests),
            mode=self.request.evaluation_mode,
            content_note=self.content_note,
            max_issues=self.request.max_issues,
        )
        try:
            reply = await self._reply(sheet, requests[0])
            self.reply, self.findings = reply, sheet.findings(reply.answer.evaluation)
        except JudgeError as error:
            self.failure = error
            raise
        answers = [self.findings.answers[one.criterion.name or ""] for one in requests]
        replies = [JudgeReply(answer=answer, reason=answer.reason, model=reply.model) for answer in answers]
        replies[0] = JudgeReply(
            answer=answers[0],
            reason=answers[0].reason,
            model=reply.model,
            usage=reply.usage,
            cost=reply.cost,
            truncated=reply.truncated,
        )
        return replies

    async def _reply(self, sheet: CritiqueSheet, first: JudgeRequest) -> JudgeReply:
        told = "\n\n".join(text for text in (first.guidelines, self.request.context) if text)
        async with Critic(self.evaluator, sheet, TEMPLATE) as critic:
            reply = await critic.ask(
                JudgeRequest(
                    criterion=sheet,
                    submission=first.submission,
                    guidelines=told or None,
                    shuffle=False,
                )
            )
        if reply.answer.cannot_assess:
            error = ReplyError(reply.answer.reason or "the evaluator gave no evaluation")
            error.usage, error.cost = reply.usage, reply.cost
            raise error
        return reply
