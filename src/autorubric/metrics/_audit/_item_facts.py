"""Lengths and authors of a dataset's items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.metrics._label_table import dataset_of
from autorubric.metrics._resampling import Array
from autorubric.metrics._run_protocols import GradedRun, OwnedRun
from autorubric.values import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """Properties of the items other than labels, by position.

    Attributes:
        lengths: Number of words of each submission, shape `(n_items,)`; NaN without text or with named
            candidates.
        generators: Author of each submission from `metadata["generator"]`; None if it is not recorded.
    """

    lengths: Array
    generators: tuple[str | None, ...]


def facts_of(result: Any, dataset: Any, item_ids: Sequence[str]) -> ItemFacts:
    """Return lengths and authors from `dataset` or the run's own dataset; without either, all are missing."""
    source = dataset
    if source is None and isinstance(result, GradedRun) and isinstance(result, OwnedRun):
        source = dataset_of(result)
    if source is None:
        return ItemFacts(lengths=np.full(len(item_ids), np.nan), generators=(None,) * len(item_ids))
    items = list(source.items)
    return ItemFacts(
        lengths=np.array([_words(one.submission) for one in items], dtype=float),
        generators=tuple(_generator(one) for one in items),
    )


def _words(submission: Any) -> float:
    parsed = Submission.parse(submission)
    if parsed.text is None or parsed.candidates:
        return float("nan")
    return float(len(parsed.text.split()))


def _generator(item: Any) -> str | None:
    generator = getattr(item, "metadata", {}).get("generator")
    return None if generator is None else str(generator)
