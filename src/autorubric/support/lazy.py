"""Lazy loading of a package's names, so that an import loads only the modules that are used."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from the imports in its `__init__.pyi`."""
    # `from .module import name as name`, and `from . import module as module` for what is not in `__all__`.
    modules: dict[str, str] = {}
    module = ""
    with pathlib.Path(file.removesuffix("c") + "i").open(encoding="utf-8") as stub:
        for line in stub:
            if line.startswith(("from .", "from autorubric.")):
                module, _, line = line[len("from ") :].partition(" import ")
            elif not line.startswith(" "):
                continue
            for alias in line.split(","):
                if " as " in alias:
                    modules[alias.partition(" as ")[0].strip(" (")] = module

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        value = (
            import_module(f".{name}", package)
            if module == "."
            else getattr(import_module(module, package), name)
        )
        # From now on, the name is found without this function.
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(name for name, module in modules.items() if module != ".")
    return find, lambda: sorted({*vars(sys.modules[package]), *modules}), names
