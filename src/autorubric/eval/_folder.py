"""The run folder: a manifest, the dataset as judged, votes as they arrive, items as they finish.

    manifest.json    what the run depends on; replaced atomically
    dataset.jsonl    a copy of the dataset, truth included: a header line, then an item a line
    votes.jsonl      one vote a line, appended as it arrives
    items.jsonl      one finished item a line: what it came to, and where its votes stand
    prompts.jsonl    what was sent and received for each vote, unless `store_prompts=False`
    lock             held while a process writes

Completed is what parses: a line that does not, such as the torn last one of a killed process, is left where
it is, passed over and reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autorubric.errors import ArgumentError, RunFormatError
from autorubric.values import Json

RUN_FORMAT = 1
"""Number of the run folder's format. A reader takes its own and older ones, and refuses newer ones."""

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

INCOMING, LOCK = "dataset.incoming", "lock"
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


def run_path(experiments_dir: Path, name: str) -> Path:
    """The folder of a run.

    Raises:
        ArgumentError: The name could lead out of the folder of runs, or is no plain name.
    """
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or _DEVICE.fullmatch(name):
        raise ArgumentError(
            f"experiment_name {name!r}: use letters, digits, '.', '_', '-', '+', '@' and blanks, a letter or "
            "digit first, at most 127 characters, and no name of a device as CON"
        )
    return experiments_dir / name


def read_manifest(path: Path) -> dict[str, Json]:
    """The manifest of a run folder.

    Raises:
        RunFormatError: There is none, a newer version wrote it, or it is damaged.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFormatError(f"{path} is no run folder: it has no {MANIFEST}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFormatError(f"{file} cannot be read: {error}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int):
        raise RunFormatError(f"{file} has no format number; it is damaged, or no manifest of a run")
    if found > RUN_FORMAT:
        raise RunFormatError(
            f"{file} has format {found}; this version reads up to {RUN_FORMAT}: install a newer autorubric"
        )
    damage = _damage_in(manifest)
    if damage:
        raise RunFormatError(f"{file}: {damage}; it is damaged")
    return dict(manifest)


def _damage_in(manifest: Mapping[str, Any]) -> str:
    """What in a manifest cannot be; empty where nothing."""
    for path, kinds in _MAPPINGS.items():
        held: Any = manifest
        for key in path:
            held = held.get(key, {} if len(path) > 1 else None)
        if not isinstance(held, dict):
            return f"{'.'.join(path)} is no mapping"
        if kinds and not all(type(value) in kinds for value in held.values()):
            return f"a value in {'.'.join(path)} is no {kinds[0].__name__}"
    for name, kind in (("started_at", str), ("completed_at", str), ("shard", list), ("missing", list)):
        if not isinstance(manifest.get(name), kind | None):
            return f"{name} is no {kind.__name__}"
    earlier = manifest["dataset"].get("earlier") or {}
    if not isinstance(earlier, dict) or not all(map(_is_texts, earlier.values())):
        return "dataset.earlier is no mapping to lists of texts"
    shard = manifest.get("shard")
    if shard is not None and ([*map(type, shard)] != [int, int, str] or not 0 <= shard[0] < shard[1]):
        return "shard is none"
    return ""


def _is_texts(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, str) for one in held)
