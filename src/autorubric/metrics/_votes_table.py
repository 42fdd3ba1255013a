"""The votes table: reports and labels as one long table, from which all metrics of a run are computed.

Each row is a vote, a judge's decision over its samples, the panel's decision, a human rating or a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from autorubric.metrics._item_scores import Rater
from autorubric.metrics._resampling import Array
from autorubric.values import Answer, Level

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
    """A criterion as used by the metrics. Criteria of different items with the same name and scale are equal.

    Attributes:
        name: Name of the criterion.
        level: Measurement level of the answers.
        answers: Declared answers, in order; empty if the possible answers cannot be listed.
    """

    name: str
    level: Level
    answers: tuple[Answer, ...]

    @property
    def categories(self) -> tuple[Answer, ...]:
        """Declared answers that are not NA options."""
        return tuple(answer for answer in self.answers if not answer.na)


@dataclass(frozen=True, slots=True)
class VotesTable:
    """A long table of votes, decisions and labels, stored as columns of equal length.

    Attributes:
        criteria: All criteria, in order of appearance.
        raters: All raters, in order of appearance. A rater is a pair of kind and name.
        item_ids: Ids of the dataset's items, by position.
        item: Position of the item in the dataset.
        criterion: Position of the criterion in `criteria`.
        rater: Position of the rater in `raters`.
        sample: Sample index of a vote; -1 for decisions and labels.
        order: Order in which the candidates were shown, for votes on comparisons; otherwise None.
        code: Position of the answer among the declared answers or, for a comparison, among `outcomes`; -1 if
            the answer has no position.
        label: Answer in words; None if there is no answer.
        value: Answer in [0, 1]; NaN if the answer has no value.
        number: Answer in its own units if it is a number; otherwise NaN.
        na: Whether the answer is an NA option.
        status: Position of the status in `STATUSES`. Answers that only replace unreadable replies are failed.
        scores: Item scores without the length penalty by rater, shape `(n_items,)`, NaN where missing.
        outcomes: Outcomes of comparisons by position of the criterion. An outcome is the number of candidates
            ranked above each declared candidate, regardless of the candidates' names.
        notes: Notes for the user on how the table was read.
        tied: Item and criterion of the answers that the panel of a run gave despite tied votes, shape
            `(n, 2)`.
    """

    criteria: tuple[MeasuredCriterion, ...]
    raters: tuple[Rater, ...]
    item_ids: tuple[str, ...]
    item: Array
    criterion: Array
    rater: Array
    sample: Array
    order: Array
    code: Array
    label: Array
    value: Array
    number: Array
    na: Array
    status: Array
    scores: Mapping[Rater, Array]
    outcomes: Mapping[int, tuple[Outcome, ...]]
    notes: tuple[str, ...] = ()
    tied: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items in the dataset."""
        return len(self.item_ids)

    @property
    def judges(self) -> tuple[str, ...]:
        """Ids of the judges, in order of appearance."""
        return tuple(name for kind, name in self.raters if kind == "judge")

    @property
    def n_tied_labels(self) -> int:
        """Number of cells that at least two people labelled but that have no ground truth because of a tie.

        Under the strict majority rule, this includes cells in which no label has more than half of the votes.
        """
        people = [at for at, (kind, _) in enumerate(self.raters) if kind == "human"]
        voted = (self.status == ANSWERED) | ((self.status == ABSTAINED) & self.na)
        theirs = np.isin(self.rater, people) & (self.sample == DECIDED) & voted
        keys = self.criterion * max(self.n_items, 1) + self.item
        cells, n = np.unique(keys[theirs], return_counts=True)
        truth = [at for at, one in enumerate(self.raters) if one[0] == "truth"]
        return int(np.count_nonzero(~np.isin(cells[n > 1], keys[np.isin(self.rater, truth)])))

    @property
    def n_people(self) -> int:
        """Number of people who labelled items."""
        return sum(kind == "human" for kind, _ in self.raters)

    def rows_of(self, rater: Rater) -> Array:
        """Return the row positions of one rater's decisions or labels, without single votes."""
        return np.flatnonzero((self.rater == self.raters.index(rater)) & (self.sample == DECIDED))

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame, in which an absent `sample` or `code` is a missing value."""
        import pandas as pd  # imported here so that pandas is loaded only when needed

        def named(names: Sequence[str], places: Array) -> Array:
            return np.array([*names, None], dtype=object)[places]

        def nullable(places: Array) -> Any:
            return pd.array([None if place < 0 else place for place in places.tolist()], dtype="Int64")

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
                "label": self.label,
                "value": self.value,
                "number": self.number,
                "status": named(STATUSES, self.status),
            }
        )
