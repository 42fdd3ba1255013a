"""The base class of results, and the texts and tables that show estimates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, overload

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.metric import PACKAGE_KEYS
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock, card, render_latex, render_text
from autorubric.support.frames import Library, in_library

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


T = TypeVar("T")
Row = TypeVar("Row")


class Record:
    """Base class of frozen dataclasses of numbers, texts, estimates and other records."""

    __slots__ = ()

    _omits_empty_tests: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        found: dict[str, Any] = to_plain(self, omit_empty_tests=self._omits_empty_tests)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValues(Record):
    """Base class of results with metrics. Those without a field are in `more`, and attributes as well."""

    more: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False, metadata={"merged": True})

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name != "more" and name in self.more:
                return self.more[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def arrange(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that contain these metrics, in the order of the fields."""
        for key in PACKAGE_KEYS & values.keys():
            if hasattr(cls, key):
                raise ArgumentError(
                    f"the metric {key!r} of an installed package has the name of an attribute of results; "
                    "rename the metric"
                )
        named = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return {**named, "more": {name: value for name, value in values.items() if name not in named}}

    @classmethod
    def in_order(cls, values: Mapping[str, T]) -> dict[str, T]:
        """Return these metrics with those that have a field first, in the order of the fields."""
        arranged = cls.arrange(values)
        others: Mapping[str, T] = arranged.pop("more")
        return {**arranged, **others}


class ResultBase(Record):
    """Base class of frozen dataclasses that hold a result.

    A subclass defines `_sentence` and, unless one table of its titled fields is enough, `_tables`. A field is
    titled by `metadata={"title": …}`.
    """

    __slots__ = ()

    _heading: ClassVar[str] = ""
    _omits_empty_tests: ClassVar[bool] = False

    def blocks(self) -> list[Block]:
        """Return the result as content blocks for the text, HTML and LaTeX renderers, main finding first."""
        return [TextBlock(title=self._heading, text=self._sentence()), *self._tables()]

    def summary(self) -> str:
        """Return the results as plain text."""
        return render_text(self.blocks())

    def _repr_html_(self) -> str:
        return card(self.blocks())

    def to_latex(self) -> str:
        """Return the tables as LaTeX `tabular` environments, which require the booktabs package."""
        return render_latex(self.blocks())

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return the rows or, if the result has none, its first table as a DataFrame, which may be empty.

        With `library="polars"`, returns a polars DataFrame in which columns of mixed types are strings.
        """
        import pandas as pd  # imported here so that pandas is loaded only when needed

        rows = self._rows()
        if rows is not None:
            return in_library(pd.DataFrame(rows), library)
        tables = [block for block in self.blocks() if isinstance(block, TableBlock)]
        frame = pd.DataFrame(tables[0].rows, columns=list(tables[0].columns)) if tables else pd.DataFrame()
        return in_library(frame, library)

    def _rows(self) -> list[dict[str, Any]] | None:
        return None

    def _sentence(self) -> str:
        return ""

    def _tables(self) -> list[Block]:
        """Return all blocks but the first sentence."""
        return [figure_table("", titled_figures(self))]


def titles_of(result: Any) -> dict[str, str]:
    """Return the titles of a dataclass's titled fields by name, in order of declaration."""
    declared: tuple[Field[Any], ...] = fields(result)
    return {one.name: one.metadata["title"] for one in declared if "title" in one.metadata}


def titled_figures(result: Any) -> dict[str, Estimate]:
    """Return the titled fields of a dataclass by title."""
    return {title: getattr(result, name) for name, title in titles_of(result).items()}


def to_plain(value: Any, *, omit_empty_tests: bool = False) -> Any:
    """Convert to JSON-serialisable data; `omit_empty_tests` omits `test` of estimates if it is None."""
    if is_dataclass(value):
        found = {}
        merged: dict[str, Any] = {}
        for one in fields(value):
            content = to_plain(getattr(value, one.name), omit_empty_tests=omit_empty_tests)
            if "merged" in one.metadata:
                merged |= content
            else:
                found[one.name] = content
        found |= merged
        if omit_empty_tests and isinstance(value, Estimate) and value.test is None:
            del found["test"]
        return found
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry, omit_empty_tests=omit_empty_tests) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(entry, omit_empty_tests=omit_empty_tests) for entry in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


FIGURE_COLUMNS = ("estimate", "low", "high", "n", "reason")
"""Headings of the columns that `figure_cells` fills."""


def figure_cells(figure: Estimate) -> tuple[Cell, ...]:
    """Return an estimate as table cells: value, low, high, n, and the reason if something is missing."""
    return figure.value, figure.low, figure.high, figure.n, figure.reason or ""


def figure_table(title: str, figures: Mapping[str, Estimate]) -> TableBlock:
    """Return a table with one row per named estimate."""
    rows = tuple((name, *figure_cells(one)) for name, one in figures.items())
    return TableBlock(title=title, columns=("figure", *FIGURE_COLUMNS), rows=rows)


def format_interval(low: float | None, high: float | None) -> str:
    """Format an interval; return an empty string if there is none."""
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def format_estimate(found: Estimate) -> str:
    """Format an estimate with its interval, if it has one."""
    return f"{found:.3f} {format_interval(found.low, found.high)}".rstrip()


def describe_estimate(found: Estimate) -> str:
    """Format an estimate with its interval, or the reason why it is undefined."""
    return f"undefined ({found.reason})" if found.value is None else format_estimate(found)


def interval_table(title: str, figures: Mapping[str, Estimate]) -> TableBlock:
    """Return a table with one row per named estimate, with its interval in one column."""
    rows: list[tuple[Cell, ...]] = [
        (name, one.value, format_interval(one.low, one.high), one.n, one.reason or "")
        for name, one in figures.items()
    ]
    columns = ("figure", "estimate", "interval", "n", "reason")
    return TableBlock(title=title, columns=columns, rows=tuple(rows))


def format_notes(notes: tuple[str, ...]) -> list[Block]:
    """Return a block that lists notes, or nothing without notes."""
    return [TextBlock(title="Notes", text="\n".join(f"- {note}" for note in notes))] if notes else []


def column_table(title: str, rows: Iterable[Row], columns: Mapping[str, Callable[[Row], Cell]]) -> TableBlock:
    """Return a table with one row per element, from a function for each heading."""
    cells = tuple(tuple(cell(row) for cell in columns.values()) for row in rows)
    return TableBlock(title=title, columns=tuple(columns), rows=cells)


Rate: TypeAlias = tuple[float | None, str, int]
"""A rate with its interval and the number of labels."""


def true_rates_table(rows: Iterable[tuple[str, Rate, Rate]]) -> TableBlock:
    """Return a table of sensitivity and specificity by criterion."""
    return TableBlock(
        title="Sensitivity and specificity, with MET as the positive class",
        columns=("criterion", "TPR", "TPR interval", "MET", "TNR", "TNR interval", "UNMET"),
        rows=tuple((name, *tpr, *tnr) for name, tpr, tnr in rows),
    )


def warnings_block(warnings: Iterable[str]) -> TextBlock:
    return TextBlock(title="Warnings", text="\n".join(f"- {warning}" for warning in warnings))


# Characters that spreadsheets treat as the beginning of a formula, including full-width forms.
_STARTS: Final = frozenset("=+-@\t\r\n＝＋－＠")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table with `'` before any text that a spreadsheet would run as a formula.

    Such text starts with `=`, `+`, `-`, `@` (or their full-width forms), a tab or a line break, optionally
    after spaces and invisible characters. Column and row names are also escaped. Numbers are unchanged. The
    result is for human readers, because other programs treat the `'` as part of the text.

    Args:
        frame: Table to escape, for example the result of `EvalResult.votes_table`.
    """
    marked = frame.copy() if frame.empty else frame.apply(_escape_column)
    marked = marked.rename(index=_escape, columns=_escape)
    return marked.rename_axis(index=_escape, columns=_escape)


def spreadsheet_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV for spreadsheets; cells with a line break, also a lone `\\r`, are quoted."""
    frame = spreadsheet_safe(frame)
    if "\r" not in (text := frame.to_csv(index=False, lineterminator="\n")):
        return text
    # With this terminator, the writer quotes cells with a carriage return; outside cells, it is shortened.
    text = frame.to_csv(index=False, lineterminator="\r\n")
    return _QUOTED_OR_END.sub(lambda found: "\n" if found[0] == "\r\n" else found[0], text)


_QUOTED_OR_END: Final = re.compile(r'"[^"]*+"|\r\n')


def _escape_column(column: pd.Series) -> pd.Series:
    """Return a column with its formulas escaped; each of its texts is checked once."""
    import pandas as pd

    if column.dtype.kind in "biufcmM":
        return column
    if isinstance(column.dtype, pd.StringDtype):
        texts = column.dropna().unique()
        if len(texts) and not any(map(_begins_formula, texts)):
            return column
    escape = cache(_escape)
    return column.map(lambda cell: escape(cell) if isinstance(cell, str) else cell)


def _escape(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _begins_formula(cell) else cell


def _begins_formula(text: str) -> bool:
    # Unicode category C contains control and invisible characters, and Z all kinds of spaces.
    seen = (letter for letter in text if letter in _STARTS or unicodedata.category(letter)[0] not in "CZ")
    return next(seen, "") in _STARTS
