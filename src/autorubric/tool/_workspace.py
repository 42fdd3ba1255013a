"""Keeping what is named inside the workspace: paths are resolved, links followed, and no file is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from autorubric._files import shortened
from autorubric.errors import ArgumentError

OUTSIDE: Final = "outside workspace_root"
"""What stands in the place of a location outside the workspace."""

_LINES: Final = re.compile(r"(?:[-:#(,]L?\d+\)?)+$")
_TOKEN: Final = re.compile(r"[^\s\"'`<>|,;()\[\]{}=]+")
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_FILE_URL: Final = re.compile(r"file:(?://[^/]*)?", re.IGNORECASE)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_NAMED_PATH: Final = re.compile(r"(?<![\w/:.~@\\-])(?:~|\.{1,2}|[\w@.-]+)?(?:/[\w@.~-]+)+")
_LONGEST_PATH: Final = 4096
_MOST_NAMED: Final = 500
_MOST_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that paths are confined to.

    Attributes:
        root: The folder, links resolved.
    """

    root: Path

    @classmethod
    def at(cls, given: str) -> Workspace:
        """The workspace at a path.

        Raises:
            ArgumentError: There is no such folder.
        """
        try:
            root = Path(given).expanduser().resolve()
            there = root.is_dir()
        except (OSError, ValueError, RuntimeError):
            there = False
        if not there:
            raise ArgumentError(f"workspace_root: {shortened(given)} is no folder; give one that exists")
        return cls(root)

    def holds(self, path: str) -> bool:
        """Whether a path, relative to the root unless it is absolute, leads to somewhere inside."""
        if found := _FILE_URL.match(path):
            path = unquote(path[found.end() :])
        # No file has a longer path, and resolving one takes the square of its length.
        if (
            len(path) > _LONGEST_PATH
            or _SCHEME.match(path)
            or path.startswith("~")
            or (os.sep == "/" and _DRIVE.match(path))
        ):
            return False
        try:
            real = os.path.realpath(self.root / path.replace("\\", "/"))
        except (OSError, ValueError):
            return False
        return Path(real).is_relative_to(self.root)

    def path(self, given: str) -> Path:
        """A file of the workspace, links resolved.

        Raises:
            ArgumentError: It lies outside.
        """
        if not self.holds(given):
            raise ArgumentError(f"{shortened(given)} lies outside the workspace {str(self.root)!r}")
        return (self.root / given).resolve()

    def confined(self, location: str | None) -> str | None:
        """A location, or `outside workspace_root` where any path in it leads out."""
        if location is None:
            return None
        # What the web calls a path is none of the workspace's.
        local = _URL.sub(" ", location).strip()
        tokens = _TOKEN.findall(local)
        pieces = [local, *tokens, *(part for token in tokens for part in token.split(":"))]
        return location if all(map(self._piece_is_inside, pieces)) else OUTSIDE

    def _piece_is_inside(self, piece: str) -> bool:
        # Without the lines that follow it, and with them: a file may be called so.
        return all(self.holds(path) for path in {piece, _LINES.sub("", piece)} if path)

    def named_outside(self, content: str) -> list[str]:
        """Paths that a content names and that lead out of the workspace, each once, not more than 20."""
        found: list[str] = []
        for path in self._named(content):
            if not self.holds(path):
                found.append(path)
                if len(found) == _MOST_TOLD:
                    break
        return found

    def _named(self, content: str) -> Iterator[str]:
        seen: set[str] = set()
        for match in _NAMED_PATH.finditer(content):
            path = match[0]
            if path not in seen:
                seen.add(path)
                yield path
            if len(seen) == _MOST_NAMED:
                return
