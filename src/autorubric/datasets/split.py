"""Division of item positions into parts by label, stratum or group."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations

from autorubric.errors import ArgumentError
from autorubric.support.objects import is_number

_NOTHING = 1e-9
"""Tolerance for rounding errors in shares of items."""


def sizes_of(n_items: int, shares: Sequence[float]) -> list[int]:
    """Return the size of each part: its fraction of `n_items`, rounded by the largest remainder method."""
    numbers = [is_number(one) and 0 < one < 1 for one in shares]
    if not all(numbers) or abs(math.fsum(shares) - 1) > _NOTHING:
        shown = ", ".join(map(repr, shares))
        total = f", which sum to {math.fsum(shares):g}" if all(numbers) else ""
        raise ArgumentError(f"shares must be positive and sum to 1; got {shown}{total}")
    sizes = _roundings(n_items, shares)[0]
    if 0 in sizes:
        shown = ", ".join(map(str, sizes))
        raise ArgumentError(
            f"shares of {', '.join(f'{one:g}' for one in shares)} split {n_items} items into {shown}; "
            "use more items or other shares, so that no part is empty"
        )
    return sizes


def _roundings(n_items: int, shares: Sequence[float]) -> list[list[int]]:
    """Return all ways to round the parts' shares up or down, beginning with the largest remainders up."""
    exact = [n_items * share for share in shares]
    whole = [math.floor(one + _NOTHING) for one in exact]
    rest = [one - down for one, down in zip(exact, whole, strict=True)]
    ups = [
        up
        for up in combinations(range(len(shares)), n_items - sum(whole))
        if all(rest[at] > _NOTHING for at in up)
    ]
    ups.sort(key=lambda up: -sum(rest[at] for at in up))
    return [[down + (at in up) for at, down in enumerate(whole)] for up in ups]


def stratified_positions(strata: Sequence[Hashable], shares: Sequence[float], seed: int) -> list[list[int]]:
    """Return the positions in each part; a part contains its fraction of each stratum, rounded.

    Rounding each stratum separately would change the sizes of the parts, so the items that remain after
    rounding down are assigned by a flow. A solution exists for the sizes of `sizes_of` or for other roundings
    (L. H. Cox: A Constructive Procedure for Unbiased Controlled Rounding. JASA 82(398), 1987).
    """
    rng = random.Random(seed)
    members: dict[Hashable, list[int]] = {}
    for position, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(position)
    rows = list(members.values())
    rng.shuffle(rows)
    for row in rows:
        rng.shuffle(row)
    whole = [[math.floor(len(row) * share + _NOTHING) for share in shares] for row in rows]
    # A part whose share of a stratum is a whole number takes no further item of the stratum.
    open_to = [
        [at for at, share in enumerate(shares) if len(row) * share - whole[i][at] > _NOTHING]
        for i, row in enumerate(rows)
    ]
    for sizes in _roundings(len(strata), shares):
        room = [size - sum(row[at] for row in whole) for at, size in enumerate(sizes)]
        extra = _place([len(row) - sum(whole[i]) for i, row in enumerate(rows)], open_to, room, rng)
        if extra is not None:
            break
    else:
        raise AssertionError("a controlled rounding always exists")
    parts: list[list[int]] = [[] for _ in shares]
    for i, row in enumerate(rows):
        start = 0
        for at, part in enumerate(parts):
            end = start + whole[i][at] + (at in extra[i])
            part += row[start:end]
            start = end
    return [sorted(part) for part in parts]


def _place(
    left: Sequence[int], open_to: Sequence[Sequence[int]], room: Sequence[int], rng: random.Random
) -> list[set[int]] | None:
    """Return the part for one item of each row, within the room of each part; None if impossible."""
    free = list(room)
    taken: list[set[int]] = [set() for _ in left]

    def find(row: int, seen: set[int]) -> bool:
        choices = [at for at in open_to[row] if at not in taken[row] and at not in seen]
        rng.shuffle(choices)
        choices.sort(key=lambda at: -free[at])
        for at in choices:
            seen.add(at)
            if free[at] > 0:
                free[at] -= 1
                taken[row].add(at)
                return True
            for other in range(len(left)):
                if other == row or at not in taken[other]:
                    continue
                taken[other].remove(at)
                # `at` is in `seen`: the other row must take its item elsewhere.
                if find(other, seen):
                    taken[row].add(at)
                    return True
                taken[other].add(at)
        return False

    for row, n in enumerate(left):
        for _ in range(n):
            if not find(row, set()):
                return None
    return taken


def grouped_positions(
    groups: Sequence[Hashable], labels: Sequence[Sequence[Hashable]], shares: Sequence[float], seed: int
) -> list[list[int]]:
    """Return the positions in each part; groups are assigned whole, in descending order of size."""
    members: dict[Hashable, list[int]] = {}
    for position, group in enumerate(groups):
        members.setdefault(group, []).append(position)
    if len(members) < len(shares):
        raise ArgumentError(
            f"{len(members)} groups cannot fill {len(shares)} parts; at least {len(shares)} are required"
        )
    totals = Counter(label for held in labels for label in held)
    rng = random.Random(seed)
    order = list(members.values())
    rng.shuffle(order)
    order.sort(key=len, reverse=True)
    lack = [Counter({label: n * share for label, n in totals.items()}) for share in shares]
    room = [len(groups) * share for share in shares]
    parts: list[list[list[int]]] = [[] for _ in shares]
    for row in order:
        held = Counter(label for position in row for label in labels[position])
        # What the part is missing, as shares of all items and of all items with a label.
        need = [
            len(row) * room[at] / len(groups)
            + sum(n * lack[at][label] / totals[label] for label, n in held.items())
            for at in range(len(shares))
        ]
        best = max(range(len(shares)), key=lambda at: (need[at], rng.random()))
        parts[best].append(row)
        room[best] -= len(row)
        lack[best].subtract(held)
    for part in parts:
        if not part:
            # The smallest group of the part with the most groups; groups are in order of decreasing size.
            part.append(max(parts, key=len).pop())
    return [sorted(position for row in part for position in row) for part in parts]


def split_positions(labels: Sequence[Sequence[Hashable]], sizes: Sequence[int], seed: int) -> list[list[int]]:
    """Return the positions in each part by iterative stratification, which keeps label frequencies equal."""
    left = list(range(len(labels)))
    random.Random(seed).shuffle(left)
    rng = random.Random(seed + 1)
    remaining = Counter(label for held in labels for label in held)
    lack = [{label: n * size / len(labels) for label, n in remaining.items()} for size in sizes]
    room = list(sizes)
    parts: list[list[int]] = [[] for _ in sizes]

    def place(position: int, label: Hashable | None) -> None:
        """Assign an item to the part that is missing `label` most; if tied, the one with the most room."""
        ranks = [(lack[at].get(label, 0.0), room[at], rng.random()) for at in range(len(parts))]
        best = max((at for at, free in enumerate(room) if free), key=lambda at: ranks[at])
        parts[best].append(position)
        room[best] -= 1
        for held in labels[position]:
            lack[best][held] -= 1

    while remaining:
        # `min` takes the first of equal labels, and a Counter keeps their order, so this is deterministic.
        rarest = min(remaining, key=lambda label: remaining[label])
        for position in [position for position in left if rarest in labels[position]]:
            place(position, rarest)
            remaining.subtract(labels[position])
        left = [position for position in left if rarest not in labels[position]]
        remaining = +remaining
    for position in left:
        place(position, None)
    return [sorted(part) for part in parts]
