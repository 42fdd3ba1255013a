"""What every audit reads first: the votes table, and the order in which its items are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._label_table import table_of
from autorubric.metrics._run_protocols import LabelledDataset
from autorubric.metrics._scales import Codes
from autorubric.metrics._votes_table import VotesTable

_DATASET = ("items", "item_id", "get_item_rubric", "item_truth", "item_ratings")


def audited_table(result: Any, dataset: LabelledDataset | None) -> VotesTable:
    """The votes table of a run, or of a long table of labels.

    Raises:
        ArgumentError: `dataset` is no dataset, or `result` cannot be read.
    """
    if dataset is not None and not all(hasattr(dataset, name) for name in _DATASET):
        raise ArgumentError(
            f"dataset is {type(dataset).__name__} {dataset!r:.60}; give a RubricDataset, as "
            "RubricDataset.from_file reads it, or leave it out"
        )
    return table_of(result, dataset)


def order_by_id(item_ids: Sequence[str]) -> Codes:
    """Positions of the items in the order of their ids: drawn so, a table in another order is drawn alike."""
    return np.array(sorted(range(len(item_ids)), key=lambda at: item_ids[at]), dtype=np.int64)


def rank_by_id(item_ids: Sequence[str]) -> Codes:
    """The place of each item in the order of their ids."""
    ranks = np.empty(len(item_ids), dtype=np.int64)
    ranks[order_by_id(item_ids)] = np.arange(len(item_ids))
    return ranks
