"""Strict parsing of JSON, in which repeated keys and NaN are errors, and fast writing of single lines."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from autorubric.support.names import fold_name
from autorubric.support.objects import Json
from autorubric.support.reading_errors import FilePath, SyntaxFault

EXPLANATIONS: Final = frozenset(
    {"reason", "reasoning", "explanation", "rationale", "justification", "evidence", "summary", "thoughts"}
)
_NAMES: Final = ("criterion", "criterion_name", "id", "jsonrpc", "model", "name", "role", "type")
_BESIDE: Final = EXPLANATIONS.union(_NAMES, ("analysis", "thinking"))
_MOST_WRAPPERS: Final = 8
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]|[^\s{}\[\],:"]+')


class _RepeatedKeyError(ValueError):
    """A mapping repeats a key; the parser does not report where."""


class _NumberError(ValueError):
    """A token that is not a JSON number, such as `NaN`."""


class JsonPlace(NamedTuple):
    """The path and line at which a key or a list element begins."""

    path: FilePath
    line: int


def parse_json(text: str, first_line: int = 1) -> Json:
    """Return the data of a JSON text; errors, repeated keys, NaN and infinities raise `SyntaxFault`."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise SyntaxFault(f"invalid JSON: {error.msg}", first_line + error.lineno - 1) from None
    except _RepeatedKeyError:
        raise _repeated_key(text, first_line) from None
    except _NumberError as error:
        # Invalid text may directly follow the number.
        lines = (line for token, line in _tokens(text, first_line) if token.startswith(str(error).split()[0]))
        raise SyntaxFault(str(error), next(lines, None)) from None
    # Python rejects integers with thousands of digits.
    except ValueError as error:
        raise SyntaxFault(f"invalid JSON: {error}") from None


def unwrapped(value: Json) -> Iterator[dict[str, Json]]:
    """Yield an object and those it wraps as its only value, or JSON text, apart from names and reasons."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            with suppress(SyntaxFault, RecursionError):
                # Lone surrogates cannot be written to a file.
                text = json.dumps(parse_json(value), ensure_ascii=False)
                value = json.loads(text.encode("utf-8", "replace"))
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, dict):
            return
        yield value
        named = [(v, EXPLANATIONS if type(v) in (dict, list) else _BESIDE, k) for k, v in value.items()]
        inner = [held for held, beside, key in named if fold_name(str(key)) not in beside]
        value = inner[0] if len(inner) == 1 else None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dict; a repeated key raises `ValueError`."""
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _RepeatedKeyError(f"the key {repeated[:80]!r} appears twice")
    return found


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise _NumberError(f"{word[:20]} is not a JSON number; use a finite number or null")
    return number


# Shared decoders: `json.loads` with hooks would create a new one each time.
_DECODER, LENIENT_DECODER = (
    json.JSONDecoder(
        object_pairs_hook=unique_keys, parse_constant=_finite, parse_float=_finite, strict=strict
    )
    for strict in (True, False)
)


def _repeated_key(text: str, first_line: int) -> SyntaxFault:
    seen: dict[FilePath, int] = {}
    for place in json_places(text, first_line):
        if place.path in seen:
            return SyntaxFault(
                f"the key {place.path[-1]!r} is repeated; it first occurs on line {seen[place.path]}; "
                "remove one",
                place.line,
                place.path[:-1],
            )
        seen[place.path] = place.line
    raise AssertionError("no repeated key was found")  # pragma: no cover


def json_places(text: str, first_line: int = 1) -> Iterator[JsonPlace]:
    """Yield every key and list element of a valid JSON text in order, including repeated keys."""
    path: list[str | int | None] = []
    for token, line in _tokens(text, first_line):
        if token in "}]":
            path.pop()
        elif token == ",":
            top = path[-1]
            path[-1] = top + 1 if isinstance(top, int) else None
        else:
            if path and path[-1] is None:
                path[-1] = json.loads(token)
                yield JsonPlace(tuple(step for step in path if step is not None), line)
                continue
            if not path or isinstance(path[-1], int):
                yield JsonPlace(tuple(step for step in path if step is not None), line)
            if token in "{[":
                path.append(None if token == "{" else 0)


def _tokens(text: str, first_line: int) -> Iterable[tuple[str, int]]:
    line, counted = first_line, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield match[0], line


_ENCODE: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def compact_json(content: Any) -> bytes:
    """Return data as UTF-8 encoded JSON on one line, without spaces."""
    try:
        return to_json(content)
    except ValueError:
        # Unpaired surrogates have no UTF-8 encoding and are escaped.
        return _ENCODE(content).encode("ascii")


def read_compact(raw: bytes) -> Any:
    """Parse UTF-8 encoded JSON."""
    try:
        return from_json(raw)
    except ValueError:
        # Escaped unpaired surrogates, and depths over 200.
        return json.loads(raw.decode("utf-8"))
