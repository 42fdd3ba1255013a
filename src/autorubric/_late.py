"""Lazy loading of a package's names, so that an import loads only the modules that are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def loading(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which loads a name from its module on first use.

    Args:
        package: Name of the package.
        names: Names by module. Modules are relative to the package or, with a leading dot, to its parent.
    """
    homes = {name: home for home, held in names.items() for name in held}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{homes[name]}", package), name)
        # From now on, the name is found without this function.
        setattr(sys.modules[package], name, value)
        return value

    return find
