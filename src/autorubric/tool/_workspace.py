"""Confinement of paths to a workspace folder, with links resolved and without reading files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote

from autorubric._files import shortened
from autorubric.errors import ArgumentError
from autorubric.tool._paths import LONGEST_PATH, SYSTEM_FOLDERS, UNKNOWN, named_paths, views

OUTSIDE: Final = "outside workspace_root"
"""Replacement for a location outside the workspace."""

_LINES: Final = re.compile(r"(?:[-:#(,]L?\d+\)?)+$")
_TOKEN: Final = re.compile(r"[^\s\"'`<>|,;()\[\]{}=]+")
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_FILE_URL: Final = re.compile(r"file:(?://[^/]*)?", re.IGNORECASE)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PLAIN: Final = re.compile(r"[\w.@~%/-]+")

_Known: TypeAlias = dict[str, str | None]
"""A cache of resolved paths, with None for paths that do not exist."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder to which paths are confined.

    Attributes:
        root: Path of the folder, with links resolved.
    """

    root: Path

    @classmethod
    def at(cls, given: str, name: str = "workspace_root") -> Workspace:
        """Return the workspace at a path; error messages refer to the argument by `name`.

        Raises:
            ArgumentError: If the path is not an existing folder.
        """
        try:
            root = Path(given).expanduser().resolve()
            there = bool(given.strip()) and root.is_dir()
        except (OSError, ValueError, RuntimeError):
            there = False
        if not there:
            raise ArgumentError(f"{name}: {shortened(given)} is not an existing folder")
        return cls(root)

    def holds(self, path: str) -> bool:
        """Return whether a path, absolute or relative to the root, leads to a place inside the workspace."""
        return self._holds(path, {})

    def _holds(self, path: str, known: _Known) -> bool:
        if found := _FILE_URL.match(path):
            path = unquote(path[found.end() :])
        if (
            len(path) > LONGEST_PATH
            or "\0" in path
            or _SCHEME.match(path)
            or path.startswith("~")
            or (os.sep == "/" and _DRIVE.match(path))
        ):
            return False
        root, real = str(self.root), self._real(path.replace("\\", "/"), known)
        return real == root or real.startswith(root.rstrip(os.sep) + os.sep)

    def _real(self, path: str, known: _Known) -> str:
        """Return the target of a path with links resolved; missing parts are kept unchanged.

        Unlike `os.path.realpath`, this does not check each folder again for every path, which matters for
        content with many paths.
        """
        drive, rest = os.path.splitdrive(str(self.root / path))
        here = drive
        gone = 0
        for name in rest.replace(os.sep, "/").split("/"):
            if name == "..":
                here, gone = here.rpartition(os.sep)[0], max(0, gone - 1)
            elif name not in ("", "."):
                here = f"{here}{os.sep}{name}"
                found = None if gone else self._found(here, known)
                gone += found is None
                here = found or here
        return here or os.sep

    def _found(self, path: str, known: _Known) -> str | None:
        """Return the target of a path whose last part may be a link; None if it does not exist."""
        if path not in known:
            there = path if os.path.lexists(path) else None
            known[path] = os.path.realpath(path) if there and Path(path).is_symlink() else there
        return known[path]

    def path(self, given: str) -> Path:
        """Return the absolute path of a file in the workspace, with links resolved.

        Raises:
            ArgumentError: If the path is outside the workspace.
        """
        if not self.holds(given):
            raise ArgumentError(f"{shortened(given)} is outside the workspace {str(self.root)!r}")
        return (self.root / given).resolve()

    def confined(self, location: str | None) -> str | None:
        """Return the location unchanged, or `outside workspace_root` if any path in it leads outside."""
        if location is None:
            return None
        # Paths in URLs do not belong to the workspace.
        local = self._without_root(_URL.sub(" ", location).strip())
        inside = all(self._words_are_inside(_URL.sub(" ", view).strip()) for view in views(local))
        inside = inside and next(self._outside(local, unknown=True), None) is None
        return location if inside else OUTSIDE

    def _words_are_inside(self, local: str) -> bool:
        tokens = _TOKEN.findall(local)
        words = [local, *tokens, *(part for token in tokens for part in token.split(":"))]
        # Words that begin with a slash are checked in the whole text, with more context.
        return all(self._word_is_inside(word) for word in words if word[:1] not in ("", "/", "\\"))

    def _word_is_inside(self, word: str) -> bool:
        # Checked with and without the line numbers at the end, which may be part of the file name.
        return all(self.holds(path) for path in {word, _LINES.sub("", word)} if path)

    def named_outside(self, content: str) -> list[str]:
        """Return the paths in the content that lead out of the workspace, without duplicates."""
        return list(dict.fromkeys(self._outside(self._without_root(content), unknown=False)))

    def _outside(self, text: str, *, unknown: bool) -> Iterator[str]:
        known: _Known = {}
        for named in dict.fromkeys(named_paths(text)):
            if named.path == UNKNOWN:
                out = unknown
            else:
                out = (named.sure or self._is_likely(named.path)) and not self._holds(named.path, known)
            if out:
                yield named.text

    def _is_likely(self, path: str) -> bool:
        """Return whether an uncertain path starts like a real path, with the root's or a system folder."""
        first = path.lstrip("/").partition("/")[0]
        return first in SYSTEM_FOLDERS or first in self.root.parts[1:2]

    def _without_root(self, text: str) -> str:
        """Replace the root by `.` in the text if its path contains characters that would end a path."""
        root = str(self.root)
        if _PLAIN.fullmatch(root):
            return text
        return re.sub(rf"(?:file://|(?<![\w.@~%/\\-])){re.escape(root)}(?=[\\/])", ".", text)
