"""Order of items for resampling: by id, so that the order of a table does not matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics._scales import Codes


def order_by_id(item_ids: Sequence[str]) -> Codes:
    """Return the positions of the items sorted by id, so that the table's order does not matter."""
    return np.array(sorted(range(len(item_ids)), key=lambda at: item_ids[at]), dtype=np.int64)


def rank_by_id(item_ids: Sequence[str]) -> Codes:
    """Return the rank of each item's id."""
    ranks = np.empty(len(item_ids), dtype=np.int64)
    ranks[order_by_id(item_ids)] = np.arange(len(item_ids))
    return ranks
