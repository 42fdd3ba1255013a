"""Replies of critics, and functions that give them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from autorubric.apps.tool import CritiqueResponse, critique_evaluate
from autorubric.judges import Prompt
from autorubric.support.objects import Json

ISSUE = {
    "criterion": "completeness",
    "severity": "medium",
    "location": "line 45-52",
    "description": "Nothing handles a network that times out",
    "suggestion": "Handle the timeout, and tell the user",
}
REPLY: dict[str, Json] = {
    "criteria_scores": [
        {"criterion": "correctness", "explanation": "It adds up.", "score": 9, "cannot_assess": False},
        {"criterion": "completeness", "explanation": "One case.", "score": 7, "cannot_assess": False},
    ],
    "issues": [ISSUE],
    "summary": "Right, and mostly complete.",
    "suggestions": ["Test the timeout", "Move the retries into a function"],
}
REQUEST: dict[str, Json] = {"content": "Some text.", "criteria": ["correctness", "completeness"]}

_ASKED = re.compile(r"^([^\n:]+): .*\nRating range: 0 to 10$", re.MULTILINE)


def scored(**scores: Json) -> dict[str, Json]:
    """A reply with these scores, and nothing else."""
    entries = [{"criterion": name, "score": score} for name, score in scores.items()]
    return {"criteria_scores": entries, "summary": "So it is."}


class Critical:
    """Gives each criterion of the prompt the same score, and remembers what it was asked."""

    def __init__(self, score: Json = 8, **more: Json) -> None:
        self.score, self.more = score, more
        self.prompts: list[str] = []

    async def aforward(self, prompt: Prompt) -> dict[str, Json]:
        self.prompts.append(prompt.content)
        names = _ASKED.findall(prompt.content)
        assert names
        return {**scored(**dict.fromkeys(names, self.score)), **self.more}


def failing(error: Exception) -> Callable[[Prompt], Json]:
    """A critic that raises."""

    def fail(prompt: Prompt) -> Json:
        raise error

    return fail


async def hang(prompt: Prompt) -> Json:
    """A critic that never answers."""
    await asyncio.Event().wait()


def ask(
    request: Any, given: Any = None, *, providers: Mapping[str, Any] | None = None, **more: Any
) -> CritiqueResponse:
    """The answer to a request; `given` is what the one provider answers, or who it is."""
    if providers is None:
        providers = {} if given is None else {"gpt4": (lambda _: given) if isinstance(given, dict) else given}
    work: Awaitable[CritiqueResponse] = critique_evaluate(request, providers=providers, **more)

    async def run() -> CritiqueResponse:
        return await work

    return asyncio.run(run())
