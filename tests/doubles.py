"""Doubles for the seams: a scripted transport, judges that wait or count, and short ways to build them."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from autorubric.criteria import Criterion, CriterionOption, Submission
from autorubric.errors import TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest, ModelJudge
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest
from autorubric.scoring import JudgeVote

Line: TypeAlias = "str | Mapping[str, Any] | ModelReply | Exception"
"""One scripted reply: text, an object sent as JSON, a whole reply, or an error to raise."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test in a loop of its own, for three minutes at most."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 180))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what others bring about, for two minutes or more."""
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("it did not come about")


def model_reply(content: str | Mapping[str, Any], **fields: Any) -> ModelReply:
    """A reply with ten prompt tokens, two completion tokens and a price of 0.01."""
    text = content if isinstance(content, str) else json.dumps(content)
    usage = TokenUsage(prompt_tokens=10, completion_tokens=2, total_tokens=12)
    return ModelReply(**{"text": text, "model": "double", "usage": usage, "cost": 0.01, **fields})


@dataclass
class ScriptedTransport:
    """A transport that answers from a script: a list read once, or a function of the request.

    Attributes:
        script: The replies in order, or what makes one of a request.
        requests: What was sent, in order.
        closed: How often it was closed.
    """

    script: Sequence[Line] | Callable[[ModelRequest], Line]
    requests: list[ModelRequest] = field(default_factory=list)
    closed: int = 0

    async def send(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        line = self.script(request) if callable(self.script) else self.script[len(self.requests) - 1]
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, ModelReply) else model_reply(line)

    async def aclose(self) -> None:
        self.closed += 1

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1].content for request in self.requests]


def model_judge(
    script: Sequence[Line] | Callable[[ModelRequest], Line], *, judge_id: str = "model", **config: Any
) -> tuple[ModelJudge, ScriptedTransport]:
    """A model judge over a scripted transport, without retries, and the transport."""
    transport = ScriptedTransport(script)
    waits = {"retry_min_wait": 0.0, "retry_max_wait": 0.0}
    settings = LLMConfig(**{"model": "openai/double", "max_retries": 0, **waits, **config})
    judge = ModelJudge(judge_id=judge_id, client=LLMClient(settings, transport=transport))
    return judge, transport


@dataclass
class TableJudge:
    """Answers from a mapping of criterion names, or of (name, sample), to answers or errors.

    Attributes:
        answers: What to answer; a `JudgeReply` as it is, an exception raised.
        judge_id: Its name.
        asked: The requests, in order.
    """

    answers: Mapping[Any, Any]
    judge_id: str = "table"
    asked: list[JudgeRequest] = field(default_factory=list)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request)
        name = request.criterion.name
        key = (name, request.sample) if (name, request.sample) in self.answers else name
        found = self.answers[key]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, JudgeReply) else JudgeReply(answer=found)


@dataclass
class BarrierJudge:
    """Answers only when so many calls, of all judges that share the barrier, are in flight."""

    barrier: asyncio.Barrier
    judge_id: str

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        await self.barrier.wait()
        return JudgeReply(answer=str(request.criterion.answers()[-1].code))


@dataclass
class HangingJudge:
    """Never answers; knows how many of its calls are running.

    Attributes:
        judge_id: Its name.
        running: Calls in flight.
        reached: Set once a call is in flight.
    """

    judge_id: str = "hanging"
    running: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.running += 1
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        raise AssertionError("a hanging judge answered")


def binary(name: str | None = "claim", weight: float = 10.0, **fields: Any) -> Criterion:
    """A binary criterion."""
    text = {"requirement": f"Does the text have the {name}?"}
    return Criterion(**{"name": name, "weight": weight, **text, **fields})


def choice(
    name: str | None = "scale",
    values: Mapping[str, float] | None = None,
    *,
    na: str | None = None,
    **fields: Any,
) -> Criterion:
    """A criterion with options; by default three on an ordered scale."""
    named = values if values is not None else {"poor": 0.0, "fair": 0.5, "good": 1.0}
    options = [CriterionOption(label=label, value=value) for label, value in named.items()]
    if na is not None:
        options.append(CriterionOption(label=na, value=0.0, na=True))
    given = {"name": name, "requirement": "How good is the text?", "options": tuple(options)}
    return Criterion(**{**given, **fields})


def request_for(criterion: Any, text: str | None = "A short text.", **fields: Any) -> JudgeRequest:
    """A request about a text."""
    return JudgeRequest(criterion=criterion, submission=Submission.parse(text), **fields)


def vote(judge_id: str, answer: Any, *, sample: int = 0, weight: float = 1.0) -> JudgeVote:
    """An answered vote."""
    return JudgeVote(judge_id=judge_id, sample=sample, status="answered", answer=answer, weight=weight)


def lost_vote(judge_id: str, *, unreadable: bool, sample: int = 0, weight: float = 1.0) -> JudgeVote:
    """A failed vote, with or without a reply that came."""
    return JudgeVote(
        judge_id=judge_id, sample=sample, status="failed", unreadable=unreadable, weight=weight, error="lost"
    )


def open_vote(judge_id: str, answer: Any = None, *, na: bool = False, sample: int = 0) -> JudgeVote:
    """An abstention, or a vote for an NA option."""
    return JudgeVote(judge_id=judge_id, sample=sample, status="abstained", answer=answer, na=na)
