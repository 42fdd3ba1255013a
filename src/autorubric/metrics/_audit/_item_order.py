"""The order in which items are drawn: that of their ids, so that a table in another order is drawn alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics._scales import Codes


def order_by_id(item_ids: Sequence[str]) -> Codes:
    """Positions of the items in the order of their ids: drawn so, a table in another order is drawn alike."""
    return np.array(sorted(range(len(item_ids)), key=lambda at: item_ids[at]), dtype=np.int64)


def rank_by_id(item_ids: Sequence[str]) -> Codes:
    """The place of each item in the order of their ids."""
    ranks = np.empty(len(item_ids), dtype=np.int64)
    ranks[order_by_id(item_ids)] = np.arange(len(item_ids))
    return ranks
