"""Base class of data read from files, and removal of secrets from everything that is shown."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from autorubric.llm.transport import ModelReply
from autorubric.support.objects import Json
from autorubric.support.reading_errors import nearest_key

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
# Names such as `max_tokens` and `eos_token` refer to tokens of text, not to secrets.
_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:(?:access|account|api|auth|bearer|private|refresh|secret|subscription)_?(?:keys?|tokens?)"
    r"|(?<!bos_)(?<!eos_)(?<!pad_)(?<!stop_)(?<!special_)(?<!unk_)token|keys?|secrets?|credentials?|creds"
    r"|pass(?:phrase|wd|word)s?|auth|authentication|authorization|bearer|cookies?|jwt|oauth)(?=_|$)"
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{8}")
_SHORTEST: Final = 4
_SHORTEST_IN_ENVIRONMENT: Final = 8
_SHORTEST_IN_REPLIES: Final = 8
_NO_WORD_LENGTH: Final = 20
_LONGEST_SEARCHED: Final = 1 << 16
_ENVIRONMENT_SECONDS: Final = 1.0
"""Seconds for which the secrets in the environment are cached; reading them for each reply is slow."""
_MASK: Final = "***"
_TEXTS_OF_REPLY: Final = ("text", "model", "reasoning", "refusal", "request_id")
_texts_of_reply = attrgetter(*_TEXTS_OF_REPLY)
_LABELLED: Final = re.compile(
    r"((?:authorization|(?:api|subscription)[-_ ]?key(?: provided)?"
    r"|(?:access|auth|session)[-_]?token|[?&]key)"
    r"(?:[\"']?\s{0,3}[:=]|[\"'],)\s{0,3}(?:b(?=[\"']))?[\"']?)"
    r"(?:(?:apikey|basic|bearer|digest|token)\s{1,3})?[^\s\"',;&})\]]{4,}",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(\bbearer\s{1,3})(?![a-z]{1,19}(?![\w.~+/=-]))[\w.~+/=-]{4,}", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether the name indicates a secret, such as `x-api-key` or `AWS_SESSION_TOKEN`."""
    return _SECRET_NAME.search(_words(name)) is not None


def holds_secret(name: str, value: Json) -> bool:
    """Return whether a parameter is a secret or contains one."""
    if is_secret_name(name):
        # Numbers about tokens of models, such as `stop_token_ids` or `token_budget`, are not secrets.
        return "token_" not in _words(name) or not _is_numbers(value)
    if isinstance(value, Mapping):
        return any(holds_secret(str(inner), part) for inner, part in value.items())
    return isinstance(value, list | tuple) and any(holds_secret("", part) for part in value)


@lru_cache(maxsize=4096)
def _words(name: str) -> str:
    return _NO_WORD.sub("_", _WORD_START.sub("_", name)).lower()


def _is_numbers(value: Json) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_numbers(part) for part in value)
    return value is None or isinstance(value, bool | int | float)


def texts_in(value: Json) -> Iterator[str]:
    """Yield every string inside a JSON value, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(part)


def digest_of(value: Json) -> str:
    """Return a digest that replaces a secret, so that changes are detected: `sha256:1a2b3c4d`."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def is_digest(value: Json) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def environment_secrets() -> dict[str, str]:
    """Return the values of the environment variables whose names indicate a secret, by name."""
    values = {name: value.strip() for name, value in os.environ.items() if is_secret_name(name)}
    return {name: value for name, value in values.items() if len(value) >= _SHORTEST_IN_ENVIRONMENT}


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret masked, including forms escaped for JSON or a URL."""
    return _without(text, _forms(secrets))


def _forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the forms in which secrets may appear in a text, longest first."""
    # Secrets of fewer than four characters are too common to mask.
    known = {secret for secret in secrets if len(secret) >= _SHORTEST}
    escaped = {form for one in known for form in (json.dumps(one)[1:-1], quote(one, "", errors="replace"))}
    return tuple(sorted(known | escaped, key=len, reverse=True))


def _without(text: str, forms: Sequence[str]) -> str:
    for form in forms:
        text = text.replace(form, _MASK)
    return text


class Mask:
    """Removes a config's secrets, and those in the environment, from texts; the clock is in seconds."""

    def __init__(self, given: Iterable[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._given = frozenset(given)
        self._clock = clock
        self._read_at: float | None = None
        self._in_replies: tuple[str, ...] = ()

    def error(self, text: str) -> str:
        """Return a provider's or client's message without secrets, including values labelled as secrets."""
        # The whole text is masked before it is cut, because a cut could leave parts of a secret.
        text = redact(text, {*self._given, *environment_secrets().values()})[:_LONGEST_SEARCHED]
        return _BEARER.sub(rf"\1{_MASK}", _LABELLED.sub(rf"\1{_MASK}", text))

    def reply(self, reply: ModelReply) -> ModelReply:
        """Return a reply without secrets, except those that may be ordinary words (`X-Team: blue`)."""
        forms = self._forms_in_replies()
        texts = [one for one in _texts_of_reply(reply) if one]
        if not [form for form in forms for text in texts if form in text]:
            return reply
        cleared: dict[str, Any] = {
            name: _without(text, forms) for name in _TEXTS_OF_REPLY if (text := getattr(reply, name))
        }
        return reply._replace(tokens=(), **cleared)

    def _forms_in_replies(self) -> tuple[str, ...]:
        now = self._clock()
        if self._read_at is None or now - self._read_at >= _ENVIRONMENT_SECONDS:
            self._read_at = now
            secrets = {*self._given, *environment_secrets().values()}
            self._in_replies = _forms(one for one in secrets if is_no_word(one))
        return self._in_replies


def is_no_word(secret: str) -> bool:
    """Return whether a secret cannot be an ordinary word, as dummy keys of local servers are."""
    has_both = any(one.isdigit() for one in secret) and any(one.isalpha() for one in secret)
    return len(secret) >= _NO_WORD_LENGTH or (len(secret) >= _SHORTEST_IN_REPLIES and has_both)


class Spec(BaseModel):
    """Base class of frozen data whose errors hide their input and suggest the closest valid parameter."""

    # Built at first use, because a run whose judges are functions needs no model config.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False, defer_build=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            spec = handler(given)
            spec.check_together()
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            lines = [_explained(one, cls.model_fields) for one in details]
        except ValueError as error:
            lines = [_line(str(error), ())]
        else:
            return spec
        raise ValidationError.from_exception_data(cls.__name__, lines, hide_input=True)

    def check_together(self) -> None:
        """Check parameters that depend on each other."""


def _explained(detail: ErrorDetails, known: Iterable[str]) -> InitErrorDetails:
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
        key = str(detail["loc"][0])
        message = f"unknown parameter {key!r}; {nearest_key(key, sorted(known))}"
    return _line(message, detail["loc"])


def _line(message: str, location: tuple[int | str, ...]) -> InitErrorDetails:
    # A message may contain braces and is not a template, so it is passed as a value.
    fault = PydanticCustomError("spec_fault", "{message}", {"message": message})
    return InitErrorDetails(type=fault, loc=location, input=None)
