"""The one interface of models, functions and objects that answer a question."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

from autorubric.criteria import Submission
from autorubric.errors import ContextLengthError, JudgeError
from autorubric.judges.answering import ModelSource, Question, is_judge, source_of
from autorubric.llm import LLMClient, LLMConfig
from autorubric.llm.transport import Message
from autorubric.support.concurrency import call_user_code
from tests.doubles import ScriptedTransport


def question(text: str = "2 + 2?") -> Question[str]:
    return Question(
        prompt_of=lambda shown: Message("user", shown[0].text or ""),
        read=str,
        submissions=(Submission(text=text),),
    )


class Both:
    """An object whose two versions tell which of them was called."""

    def forward(self, prompt: Message) -> str:
        return f"sync {prompt.content}"

    async def aforward(self, prompt: Message) -> str:
        return f"async {prompt.content}"


async def returned_later(prompt: Message) -> str:
    return f"async {prompt.content}"


@pytest.mark.parametrize(
    ("value", "name", "answer", "answer_now"),
    [
        (lambda prompt: f"sync {prompt.content}", "<lambda>", "sync 2 + 2?", "sync 2 + 2?"),
        (returned_later, "returned_later", "async 2 + 2?", "async 2 + 2?"),
        (lambda prompt: returned_later(prompt), "<lambda>", "async 2 + 2?", "async 2 + 2?"),
        (Both(), "Both", "async 2 + 2?", "sync 2 + 2?"),
    ],
)
def test_functions_and_objects(value: Any, name: str, answer: str, answer_now: str) -> None:
    """Each is recognised, receives the prompt as it is, and calls no model."""
    source = source_of(value)
    assert source is not None
    assert (source.name, source.models) == (name, ())
    assert source.ask_now(question()) == (answer_now, None, None)

    async def ask() -> Any:
        return await source.ask(question())

    assert asyncio.run(ask()) == (answer, None, None)


def test_a_model_receives_a_message_and_keeps_its_exchange() -> None:
    """A text that is too long for the model is shortened as its config allows."""
    transport = ScriptedTransport([ContextLengthError("too long"), "4"])
    source = ModelSource(LLMClient(LLMConfig(model="m", truncate="end"), transport=transport))
    answer, exchange, shown = source.ask_now(question("x" * 900))
    assert (answer, shown) == ("4", "characters 1-600 of 900")
    assert exchange is not None
    assert exchange.messages == transport.requests[1].messages
    assert [len(request.messages[0].content) for request in transport.requests] == [900, 604]


@pytest.mark.parametrize("value", [None, 3, Both, object()])
def test_other_values_are_no_source(value: Any) -> None:
    """A class is not an object, and a value that cannot be called answers nothing."""
    assert source_of(value) is None


def test_a_mock_is_not_a_judge() -> None:
    """It has every attribute, so it is used as the function that it is."""
    assert not is_judge(MagicMock())


@pytest.mark.parametrize(("thread", "is_main"), [("pool", False), ("daemon", False), (None, True)])
def test_the_thread_that_calls_a_function(thread: Any, is_main: bool) -> None:
    """A function that may block runs in a thread, and its exceptions are raised as they are."""
    called_in: list[threading.Thread] = []

    def work(fails: bool) -> str:
        called_in.append(threading.current_thread())
        if fails:
            raise KeyError("k")
        return "done"

    assert asyncio.run(call_user_code(work, False, thread=thread)) == "done"
    with pytest.raises(KeyError, match="k"):
        asyncio.run(call_user_code(work, True, thread=thread))
    assert {one is threading.main_thread() for one in called_in} == {is_main}


@pytest.mark.parametrize(
    ("thread", "error"),
    [("pool", StopIteration("s")), ("daemon", StopIteration("s")), ("daemon", SystemExit(3))],
)
def test_an_exception_that_cannot_leave_a_thread(thread: Any, error: BaseException) -> None:
    """It becomes the error that the caller makes of it, so that the wait for the function ends."""

    def work() -> None:
        raise error

    def named(reason: BaseException) -> JudgeError:
        return JudgeError(f"f raised {type(reason).__name__}")

    with pytest.raises(JudgeError, match=f"f raised {type(error).__name__}"):
        asyncio.run(asyncio.wait_for(call_user_code(work, thread=thread, error_of=named), 60))
