"""Digests of functions, used to detect changed judges and checks in stored runs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_DEEPEST = 8
_PACKAGE = __name__.partition(".")[0]


def code_digest(function: Any) -> str:
    """Return a digest of a function's code, defaults, bound arguments and plain closure values.

    The digest has 16 hexadecimal digits. It excludes globals, files and mutable objects that the function
    uses. It is computed from bytecode, so it differs between Python versions.
    """
    digest = hashlib.sha256()
    for part in _parts(function, _DEEPEST):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\x00")
    return digest.hexdigest()[:16]


def _parts(thing: Any, depth: int) -> Iterator[str]:
    if depth == 0 or isinstance(thing, _PLAIN):
        yield repr(thing) if isinstance(thing, _PLAIN) else type(thing).__qualname__
    elif isinstance(thing, (tuple, frozenset)):
        inner = ["/".join(_parts(one, depth - 1)) for one in thing]
        # The order of a set depends on the process.
        yield from (sorted(inner) if isinstance(thing, frozenset) else inner)
    elif isinstance(thing, CodeType):
        yield from _code_parts(thing, depth)
    elif isinstance(thing, functools.partial):
        yield from _parts(thing.func, depth - 1)
        yield from _parts((*thing.args, *sorted(thing.keywords.items())), depth - 1)
    elif inspect.isfunction(thing):
        yield from _function_parts(thing, depth)
    elif inspect.ismethod(thing):
        yield from _parts(thing.__func__, depth - 1)
        yield from _parts(thing.__self__, depth - 1)
    elif inspect.isroutine(thing):
        yield thing.__qualname__
    else:
        yield from _object_parts(thing, depth)


def _code_parts(code: CodeType, depth: int) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for const in code.co_consts:
        yield from _parts(const, depth - 1)


def _function_parts(function: Any, depth: int) -> Iterator[str]:
    yield from _parts(function.__code__, depth - 1)
    yield from _parts(function.__defaults__ or (), depth - 1)
    yield from _parts(tuple(sorted((function.__kwdefaults__ or {}).items())), depth - 1)
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        yield from _parts(held, depth - 1)


def _object_parts(thing: Any, depth: int) -> Iterator[str]:
    """Yield the class, its methods `__call__` and `ask`, and the fields of a frozen dataclass."""
    kind = thing if inspect.isclass(thing) else type(thing)
    module = str(kind.__module__)
    # Our own classes may move to another module between versions.
    yield f"{_PACKAGE if module.startswith(f'{_PACKAGE}.') else module}:{kind.__qualname__}"
    for method in ("__call__", "ask"):
        found = kind.__dict__.get(method)
        if inspect.isfunction(found):
            yield from _parts(found, depth - 1)
    params = getattr(kind, "__dataclass_params__", None)
    if params is not None and params.frozen and not inspect.isclass(thing):
        for field in dataclasses.fields(thing):
            yield field.name
            yield from _parts(getattr(thing, field.name), depth - 1)
