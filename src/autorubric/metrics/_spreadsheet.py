"""Escaping of table cells, so that spreadsheets do not run text as formulas."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

# Characters that spreadsheets treat as the beginning of a formula, including full-width forms.
_STARTS: Final = frozenset("=+-@\t\r\n＝＋－＠")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table in which text that a spreadsheet would run as a formula is prefixed with `'`.

    Such text starts with `=`, `+`, `-`, `@`, a tab or a line break after any spaces and invisible characters.
    Column and row names are also escaped. Numbers are unchanged. The result is meant for human readers,
    because other programs treat the `'` as part of the text.

    Args:
        frame: Table to escape, for example the result of `EvalResult.votes_table`.
    """
    marked = frame.map(_marked).rename(index=_marked, columns=_marked)
    return marked.rename_axis(index=_marked, columns=_marked)


def _marked(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _begins_formula(cell) else cell


def _begins_formula(text: str) -> bool:
    # Unicode category C contains control and invisible characters, and Z all kinds of spaces.
    seen = (letter for letter in text if letter in _STARTS or unicodedata.category(letter)[0] not in "CZ")
    return next(seen, "") in _STARTS
