"""Escaping of texts in tables, so that spreadsheets do not run them as formulas."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

# What spreadsheets take for the beginning of a formula, full-width forms included.
_STARTS: Final = frozenset("=+-@\t\r\n＝＋－＠")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table with a `'` before every text that a spreadsheet would run as a formula.

    Such texts start with `=`, `+`, `-`, `@`, a tab or a line break, ignoring leading spaces and invisible
    characters. Column and row names are escaped too. Numbers are unchanged. The result is meant for people:
    programs that read the file see the `'` as part of the text.

    Args:
        frame: The table, for example from `EvalResult.votes_table`.
    """
    marked = frame.map(_marked).rename(index=_marked, columns=_marked)
    return marked.rename_axis(index=_marked, columns=_marked)


def _marked(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _begins_formula(cell) else cell


def _begins_formula(text: str) -> bool:
    # Of the characters, C are controls and what is not shown, Z all kinds of spaces.
    seen = (letter for letter in text if letter in _STARTS or unicodedata.category(letter)[0] not in "CZ")
    return next(seen, "") in _STARTS
