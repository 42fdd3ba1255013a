"""Texts in tables that a spreadsheet is to open: none of them begins a formula."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

# What spreadsheets take for the beginning of a formula, full-width forms included.
_STARTS: Final = frozenset("=+-@\t\r\n＝＋－＠")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy of a table in which every text that a spreadsheet would run as a formula has a `'` before it.

    Such texts begin with `=`, `+`, `-`, `@`, a tab or a line break, spaces and characters that nobody sees
    passed over; names of columns and rows are among them. Numbers stay numbers. What is written so is for
    people: the mark is part of the text for whatever reads the file again.

    Args:
        frame: The table, as from `EvalResult.votes_table`.
    """
    marked = frame.map(_marked).rename(index=_marked, columns=_marked)
    return marked.rename_axis(index=_marked, columns=_marked)


def _marked(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _begins_formula(cell) else cell


def _begins_formula(text: str) -> bool:
    # Of the characters, C are controls and what is not shown, Z all kinds of spaces.
    seen = (letter for letter in text if letter in _STARTS or unicodedata.category(letter)[0] not in "CZ")
    return next(seen, "") in _STARTS
