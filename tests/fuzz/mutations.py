"""Valid contents, changed: pieces of bytes, and parts of the data inside."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import yaml
from hypothesis import strategies as st

HOSTILE_BYTES: Final = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\x1b[2J",
    b"\\ud800",
    b"\\u0000",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5000,
    b'"',
    b"'",
    b"`",
    b"{",
    b"[",
    b"}",
    b"]",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"- " * 3000,
    b"? " * 500,
    b"&a [*a, *a]",
    b"<<: *a",
    b"!!python/object:os.system x",
    b"!!binary aGk=",
    b"#",
    b": ",
    b",",
    b"\t",
    b"\n",
    b"\n\n---\n",
    b"=cmd|'/C calc'!A0",
    b"<think>",
    b"```json\n",
    b"../../etc/passwd",
    b"2024-01-01",
    b"0x1F",
    b"0o17",
    b"1_000",
    b"yes",
    b"~",
    b"null",
    b"true",
    b'""',
)
"""Pieces that parsers stumble over."""

HOSTILE_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    -(10**40),
    1e308,
    -0.0,
    5e-324,
    "",
    " ",
    "x" * 2000,
    "\x00",
    "\ud800",
    "\u202e",
    "a\nb",
    "MET",
    "NaN",
    "=1+1",
    "../x",
    "10",
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"a": {"b": {"c": []}}},
    [1, "a", {}],
    [[[[[[[[[[[[1]]]]]]]]]]]],
)
"""Values that stand where others were meant."""


@st.composite
def spoilt_bytes(draw: st.DrawFn, seed: bytes) -> bytes:
    """The seed with some pieces replaced, repeated or cut out."""
    content = seed
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = draw(st.one_of(st.just(at), st.integers(at, min(len(content), at + 40)), st.just(len(content))))
        piece = draw(
            st.one_of(st.sampled_from(HOSTILE_BYTES), st.binary(max_size=12), st.just(content[at:end] * 2))
        )
        content = content[:at] + piece + content[end:]
    return content


@st.composite
def spoilt_data(draw: st.DrawFn, data: Any) -> Any:
    """The data with some parts replaced by hostile values, taken out, doubled or named otherwise."""
    spoilt = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(spoilt))
        if not places:
            return copy.deepcopy(draw(st.sampled_from(HOSTILE_VALUES)))
        holder, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(("value", "gone", "twice", "renamed", "swapped"))):
            case "value":
                holder[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE_VALUES)))
            case "gone":
                del holder[key]
            case "twice" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "swapped":
                other, place = draw(st.sampled_from(places))
                holder[key] = copy.deepcopy(other[place])
            case _ if isinstance(holder, dict):
                holder[draw(st.sampled_from(("", "format", "x", "id", "\ud800", "a.b")))] = holder.pop(key)
            case _:
                pass
    return spoilt


def _places(data: Any) -> Any:
    keys = data.keys() if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from _places(data[key])


def contents(name: str, seed: bytes) -> st.SearchStrategy[bytes]:
    """Contents for a loader: spoilt bytes and, where the format is known, spoilt data written out again."""
    suffix = name.rpartition(".")[2]
    if suffix == "json":
        spoilt = spoilt_data(json.loads(seed)).map(_as_json)
    elif suffix == "jsonl":
        rows = [json.loads(line) for line in seed.splitlines()]
        spoilt = spoilt_data(rows).map(_as_lines)
    elif suffix == "yaml":
        spoilt = spoilt_data(yaml.safe_load(seed)).map(_as_json)
    else:
        return spoilt_bytes(seed)
    return st.one_of(spoilt, spoilt_bytes(seed))


def _as_json(data: Any) -> bytes:
    return json.dumps(data).encode("ascii")


def _as_lines(rows: Any) -> bytes:
    lines = rows if isinstance(rows, list) else [rows]
    return b"".join(_as_json(row) + b"\n" for row in lines)
