"""Progress on stderr: items, mean score so far, cost where it is known, what failed, and rate."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from autorubric.eval._config import ProgressStyle
from autorubric.eval._items import GradedItem

if TYPE_CHECKING:
    from tqdm import tqdm


class Progress:
    """A bar for items and, in detail, one for votes; none if stderr is not a terminal or it is switched off.

    Args:
        total: Items in all.
        show: Whether it is wanted.
        style: `simple` for items alone, `detailed` for votes beside them.

    Attributes:
        shown: Whether there is a bar.
    """

    def __init__(self, total: int, *, show: bool, style: ProgressStyle) -> None:
        self.shown = show and sys.stderr.isatty()
        self._items = _bar(total=total, unit="item", desc="grading") if self.shown else None
        is_detailed = self.shown and style == "detailed"
        self._votes = _bar(unit="vote", desc="votes", position=1) if is_detailed else None
        self._scores = 0.0
        self._scored = 0
        self._cost: float | None = None
        self._failed = 0
        self._lost = 0
        self._assumed = 0

    def vote(self) -> None:
        """Handle a vote that has arrived."""
        if self._votes is not None:
            self._votes.update()

    def item(self, done: GradedItem, *, instead_of: GradedItem | None = None) -> None:
        """Note that an item is finished, or that its result replaces an earlier one."""
        if self._items is None:
            return
        self._count(done, 1)
        if instead_of is None:
            self._items.update()
        else:
            self._count(instead_of, -1)
        self._items.set_postfix_str(", ".join(self._figures()), refresh=False)

    def _figures(self) -> Iterator[str]:
        yield f"score {self._scores / self._scored:.3f}" if self._scored else "score –"
        if self._cost is not None:
            yield f"${self._cost:.4f}"
        yield f"{self._failed} failed"
        if self._lost:
            yield f"{self._lost} lost"
        if self._assumed:
            yield f"{self._assumed} assumed"

    def _count(self, done: GradedItem, times: int) -> None:
        if done.score is not None:
            self._scores += times * done.score
            self._scored += times
        if done.cost is not None:
            self._cost = (self._cost or 0.0) + times * done.cost
        if done.verdicts is not None:
            self._lost += times * done.verdicts.lost
            self._assumed += times * done.verdicts.assumed
        self._failed += times * (done.error is not None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for bar in (self._votes, self._items):
            if bar is not None:
                bar.close()


def _bar(**options: Any) -> tqdm[Any]:
    # Late: where nobody looks, it need not be loaded.
    from tqdm import tqdm

    # A terminal that does not know its size says 0, and tqdm would then show nothing.
    size = shutil.get_terminal_size()
    return tqdm(file=sys.stderr, ncols=size.columns, nrows=size.lines, **options)
