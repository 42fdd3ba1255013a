"""The votes of a run: read or collected together as columns, those that are valid, and decisions on them."""

from __future__ import annotations

import json
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from hashlib import sha256
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_type_hints

import msgspec

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import CHECK_JUDGE_ID, Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.item import DataItem
from autorubric.errors import FileError, ReplyError
from autorubric.grading.base import GradingTask, VoteKey, key_of
from autorubric.rubric.rubric import Rubric
from autorubric.runs.differences import ItemDigests, VoteDigests, basis_of, mapping_in
from autorubric.runs.lines import StoredItem, StoredVote, line_of_vote, parse_vote, votes_changed
from autorubric.runs.notices import Notices
from autorubric.scoring.probabilities import read_probabilities
from autorubric.scoring.report_builder import GradingPolicy, criterion_report, report_on, under_conditions
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.votes import JudgeVote
from autorubric.support.objects import IdentityCache, Json, Memo
from autorubric.support.write import write_parts_atomic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VoteKind(NamedTuple):
    """Votes on a criterion that lead to the same decisions."""

    place: VoteKey  # on each item, only the last vote with this key is valid
    vote: JudgeVote  # one of these votes

    @classmethod
    def of(cls, stored: StoredVote) -> VoteKind:
        """Return the kind of a stored vote."""
        return cls(key_of(stored.criterion, stored.vote), stored.vote)


class VoteColumns(NamedTuple):
    """Votes as columns, sorted by item."""

    item: NDArray[np.int64]  # position of the item in the dataset, shape `(n_votes,)`
    kind: NDArray[np.int64]  # position in `kinds`, shape `(n_votes,)`
    kinds: Sequence[VoteKind]
    # Of the dependencies of each vote; None if only valid votes are listed.
    digests: NDArray[np.bytes_] | None

    def on_items(self, positions: Sequence[int]) -> Iterator[tuple[list[int], list[bytes] | None]]:
        """Yield the kinds and the digests of the votes on each item."""
        import numpy as np

        starts, ends = (np.searchsorted(self.item, positions, side=side) for side in ("left", "right"))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            digests = None if self.digests is None else self.digests[start:end].tolist()
            yield self.kind[start:end].tolist(), digests


_UNREAD: Final = frozenset(
    {
        "reason", "error", "model", "truncated", "shown", "token_usage", "completion_cost", "latency_seconds",
        "wait_seconds",
        "probability_source", "probability_backend", "probability_reason",
    }
)  # fmt: skip
"""Fields of votes on which no decision depends."""


class _Decoding(NamedTuple):
    """The decoder of lines of votes, and the types of its results."""

    decoder: msgspec.json.Decoder[Any]
    line: type[Any]
    vote: type[Any]


def _fields_read(*, with_confidence: bool) -> list[Field[Any]]:
    """Return the fields of votes on which decisions depend; confidences matter only for escalation."""
    unread = _UNREAD if with_confidence else _UNREAD | {"confidence"}
    return [one for one in fields(JudgeVote) if one.name not in unread]


@cache
def _decoding(*, with_confidence: bool) -> _Decoding:
    types = get_type_hints(JudgeVote) | {"status": str, "verdict": str | None}
    declared = [
        (one.name, types[one.name], *(() if one.default is MISSING else (one.default,)))
        for one in _fields_read(with_confidence=with_confidence)
    ]
    vote = msgspec.defstruct("Vote", declared, frozen=True, gc=False, kw_only=True)
    line = msgspec.defstruct(
        "Line", [("item", str), ("criterion", str), ("digest", str), ("vote", vote)], gc=False
    )
    return _Decoding(msgspec.json.Decoder(line), line, vote)


_DIGEST: Final = 16
"""Length of a vote's digest."""

_BLOCK: Final = 1 << 22
"""Bytes of lines that are decoded together."""


def read_all_votes(path: Path, items: Iterable[StoredItem], *, with_confidence: bool) -> VoteColumns:
    """Return the votes that the lines of items list, in file order within an item."""
    import numpy as np

    ids: dict[int, str] = {}
    owners: dict[int, int] = {}
    for line in items:
        ids[line.position] = line.item_id
        owners.update(dict.fromkeys(line.votes, line.position))
    reader, offset = _VoteReader(ids, _decoding(with_confidence=with_confidence)), 0
    with path.open("rb") as file:
        while block := file.readlines(_BLOCK):
            *starts, offset = accumulate(map(len, block), initial=offset)
            if not reader.add(list(map(owners.get, starts)), block):
                break
    if len(reader.items) < len(owners):
        raise votes_changed(path)
    item, kind = np.array(reader.items, dtype=np.int64), np.array(reader.kinds, dtype=np.int64)
    order = np.argsort(item, kind="stable")
    # Longer digests are cut to a length that no valid digest has.
    digests = np.array([one.encode("ascii", "replace") for one in reader.digests], dtype=f"S{_DIGEST + 1}")
    return VoteColumns(item[order], kind[order], reader.known, digests[order])


class _VoteReader:
    """Collects the columns of lines of votes."""

    def __init__(self, ids: Mapping[int, str], decoding: _Decoding) -> None:
        self._ids = ids
        self._decoding = decoding
        self.items: list[int] = []
        self.kinds: list[int] = []
        self.digests: list[str] = []
        self.known: list[VoteKind] = []
        self._places = _Numbers()

    def add(self, owners: Sequence[int | None], raws: Sequence[bytes]) -> bool:
        """Add the lines on items; return False if one of them is not a vote on its item."""
        positions = [owner for owner in owners if owner is not None]
        if len(positions) < len(raws):
            raws = [raw for owner, raw in zip(owners, raws, strict=True) if owner is not None]
        try:
            lines = self._decoding.decoder.decode_lines(b"".join(raws))
            kinds = [self._places[_key_of(one.criterion, one.vote.answer, one.vote)] for one in lines]
        # Numbers may be infinite, texts may contain lone surrogates, and answers with parts are not hashable.
        except (msgspec.DecodeError, ValueError, TypeError):
            try:
                lines = [_decode_line(raw, self._decoding) for raw in raws]
            except ValueError:
                return False
            kinds = [
                self._places[_key_of(one.criterion, one.vote.answer, _hashable(one.vote))] for one in lines
            ]
        if [one.item for one in lines] != [self._ids[position] for position in positions]:
            return False
        first = dict(zip(reversed(kinds), reversed(range(len(kinds))), strict=True))
        for number in range(len(self.known), len(self._places)):
            try:
                stored = parse_vote(raws[first[number]])
            except ValueError:
                return False
            self.known.append(VoteKind.of(stored))
        self.items += positions
        self.kinds += kinds
        self.digests += [one.digest for one in lines]
        return True


class _Numbers(dict[Any, int]):
    """Numbers of keys in order of appearance."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


def _key_of(criterion: str, answer: Json, vote: Any) -> tuple[Any, ...]:
    """Return a key that differs for answers that only compare equal: True, 1 and 1.0, and 0.0 and -0.0."""
    return criterion, type(answer), answer is not None and not answer and repr(answer), vote


def _hashable(vote: Any) -> Any:
    return repr(vote) if vote.probabilities is not None or isinstance(vote.answer, list | dict) else vote


def _decode_line(raw: bytes, decoding: _Decoding) -> Any:
    with suppress(msgspec.DecodeError, ValueError):
        return decoding.decoder.decode(raw)
    stored = parse_vote(raw)
    kept = {name: getattr(stored.vote, name) for name in decoding.vote.__struct_fields__}
    return decoding.line(stored.item_id, stored.criterion, stored.digest, decoding.vote(**kept))


_FEWEST: Final = 2_000
"""Number of votes from which on reading a snapshot is faster than reading the log."""

_MOST_KINDS: Final = 5_000
"""Number of kinds of votes up to which a snapshot is written."""


class VoteCollector:
    """Collects the votes of a run, in the order of their arrival, for a snapshot."""

    def __init__(self, *, with_confidence: bool) -> None:
        self._read = attrgetter(*(one.name for one in _fields_read(with_confidence=with_confidence)))
        self._items, self._kinds = array("i"), array("i")
        self._known: list[VoteKind] = []
        self._places = _Numbers()

    def add(self, position: int, criterion: str, vote: JudgeVote) -> None:
        """Add a vote on the item at a position."""
        if len(self._known) > _MOST_KINDS:
            return
        read: Any = self._read(vote)
        if vote.probabilities is not None or isinstance(vote.answer, list | dict):
            read = repr(read)
        kind = self._places[_key_of(criterion, vote.answer, read)]
        if kind == len(self._known):
            self._known.append(VoteKind.of(StoredVote("", criterion, "", vote)))
        self._items.append(position)
        self._kinds.append(kind)

    def write(self, path: Path, state: str) -> None:
        """Write the snapshot; see `write_snapshot`."""
        write_snapshot(path, state, self._items, self._kinds, self._known)


def read_snapshot(path: Path, state: str) -> VoteColumns | None:
    """Return the valid votes of a run from a snapshot; None if it does not match the run's state."""
    import numpy as np

    try:
        first, _, content = path.read_bytes().partition(b"\n")
        n_votes = json.loads(first)["votes"]
        if first != _seal(state, n_votes, [content]):
            return None
        item, kind = np.frombuffer(content[: 8 * n_votes], dtype="<i4").astype(np.int64).reshape(2, n_votes)
        kinds = [VoteKind.of(parse_vote(line)) for line in content[8 * n_votes :].split(b"\n")[:-1]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    order = np.argsort(item, kind="stable")
    return VoteColumns(item[order], kind[order], kinds, None)


def write_snapshot(
    path: Path, state: str, items: array[int], kinds: array[int], known: Sequence[VoteKind]
) -> None:
    """Write the valid votes of a run, unless there are few or too different, or the folder is read-only."""
    if len(items) < _FEWEST or len(known) > _MOST_KINDS:
        return
    if sys.byteorder == "big":
        items, kinds = items[:], kinds[:]
        items.byteswap()
        kinds.byteswap()
    lines = b"".join(line_of_vote(StoredVote("", one.place[0], "", one.vote)) + b"\n" for one in known)
    # The columns are not copied: a run's memory should not grow when it ends.
    content = (memoryview(items).cast("B"), memoryview(kinds).cast("B"), lines)
    with suppress(FileError):
        write_parts_atomic(path, (_seal(state, len(items), content), b"\n", *content))


def _seal(state: str, n_votes: int, content: Iterable[bytes | memoryview]) -> bytes:
    """Return the first line of a snapshot; its checksum also covers the other values of the line."""
    sealed = f'{{"format":1,"state":"{state}","votes":{n_votes:d}'.encode("ascii")
    checksum = sha256(sealed)
    for part in content:
        checksum.update(part)
    return b'%b,"sha256":"%b"}' % (sealed, checksum.hexdigest().encode("ascii"))


class ReusableVotes:
    """Selects the votes of a run that are still valid."""

    def __init__(self, dataset: RubricDataset, manifest: Mapping[str, Json]) -> None:
        asking: Mapping[str, Any] = manifest.get("asking") or {}
        deciding: Mapping[str, Any] = manifest.get("deciding") or {}
        self._dataset = dataset
        self._manifest = manifest
        self._digests = VoteDigests(dataset.rubric, manifest)
        self._samples: Mapping[str, int] = (asking.get("sampling") or {}).get("samples") or {}
        self._weights: Mapping[str, float] = deciding.get("judge_weights") or {}
        self._panel = {judge_id: place for place, judge_id in enumerate(asking.get("judges") or {})}
        self._second_panel = frozenset((deciding.get("escalation") or {}).get("judges") or ())

    @property
    def basis(self) -> list[Json]:
        """Digests of the settings, the dataset and the log on which the validity of votes depends."""
        asking, deciding = (mapping_in(self._manifest, key) for key in ("asking", "deciding"))
        data = mapping_in(self._manifest, "dataset")
        return [
            basis_of(asking, deciding, self._dataset.rubric),
            data.get("sha256"),
            self._manifest.get("mark"),
        ]

    def digests(self, position: int) -> ItemDigests:
        """Return the digests of the dependencies of votes on an item."""
        rubric = self._dataset.get_item_rubric(position)
        return self._digests.item(self._dataset.item_fingerprint(position), rubric)

    def due(self, position: int, *, of_all: bool = False) -> dict[str, Counter[str]]:
        """Return how many votes on an item are due by criterion and judge; `of_all` adds a second panel."""
        judges = [one for one in self._panel if of_all or one not in self._second_panel]
        # Graders of other classes do not list their judges.
        n_votes = {one: self._samples.get(one, 1) for one in judges} or {"unlisted judges": 1}
        found = {}
        for criterion in self._dataset.get_item_rubric(position):
            own = Counter(n_votes if criterion.check is None else [CHECK_JUDGE_ID])
            if criterion.level == "ranking" and criterion.check is None:
                submission = Submission.parse(self._dataset.items[position].submission)
                n_orders = len(criterion.bind(submission).presentations(submission, None))
                own = Counter({judge: n * n_orders for judge, n in own.items()})
            found[criterion.name or ""] = own
        return found

    def select(
        self, position: int, task: GradingTask, stored: Sequence[StoredVote], notices: Notices
    ) -> dict[str, list[JudgeVote]]:
        """Return the votes on an item whose dependencies have not changed, by criterion."""
        if not stored:
            return {name: [] for name in task.rubric.names}
        fits, samples = self.digests(position).fits, self._samples
        latest = {
            key_of(one.criterion, vote): one
            for one in stored
            if (vote := one.vote).sample < samples.get(vote.judge_id, 1)
            and fits(one.criterion, vote.judge_id, one.digest)
        }
        found: dict[str, list[JudgeVote]] = {name: [] for name in task.rubric.names}
        bound = {criterion.name: criterion.bind(task.submission) for criterion in task.rubric}
        for one in latest.values():
            try:
                found[one.criterion].append(self._updated_vote(bound[one.criterion], one.vote))
            except ReplyError as error:
                kind = "damaged votes were skipped"
                notices.add(kind, f"a damaged vote on item {one.item_id} was skipped: {error}")
        declared = tuple(task.submission.candidates)
        return {name: self._in_panel_order(votes, declared) for name, votes in found.items()}

    def _updated_vote(self, criterion: BaseCriterion, vote: JudgeVote) -> JudgeVote:
        """Return a vote with the judge's current weight and the current values of the options."""
        if vote.probabilities is not None:
            read_probabilities(criterion, vote.probabilities)
        value = _answer_value(criterion, vote.answer)
        weight = self._weights.get(vote.judge_id, vote.weight)
        if weight == vote.weight and value == vote.value:
            return vote
        return replace(vote, weight=weight, value=value)

    def _in_panel_order(self, votes: Sequence[JudgeVote], declared: tuple[str, ...]) -> list[JudgeVote]:
        """Return the votes sorted by judge, sample and displayed order."""
        places = [self._panel.get(vote.judge_id, len(self._panel)) for vote in votes]
        if places == sorted(set(places)):
            return list(votes)

        def key(vote: JudgeVote) -> tuple[int, int, bool]:
            swapped = vote.order is not None and tuple(vote.order) != declared
            return (self._panel.get(vote.judge_id, len(self._panel)), vote.sample, swapped)

        return sorted(votes, key=key)

    def valid_kinds(
        self, position: int, known: Sequence[VoteKind], kinds: Sequence[int], digests: Sequence[bytes]
    ) -> tuple[list[int], bool]:
        """Return the kinds of the valid votes on an item in file order, and whether all votes are valid."""
        fits, samples = self.digests(position).fits, self._samples
        latest, is_all = {}, True
        for kind, digest in zip(kinds, digests, strict=True):
            criterion, judge_id, sample, _ = place = known[kind].place
            if fits(criterion, judge_id, digest.decode("ascii")) and sample < samples.get(judge_id, 1):
                latest[place] = kind
            else:
                is_all = False
        return list(latest.values()), is_all

    def update_votes(
        self, criterion: BaseCriterion, votes: Sequence[JudgeVote], declared: tuple[str, ...]
    ) -> list[JudgeVote]:
        """Return votes with current weights and values, in the order of the panel."""
        updated = []
        for vote in votes:
            with suppress(ReplyError):
                updated.append(self._updated_vote(criterion, vote))
        return self._in_panel_order(updated, declared)


class SharedReports:
    """Builds reports on criteria; equal votes on a criterion share one report."""

    def __init__(
        self, valid: ReusableVotes, known: Sequence[VoteKind], dataset: RubricDataset, policy: GradingPolicy
    ) -> None:
        self._valid = valid
        self._votes = [one.vote for one in known]
        self._criteria = [one.place[0] for one in known]
        self._dataset = dataset
        self._policy = policy
        # The keys contain the ids of rubrics and criteria, which are stored, because other objects could
        # reuse these ids if they were deleted.
        self._known: dict[tuple[int, ...], tuple[EnsembleCriterionReport, BaseCriterion]] = {}
        self._leaves: dict[int, tuple[Rubric, tuple[BaseCriterion, ...]]] = {}

    def __call__(self, position: int, item: DataItem, kinds: Sequence[int]) -> list[EnsembleCriterionReport]:
        """Return the reports on an item from the kinds of its valid votes."""
        votes: dict[str, list[int]] = {}
        for kind in kinds:
            votes.setdefault(self._criteria[kind], []).append(kind)
        rubric = self._dataset.get_item_rubric(position)
        if id(rubric) not in self._leaves:
            self._leaves[id(rubric)] = rubric, rubric.root.leaves
        leaves = self._leaves[id(rubric)][1]
        reports = [self._report(item, one, votes.get(one.name or "", ())) for one in leaves]
        return under_conditions(reports, self._policy)

    def _report(
        self, item: DataItem, criterion: BaseCriterion, kinds: Sequence[int]
    ) -> EnsembleCriterionReport:
        if criterion.level == "ranking":
            submission = Submission.parse(item.submission)
            bound, declared = criterion.bind(submission), tuple(submission.candidates)
            return report_on(submission, criterion, self._update(bound, kinds, declared), self._policy)
        key = (id(criterion), *kinds)
        known = self._known.get(key)
        if known is None:
            current = self._update(criterion, kinds, ())
            known = self._known[key] = criterion_report(criterion, current, self._policy), criterion
        return known[0]

    def _update(
        self, criterion: BaseCriterion, kinds: Sequence[int], declared: tuple[str, ...]
    ) -> list[JudgeVote]:
        return self._valid.update_votes(criterion, [self._votes[kind] for kind in kinds], declared)


_VALUES: Final = IdentityCache[BaseCriterion, Memo[float | None]](lambda criterion: Memo())
"""Values of answers by criterion."""


def _answer_value(criterion: BaseCriterion, answer: Json) -> float | None:
    """Return the value of a vote's answer, computed once for equal answers to a criterion."""
    if not isinstance(answer, str | int | float) or criterion.level == "ranking":
        return _read_value(criterion, answer)
    return _VALUES.of(criterion).once((type(answer), answer), _read_value, criterion, answer)


def _read_value(criterion: BaseCriterion, answer: Json) -> float | None:
    read = criterion.parse_truth(answer)
    return None if read is None else read.value
