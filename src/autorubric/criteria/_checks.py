"""Deterministic checks: functions of a submission's text that judge a criterion instead of a model."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from autorubric.errors import ArgumentError

Check: TypeAlias = Callable[[str], Any]
"""A function that judges a text. It returns a bool, a number on [0, 1], a label, None (cannot assess), or
a pair of such an answer and a reason."""

_registered: dict[str, Check] = {}


def register_check(name: str, check: Check) -> Check:
    """Register a check under a name that rubric files can use, and return the check.

    Args:
        name: Name of the check in files, for example `has_a_date` in `check: "has_a_date"`.
        check: Function of the submission's text; see `Check`.

    Raises:
        ArgumentError: If the name is empty or used by another function, or `check` is not callable.
    """
    if not name or not callable(check):
        raise ArgumentError(f"register_check({name!r}, {check!r}): pass a name and a function of the text")
    if _registered.setdefault(name, check) is not check:
        raise ArgumentError(f"the name {name!r} is already registered for another check; use another name")
    return check


def find_check(check: str | Check) -> Check:
    """Return a check function: the argument itself, or the function registered under that name.

    Raises:
        ArgumentError: If the name is not registered; the message suggests the nearest name.
    """
    if not isinstance(check, str):
        return check
    if check in _registered:
        return _registered[check]
    near = difflib.get_close_matches(check, _registered, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(_registered) or 'none'}."
    raise ArgumentError(f"unknown check {check!r}; {hint} Register checks with register_check(name, check)")


def check_name(check: str | Check) -> str:
    """Return the registered name of a check, or `module:qualified name` for an unregistered function."""
    if isinstance(check, str):
        return check
    for name, function in _registered.items():
        if function is check:
            return name
    return qualified_name(check)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:qualified name` of a function, or of the class of a callable such as a partial."""
    named = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    # Methods of built-in types, such as str.isupper, have no module.
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}:{named.__qualname__}"


def is_registered(check: str | Check) -> bool:
    """Return whether a check is registered, so that files can refer to it by name."""
    return check_name(check) in _registered
