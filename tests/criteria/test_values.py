"""Submissions, token counts and answers."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from autorubric.criteria import Answer, Submission
from autorubric.errors import ArgumentError, TokenUsage


def test_a_text_and_none_are_submissions() -> None:
    """A text is judged as it is; None is a submission without a text; a submission stays itself."""
    assert Submission.parse("text") == Submission(text="text")
    assert Submission.parse(None) == Submission(text=None)
    given_one = Submission(text="a", thinking="b")
    assert Submission.parse(given_one) is given_one


def test_thinking_and_output_are_kept_apart() -> None:
    """The output is judged, the thinking stands beside it; either may be None."""
    assert Submission.parse({"thinking": "t", "output": "o"}) == Submission(text="o", thinking="t")
    assert Submission.parse({"output": "o"}) == Submission(text="o")
    assert Submission.parse({"thinking": "t", "output": None}) == Submission(text=None, thinking="t")


def test_other_mappings_are_candidates() -> None:
    """Names to texts are candidates, the first of which other kinds judge."""
    submission = Submission.parse({"a": "one", "b": "two"})
    assert submission == Submission(text="one", candidates={"a": "one", "b": "two"})
    assert Submission.parse({"output": "o", "thinking": "t", "c": "x"}).candidates["c"] == "x"


@pytest.mark.parametrize(
    ("given_one", "told"),
    [
        (5, "to_grade must be a string, .* or None; got int"),
        (b"bytes", "to_grade must be a string, .* or None; got bytes"),
        ({}, "must map at least one name to a string"),
        ({"a": 1}, r"\['a'\]"),
        ({1: "a"}, r"\[1\]"),
        ({"thinking": "t"}, "no 'output'; pass both"),
        ({"thinking": 5, "output": "o"}, "thinking"),
        ([], "at least one turn"),
    ],
)
def test_what_is_no_submission_is_told(given_one: object, told: str) -> None:
    """The error says what was given, where, and what is allowed."""
    with pytest.raises(ArgumentError, match=told):
        Submission.parse(given_one)


counts = st.integers(0, 10**9)
usages = st.builds(
    TokenUsage,
    prompt_tokens=counts,
    completion_tokens=counts,
    total_tokens=counts,
    cache_creation_input_tokens=counts,
    cache_read_input_tokens=counts,
)


@given(usages, usages, usages)
def test_token_usage_adds(a: TokenUsage, b: TokenUsage, c: TokenUsage) -> None:
    """Addition is field by field, in any order, with nothing as zero, and survives a dict."""
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + TokenUsage() == a
    assert (a + b).prompt_tokens == a.prompt_tokens + b.prompt_tokens
    assert TokenUsage(**a.to_dict()) == a


def test_token_usage_adds_to_nothing_else() -> None:
    """A number is no usage."""
    with pytest.raises(TypeError):
        TokenUsage() + 1  # type: ignore[operator]


def test_abstaining_answers() -> None:
    """NA and CANNOT_ASSESS carry no judgment."""
    assert Answer(code=None, na=True).abstains
    assert Answer(code=None, cannot_assess=True).abstains
    assert not Answer(code="MET", value=1.0).abstains
