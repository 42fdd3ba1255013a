"""What an export needs of a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from autorubric._blocks import Block
from autorubric.eval._items import ItemResult

if TYPE_CHECKING:
    import pandas as pd

    from autorubric.metrics import MetricsResult
    from autorubric.values import VerdictCounts


class ExportedRun(Protocol):
    """A run, as an export sees it."""

    @property
    def item_results(self) -> Iterable[ItemResult]:
        """One result an item, in the dataset's order."""
        ...

    @property
    def experiment_name(self) -> str:
        """The run's name."""
        ...

    @property
    def started_at(self) -> datetime:
        """When it started."""
        ...

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of its verdicts."""
        ...

    @property
    def partly_scored_items(self) -> int:
        """Items with a score although a verdict behind it was lost."""
        ...

    def votes_table(self) -> pd.DataFrame:
        """Return one row a vote, a decision and a label."""
        ...

    def compute_metrics(self) -> MetricsResult:
        """Return the figures against the labels of the run's dataset."""
        ...

    def blocks(self) -> list[Block]:
        """Return the run's figures."""
        ...


def item_id_of(result: ItemResult) -> str:
    """Return the item's id; its position where it has none."""
    return result.item.id or str(result.item_idx)
