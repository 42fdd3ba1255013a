"""The votes of all items and the decisions on them, read once and in file order, for metrics of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, get_type_hints

import msgspec

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.runs.lines import StoredItem, parse_vote, votes_changed
from autorubric.scoring.report_builder import GradingPolicy, criterion_report, report_on, under_conditions
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.votes import JudgeVote

StoredVotes: TypeAlias = Sequence[tuple[str, str, JudgeVote]]
"""Criterion, digest and vote of each line about an item, in file order."""


class ValidVotes(Protocol):
    """The votes of a run that are still valid."""

    def valid_votes(self, position: int, stored: StoredVotes) -> Mapping[str, Sequence[JudgeVote]]:
        """Return the valid votes on an item by criterion."""

    def update_votes(
        self, criterion: BaseCriterion, votes: Sequence[JudgeVote], declared: tuple[str, ...]
    ) -> list[JudgeVote]:
        """Return votes with current weights and values, in the order of the panel."""


_UNREAD: Final = frozenset(
    {"reason", "error", "model", "truncated", "token_usage", "completion_cost", "latency_seconds"}
)
"""Fields of votes on which no decision depends."""


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    types = get_type_hints(JudgeVote) | {"status": str, "verdict": str | None}
    declared = [
        (one.name, types[one.name], *(() if one.default is MISSING else (one.default,)))
        for one in fields(JudgeVote)
        if one.name not in _UNREAD
    ]
    vote = msgspec.defstruct("Vote", declared, frozen=True, gc=False, kw_only=True)
    line = msgspec.defstruct(
        "Line", [("item", str), ("criterion", str), ("digest", str), ("vote", vote)], gc=False
    )
    return msgspec.json.Decoder(line)


def read_all_votes(path: Path, items: Iterable[StoredItem]) -> dict[int, StoredVotes]:
    """Return the votes that the lines of items list, by the item's position.

    The file is read once, from start to end. Votes that lead to the same decisions share one object.

    Raises:
        RunFormatError: If a vote is missing, or a line is about another item.
    """
    owners = {offset: item for item in items for offset in item.votes}
    decode = _decoder().decode
    known: dict[Any, JudgeVote] = {}
    found: dict[int, list[tuple[str, str, JudgeVote]]] = {}
    offset, n_found = 0, 0
    with path.open("rb") as file:
        for raw in file:
            owner = owners.get(offset)
            offset += len(raw)
            if owner is None:
                continue
            try:
                line = decode(raw)
                item_id, criterion, digest = line.item, line.criterion, line.digest
                key = (criterion, type(line.vote.answer), line.vote)
                vote = known.get(key)
                if vote is None:
                    vote = known[key] = parse_vote(raw).vote
            # Answers with parts are not hashable.
            except (msgspec.DecodeError, TypeError):
                item_id, criterion, digest, vote = _parse_line(raw)
            if vote is None or item_id != owner.item_id:
                break
            n_found += 1
            found.setdefault(owner.position, []).append((criterion, digest, vote))
    if n_found < len(owners):
        raise votes_changed(path)
    return dict(found)


def _parse_line(raw: bytes) -> tuple[str | None, str, str, JudgeVote | None]:
    try:
        line = parse_vote(raw)
    except ValueError:
        return None, "", "", None
    return line.item_id, line.criterion, line.digest, line.vote


class SharedReports:
    """Builds reports on criteria; equal votes on a criterion share one report."""

    def __init__(self, valid: ValidVotes, dataset: RubricDataset, policy: GradingPolicy) -> None:
        self._valid = valid
        self._dataset = dataset
        self._policy = policy
        # The keys contain ids of a criterion and votes. These objects are stored, because other objects could
        # reuse their ids if they were deleted.
        self._known: dict[tuple[Any, ...], tuple[EnsembleCriterionReport, Any]] = {}

    def __call__(self, position: int, item: DataItem, stored: StoredVotes) -> list[EnsembleCriterionReport]:
        votes = self._valid.valid_votes(position, stored) if stored else {}
        rubric = self._dataset.get_item_rubric(position)
        reports = [self._report(item, one, votes.get(one.name or "", ())) for one in rubric.root.leaves]
        return under_conditions(reports, self._policy)

    def _report(
        self, item: DataItem, criterion: BaseCriterion, votes: Sequence[JudgeVote]
    ) -> EnsembleCriterionReport:
        if criterion.level == "ranking":
            submission = Submission.parse(item.submission)
            declared = tuple(submission.candidates)
            current = self._valid.update_votes(criterion.bind(submission), votes, declared)
            return report_on(submission, criterion, current, self._policy)
        key = (id(criterion), *map(id, votes))
        known = self._known.get(key)
        if known is None:
            current = self._valid.update_votes(criterion, votes, ())
            known = criterion_report(criterion, current, self._policy), (criterion, votes)
            self._known[key] = known
        return known[0]
