"""Ask one model one question: answer from the cache, or send it until a reply can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from autorubric.errors import ReplyError
from autorubric.llm._exchange import Exchange, Question, Tally, asked_again, is_cut_off
from autorubric.llm._route import Route
from autorubric.llm._transport import Message, ModelReply

T = TypeVar("T")

_MOST_ASKED: Final = 3
"""Maximum number of requests for one question: the first one, and two more if replies cannot be read."""


async def ask_route(route: Route, question: Question[T], tally: Tally) -> Exchange[T]:
    """Return the exchange for a question to this model.

    Args:
        route: The route to the model.
        question: The question to send.
        tally: The counter to which every reply is added.

    Raises:
        ReplyError: If no reply could be read.
        ProviderError: If the model sent no reply.
    """
    request = route.request(question)
    key, cache = "", route.cache
    if cache is not None:
        key = route.key(request)
        kept = _kept(cache.get(key), question, tally)
        if kept is not None:
            return kept
    conversation, asked = request, 0
    while True:
        reply = await route.send(conversation)
        tally.add(reply)
        asked += 1
        try:
            answer = _answer(question, reply)
        except ReplyError as error:
            error.reply = error.reply if error.reply is not None else reply.text
            if asked == _MOST_ASKED:
                tally.fill(error, question)
                raise
            messages = asked_again(conversation.messages, reply, str(error))
            conversation = conversation._replace(messages=messages)
            if conversation.schema is not None and is_cut_off(reply):
                route.note_cut_off(reply)
                conversation = conversation._replace(schema=replace(conversation.schema, max_chars=None))
        else:
            if cache is not None and reply.refusal is None:
                cache.put(key, reply)
            return _exchange(answer, reply, tally, route.as_sent(request).messages)


def _answer(question: Question[T], reply: ModelReply) -> T | None:
    """Return the answer in a reply; None if the reply is a refusal."""
    if reply.refusal is not None:
        return None
    if reply.finish_reason == "length" and question.schema is not None and "{" not in reply.text:
        # A bare `1` may be the beginning of `10`.
        raise ReplyError("there is no JSON object in it")
    return question.decode(reply.text)


def _kept(reply: ModelReply | None, question: Question[T], tally: Tally) -> Exchange[T] | None:
    """Return the exchange for a cached reply; None if there is no such reply or it can no longer be read."""
    if reply is None:
        return None
    try:
        answer = question.decode(reply.text)
    except ReplyError:
        return None
    return Exchange(
        answer=answer,
        refusal=None,
        model=reply.model,
        usage=reply.usage,
        cost=0.0,
        reasoning=reply.reasoning,
        replies=(reply.text,),
        messages=question.messages,
        cached=True,
        dropped_params=reply.dropped_params,
        asked=0,
        request_id=reply.request_id,
        attempted=tally.attempted,
        tokens=reply.tokens,
    )


def _exchange(answer: T | None, reply: ModelReply, tally: Tally, sent: tuple[Message, ...]) -> Exchange[T]:
    return Exchange(
        answer=answer,
        refusal=reply.refusal,
        model=reply.model,
        usage=tally.usage,
        cost=tally.cost,
        reasoning=reply.reasoning,
        replies=tuple(tally.replies),
        messages=sent,
        cached=False,
        dropped_params=reply.dropped_params,
        asked=len(tally.replies),
        request_id=reply.request_id,
        attempted=tally.attempted,
        tokens=reply.tokens,
    )
