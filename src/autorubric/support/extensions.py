"""Extensions that installed packages declare as entry points; each is loaded when it is first named."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from autorubric.errors import ArgumentError, MissingDependencyError

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
    return sorted(entry_points(group=group).names)


def extension_packages(group: str, name: str) -> list[str]:
    """Return the names of the packages that declare an extension of this name."""
    found = entry_points(group=group, name=name)
    return sorted({point.dist.name if point.dist is not None else point.module for point in found})


def load_extension(group: str, name: str) -> Any:
    """Return the object that an installed package declares under a name, or None if there is none."""
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"{name!r} of the entry point group {group!r} cannot be loaded: {error}"
            ) from error
    return None
