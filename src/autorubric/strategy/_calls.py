"""Support for sync and async functions with one or two parameters that callers pass in."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autorubric._files import shortened
from autorubric.errors import ArgumentError, AutorubricError


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A function and its signature.

    Attributes:
        function: The function.
        name: Name of the function.
        both: Whether the function also takes the second argument.
    """

    function: Callable[..., Any]
    name: str
    both: bool

    async def call(self, first: Any, second: Any) -> Any:
        """Call the function and return its result; sync functions run in a thread and may therefore block."""
        arguments = (first, second) if self.both else (first,)
        if inspect.iscoroutinefunction(self.function):
            given = self.function(*arguments)
        else:
            given = await asyncio.to_thread(self._in_thread, arguments)
        return await given if inspect.isawaitable(given) else given

    def _in_thread(self, arguments: Sequence[Any]) -> Any:
        try:
            return self.function(*arguments)
        # A future cannot carry StopIteration out of a thread: awaiting it would never return.
        except StopIteration as error:
            raise AutorubricError(f"{self.name} raised StopIteration: {error}") from error


def called(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> Called:
    """Inspect a function and return it as a `Called`.

    Args:
        function: A function that takes the first argument only, or both.
        role: Name of the parameter through which the function was passed, for error messages.
        arguments: Names of the two arguments, for error messages.

    Raises:
        ArgumentError: If the function is a generator function or takes other arguments.
    """
    name = name_of(function)
    if is_yielding(function):
        raise ArgumentError(f"{role} must return a single value; {name} is a generator function")
    return Called(function=function, name=name, both=takes_both(function, role, arguments))


def is_yielding(given: Any) -> bool:
    """Return whether a value is a sync or async generator function, or an object whose `__call__` is one."""
    called = getattr(type(given), "__call__", None)  # noqa: B004 - the method itself is needed
    functions = (given, called)
    return any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in functions)


def name_of(given: Any) -> str:
    """Return the name of a function or object."""
    own = getattr(given, "__name__", None)
    return own if isinstance(own, str) else type(given).__name__


def takes_both(function: Callable[..., Any], role: str, arguments: tuple[str, str]) -> bool:
    """Return whether a function also takes the second argument.

    Raises:
        ArgumentError: If the function cannot be called with the first argument only or with both.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return False
    placed = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in placed if one.default is one.empty]
    named = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    several = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if len(needed) > 2 or named or not (placed or several):
        first, second = arguments
        raise ArgumentError(
            f"{role}={shortened(function)} takes ({', '.join(map(str, parameters))}), but it is called with "
            f"({first}) or ({first}, {second})"
        )
    # A second parameter with a default is not filled, unless it is named like the second argument.
    return len(needed) == 2 or (len(placed) > 1 and placed[1].name == arguments[1]) or several
