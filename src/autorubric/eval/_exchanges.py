"""Reading the requests and replies of an item's votes from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autorubric._events import Exchanged
from autorubric._files import compact_json, read_compact
from autorubric.eval._folder import PROMPTS, read_manifest, written_by
from autorubric.eval._log import is_intact, log_lines, written_at
from autorubric.eval._notices import warn_of_damage


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    """The exchange with a model that led to a vote.

    Attributes:
        criterion: Name of the criterion.
        judge_id: Id of the judge.
        sample: Index of the sample, from 0.
        order: Names of the candidates in the order shown; None if the criterion is not a comparison.
        exchanged: The request and the reply.
    """

    criterion: str
    judge_id: str
    sample: int
    order: tuple[str, ...] | None
    exchanged: Exchanged


def stored_exchanges(path: Path, item_id: str) -> list[StoredExchange]:
    """Return the stored exchanges for an item's votes, in order of arrival.

    Each line of the file is compared with its checksum, and damaged or moved lines cause a warning.

    Raises:
        OSError: If the file cannot be read.
        RunFormatError: If the folder is not a run folder, or is damaged.
    """
    written = written_by(read_manifest(path))
    unsealed = written.unsealed.get(PROMPTS, 0)
    found: dict[int, StoredExchange] = {}
    # Most lines are about other items, and parsing them would take long.
    begins, damaged = b'{"item":' + compact_json(item_id), 0
    for _, offset, raw in log_lines(path / PROMPTS, 0):
        at: int | None = offset
        if offset >= unsealed and not is_intact(raw, offset, written.mark):
            at = written_at(raw, written.mark)
            damaged += raw.endswith(b"\n")
        if at is None or not raw.startswith(begins):
            continue
        try:
            found.setdefault(at, _exchange(read_compact(raw)))
        except (ValueError, KeyError, TypeError, RecursionError):
            damaged += 1
    if damaged:
        warn_of_damage([f"{PROMPTS} has {damaged:,} damaged or moved lines"])
    return [found[at] for at in sorted(found)]


def _exchange(line: Mapping[str, Any]) -> StoredExchange:
    order = line.get("order")
    return StoredExchange(
        criterion=line["criterion"],
        judge_id=line["judge_id"],
        sample=line["sample"],
        order=None if order is None else tuple(order),
        exchanged=Exchanged(
            messages=tuple((one["role"], one["content"]) for one in line.get("messages", ())),
            replies=tuple(line.get("replies", ())),
            dropped_params=tuple(line.get("dropped_params", ())),
            shared_with=line.get("shared_with"),
        ),
    )
