"""The votes table: reports and labels as one long table, from which every figure of a run is computed.

A row is one vote, one judge's decision over its samples, the panel's decision, a person's rating, or a label.
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
"""What became of a vote or decision; `absent` where a table over cells has no row, `undecided` where several
answers of a label table lead."""

ABSENT, ANSWERED, ABSTAINED, FAILED, NOT_ASKED, NOT_APPLICABLE, UNDECIDED = range(len(STATUSES))

DECIDED = -1
"""`sample` of a row that is a decision or a label and no single vote."""


Outcome: TypeAlias = tuple[int, ...]
"""For each declared candidate how many stand above it: `(0, 1)` where the first of a pair is better."""


@dataclass(frozen=True, slots=True)
class MeasuredCriterion:
    """A criterion as the figures see it; those of one name and one scale are the same, whatever the item.

    Attributes:
        name: Its name.
        level: Its measurement level.
        answers: Its declared answers, in order; empty where they cannot be listed.
    """

    name: str
    level: Level
    answers: tuple[Answer, ...]

    @property
    def categories(self) -> tuple[Answer, ...]:
        """The declared answers that are no NA option."""
        return tuple(answer for answer in self.answers if not answer.na)


@dataclass(frozen=True, slots=True)
class VotesTable:
    """One long table, by columns of equal length.

    Attributes:
        criteria: The criteria that occur, in order of appearance.
        raters: Who voted, rated or labelled, in order of appearance; a rater is a kind and a name.
        item_ids: Ids of the dataset's items, by position.
        item: Position of the item.
        criterion: Position in `criteria`.
        rater: Position in `raters`.
        sample: Index of a vote's sample; -1 for decisions and labels.
        order: Candidates in the order shown, for votes that compare; else None.
        code: Position of the answer among the declared ones, of a comparison among `outcomes`; -1 where
            there is none.
        label: The answer in words; None where there is none.
        value: The answer on [0, 1]; NaN where it has none.
        number: The answer in its own units, where it is a number; else NaN.
        na: Whether the answer is an NA option.
        status: Position in `STATUSES`; answers that stand for unreadable replies alone are failed.
        scores: Item scores without length penalty by rater, shape `(n_items,)`, NaN where none.
        outcomes: What comparisons came to, by position of the criterion: for each declared candidate how many
            stand above it, whatever its name.
        notes: What the reader should know of how the table was read.
        tied: Item and criterion of the cells whose votes tie, and to which the panel of a run gives an answer
            all the same; shape `(n, 2)`.
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
        """Items of the dataset."""
        return len(self.item_ids)

    @property
    def judges(self) -> tuple[str, ...]:
        """Ids of the judges that voted, in order of appearance."""
        return tuple(name for kind, name in self.raters if kind == "judge")

    @property
    def n_tied_labels(self) -> int:
        """Cells that two people or more labelled and that have no truth: no label was given most often, or,
        by the rule of a strict majority, by more than half."""
        people = [at for at, (kind, _) in enumerate(self.raters) if kind == "human"]
        voted = (self.status == ANSWERED) | ((self.status == ABSTAINED) & self.na)
        theirs = np.isin(self.rater, people) & (self.sample == DECIDED) & voted
        keys = self.criterion * max(self.n_items, 1) + self.item
        cells, n = np.unique(keys[theirs], return_counts=True)
        truth = [at for at, one in enumerate(self.raters) if one[0] == "truth"]
        return int(np.count_nonzero(~np.isin(cells[n > 1], keys[np.isin(self.rater, truth)])))

    @property
    def n_people(self) -> int:
        """People who labelled."""
        return sum(kind == "human" for kind, _ in self.raters)

    def rows_of(self, rater: Rater) -> Array:
        """Places of the decisions or labels of one of `raters`, single votes left out."""
        return np.flatnonzero((self.rater == self.raters.index(rater)) & (self.sample == DECIDED))

    def to_frame(self) -> pd.DataFrame:
        """The table as a DataFrame, `sample` and `code` missing where there is none."""
        import pandas as pd  # only for those who ask for a frame

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
