"""Dividing a dataset into a train and a test part."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Split(NamedTuple):
    """Positions of the items of each part, in the dataset's order."""

    train: list[int]
    test: list[int]


def split_positions(labels: Sequence[Sequence[Hashable]], n_train: int, seed: int) -> Split:
    """A split in which each label is as frequent in one part as in the other, as far as it can be.

    Iterative stratification for items with several labels: the rarest label that is still to be placed goes
    first, and each of its items goes to the part that lacks that label most. Without labels the split is
    random.

    Args:
        labels: The labels of each item, each once and in a fixed order; an item without any is placed last.
        n_train: How many items the first part gets, exactly.
        seed: Decides among equals.

    References:
        K. Sechidis, G. Tsoumakas, I. Vlahavas: On the Stratification of Multi-Label Data. ECML PKDD 2011,
        algorithm 1.
    """
    order = list(range(len(labels)))
    random.Random(seed).shuffle(order)
    parts = _Parts(labels, (n_train, len(labels) - n_train), random.Random(seed + 1))
    remaining = Counter(label for held in labels for label in held)
    left = order
    while remaining:
        # `min` takes the first among equals, and a Counter keeps the order of the items: no chance here.
        rarest = min(remaining, key=lambda label: remaining[label])
        for position in [position for position in left if rarest in labels[position]]:
            parts.place(position, rarest)
            remaining.subtract(labels[position])
        left = [position for position in left if rarest not in labels[position]]
        remaining = +remaining
    for position in left:
        parts.place(position, None)
    return Split(*(sorted(members) for members in parts.members))


class _Parts:
    """The two parts, with the room that is left in each and the labels that it still lacks."""

    def __init__(
        self, labels: Sequence[Sequence[Hashable]], sizes: tuple[int, int], rng: random.Random
    ) -> None:
        self.members: tuple[list[int], list[int]] = ([], [])
        self._labels = labels
        self._room = list(sizes)
        self._rng = rng
        totals = Counter(label for held in labels for label in held)
        self._lack = [{label: n * size / len(labels) for label, n in totals.items()} for size in sizes]

    def place(self, position: int, label: Hashable | None) -> None:
        """Puts an item into the part that lacks `label` most; among equals, the one with more room."""
        ranks = [
            (self._lack[part].get(label, 0.0), self._room[part], self._rng.random()) for part in range(2)
        ]
        part = max((part for part in range(2) if self._room[part]), key=lambda part: ranks[part])
        self.members[part].append(position)
        self._room[part] -= 1
        for held in self._labels[position]:
            self._lack[part][held] -= 1
