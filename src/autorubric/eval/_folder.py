"""The run folder: a manifest, the dataset as judged, votes as they arrive, items as they finish.

    manifest.json    what the run depends on; replaced atomically
    dataset.jsonl    a copy of the dataset, truth included: a header line, then an item a line
    dataset.sums     its SHA-256 and the run's mark, then digests of its lines, to find a damaged one
    votes.jsonl      one vote a line, appended as it arrives
    items.jsonl      one finished item per line: its result, and the offsets of its votes
    prompts.jsonl    the request and the reply of each vote, unless `store_prompts=False`
    autorubric.yaml  the run file that the run was last started from, where there was one
    lock             held while a process writes

Each line of votes, items and prompts ends with the offset it was written at and a CRC-32 (`_log.py`) that
begins with the run's mark, a random number in the manifest, so that a line of another run does not match. The
manifest ends with a CRC-32 and holds the SHA-256 of the dataset. The torn last line of a killed process is
passed over, and cut off when the run is resumed.
"""

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
from autorubric.values import Json

RUN_FORMAT = 2
"""Number of the run folder's format. A reader takes its own and older ones, and refuses newer ones.

Format 1 has no checksums of single lines and of the manifest.
"""

# What in a manifest must be a mapping, and of which types.
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
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@ -]{0,126}")
# Names that Windows keeps for devices, whatever ending they have.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
MANIFEST, DATASET, VOTES, ITEMS, PROMPTS = (
    "manifest.json",
    "dataset.jsonl",
    "votes.jsonl",
    "items.jsonl",
    "prompts.jsonl",
)
LOGS = (VOTES, ITEMS, PROMPTS)
_EVERYTHING = 1 << 62
_REPAIR = (
    f"Restore it from a copy; or delete {MANIFEST} and resume the run with the same dataset, judges and "
    "settings: the stored votes are then used again, and that nothing has changed is not checked"
)
_CRC = ',\n  "crc": "{:08x}"\n}}\n'


class Written(NamedTuple):
    """A manifest's entries about the logs.

    Attributes:
        is_complete: Whether the run ended with all items graded.
        sizes: By log, its bytes when the run ended; empty if it did not, or an older version wrote it.
        unsealed: By log, bytes at its beginning that an older version wrote, whose lines have no checksum.
        mark: With which the checksums of lines begin.
    """

    is_complete: bool
    sizes: Mapping[str, int]
    unsealed: Mapping[str, int]
    mark: int


def written_by(manifest: Mapping[str, Any]) -> Written:
    """Return a manifest's entries about the logs."""
    is_sealed = manifest.get("format", RUN_FORMAT) > 1
    return Written(
        is_complete=manifest.get("status") == "complete",
        sizes=manifest.get("sizes") or {},
        unsealed=(manifest.get("unsealed") or {}) if is_sealed else dict.fromkeys(LOGS, _EVERYTHING),
        mark=manifest.get("mark") or 0,
    )


def new_mark() -> int:
    """Return a mark for a run, other than 0, which is that of no run."""
    return randbelow((1 << 32) - 1) + 1


def run_path(experiments_dir: Path, name: str) -> Path:
    """Return the folder of a run.

    Raises:
        ArgumentError: If the name could lead out of the folder of runs, or is not a plain name.
    """
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or _DEVICE.fullmatch(name):
        raise ArgumentError(
            f"experiment_name {name!r}: use letters, digits, '.', '_', '-', '+', '@' and blanks, a letter or "
            "digit first, at most 127 characters, and not a device name such as CON"
        )
    return experiments_dir / name


def read_manifest(path: Path) -> dict[str, Json]:
    """Return the manifest of a run folder.

    Raises:
        RunFormatError: If there is none, a newer version wrote it, or it is damaged.
    """
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
            f"{file} has no format number; it is damaged, or no manifest of a run. {_REPAIR}"
        )
    if found > RUN_FORMAT:
        raise RunFormatError(
            f"{file} has format {found}; this version reads up to {RUN_FORMAT}: install a newer autorubric"
        )
    if found > 1 and text != manifest_text(manifest):
        raise RunFormatError(f"{file} does not match its checksum: it was changed or is damaged. {_REPAIR}")
    damage = _damage_in(manifest)
    if damage:
        raise RunFormatError(f"{file}: {damage}; it is damaged. {_REPAIR}")
    manifest.pop("crc", None)
    return dict(manifest)


def manifest_text(content: Mapping[str, Any]) -> str:
    """Return the text of a manifest, which ends with the CRC-32 of what is before it."""
    text = json.dumps({key: value for key, value in content.items() if key != "crc"}, indent=2)
    return text.removesuffix("\n}") + _CRC.format(crc32(text.encode("ascii")))


def check_files(path: Path) -> None:
    """Refuse a run folder in which another kind of file has the name of a run's file.

    A link could lead out of the folder, and reading a pipe would wait for ever.

    Raises:
        RunFormatError: If one of its files is a link, a pipe, a socket or a device.
    """
    for name in (MANIFEST, DATASET, INCOMING, SUMS, *LOGS, LOCK, RUN_FILE):
        try:
            mode = (path / name).lstat().st_mode
        except OSError:
            # Reported by what reads or writes the file, where it is needed.
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
            raise RunFormatError(
                f"{path / name} is {kind}, not a regular file; replace it with the file itself"
            )


def _damage_in(manifest: Mapping[str, Any]) -> str:
    """Return the invalid parts of a manifest; empty if there are none."""
    for path, kinds in _MAPPINGS.items():
        held: Any = manifest
        for key in path:
            held = held.get(key, {} if len(path) > 1 else None)
        if not isinstance(held, dict):
            return f"{'.'.join(path)} is not a mapping"
        if kinds and not all(type(value) in kinds for value in held.values()):
            return f"a value in {'.'.join(path)} is not a {kinds[0].__name__}"
    for name, kind in (
        ("started_at", str),
        ("completed_at", str),
        ("shard", list),
        ("missing", list),
        ("unverified", list),
    ):
        if not isinstance(manifest.get(name), kind | None):
            return f"{name} is not a {kind.__name__}"
    for entry in (manifest["dataset"], manifest["dataset"].get("incoming") or {"sha256": None}):
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str | None):
            return "dataset is not an entry of a dataset"
    earlier = manifest["dataset"].get("earlier") or {}
    if not isinstance(earlier, dict) or not all(map(_is_texts, earlier.values())):
        return "dataset.earlier is not a mapping to lists of texts"
    if type(manifest.get("mark", 0)) is not int or not 0 <= manifest.get("mark", 0) < 1 << 32:
        return "mark is not a number of 32 bits"
    for name in ("sizes", "unsealed"):
        held = manifest.get(name, {})
        if not isinstance(held, dict) or not all(type(size) is int and size >= 0 for size in held.values()):
            return f"{name} is not a mapping to sizes"
    shard = manifest.get("shard")
    if shard is not None and ([*map(type, shard)] != [int, int, str] or not 0 <= shard[0] < shard[1]):
        return "shard is none"
    return ""


def _is_texts(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, str) for one in held)
