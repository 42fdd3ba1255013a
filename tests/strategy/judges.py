"""Judges for the tests of this package: functions that answer by sample, and counters of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autorubric.errors import JudgeError
from autorubric.judges import JudgeReply, JudgeRequest


@dataclass
class SampleJudge:
    """Answers each sample from a list; an exception in it is raised.

    Attributes:
        answers: What the samples say, by index; the list begins anew behind its end.
        judge_id: Its name.
        asked: The requests.
    """

    answers: Sequence[Any]
    judge_id: str = "samples"
    asked: list[JudgeRequest] = field(default_factory=list)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request)
        answer = self.answers[request.sample % len(self.answers)]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, JudgeReply) else JudgeReply(answer=answer)


@dataclass
class TextJudge:
    """Answers what a function makes of the text."""

    answer: Callable[[str], Any]
    judge_id: str = "text"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(answer=self.answer(request.submission.text or ""))


LOST = JudgeError("nobody there")
