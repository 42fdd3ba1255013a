"""What is loaded when it is first named: names of packages, and extensions declared as entry points."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__`, `__all__` of a package, from the imports in its stub `__init__.pyi`.

    The stub is the package's only list of names, for type checkers as well as at run time. It contains
    relative imports of the form `from .module import name as name` and, for modules that load on first use
    but are not in `__all__`, `from . import module as module`.
    """
    modules: dict[str, str] = {}
    module = ""
    with pathlib.Path(file.removesuffix("c") + "i").open(encoding="utf-8") as stub:
        for line in stub:
            if line.startswith("from ."):
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


# Entry point groups. Names within a group are what files, arguments and commands write.
AGGREGATORS_GROUP: Final = "autorubric.aggregators"  # LEVEL.NAME, as in ordinal.median: VoteTally -> Decision
COMMANDS_GROUP: Final = "autorubric.commands"  # functions with Typer annotations
EXECUTORS_GROUP: Final = "autorubric.executors"  # EvalConfig -> Executor
IMPORTERS_GROUP: Final = "autorubric.importers"  # named by the suffix: path -> RubricDataset
JUDGES_GROUP: Final = "autorubric.judges"  # text after `NAME:` -> Judge
KINDS_GROUP: Final = "autorubric.kinds"  # `type` tags: classes of criteria
METRICS_GROUP: Final = "autorubric.metrics"  # functions declared with @metric
TRANSPORTS_GROUP: Final = "autorubric.transports"  # LLMConfig -> Transport


def extension_names(group: str) -> list[str]:
    """Return the names of the extensions in an entry point group, sorted, without loading them."""
    # Imported late, like the errors below, because every package imports this module when it is imported.
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group).names)


def load_extension(group: str, name: str) -> Any:
    """Return the object that an installed package declares under a name, or None if there is none.

    Raises:
        ArgumentError: If it cannot be imported.
        MissingDependencyError: If it needs a package that is not installed.
    """
    from importlib.metadata import entry_points

    from autorubric.errors import ArgumentError, MissingDependencyError

    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except MissingDependencyError:
            raise
        except (ImportError, AttributeError) as error:
            raise ArgumentError(
                f"{name!r} of the entry point group {group!r} cannot be loaded: {error}"
            ) from error
    return None
