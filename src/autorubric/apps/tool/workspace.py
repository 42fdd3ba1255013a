"""Confinement of paths to a workspace folder, and detection of paths in text, without reading files."""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from autorubric.errors import ArgumentError
from autorubric.support.reading_errors import short_repr

LONGEST_PATH: Final = 4096
"""Maximum length of a path in characters. Longer paths do not exist, and resolving takes quadratic time."""

SYSTEM_FOLDERS: Final = frozenset(
    (
        *("bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "private", "proc"),
        *("root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
        *("Applications", "Library", "System", "Users", "Volumes"),
    )
)
"""Names of top-level directories of common operating systems."""

SOMEWHERE: Final = "~"
"""Placeholder for a path outside any workspace."""

UNKNOWN: Final = "$"
"""Placeholder for a path that depends on an unknown variable."""

_NOT_A_PATH: Final = re.compile(
    # URLs with and without a scheme, and closing tags.
    r"(?<![A-Za-z0-9+.-])(?!(?:file|vscode[\w-]{0,20}):)[A-Za-z][A-Za-z0-9+.-]{1,30}(?<!file)://[\w\[%~@-][\w./%~:@?#&=+$\]-]*+"
    r"|(?<![:\w/])//(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?=/)(?![\w./%~@-]{0,2000}/\.\.)[\w./%~@-]*+"
    r"|</[\w:.-]{1,100}+\s?>",
    re.IGNORECASE,
)
_IN_NAME: Final = r"[\w.@~%-]"
_TOKEN: Final = re.compile(rf"(?<![\w.@~%\\/-])({_IN_NAME}*+)((?:[\\/]++{_IN_NAME}*+)++)")
# Scripts without spaces between words: a path may directly follow a letter.
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\uffef][\\/]+[A-Za-z]"
)
_VARIABLE: Final = re.compile(
    r"(?:\$(?:env:)?|\$?\{{1,2}\$?(?:env:)?)([A-Za-z_]\w{0,60})\}{0,2}\Z", re.IGNORECASE
)
_PERCENT_VARIABLE: Final = re.compile(r"%([A-Za-z_]\w{0,60})%")
_LONGEST_VARIABLE: Final = 80
_FOLDER_VARIABLES: Final = frozenset(
    (
        *("home", "oldpwd", "temp", "tmp", "tmpdir"),
        *("xdg_cache_home", "xdg_config_home", "xdg_data_home", "xdg_runtime_dir", "xdg_state_home"),
        *("appdata", "homepath", "localappdata", "programdata", "programfiles", "systemdrive", "systemroot"),
        *("userprofile", "windir"),
    )
)
"""Environment variables with the path of a folder outside any workspace, in lower case."""
# `\Z`, since `$` also matches before a line break.
_DRIVE: Final = re.compile(r"(?:^|[^A-Za-z0-9])[A-Za-z]:\Z")
_SHARE: Final = re.compile(r"(?:\\\\|\\{4})[\w.-]{2,255}\\{1,2}[\w$.-]+")
_FILE_HOST: Final = re.compile(r"\A//[^\\/]+(?=/)")
_ESCAPE: Final = re.compile(r"[\\%]u([0-9a-fA-F]{4})|\\(?:x([0-7][0-9a-fA-F])|([nrtbf\"'\\/]))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_ENTITY: Final = re.compile(
    r"&(?:#0*([0-9]{1,7})(?![0-9]);?|#x0*([0-9a-f]{1,6})(?![0-9a-f]);?|([a-z][a-z0-9]{1,31};))", re.IGNORECASE
)
# Unicode normalization is not used, because it takes quadratic time for a run of combining characters.
_LOOK_ALIKES: Final = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        **dict.fromkeys("\u2215\u2044\u29f8", "/"),
        **dict.fromkeys("\u2216\u29f5\u29f9\ufe68", "\\"),
        "\u2024": ".",
        "\u2025": "..",
        "\ufe52": ".",
        "\ufe55": ":",
        "\ufe6a": "%",
        "\u223c": "~",
    }
)
"""Full-width forms and other characters that look like characters of paths."""
_ROUNDS: Final = 3


class NamedPath(NamedTuple):
    """Text that looks like a path."""

    text: str  # after unescaping
    path: str  # absolute, relative to the workspace, `SOMEWHERE` or `UNKNOWN`
    sure: bool = True  # whether the text is not the end of another token or a word after a slash


def named_paths(text: str) -> Iterator[NamedPath]:
    """Yield all parts of a text that look like paths; takes linear time."""
    for view in views(text):
        plain = _NOT_A_PATH.sub(" ", view)
        for token in _TOKEN.finditer(plain):
            before = plain[max(0, token.start() - _LONGEST_VARIABLE) : token.start()]
            yield from _read(before, token[1], token[2][:LONGEST_PATH])


def views(text: str) -> Iterator[str]:
    """Yield the text, then without up to three layers of percent, backslash, HTML or look-alike encoding."""
    yield text
    for _ in range(_ROUNDS):
        before = text
        for resolve in (_characters_resolved, _escapes_resolved):
            if (resolved := resolve(text)) != text:
                yield (text := resolved)
        if text == before:
            return


def _characters_resolved(text: str) -> str:
    if not text.isascii():
        text = text.translate(_LOOK_ALIKES)
    return _ENTITY.sub(_character, text) if "&" in text else text


def _escapes_resolved(text: str) -> str:
    return _ESCAPE.sub(_unescape, unquote(text) if "%" in text else text)


def _character(found: re.Match[str]) -> str:
    """Return the characters of an HTML character reference, or the reference unchanged if it is invalid."""
    if found[3]:
        return html.unescape(found[0])
    code = int(found[1]) if found[1] else int(found[2], 16)
    return chr(code) if 0 < code <= sys.maxunicode and not 0xD800 <= code < 0xE000 else found[0]


def _unescape(found: re.Match[str]) -> str:
    if digits := found[1] or found[2]:
        return chr(int(digits, 16))
    return _ESCAPED.get(found[3], found[3])


def _read(before: str, head: str, rest: str) -> Iterator[NamedPath]:
    """Yield the paths of one token."""
    text = head[-LONGEST_PATH:] + rest
    if (variable := _variable(before, head)) is not None:
        yield from _of_variable(variable, rest)
    elif not head:
        yield from _rooted_paths(before, rest)
    elif (at := head.find("~")) == 0 or (at > 0 and not (head[at - 1].isascii() and head[at - 1].isalnum())):
        yield NamedPath(text[at:], SOMEWHERE)
    elif _UNSPACED.match(head[-1:] + rest[:2]):
        yield NamedPath(rest, rest, sure=False)
    else:
        yield NamedPath(text, text)
        if head.endswith("..") and head.strip("."):
            yield NamedPath(f"..{rest}", f"..{rest}")
        # An option followed by its value, or another character that does not end a name.
        if head[0] == "-" or head[-1] in "@%-":
            yield NamedPath(rest, rest, sure=False)


def _rooted_paths(before: str, rest: str) -> Iterator[NamedPath]:
    names = [name for name in re.split(r"[\\/]+", rest) if name]
    if _SHARE.match(rest):
        yield NamedPath(rest, SOMEWHERE)
    elif _DRIVE.search(before) and names and len(rest) > 2:
        yield NamedPath(f"{before[-2:]}{rest}", f"{before[-2:]}{rest}")
    elif rest[0] == "\\" and rest[1:2] != "/":
        yield NamedPath(rest.lstrip("\\"), rest.lstrip("\\"))
    elif names:
        path = rest.lstrip("\\")
        if before[-5:].lower() == "file:":
            yield NamedPath(path, _FILE_HOST.sub("", path))
        else:
            sure = ".." in names or (len(names) > 1 and rest[0] == "/" and not _goes_on(before))
            yield NamedPath(path, path, sure=sure)


def _goes_on(before: str) -> bool:
    """Return whether a slash after this text probably continues an expression, such as a template or glob."""
    last, previous = before[-1:], before[-2:-1]
    if last == "+":
        return previous.isalnum()
    if last == "*":
        return previous in ("*", "/", "\\")
    return last in ("}", ")", "]", "#", "$", "^")


def _variable(before: str, head: str) -> str | None:
    found = _PERCENT_VARIABLE.fullmatch(head) if head else None
    if found is None and ("$" in before[-_LONGEST_VARIABLE:] or before.endswith("}")):
        found = _VARIABLE.search(before + head)
    return None if found is None or ("$" not in found[0] and "%" not in found[0]) else found[1]


def _of_variable(name: str, rest: str) -> Iterator[NamedPath]:
    text = f"${name}{rest}"
    if name.lower() == "pwd":
        yield NamedPath(text, f".{rest}")
    elif name.lower() in _FOLDER_VARIABLES:
        yield NamedPath(text, SOMEWHERE)
    else:
        if name.isupper():
            yield NamedPath(text, UNKNOWN)
        # The variable may be empty, so that the path begins after it.
        yield NamedPath(text, rest, sure=False)


OUTSIDE: Final = "outside workspace_root"
"""Replacement for a location outside the workspace."""

_LINES: Final = re.compile(r"(?:[-:#(,]L?\d+\)?)+\Z")
_LOCAL_TOKEN: Final = re.compile(r"[^\s\"'`<>|,;()\[\]{}=]+")
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_FILE_URL: Final = re.compile(r"file:(?://[^/]*)?", re.IGNORECASE)
_DRIVE_OR_SHARE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PLAIN: Final = re.compile(r"[\w.@~%/-]+")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that file access is limited to; paths outside it are rejected."""

    root: Path  # with symbolic links resolved

    @classmethod
    def at(cls, given: str, name: str = "workspace_root") -> Workspace:
        """Return the workspace at a path; `name` is the name of the argument in error messages."""
        try:
            root = Path(given).expanduser().resolve()
            there = bool(given.strip()) and root.is_dir()
        except (OSError, ValueError, RuntimeError):
            there = False
        if not there:
            raise ArgumentError(f"{name}: {short_repr(given)} is not an existing folder")
        return cls(root)

    def holds(self, path: str) -> bool:
        """Return whether a path, absolute or relative to the root, leads to a location in the workspace."""
        if found := _FILE_URL.match(path):
            path = unquote(path[found.end() :])
        if (
            len(path) > LONGEST_PATH
            or "\0" in path
            or _SCHEME.match(path)
            or path.startswith("~")
            or (os.sep == "/" and _DRIVE_OR_SHARE.match(path))
        ):
            return False
        root, real = str(self.root), os.path.realpath(self.root / path.replace("\\", "/"))
        return real == root or real.startswith(root.rstrip(os.sep) + os.sep)

    def path(self, given: str) -> Path:
        """Return the absolute path of a file in the workspace, with links resolved."""
        if not self.holds(given):
            raise ArgumentError(f"{short_repr(given)} is outside the workspace {str(self.root)!r}")
        return (self.root / given).resolve()

    def confine(self, location: str | None) -> str | None:
        """Return the location, or `outside workspace_root` if it contains a path outside the workspace."""
        if location is None:
            return None
        # Paths in URLs do not belong to the workspace.
        local = self._without_root(_URL.sub(" ", location).strip())
        inside = all(self._words_are_inside(_URL.sub(" ", view).strip()) for view in views(local))
        inside = inside and next(self._outside(local, unknown=True), None) is None
        return location if inside else OUTSIDE

    def _words_are_inside(self, local: str) -> bool:
        tokens = _LOCAL_TOKEN.findall(local)
        words = [local, *tokens, *(part for token in tokens for part in token.split(":"))]
        # Words that begin with a slash are checked in the whole text, with more context.
        checked = [word for word in words if word[:1] not in ("", "/", "\\")]
        # With and without the line numbers at the end, which may be part of the file name.
        return all(self.holds(path) for word in checked for path in {word, _LINES.sub("", word)} if path)

    def paths_outside(self, content: str) -> list[str]:
        """Return the paths in the content that point outside the workspace, without duplicates."""
        return list(dict.fromkeys(self._outside(self._without_root(content), unknown=False)))

    def _outside(self, text: str, *, unknown: bool) -> Iterator[str]:
        for named in dict.fromkeys(named_paths(text)):
            if named.path == UNKNOWN:
                out = unknown
            else:
                out = (named.sure or self._is_likely(named.path)) and not self.holds(named.path)
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
