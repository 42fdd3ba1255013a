"""Progress on stderr: items, mean score so far, cost, failures and rate."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType

from tqdm import tqdm

from autorubric.eval._config import ProgressStyle
from autorubric.eval._items import ItemResult


class Progress:
    """A bar for items and, in detail, one for votes; none where stderr is no terminal or it is switched off.

    Args:
        total: Items in all.
        show: Whether it is wanted.
        style: `simple` for items alone, `detailed` for votes beside them.
    """

    def __init__(self, total: int, *, show: bool, style: ProgressStyle) -> None:
        hidden = not (show and sys.stderr.isatty())
        # A terminal that does not know its size says 0, and tqdm would then show nothing.
        size = shutil.get_terminal_size()
        self._items = tqdm(
            total=total,
            unit="item",
            desc="grading",
            file=sys.stderr,
            disable=hidden,
            ncols=size.columns,
            nrows=size.lines,
        )
        self._votes = tqdm(
            unit="vote",
            desc="votes",
            file=sys.stderr,
            disable=hidden or style == "simple",
            position=1,
            ncols=size.columns,
            nrows=size.lines,
        )
        self._scores: list[float] = []
        self._cost = 0.0
        self._failed = 0

    def vote(self) -> None:
        """One vote has arrived."""
        self._votes.update()

    def item(self, done: ItemResult) -> None:
        """One item is finished."""
        report = done.report
        if report is not None and report.score is not None:
            self._scores.append(report.score)
        self._cost += (report.completion_cost or 0.0) if report else 0.0
        self._failed += done.error is not None
        self._items.update()
        mean = f"{sum(self._scores) / len(self._scores):.3f}" if self._scores else "–"
        self._items.set_postfix_str(f"score {mean}, ${self._cost:.4f}, {self._failed} failed", refresh=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._votes.close()
        self._items.close()
