"""Extensions that installed packages declare as entry points; each is loaded when it is first named."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from autorubric.errors import ArgumentError, MissingDependencyError


def extension_names(group: str) -> list[str]:
    """Return the names of the extensions in an entry point group, sorted, without loading them."""
    return sorted(entry_points(group=group).names)


def load_extension(group: str, name: str) -> Any:
    """Return the object that an installed package declares under a name, or None if there is none.

    Raises:
        ArgumentError: If it cannot be imported.
        MissingDependencyError: If it needs a package that is not installed.
    """
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
