"""Deterministic checks: functions on a submission's text that judge a criterion instead of a model."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from autorubric.errors import ArgumentError

Check: TypeAlias = Callable[[str], Any]
"""Takes the text under judgment; returns a bool, a number on [0, 1], a label, None (cannot assess), or a
pair of one of these and a reason."""

_registered: dict[str, Check] = {}


def register_check(name: str, check: Check) -> Check:
    """Make `check` known under `name`, so that rubric files can name it; returns `check`.

    Args:
        name: The name in files, as `check: "has_a_date"`.
        check: A function of the submission's text (see `Check`).

    Raises:
        ArgumentError: If the name is empty, or taken by another function.
    """
    if not name or not callable(check):
        raise ArgumentError(f"register_check({name!r}, {check!r}): give a name and a function of the text")
    if _registered.setdefault(name, check) is not check:
        raise ArgumentError(f"the check {name!r} is registered already, with another function; choose a name")
    return check


def find_check(check: str | Check) -> Check:
    """Return the function itself, or the one registered under the name.

    Raises:
        ArgumentError: If no check of that name is registered; the nearest one is named.
    """
    if not isinstance(check, str):
        return check
    if check in _registered:
        return _registered[check]
    near = difflib.get_close_matches(check, _registered, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"registered are: {', '.join(_registered) or 'none'}."
    raise ArgumentError(f"no check {check!r} is registered; {hint} Register it with register_check(name, fn)")


def check_name(check: str | Check) -> str:
    """Return the registered name of a check; for an unregistered function `module:qualified name`."""
    if isinstance(check, str):
        return check
    for name, function in _registered.items():
        if function is check:
            return name
    return qualified_name(check)


def qualified_name(function: Callable[..., Any]) -> str:
    """`module:qualified name` of a function; of its class for an object without a name, as a partial."""
    named = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    # Methods of built-in types, as str.isupper, name no module.
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}:{named.__qualname__}"


def is_registered(check: str | Check) -> bool:
    """Return whether a file can name this check and another process find it."""
    return check_name(check) in _registered
