"""What must never be shown: which names carry secrets, and how texts are cleared of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from autorubric.values import Json

_SECRET_NAME: Final = re.compile(
    r"(?:^|[_\-.])(?:key|access_?key(?:_id)?|api_?key|apikey|auth|authorization|bearer|cookie|credentials?|"
    r"passphrase|passwd|password|secret|token)$",
    re.IGNORECASE,
)
_SHORTEST: Final = 4
_MASK: Final = "***"


def is_secret_name(name: str) -> bool:
    """Whether a parameter or header of this name holds a secret, as `x-api-key` or `aws_session_token`."""
    return _SECRET_NAME.search(name) is not None


def holds_secret(name: str, value: Json) -> bool:
    """Whether a parameter is a secret, or has one somewhere inside it."""
    if is_secret_name(name):
        return True
    if isinstance(value, Mapping):
        return any(holds_secret(str(inner), part) for inner, part in value.items())
    return isinstance(value, list | tuple) and any(holds_secret("", part) for part in value)


def texts_in(value: Json) -> Iterator[str]:
    """Every string inside a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret in it masked; those under four characters are too common to mask."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _MASK)
    return text
