"""Names of a package that are loaded when they are first asked for, so that a start pays for what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loading(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`, which finds a name in the module that has it.

    Args:
        package: The package.
        homes: The module of each name, from the package on; with a dot before it, beside the package.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{homes[name]}", package), name)
        # Found without this function from now on.
        setattr(sys.modules[package], name, value)
        return value

    return find
