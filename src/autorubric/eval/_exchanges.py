"""What was sent to models for an item's votes and what came back, read from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autorubric._events import Exchanged
from autorubric._files import compact_json, read_compact
from autorubric.eval._folder import PROMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    """The exchange with a model that led to a vote.

    Attributes:
        criterion: Name of the criterion.
        judge_id: The judge.
        sample: Index of the sample, from 0.
        order: Names of the candidates in the order shown; None for criteria that do not compare.
        exchanged: What was sent and received.
    """

    criterion: str
    judge_id: str
    sample: int
    order: tuple[str, ...] | None
    exchanged: Exchanged


def stored_exchanges(path: Path, item_id: str) -> list[StoredExchange]:
    """The exchanges of an item in a run folder, in the order in which they came; torn lines are left out.

    Raises:
        OSError: The file cannot be read.
    """
    found = []
    # Most lines are of other items, and reading them whole would take long.
    begins = b'{"item":' + compact_json(item_id)
    try:
        file = (path / PROMPTS).open("rb")
    except FileNotFoundError:
        return []
    with file:
        for raw in file:
            if not raw.startswith(begins):
                continue
            try:
                found.append(_exchange(read_compact(raw)))
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
    return found


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
