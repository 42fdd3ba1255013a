"""Judges, and a transport, that Ray's workers import."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autorubric import CriterionGrader, JudgeReply, LLMConfig
from autorubric.grading import GradingTask
from autorubric.judges import JudgeRequest
from autorubric.llm.openai import OpenAITransport
from autorubric.llm.rate_limits import RequestLimits, limiter_for
from autorubric.scoring import EnsembleEvaluationReport, Votes


@dataclass(frozen=True, kw_only=True)
class WatchedJudge:
    """Says MET where the text has the criterion's name in it, and notes who was asked what in a file.

    Attributes:
        notes: The file: process, item and criterion a line.
        judge_id: The judge's name.
        deadly: The item on which its process is killed.
        deaths: How often it is, at most.
        seconds: How long an answer takes.
        at_a_time: How many questions it answers at a time, over all processes; None for no limit.
    """

    notes: Path
    judge_id: str = "watched"
    deadly: str = ""
    deaths: int = 1
    seconds: float = 0.0
    at_a_time: int | None = None

    def describe(self) -> dict[str, str]:
        return {"judge": "watched"}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        async with limiter_for("watched", RequestLimits(parallel=self.at_a_time)).slot():
            return await self._answer(request)

    async def _answer(self, request: JudgeRequest) -> JudgeReply:
        name = request.criterion.name or ""
        with self.notes.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {request.item_id} {name}\n")
        if request.item_id == self.deadly and self._may_die():
            # So that what came before it has been told.
            await asyncio.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(self.seconds)
        return JudgeReply(answer="MET" if name in (request.submission.text or "") else "UNMET")

    def _may_die(self) -> bool:
        lives = self.notes.with_suffix(".deaths")
        died = len(lives.read_text(encoding="utf-8")) if lives.exists() else 0
        if died >= self.deaths:
            return False
        lives.write_text("x" * (died + 1), encoding="utf-8")
        return True

    def asked(self) -> list[tuple[str, str, str]]:
        """Process, item and criterion of everything that was asked."""
        lines = self.notes.read_text(encoding="utf-8").splitlines()
        return [(pid, item, name) for pid, item, name in (line.split(" ") for line in lines)]


class BrokenGrader(CriterionGrader):
    """Has a bug: it raises on item `i20`, once that item has its votes."""

    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        if task.item_id == "i20":
            raise ZeroDivisionError("a bug")
        return super().aggregate(task, votes)


class GivenTransport(OpenAITransport):
    """The direct transport to a server, as one that a client is given: the client's config may have a price.

    Args:
        config: Where the server is.
    """

    def __init__(self, config: LLMConfig) -> None:
        super().__init__(config)
        self._spec = config

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._spec,)


def tells_of_usage_reports(request: JudgeRequest) -> JudgeReply:
    """Says, where it is asked, what the process is told of Ray's reports of its use; `0` is none."""
    return JudgeReply(answer="MET", reason=f"usage reports: {os.environ.get('RAY_USAGE_STATS_ENABLED')}")
