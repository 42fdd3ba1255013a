"""The files of a run folder, and its manifest."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from secrets import randbelow
from typing import Any, NamedTuple
from zlib import crc32

from autorubric.errors import ArgumentError, RunFormatError
from autorubric.support.objects import Json

RUN_FORMAT = 2
"""Version of the run folder's format. A reader accepts this and older versions, and rejects newer ones.

Format 1 has no checksums of lines and of the manifest.
"""

# The entries of a manifest that must be mappings, and the types of their values.
_MAPPINGS: Mapping[tuple[str, ...], tuple[type, ...]] = {
    ("asking",): (),
    ("asking", "checks"): (),
    ("asking", "judges"): (),
    ("asking", "sampling"): (),
    ("asking", "sampling", "samples"): (int,),
    ("deciding",): (),
    ("deciding", "judge_weights"): (float, int),
    ("dataset",): (),
}

INCOMING, SUMS, LOCK = "dataset.incoming", "dataset.sums", "lock"
RUN_FILE = "autorubric.yaml"
BATCHES = "batches.jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@ -]{0,126}")
# Names that Windows reserves for devices, with any extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
MANIFEST, DATASET, VOTES, ITEMS, PROMPTS = (
    "manifest.json",
    "dataset.jsonl",
    "votes.jsonl",
    "items.jsonl",
    "prompts.jsonl",
)
LOGS = (VOTES, ITEMS, PROMPTS)
SNAPSHOT = "votes.snapshot"
_EVERYTHING = 1 << 62
_REPAIR = (
    f"Restore {MANIFEST} from a backup, or delete it and resume the run with the same dataset, judges and "
    "settings; the stored votes are then reused without checking that nothing has changed"
)
_CRC = ',\n  "crc": "{:08x}"\n}}\n'


class LogEntries(NamedTuple):
    """A manifest's entries about the logs."""

    is_complete: bool  # the run ended with all items graded
    sizes: Mapping[str, int]  # bytes of each log at the end of the run; empty if it has not ended or is older
    unsealed: Mapping[str, int]  # leading bytes of each log that an older version wrote without checksums
    mark: int  # initial value of the checksums of lines


def log_entries(manifest: Mapping[str, Any]) -> LogEntries:
    """Return a manifest's entries about the logs."""
    is_sealed = manifest.get("format", RUN_FORMAT) > 1
    return LogEntries(
        is_complete=manifest.get("status") == "complete",
        sizes=manifest.get("sizes") or {},
        unsealed=(manifest.get("unsealed") or {}) if is_sealed else dict.fromkeys(LOGS, _EVERYTHING),
        mark=manifest.get("mark") or 0,
    )


def new_mark() -> int:
    """Return a random, non-zero mark for a run."""
    return randbelow((1 << 32) - 1) + 1


def run_path(experiments_dir: Path, name: str) -> Path:
    """Return the path of a run's folder."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or _DEVICE.fullmatch(name):
        raise ArgumentError(
            f"experiment_name {name!r} is invalid: use at most 127 letters, digits, '.', '_', '-', '+', '@' "
            "and spaces, starting with a letter or digit, and not a device name such as CON"
        )
    return experiments_dir / name


def read_manifest(path: Path) -> dict[str, Json]:
    """Return the manifest of a run folder."""
    file = path / MANIFEST
    check_files(path)
    try:
        text = file.read_bytes().decode("utf-8")
        manifest = json.loads(text)
    except FileNotFoundError:
        raise RunFormatError(f"{path} is not a run folder: it has no {MANIFEST}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFormatError(f"{file} cannot be read: {error}. {_REPAIR}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int):
        raise RunFormatError(
            f"{file} has no format number, so it is damaged or not the manifest of a run. {_REPAIR}"
        )
    if found > RUN_FORMAT:
        raise RunFormatError(
            f"{file} has format {found}, but this version reads only formats up to {RUN_FORMAT}; install a "
            "newer version of autorubric"
        )
    if found > 1 and text != manifest_text(manifest):
        raise RunFormatError(f"{file} does not match its checksum; it was edited or is damaged. {_REPAIR}")
    damage = _damage_in(manifest)
    if damage:
        raise RunFormatError(f"{file} is damaged: {damage}. {_REPAIR}")
    manifest.pop("crc", None)
    return dict(manifest)


def manifest_text(content: Mapping[str, Any]) -> str:
    """Return the text of a manifest, which ends with the CRC-32 of the preceding text."""
    text = json.dumps({key: value for key, value in content.items() if key != "crc"}, indent=2)
    return text.removesuffix("\n}") + _CRC.format(crc32(text.encode("ascii")))


def check_files(path: Path) -> None:
    """Check that the files of a run folder are regular files."""
    # A link could lead out of the folder, and reading a pipe would block forever.
    for name in (MANIFEST, DATASET, INCOMING, SUMS, *LOGS, SNAPSHOT, LOCK, RUN_FILE, BATCHES):
        try:
            mode = (path / name).lstat().st_mode
        except OSError:
            # The code that reads or writes the file reports the error.
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
            raise RunFormatError(
                f"{path / name} must be a regular file, but it is {kind}; "
                + ("delete it" if name == SNAPSHOT else "replace it with a regular file")
            )


def _damage_in(manifest: Mapping[str, Any]) -> str:
    """Return a description of an invalid part of a manifest; empty if the manifest is valid."""
    for path, kinds in _MAPPINGS.items():
        held: Any = manifest
        for key in path:
            held = held.get(key, {} if len(path) > 1 else None)
        if not isinstance(held, dict):
            return f"'{'.'.join(path)}' must be a mapping"
        if kinds and not all(type(value) in kinds for value in held.values()):
            return f"all values in '{'.'.join(path)}' must be of type {kinds[0].__name__}"
    texts, lists = ("started_at", "completed_at"), ("shard", "missing", "unverified", "model_aliases")
    for name, kind in {**dict.fromkeys(texts, str), **dict.fromkeys(lists, list), "digests": int}.items():
        if not isinstance(manifest.get(name), kind | None):
            return f"'{name}' must be of type {kind.__name__}"
    for entry in (manifest["dataset"], manifest["dataset"].get("incoming") or {"sha256": None}):
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str | None):
            return "'dataset' must be a mapping with a string 'sha256'"
    earlier = manifest["dataset"].get("earlier") or {}
    if not isinstance(earlier, dict) or not all(map(_is_texts, earlier.values())):
        return "'dataset.earlier' must be a mapping to lists of strings"
    if type(manifest.get("mark", 0)) is not int or not 0 <= manifest.get("mark", 0) < 1 << 32:
        return "'mark' must be an unsigned 32-bit integer"
    for name in ("sizes", "unsealed", "shared_prompts"):
        held = manifest.get(name, {})
        if not isinstance(held, dict) or not all(type(size) is int and size >= 0 for size in held.values()):
            return f"'{name}' must be a mapping to non-negative integers"
    shard = manifest.get("shard")
    if shard is not None and ([*map(type, shard)] != [int, int, str] or not 0 <= shard[0] < shard[1]):
        return "'shard' must be a list of index, number of shards and digest"
    return ""


def _is_texts(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, str) for one in held)
