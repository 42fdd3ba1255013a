"""Judges that replay recorded votes: one rater of a table of labels."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.datasets.ratings import LongRow, label_of, read_long_table
from autorubric.errors import ArgumentError, DatasetError, Fault, ReplyError
from autorubric.judges.base import JudgeReply, JudgeRequest
from autorubric.support.names import match_name, merge_names
from autorubric.support.objects import is_number

Missing = Literal["not_asked"] | str

_Votes: TypeAlias = Mapping[tuple[str, str, int], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class RecordedJudge:
    """A judge that answers from recorded votes, matched by item id, criterion name and sample.

    A value that is not one of the criterion's labels (such as `INVALID`) becomes a failed vote. `NA` selects
    the criterion's NA option if it has one, and is otherwise an abstention.

    Attributes:
        judge_id: Name of the judge in votes and metrics.
        votes: Value, reason, confidence and optionally probabilities by (item id, criterion, sample). If the
            value is empty, the most probable answer is used. For pairs recorded in both orders, these are the
            votes in the declared order.
        missing: What a missing row means: `"not_asked"`, or the label to use.
        swapped: Votes on pairs shown in reverse order; None if the order is not recorded and each pair has
            one vote.
    """

    is_offline: ClassVar[bool] = True

    judge_id: str
    votes: _Votes = field(repr=False)
    missing: Missing = "not_asked"
    swapped: _Votes | None = field(default=None, repr=False)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        rater: str | None = None,
        *,
        judge_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        missing: Missing = "not_asked",
        orders: Mapping[str, str] | None = None,
        probabilities: Mapping[str, str] | None = None,
    ) -> RecordedJudge:
        """Create a judge from one rater's rows in a CSV file.

        Args:
            path: A CSV file with the columns `item_id, criterion, rater, value` and optionally
                `rater_type, sample, reason, confidence, probabilities` (a JSON object such as
                `{"MET": 0.9, "UNMET": 0.1}`), or with one column per annotator.
            rater: Name of the rater; can be omitted if the file has only one.
            judge_id: Name of the judge; by default the rater's name.
            labels: Mapping of recorded values to labels, such as `{"Yes": "MET"}`, also in probabilities,
                where those of equal labels are added up.
            missing: What a missing row means: `"not_asked"`, or a label such as `"UNMET"`.
            orders: For pairs, the rater for each order: `{"ab": rater, "ba": rater}`, where `ba` is the
                reverse of the declared order. A value refers to the same candidate in both orders.
            probabilities: For a table with a column per answer, the labels by column, such as
                `{"p1": "1", "p2": "2"}`; the column `value` is then optional.

        Raises:
            DatasetError: If the file is not a valid table of labels.
            ArgumentError: If the file has several raters and none is selected, or lacks the selected rater.
        """
        by_rater = _rows_by_rater(path, probabilities, [rater] if orders is None else orders.values())
        raters = list(by_rater)
        second = None
        if orders is not None:
            if set(orders) != {"ab", "ba"} or rater is not None:
                raise ArgumentError(
                    "orders must be {'ab': rater, 'ba': rater}, without the argument rater; "
                    f"got orders={dict(orders)!r}, rater={rater!r}"
                )
            if absent := [who for who in orders.values() if who not in raters]:
                what = f"{path} has no rater {', '.join(absent)}"
                raise ArgumentError(f"{what}; available: {', '.join(raters)}")
            first, second = orders["ab"], orders["ba"]
        elif rater is None and len(raters) != 1:
            raise ArgumentError(f"{path} has {len(raters)} raters: {', '.join(raters)}; pass rater=…")
        else:
            first = raters[0] if rater is None else match_name(rater, raters) or rater
        if first not in by_rater:
            raise ArgumentError(f"{path} has no rater {first!r}; available: {', '.join(raters)}")
        return cls(
            judge_id=judge_id or first,
            votes=_votes(path, by_rater[first], labels),
            missing=missing,
            swapped=None if second is None else _votes(path, by_rater[second], labels),
        )

    @classmethod
    def panel_from_csv(
        cls,
        path: str | Path,
        *,
        raters: Sequence[str] | None = None,
        rater_type: str | None = "llm",
        labels: Mapping[str, str] | None = None,
        missing: Missing = "not_asked",
        probabilities: Mapping[str, str] | None = None,
    ) -> list[RecordedJudge]:
        """Create one judge per rater in a CSV file, in the order of their first rows.

        Args:
            path: A CSV file; see `from_csv`.
            raters: Names of the raters; by default all raters of `rater_type`.
            rater_type: Type of the raters; None for any type. If the file has no types, all raters match.
            labels: Mapping of recorded values to labels; see `from_csv`.
            missing: What a missing row means; see `from_csv`.
            probabilities: Labels by column, for a table with a column per answer; see `from_csv`.

        Raises:
            DatasetError: If the file is not a valid table of labels.
            ArgumentError: If a selected rater is not in the file, or no rater has the type.
        """
        by_rater = _rows_by_rater(path, probabilities, raters or ())
        types = {"", rater_type}
        available = [
            name
            for name, rows in by_rater.items()
            if rater_type is None or not types.isdisjoint(row.rater_type for row in rows)
        ]
        chosen = available if raters is None else [match_name(one, available) or one for one in raters]
        absent = [name for name in chosen if name not in available]
        if absent or not chosen:
            what = f"{path} has no {rater_type or ''} rater {', '.join(absent)}"
            raise ArgumentError(f"{what}; available: {', '.join(available)}")
        votes = {name: _votes(path, by_rater[name], labels) for name in chosen}
        return [cls(judge_id=name, votes=own, missing=missing) for name, own in votes.items()]

    def describe(self) -> dict[str, str]:
        """Return the judge's entry in a run's manifest, with a digest of the votes."""
        entry = {"judge": "recorded", "votes": _digest(self.votes), "missing": self.missing}
        return entry if self.swapped is None else {**entry, "swapped": _digest(self.swapped)}

    def takes_reference_for(self, criterion: BaseCriterion) -> bool:
        """Return False, since the recorded rater already had the reference."""
        return False

    @cached_property
    def _criteria(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(criterion for _, criterion, _ in (*self.votes, *(self.swapped or ()))))

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the recorded vote.

        Raises:
            ReplyError: If the recorded value is not one of the criterion's labels.
        """
        name = match_name(request.criterion.name or "", self._criteria) or ""
        key = (request.item_id, name, request.sample)
        votes = self.votes
        if self.swapped is not None and request.order not in ((), tuple(request.submission.candidates)):
            votes = self.swapped
        is_recorded = self.swapped is not None or request.presentation == 0
        if is_recorded and key in votes:
            return _reply(request, *votes[key])
        asked = is_recorded and self.missing != "not_asked"
        return JudgeReply(answer=self.missing if asked else None, asked=asked)


def _rows_by_rater(
    path: str | Path, columns: Mapping[str, str] | None, raters: Iterable[str | None]
) -> dict[str, list[LongRow]]:
    rows = read_long_table(path, probabilities=columns, raters=[one for one in raters if one])
    names = merge_names(row.criterion for row in rows)
    cells = {(row.rater, row.item_id, row.sample, row.criterion) for row in rows}
    if len({(*cell, names[criterion]) for *cell, criterion in cells}) < len(cells):
        names = {name: name for name in names}
        what = "a rater has votes on an item under two spellings of a criterion, which are read as different"
        warnings.warn(f"{path}: {what}", stacklevel=3)
    by_rater: dict[str, list[LongRow]] = {}
    for row in rows:
        by_rater.setdefault(row.rater, []).append(row._replace(criterion=names[row.criterion]))
    return by_rater


def _digest(votes: _Votes) -> str:
    text = json.dumps(sorted(votes.items(), key=lambda entry: entry[0]))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _reply(
    request: JudgeRequest,
    value: str,
    reason: str,
    confidence: float | None,
    probabilities: Mapping[str, Any] | None = None,
) -> JudgeReply:
    criterion = request.criterion
    reply = partial(JudgeReply, reason=reason, confidence=confidence)
    if probabilities is not None:
        # A table with a column per answer also has columns of answers that this criterion does not have.
        given = {label: share for label, share in probabilities.items() if share != 0.0} or probabilities
        reply = partial(reply, probabilities=given, probability_source="recorded")
    if (value == "NA" and criterion.level == "text") or (not value and probabilities is not None):
        return reply(answer=None)
    try:
        answer = criterion.parse_truth(label_of(criterion, value))
    except ReplyError:
        if value != "NA":
            raise
        options = [option for option in criterion.answers() if option.na]
        unsaid = None if probabilities is None else Answer(code=None, cannot_assess=True)
        answer = options[0] if options else unsaid
    return reply(answer=answer)


def _votes(
    path: str | Path, rows: Sequence[LongRow], labels: Mapping[str, str] | None
) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    votes: dict[tuple[str, str, int], tuple[Any, ...]] = {}
    labels, faults = labels or {}, []
    for row in rows:
        key = (row.item_id, row.criterion, row.sample)
        if key in votes:
            message = f"sample {row.sample} appears twice; a rater must have one value per sample"
            faults.append(Fault(path=f"{row.item_id}/{row.criterion}/{row.rater}", message=message))
        given = () if row.probabilities is None else (_relabelled(row.probabilities, labels),)
        votes[key] = (labels.get(row.value, row.value), row.reason, row.confidence, *given)
    if faults:
        raise DatasetError(str(path), faults)
    return votes


def _relabelled(probabilities: Mapping[str, Any], labels: Mapping[str, str]) -> Mapping[str, Any]:
    """Return probabilities by label, or by part and label, with those of equal labels added up."""
    found: dict[str, Any] = {}
    for key, share in probabilities.items():
        if isinstance(share, Mapping):
            found[key] = _relabelled(share, labels)
            continue
        label = labels.get(key, key)
        both = [one for one in (found.get(label), share) if is_number(one)]
        found[label] = round(sum(both), 12) if len(both) == 2 else share
    return found
