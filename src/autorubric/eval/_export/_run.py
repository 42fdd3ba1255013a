"""The parts of a run that an export needs."""

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
    """The interface of a run that can be exported."""

    @property
    def item_results(self) -> Iterable[ItemResult]:
        """One result per item, in the dataset's order."""
        ...

    @property
    def experiment_name(self) -> str:
        """The run's name."""
        ...

    @property
    def started_at(self) -> datetime:
        """Start of the run, with time zone."""
        ...

    @property
    def verdicts(self) -> VerdictCounts:
        """Counts of the run's verdicts by outcome."""
        ...

    @property
    def partly_scored_items(self) -> int:
        """Number of items that have a score although one of their verdicts was lost."""
        ...

    def votes_table(self) -> pd.DataFrame:
        """Return a DataFrame with one row per vote, decision and label."""
        ...

    def compute_metrics(self) -> MetricsResult:
        """Compute the judges' metrics against the labels of the run's dataset."""
        ...

    def blocks(self) -> list[Block]:
        """Return the run's figures as blocks for renderers."""
        ...


def item_id_of(result: ItemResult) -> str:
    """Return the item's id, or its position if it has no id."""
    return result.item.id or str(result.item_idx)
