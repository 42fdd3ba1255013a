"""The votes of all items and the decisions on them, read once and in file order, for metrics of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.runs.lines import parse_vote
from autorubric.scoring.report_builder import GradingPolicy, criterion_report, report_on, under_conditions
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.votes import JudgeVote

StoredVotes: TypeAlias = Sequence[tuple[str, str, JudgeVote]]
"""Criterion, digest and vote of each line about an item, in file order."""


class ValidVotes(Protocol):
    """The votes of a run that are still valid."""

    def matching(self, position: int, stored: StoredVotes) -> Mapping[str, Sequence[JudgeVote]]:
        """Return the valid votes on an item by criterion."""

    def current(
        self, criterion: BaseCriterion, votes: Sequence[JudgeVote], declared: tuple[str, ...]
    ) -> list[JudgeVote]:
        """Return votes with current weights and values, in the order of the panel."""


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
        """Return criterion, digest and vote by position; `positions` maps offsets of lines to positions."""
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


class SharedReports:
    """Builds reports on criteria; equal votes on a criterion share one report."""

    def __init__(self, valid: ValidVotes, dataset: RubricDataset, policy: GradingPolicy) -> None:
        self._valid = valid
        self._dataset = dataset
        self._policy = policy
        # The keys contain ids of objects that the values refer to.
        self._known: dict[tuple[Any, ...], EnsembleCriterionReport] = {}

    def __call__(self, position: int, item: DataItem, stored: StoredVotes) -> list[EnsembleCriterionReport]:
        votes = self._valid.matching(position, stored) if stored else {}
        rubric = self._dataset.get_item_rubric(position)
        reports = [self._report(item, one, votes.get(one.name or "", ())) for one in rubric.root.leaves]
        return under_conditions(reports, self._policy)

    def _report(
        self, item: DataItem, criterion: BaseCriterion, votes: Sequence[JudgeVote]
    ) -> EnsembleCriterionReport:
        if criterion.level == "ranking":
            submission = Submission.parse(item.submission)
            current = self._valid.current(criterion.bind(submission), votes, tuple(submission.candidates))
            return report_on(submission, criterion, current, self._policy)
        key = (id(criterion), *map(id, votes))
        known = self._known.get(key)
        if known is None:
            current = self._valid.current(criterion, votes, ())
            known = self._known[key] = criterion_report(criterion, current, self._policy)
        return known
