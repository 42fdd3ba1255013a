"""Words that rank, name or compare come from intervals: the function that chooses them, and a list of all."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import autorubric
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.wording import Side, compare_in_words, difference_of, side_of

SOURCE = Path(autorubric.__file__).parent
GOLDEN = Path(__file__).parent / "golden" / "wording.txt"
DECIDED = ("compare_in_words", "side_of")
COMPARING = re.compile(
    r"\b(better|worse|best|worst|strong(er|est)|weak(er|est)|redundant|outperforms?|falls short|beats?|"
    r"lenient|superior|inferior|negatively|positively|cannot replace|may replace|"
    r"distinguishable|clearest|(more|less|most|least) (often|accurate|likely|reliable)|a higher one|"
    r"no bias|would reach)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [
        (0.1, 0.3, "above"),
        (-0.3, -0.1, "below"),
        (-0.1, 0.3, "not shown"),
        (0.0, 0.3, "not shown"),
        (None, None, "not shown"),
    ],
)
def test_words_follow_the_whole_interval(low: float | None, high: float | None, side: Side) -> None:
    """The estimate itself decides nothing; n and the interval stand beside the words."""
    found = Estimate(0.2, low, high, n=30, reason=None if low else "no_interval")
    assert side_of(found) == side
    words = compare_in_words(found, above="above", below="below", otherwise="not shown")
    shown = "" if low is None else f" [{low:.3f}, {high:.3f}]"
    assert words == f"{side} (difference 0.200{shown}, n = 30)"


def test_difference_of_two_intervals() -> None:
    """Zou and Donner 2008, table II: 56/70 against 48/80 with Wilson's intervals is .0524 to .3339."""
    first, second = Estimate(0.8, 0.6918, 0.8769, n=70), Estimate(0.6, 0.4905, 0.7004, n=80)
    found = difference_of(first, second)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=0.0005)
    assert side_of(found) == "above" and side_of(difference_of(second, first)) == "below"
    assert side_of(difference_of(first, Estimate(0.1, n=5, reason="no_interval"))) == "not shown"


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the text of a string or f-string, with `{}` for what is inserted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def _sentences(node: ast.AST, where: str, decided: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield each comparing text below a node, and whether a call that takes an interval chooses it."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
        node.body = node.body[1:]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call):
        decided |= getattr(node.func, "id", "") in DECIDED
    if isinstance(node, ast.Constant | ast.JoinedStr):
        found = [text for text in _texts(node) if decided or COMPARING.search(text)]
        yield from ((decided, f"{where}: {' '.join(text.split())}") for text in found if " " in text)
        return
    for child in ast.iter_child_nodes(node):
        yield from _sentences(child, where, decided)


def test_all_words_that_compare_are_listed() -> None:
    """Whoever adds a sentence that compares changes the list, and so has to say what decides its words.

    AUTORUBRIC_UPDATE_GOLDEN=1 writes the list anew.
    """
    found = [
        one
        for folder in ("metrics", "reports", "cli", "apps")
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for one in _sentences(
            ast.parse(path.read_text(encoding="utf-8")), path.relative_to(SOURCE).as_posix()
        )
    ]
    chosen = ["# Chosen by an interval", *(text for decided, text in found if decided)]
    others = ["# Names of figures, options and errors, and statements about the data at hand"]
    others += [text for decided, text in found if not decided]
    lines = "\n".join([*chosen, "", *others, ""])
    if os.environ.get("AUTORUBRIC_UPDATE_GOLDEN"):
        GOLDEN.write_text(lines, encoding="utf-8")
    assert lines == GOLDEN.read_text(encoding="utf-8")
