"""Progress on stderr: number of items, mean score so far, known cost, failures, and rate."""

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
    """A progress bar for items and, optionally, one for votes; nothing is shown if stderr is not a terminal.

    Args:
        total: Total number of items.
        show: Whether to show progress.
        style: `simple` for items only, `detailed` for items and votes.

    Attributes:
        shown: Whether a progress bar is shown.
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
        """Count a vote."""
        if self._votes is not None:
            self._votes.update()

    def item(self, done: GradedItem, *, instead_of: GradedItem | None = None) -> None:
        """Count a finished item, or replace an earlier result of the item."""
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
    # Imported late, since no bar is shown outside a terminal.
    from tqdm import tqdm

    # A terminal of unknown size reports 0 columns, and tqdm would then show nothing.
    size = shutil.get_terminal_size()
    return tqdm(file=sys.stderr, ncols=size.columns, nrows=size.lines, **options)
