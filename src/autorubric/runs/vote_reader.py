"""The votes of all items, read once and in file order, for figures of a whole run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.errors import RunFormatError
from autorubric.runs.lines import StoredVote, parse_vote
from autorubric.scoring.votes import JudgeVote

_UNREAD: Final = frozenset(
    {"reason", "error", "model", "truncated", "token_usage", "completion_cost", "latency_seconds"}
)
"""Fields of votes on which no decision depends."""


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    hints = {"status": str, "answer": Any, "verdict": str | None, "order": tuple[str, ...] | None}
    types = {**JudgeVote.__annotations__, **hints}
    names = {"str": str, "int": int, "float": float, "bool": bool, "str | None": str | None}
    names |= {"int | None": int | None, "float | None": float | None}
    declared = [
        (one.name, names.get(types[one.name], types[one.name]))
        if one.default is MISSING
        else (one.name, names.get(types[one.name], types[one.name]), one.default)
        for one in fields(JudgeVote)
        if one.name not in _UNREAD
    ]
    vote = msgspec.defstruct("Vote", declared, frozen=True, gc=False, kw_only=True)
    line = msgspec.defstruct(
        "Line", [("item", str), ("criterion", str), ("digest", str), ("vote", vote)], gc=False
    )
    return msgspec.json.Decoder(line)


class VoteReader:
    """Reads votes in file order; votes that lead to the same decisions share one object."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[Any, JudgeVote] = {}

    def read(self, positions: Mapping[int, int]) -> dict[int, list[tuple[str, str, JudgeVote]]]:
        """Return criterion, digest and vote by position; `positions` are those of the votes at each offset."""
        decode, known = _decoder().decode, self._known
        found: dict[int, list[tuple[str, str, JudgeVote]]] = {}
        offset = 0
        with self._path.open("rb") as file:
            for raw in file:
                position = positions.get(offset)
                offset += len(raw)
                if position is None:
                    continue
                try:
                    line = decode(raw)
                    key = (line.criterion, type(line.vote.answer), line.vote)
                    vote = known.get(key)
                    if vote is None:
                        vote = known[key] = parse_vote(raw).vote
                except (msgspec.DecodeError, TypeError):
                    line = parse_vote(raw)
                    vote = line.vote
                found.setdefault(position, []).append((line.criterion, line.digest, vote))
        return found
