"""Scores as they are format_score, and what a content is."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, strategies as st

from autorubric.apps.tool.request import detect_type, misfit_note
from autorubric.apps.tool.response import format_score, label_text
from tests.tool.replies import REQUEST, Critical, ask, scored

VALUES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "letter", "passes", "label"),
    [
        (1.0, "A", "pass", "Excellent"),
        (0.9, "A", "pass", "Excellent"),
        (0.89, "B", "pass", "Good"),
        (0.8, "B", "pass", "Good"),
        (0.79, "C", "pass", "Good"),
        (0.7, "C", "pass", "Good"),
        (0.69, "D", "fail", "Fair"),
        (0.6, "D", "fail", "Fair"),
        (0.59, "F", "fail", "Fair"),
        (0.5, "F", "fail", "Fair"),
        (0.49, "F", "fail", "Poor"),
        (0.0, "F", "fail", "Poor"),
    ],
)
def test_the_bounds_belong_to_the_better_word(value: float, letter: str, passes: str, label: str) -> None:
    """Letters begin at .9, .8, .7 and .6, pass at .7, labels at .9, .7 and .5."""
    assert format_score(value, "letter") == letter
    assert format_score(value, "pass-fail") == passes
    assert label_text(value) == label


@given(VALUES)
def test_numbers_and_words_agree(value: float) -> None:
    """What is said in words goes by the number that is told, and both stay on their scale."""
    ten, hundred = format_score(value, "0-10"), format_score(value, "0-100")
    assert isinstance(ten, int | float) and isinstance(hundred, int | float)
    assert 0 <= ten <= 10 and math.isclose(10 * ten, hundred, abs_tol=1e-6)
    assert (label_text(value) == "Excellent") == (ten >= 9) == (format_score(value, "letter") == "A")
    assert (format_score(value, "pass-fail") == "pass") == (ten >= 7)


@pytest.mark.parametrize(
    ("value", "label", "letter", "passes"),
    [(0.89996, "Good", "B", "pass"), (0.69999, "Fair", "D", "fail"), (0.5999996, "Fair", "F", "fail")],
)
def test_words_go_by_the_value_itself(value: float, label: str, letter: str, passes: str) -> None:
    """A value just below a bound is not lifted over it, in words or as a number; noise is no value."""
    assert (label_text(value), format_score(value, "letter"), format_score(value, "pass-fail")) == (
        label,
        letter,
        passes,
    )
    bound = round(value, 1)
    assert bound - 0.01 < format_score(value, "0-100") / 100 < bound  # type: ignore[operator]
    assert (
        format_score(bound - 1e-12, "letter") == format_score(bound, "letter")
        and format_score(bound - 1e-12, "0-10") == 10 * bound
    )


@given(VALUES, VALUES)
def test_better_is_never_shown_as_worse(first: float, second: float) -> None:
    """The scale 0-100 keeps the order of values."""
    low, high = sorted((first, second))
    assert format_score(low, "0-100") <= format_score(high, "0-100")  # type: ignore[operator]


def test_nothing_stays_nothing() -> None:
    """What has no value has no score on any scale, and no label."""
    assert {format_score(None, scale) for scale in ("0-10", "0-100", "letter", "pass-fail")} == {None}
    assert label_text(None) is None


@given(st.lists(st.integers(0, 10), min_size=2, max_size=2))
def test_the_whole_is_the_mean_of_its_parts(scores: list[int]) -> None:
    """Named criteria weigh the same."""
    answer = ask(REQUEST, scored(correctness=scores[0], completeness=scores[1]))
    assert answer.overall_score == sum(scores) / 2


@pytest.mark.parametrize(
    ("scale", "overall", "line"),
    [("0-100", 80, "✓ 80/100"), ("letter", "B", "✓ B"), ("pass-fail", "pass", "✓ pass")],
)
def test_the_scale_shows_in_the_whole_answer(scale: str, overall: object, line: str) -> None:
    """Parts and whole stand on the scale that was asked for, whatever the critic was asked."""
    answer = ask({**REQUEST, "scoring_scale": scale}, Critical(8))
    assert answer.overall_score == overall == answer.criteria_scores[0].score
    assert answer.scoring_scale == scale
    assert answer.one_line().startswith(line)
    bad = ask({**REQUEST, "scoring_scale": scale}, Critical(2)).one_line()
    assert bad.startswith("✗")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("import os\n\ndef f(x):\n    return os.stat(x)\n", "code"),
        ("func f() throws -> Int {\n  let x = 1\n  return x\n}", "code"),
        ("const a = 1;\nconsole.log(a);", "code"),
        ("#!/bin/sh\nset -e\nls", "code"),
        ("diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n", "code"),
        ("SELECT name FROM users\nWHERE id = 1;", "code"),
        ("# A guide\n\nThis guide explains it.", "markdown"),
        ("Some text:\n\n```python\nx = 1\n```\n", "markdown"),
        ("- one\n- two\n- three", "markdown"),
        ('{"status": 200, "body": "ok"}', "tool_result"),
        ("[1, 2, 3]", "tool_result"),
        ('{"session_id": "a", "messages": []}', "session_snapshot"),
        ("The cat sat on the mat. It was a warm day, and nobody minded.", "text"),
        ("42", "text"),
        ("true", "text"),
    ],
)
def test_auto_finds_the_type(content: str, kind: str) -> None:
    """`auto` tells code, Markdown, JSON of tools, sessions and plain text apart; a declared type stands."""
    assert detect_type(content, "auto") == kind
    assert detect_type(content, "markdown") == "markdown"


@pytest.mark.parametrize("declared", ["code", "text", "markdown", "auto"])
def test_only_data_can_fail_to_be_what_it_is_called(declared: str) -> None:
    """Any text may be code or prose."""
    assert misfit_note("{", declared) is None  # type: ignore[arg-type]


def test_a_misfit_is_a_note() -> None:
    """What does not parse as it was declared is judged as it stands, and the critic is told."""
    assert "no valid JSON" in str(misfit_note("{", "tool_result"))
    assert "no object" in str(misfit_note("5", "session_snapshot"))
    assert misfit_note("{}", "session_snapshot") is misfit_note("5", "tool_result") is None


@pytest.mark.parametrize("piece", ["[", "[a](", "**", "a@", "{", "---\n", "|", "/", "../", ":1", "#", " \n"])
def test_the_search_is_linear(piece: str) -> None:
    """No content of the largest size takes long to look at: a square of its size would take hours."""
    content = (piece * 512_000)[:512_000]
    started = time.process_time()
    detect_type(content, "auto")
    assert time.process_time() - started < 60
