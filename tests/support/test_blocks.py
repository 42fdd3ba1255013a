"""Blocks as plain text."""

from __future__ import annotations

import math

import pytest

from autorubric.support.blocks import (
    Block,
    ConfusionBlock,
    CurveBlock,
    ScalarBlock,
    TableBlock,
    TextBlock,
    as_text,
    render_text,
)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (True, "yes"),
        (False, "no"),
        (0.12345, "0.123"),
        (3, "3"),
        ("word", "word"),
    ],
)
def test_cells(cell: str | float | None, text: str) -> None:
    """Figures have three decimals, a missing one is a dash."""
    assert as_text(cell) == text


def test_each_block_renders() -> None:
    """Every block has a plain form; titles may be empty; numbers stand right, words left."""
    blocks: list[Block] = [
        TextBlock(title="Note", text="All is well."),
        ScalarBlock(figures=(("kappa", 0.5), ("n", 12))),
        TableBlock(title="Votes", columns=("judge", "n"), rows=(("a", 1), ("longer", 20))),
        ConfusionBlock(labels=("no", "yes"), counts=((3, 1), (0, 4))),
        CurveBlock(title="Risk", x_label="coverage", y_label="risk", points=((0.5, 0.1), (1.0, 0.25))),
    ]
    assert render_text(blocks).split("\n\n") == [
        "Note\nAll is well.",
        "  kappa  0.500\n  n      12",
        "Votes\n  judge    n\n  ------  --\n  a        1\n  longer  20",
        "  truth \\ judge  no  yes\n"
        "  -------------  --  ---\n"
        "  no              3    1\n"
        "  yes             0    4",
        "Risk\n  coverage   risk\n  --------  -----\n     0.500  0.100\n     1.000  0.250",
    ]


def test_empty_blocks_render() -> None:
    """No figures and no rows are no error."""
    assert render_text([ScalarBlock(figures=()), TableBlock(columns=("a",), rows=())]) == "\n\n  a\n  -"
    assert render_text([]) == ""
