"""The votes table: reports and labels as one long table, from which all metrics of a run are computed."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Level
from autorubric.metrics.core.item_scores import Rater
from autorubric.metrics.core.scales import Array, Codes
from autorubric.scoring.probabilities import expected_value
from autorubric.scoring.votes import Decision, JudgeVote, Probabilities
from autorubric.support.names import describe_merged, fold_name
from autorubric.support.objects import Json, is_number

if TYPE_CHECKING:
    import pandas as pd


STATUSES = ("absent", "answered", "abstained", "failed", "not_asked", "not_applicable", "undecided")
"""Statuses of a vote or decision. `absent` means that the table has no row for the item and criterion;
`undecided` means that the answers in a label table are tied."""

ABSENT, ANSWERED, ABSTAINED, FAILED, NOT_ASKED, NOT_APPLICABLE, UNDECIDED = range(len(STATUSES))

DECIDED = -1
"""Value of `sample` in rows that are decisions or labels instead of single votes."""


Outcome: TypeAlias = tuple[int, ...]
"""Number of candidates ranked above each declared candidate: `(0, 1)` if the first of two is better."""


@dataclass(frozen=True, slots=True)
class MeasuredCriterion:
    """A criterion as used by the metrics; those of different items with the same name and scale are equal."""

    name: str
    level: Level
    answers: tuple[Answer, ...]  # declared answers, in order; empty if the possible answers cannot be listed

    @property
    def categories(self) -> tuple[Answer, ...]:
        """Declared answers that are not NA options."""
        return tuple(answer for answer in self.answers if not answer.na)


@dataclass(frozen=True, slots=True)
class VotesTable:
    """A long table of votes, decisions and labels, stored as columns of equal length."""

    criteria: tuple[MeasuredCriterion, ...]
    raters: tuple[Rater, ...]  # All raters, in order of appearance. A rater is a pair of kind and name.
    item_ids: tuple[str, ...]  # ids of the dataset's items, by position
    item: Array  # position of the item in the dataset
    criterion: Array  # position of the criterion in `criteria`
    rater: Array  # position of the rater in `raters`
    sample: Array  # sample index of a vote; -1 for decisions and labels
    order: Array  # order in which the candidates were shown, for votes on comparisons; otherwise None
    origin: Array  # of the probabilities of a vote, see `JudgeVote.probability_origin`; otherwise None
    # position of the answer among the declared answers or, for a comparison, among `outcomes`; -1 if the
    # answer has no position
    code: Array
    label: Array  # answer in words; None if there is no answer
    # Answer in [0, 1]; NaN if the answer has no value. For decisions from soft votes, the expected value.
    value: Array
    number: Array  # answer, or expected value, in its own units if it is a number; otherwise NaN
    na: Array  # whether the answer is an NA option
    # Position of the status in `STATUSES`. Answers that only replace unreadable replies are failed.
    status: Array
    # Probabilities of the answers by label, of votes and of decisions from soft votes; otherwise None.
    probabilities: Array
    # item scores without the length penalty by rater, shape `(n_items,)`, NaN where missing
    scores: Mapping[Rater, Array]
    # Outcomes of comparisons by position of the criterion. An outcome is the number of candidates ranked
    # above each declared candidate, regardless of the candidates' names.
    outcomes: Mapping[int, tuple[Outcome, ...]]
    # origins of the probabilities of each judge with probabilities
    origins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # notes for the user on how the table was read
    # item and criterion of the answers that the panel of a run gave despite tied votes, shape `(n, 2)`
    tied: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.item)

    @property
    def has_probabilities(self) -> bool:
        return bool((self.probabilities != None).any())  # noqa: E711

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def judges(self) -> tuple[str, ...]:
        """Ids of the judges, in order of appearance."""
        return tuple(name for kind, name in self.raters if kind == "judge")

    @property
    def n_tied_labels(self) -> int:
        """Number of cells that at least two people labelled but that have no truth because of a tie."""
        people = [at for at, (kind, _) in enumerate(self.raters) if kind == "human"]
        voted = (self.status == ANSWERED) | ((self.status == ABSTAINED) & self.na)
        theirs = np.isin(self.rater, people) & (self.sample == DECIDED) & voted
        keys = self.criterion * max(self.n_items, 1) + self.item
        cells, n = np.unique(keys[theirs], return_counts=True)
        truth = [at for at, one in enumerate(self.raters) if one[0] == "truth"]
        return int(np.count_nonzero(~np.isin(cells[n > 1], keys[np.isin(self.rater, truth)])))

    @property
    def n_people(self) -> int:
        return sum(kind == "human" for kind, _ in self.raters)

    def rows_of(self, rater: Rater) -> Array:
        """Return the rows of a rater's decisions or labels, without single votes; empty for no such rater."""
        place = self.raters.index(rater) if rater in self.raters else -1
        return np.flatnonzero((self.rater == place) & (self.sample == DECIDED))

    def cell_keys(self, rows: Array) -> Array:
        """Return the number of the cell (a criterion of an item) of each row; it increases with the item."""
        return np.asarray(self.item[rows] * max(len(self.criteria), 1) + self.criterion[rows])

    def make_read_only(self) -> None:
        """Protect the arrays against changes, because several results share the table."""
        columns = [getattr(self, name) for name in _COLUMNS]
        for array in (*columns, *self.scores.values(), self.tied):
            array.flags.writeable = False

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame, in which an absent `sample` or `code` is a missing value."""
        import pandas as pd  # imported here so that pandas is loaded only when needed

        def named(names: Sequence[str], places: Array) -> Any:
            # Only the names are converted to pandas' type of strings, not each cell.
            return pd.Series([*names, None]).array.take(places)

        def nullable(places: Array) -> Any:
            return pd.arrays.IntegerArray(places.copy(), places < 0)

        places, labels = pd.factorize(self.label)
        soft = {"probabilities": self.probabilities, "probability_origin": self.origin}
        return pd.DataFrame(
            {
                "item": self.item,
                "item_id": named(self.item_ids, self.item),
                "criterion": named([criterion.name for criterion in self.criteria], self.criterion),
                "rater": named([name for _, name in self.raters], self.rater),
                "rater_kind": named([kind for kind, _ in self.raters], self.rater),
                "sample": nullable(self.sample),
                "order": self.order,
                "code": nullable(self.code),
                "label": named(labels.tolist(), places),
                "value": self.value,
                "number": self.number,
                "status": named(STATUSES, self.status),
                **(soft if self.has_probabilities else {}),
            }
        )


def single_vote_rows(table: VotesTable) -> Codes:
    """Return the rows of single votes in which a judge answered, as opposed to decisions over its samples."""
    judged = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)
    single = (table.sample != DECIDED) & (table.status == ANSWERED)
    return np.flatnonzero(single & judged[table.rater]) if len(table) else np.zeros(0, dtype=np.int64)


def distinct_names(criteria: Sequence[MeasuredCriterion]) -> tuple[str, ...]:
    """Return a unique name for each criterion by numbering criteria that share a name."""
    seen: dict[str, int] = {}
    names = []
    for one in criteria:
        seen[one.name] = seen.get(one.name, 0) + 1
        names.append(one.name if seen[one.name] == 1 else f"{one.name} ({seen[one.name]})")
    return tuple(names)


def order_by_id(item_ids: Sequence[str]) -> Codes:
    """Return the positions of the items sorted by id, so that the table's order does not matter."""
    return np.array(sorted(range(len(item_ids)), key=lambda at: item_ids[at]), dtype=np.int64)


def rank_by_id(item_ids: Sequence[str]) -> Codes:
    return np.argsort(order_by_id(item_ids))


_NAN = float("nan")
_COLUMNS: dict[str, type] = {
    "item": np.int64,
    "criterion": np.int64,
    "rater": np.int64,
    "sample": np.int64,
    "order": object,
    "origin": object,
    "code": np.int64,
    "label": object,
    "value": float,
    "number": float,
    "na": bool,
    "status": np.int64,
    "probabilities": object,
}
_STATUS = {name: place for place, name in enumerate(STATUSES)}


class Cell(NamedTuple):
    """Place of an answer in the votes table: item, rater and, for votes, sample and order."""

    item: int
    rater: Rater
    sample: int = DECIDED  # sample index of a vote; `DECIDED` for decisions and labels
    order: str | None = None  # order in which the candidates were shown, for votes on comparisons
    origin: str | None = None  # of the probabilities of a vote


@dataclass(slots=True)
class TableRows:
    """A builder that collects the rows of a votes table."""

    criteria: dict[MeasuredCriterion, int] = field(default_factory=dict)
    known: dict[int, tuple[BaseCriterion | MeasuredCriterion, int]] = field(default_factory=dict)
    raters: dict[Rater, int] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)  # first spelling by folded name
    merged: dict[str, str] = field(default_factory=dict)  # first spelling by name
    answer_columns: dict[Any, tuple[Answer | None, tuple[Any, ...]]] = field(default_factory=dict)
    read: dict[tuple[int, Any], Answer | None] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    outcomes: dict[int, dict[Outcome, int]] = field(default_factory=dict)
    tied: list[tuple[int, int]] = field(default_factory=list)
    # Spans of `rows` by what they describe, and the rows of the table as items with spans, if any repeat.
    # Owners of ids are stored, because other objects could reuse the ids if they were deleted.
    spans: dict[Any, tuple[tuple[int, int], Any]] = field(default_factory=dict)
    repeated: list[tuple[int, tuple[int, int]]] = field(default_factory=list)

    def repeat(self, item: int, key: Any, owners: Any, add: Callable[[], None]) -> None:
        """Add the rows that all items with this key have (None: only this one), by `add` if they are new.

        If this is used, all rows must be added by it. `owners` are the objects whose ids the key
        contains.
        """
        known = self.spans.get(key)
        if known is None:
            start = len(self.rows)
            add()
            known = (start, len(self.rows)), owners
            if key is not None:
                self.spans[key] = known
        self.repeated.append((item, known[0]))

    def place(self, criterion: BaseCriterion | MeasuredCriterion) -> int:
        """Return the position of the criterion in the table, adding it if necessary."""
        found = self.known.get(id(criterion))
        if found is None:
            measured = criterion if isinstance(criterion, MeasuredCriterion) else _measured(criterion)
            # The criterion is stored, because another object could reuse its id if it were deleted.
            found = (criterion, self.criteria.setdefault(measured, len(self.criteria)))
            self.known[id(criterion)] = found
        return found[1]

    def number(self, rater: Rater) -> int:
        """Return the position of the rater in the table, adding the rater if necessary."""
        if rater[0] == "human" and rater not in self.raters:
            first = self.people.setdefault(fold_name(rater[1]), rater[1])
            self.merged[rater[1]], rater = first, (rater[0], first)
        return self.raters.setdefault(rater, len(self.raters))

    def mark_tie(self, item: int, criterion: BaseCriterion) -> None:
        """Record that the panel answered a criterion, and each of its parts, despite a tie."""
        for one in (criterion, *criterion.part_fields.values()):
            self.tied.append((item, self.place(one)))

    def code(self, criterion: BaseCriterion, answer: Answer) -> int:
        """Return the position of the answer in the declared answers or, for a comparison, of its outcome."""
        values = criterion.candidate_values(answer)
        if values:
            known = self.outcomes.setdefault(self.place(criterion), {})
            above = tuple(sum(other > own for other in values) for own in values)
            return known.setdefault(above, len(known))
        return -1 if answer.index is None or answer.cannot_assess else answer.index

    def parse(self, criterion: BaseCriterion, raw: Json) -> Answer | None:
        """Parse a label into an answer. Results are cached because labels repeat."""
        if criterion.level == "ranking" or not isinstance(raw, str | int | float | bool):
            return criterion.parse_truth(raw)
        key = (self.place(criterion), (type(raw), raw))
        if key not in self.read:
            self.read[key] = criterion.parse_truth(raw)
        return self.read[key]

    def add(
        self,
        cell: Cell,
        criterion: BaseCriterion,
        answer: Answer | None,
        status: str,
        soft: Decision | None = None,
    ) -> None:
        """Add a decision (`soft`: from soft votes) or a label, and its answers to parts of the criterion."""
        given = soft.probabilities if soft else None
        mean = soft.mean_value if soft and criterion.level != "ranking" else None
        self._add_row(cell, criterion, answer, status, {} if soft and criterion.part_fields else given, mean)
        self._add_parts(cell, criterion, answer, status, given, expects=soft is not None)

    def _add_parts(
        self,
        cell: Cell,
        criterion: BaseCriterion,
        answer: Answer | None,
        status: str,
        given: Probabilities | None = None,
        *,
        expects: bool = False,
    ) -> None:
        if not criterion.part_fields:
            return
        place, on_parts = cell._replace(order=None), _on_parts(criterion, answer)
        for (key, part), part_answer in zip(criterion.part_fields.items(), on_parts, strict=False):
            if part_answer is None and answer is not None:
                continue
            known: Any = (given or {}).get(key)
            mean = expected_value(part, known)[0] if expects and known else None
            self._add_row(place, part, part_answer, status, known, mean)

    def _add_row(
        self,
        cell: Cell,
        criterion: BaseCriterion,
        answer: Answer | None,
        status: str,
        given: Any = None,
        mean: float | None = None,
    ) -> None:
        code = -1
        if answer is not None and status in ("answered", "abstained"):
            code = self.code(criterion, answer)
        answer = answer if mean is None else _expected(criterion, answer, mean)
        self.add_answer(cell, self.place(criterion), answer, status, code, given)

    def add_answer(
        self, cell: Cell, place: int, answer: Answer | None, status: str, code: int, given: Any = None
    ) -> None:
        """Add one row. The answer is stored only if the status is `answered` or `abstained`."""
        at = (cell.item, place, self.number(cell.rater), *cell[2:])
        if given is not None or (answer is not None and answer.index is None):
            self.rows.append((*at, *_answer_columns(answer, status, code, given or None)))
            return
        key = (id(answer), status, code)
        columns = self.answer_columns.get(key)
        if columns is None:
            # The answer is stored, because another object could reuse its id if it were deleted.
            columns = self.answer_columns[key] = (answer, _answer_columns(answer, status, code))
        self.rows.append((*at, *columns[1]))

    def add_vote(self, item: int, criterion: BaseCriterion, vote: JudgeVote) -> None:
        """Add a single vote and its answers to the parts of the criterion."""
        rater: Rater = ("judge", vote.judge_id)
        origin = None if vote.probabilities is None else vote.probability_origin
        if criterion.level == "ranking":
            order = None if vote.order is None else ", ".join(vote.order)
            cell = Cell(item, rater, vote.sample, order, origin)
            answer = criterion.parse_truth(vote.answer)
            self._add_row(cell, criterion, answer, vote.status, vote.probabilities)
            return
        answered = vote.status == "answered"
        code = vote.selected_index if vote.selected_index is not None else -1
        if vote.verdict is not None:
            code = {"UNMET": 0, "MET": 1}.get(str(vote.verdict), -1)
        given = vote.status in ("answered", "abstained")
        label = vote.selected_label or (None if vote.answer is None else str(vote.answer))
        self.rows.append(
            (
                item,
                self.place(criterion),
                self.number(rater),
                vote.sample,
                None,
                None if criterion.part_fields else origin,
                code if given else -1,
                label if given else None,
                _NAN if vote.value is None or not answered else vote.value,
                _as_number(vote.answer) if answered else _NAN,
                vote.na,
                _STATUS[vote.status],
                None if criterion.part_fields else vote.probabilities,
            )
        )
        if criterion.part_fields:
            answer = criterion.parse_truth(vote.answer)
            place = Cell(item, rater, vote.sample, origin=origin)
            self._add_parts(place, criterion, answer, vote.status, vote.probabilities)

    def table(
        self,
        item_ids: tuple[str, ...],
        *,
        scores: Mapping[Rater, Array],
        notes: tuple[str, ...] = (),
        repeated: tuple[Array, Array] | None = None,
    ) -> VotesTable:
        """Convert the rows to a votes table; `repeated` replaces the calls of `repeat` by items and spans."""
        columns: list[Iterable[Any]] = list(zip(*self.rows, strict=True)) or [()] * len(_COLUMNS)
        arrays: dict[str, Array] = {
            name: np.array(column, dtype=kind)
            for (name, kind), column in zip(_COLUMNS.items(), columns, strict=True)
        }
        if merged := describe_merged(self.merged, "raters"):
            warnings.warn(merged, stacklevel=4)
        names, origins = tuple(self.raters), defaultdict[str, set[str]](set)
        for at in np.flatnonzero(arrays["origin"] != None):  # noqa: E711
            origins[names[arrays["rater"][at]][1]].add(arrays["origin"][at])
        if self.repeated:
            items, spans = zip(*self.repeated, strict=True)
            repeated = np.array(items, dtype=np.int64), np.array(spans, dtype=np.int64)
        if repeated is not None:
            arrays = _expand(arrays, *repeated)
        return VotesTable(
            criteria=tuple(self.criteria),
            raters=names,
            item_ids=item_ids,
            scores=scores,
            notes=notes,
            outcomes={place: tuple(known) for place, known in self.outcomes.items()},
            origins={judge: frozenset(found) for judge, found in origins.items()},
            tied=np.array(self.tied, dtype=np.int64).reshape(-1, 2),
            **arrays,
        )


def _expand(arrays: dict[str, Array], items: Array, spans: Array) -> dict[str, Array]:
    """Return the rows of each span, shape `(n, 2)`, for the item at its place."""
    sizes = spans[:, 1] - spans[:, 0]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(spans[:, 1] - ends, sizes)
    return {**{name: column[rows] for name, column in arrays.items()}, "item": np.repeat(items, sizes)}


def _expected(criterion: BaseCriterion, answer: Answer | None, mean: float) -> Answer | None:
    """Return an answer with the expected value instead of its value."""
    if answer is None:
        return None
    number = criterion.answer_at(mean).code
    return replace(answer, value=mean, code=number if is_number(number) else answer.code)


def _answer_columns(answer: Answer | None, status: str, code: int, given: Any = None) -> tuple[Any, ...]:
    """Return the columns of a row that describe the answer."""
    became = _STATUS[status]
    if answer is None or status not in ("answered", "abstained"):
        return (-1, None, _NAN, _NAN, False, became, given)
    value = _NAN if answer.value is None or status != "answered" else answer.value
    number = _as_number(answer.code) if status == "answered" else _NAN
    return (code, _words(answer), value, number, answer.na, became, given)


def _on_parts(criterion: BaseCriterion, answer: Answer | None) -> tuple[Answer | None, ...]:
    """Return an answer's values on each part. An abstention abstains on all parts."""
    if answer is None or answer.abstains:
        return (answer,) * len(criterion.part_fields)
    return criterion.part_answers(answer)


def _measured(criterion: BaseCriterion) -> MeasuredCriterion:
    # Comparisons of different candidates are one criterion: outcomes do not name candidates.
    declared = () if criterion.level == "ranking" else criterion.answers()
    # Only the fields that distinguish scales are copied.
    answers = (
        Answer(code=one.code, value=one.value, label=one.label, index=one.index, na=one.na)
        for one in declared
    )
    return MeasuredCriterion(criterion.name or "", criterion.level, tuple(answers))


def _as_number(code: Json) -> float:
    return float(code) if is_number(code) else _NAN


def _words(answer: Answer) -> str | None:
    if answer.label is not None:
        return answer.label
    if answer.cannot_assess:
        return "CANNOT_ASSESS"
    return None if answer.code is None else str(answer.code)
