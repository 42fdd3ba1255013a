"""A row of the benchmark: a claim of a public function, tested in worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["false word", "coverage", "power"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A claim, and a function that draws a world and checks the claim in it.

    Attributes:
        name: Name of the row, from which its seed is derived.
        claim: What `world` returns True for, e.g. "a judge equal to a person is said to be better".
        kind: `false word` (share at most .0615 in 2,000 worlds), `coverage` (share at least .93) or `power`
            (reported only).
        world: Draws a world and returns whether the claim is true; None if nothing was claimed or there is no
            interval, which excludes the world from a coverage and counts as no false word. Processes receive
            it, so it is a function of a module or a `functools.partial` of one.
    """

    name: str
    claim: str
    kind: Kind
    world: Callable[[np.random.Generator], bool | None]
