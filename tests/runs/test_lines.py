"""The lines of a run folder: what is written comes back, and is as short as it can be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from autorubric.errors import TokenUsage
from autorubric.runs.lines import (
    Seal,
    StoredItem,
    StoredVote,
    item_of_line,
    line_of_item,
    line_of_vote,
    parse_vote,
)
from autorubric.scoring import JudgeVote
from tests.doubles import vote
from tests.scoring.test_reports import votes

counts = st.integers(0, 2**53)
tokens = st.none() | st.builds(TokenUsage, prompt_tokens=counts, total_tokens=counts)
items = st.builds(
    StoredItem,
    item_id=st.text(),
    position=counts,
    score=st.none() | st.floats(-9, 9),
    error=st.none() | st.text(),
    raised=st.booleans(),
    partial=st.none() | st.text(),
    lost=st.booleans(),
    votes_cast=counts,
    duration_seconds=st.floats(0, 99),
    length_penalty=st.floats(0, 1),
    tokens=tokens,
    cost=st.none() | st.floats(0, 9),
    calls_saved=counts,
    basis=st.text(),
    dataset=st.text(),
    fingerprint=st.text(),
    votes=st.lists(counts, max_size=4).map(tuple),
)
LONE = "a lone \ud800 surrogate"


@given(st.text(), st.text(), st.text(), votes)
def test_a_vote_comes_back(item_id: str, criterion: str, digest: str, cast: JudgeVote) -> None:
    """Every field of a vote is read as it was written; the line is one line."""
    stored = StoredVote(item_id, criterion, digest, cast)
    line = line_of_vote(stored)
    assert b"\n" not in line
    assert parse_vote(line) == stored


@given(items, st.tuples(counts, counts, counts, counts).map(Seal._make))
def test_an_item_comes_back(item: StoredItem, seal: Seal) -> None:
    """So is every field of an item, and its seal."""
    line = line_of_item(item, seal)
    assert b"\n" not in line
    fields, found = item_of_line(line)
    assert (StoredItem(**fields), found) == (item, seal)


@pytest.mark.parametrize("place", ["item", "reason"])
def test_lone_surrogates_come_back(place: str) -> None:
    """They have no UTF-8, and are escaped."""
    cast = JudgeVote(judge_id="a", status="answered", answer="MET", reason=LONE if place == "reason" else "")
    stored = StoredVote(LONE if place == "item" else "i", "c", "d", cast)
    assert parse_vote(line_of_vote(stored)) == stored
    item = StoredItem(item_id=LONE, position=0, error=LONE)
    assert StoredItem(**item_of_line(line_of_item(item, Seal(0, 0, 0, 0)))[0]) == item


def test_what_is_as_by_default_is_left_out() -> None:
    """A thousand votes are a thousand times what is said of each."""
    line = json.loads(line_of_vote(StoredVote("i", "c", "d", vote("a", "MET"))))
    assert line["vote"] == {"judge_id": "a", "status": "answered", "answer": "MET"}
    item = json.loads(line_of_item(StoredItem(item_id="i", position=0), Seal(1, 2, 3, 4)))
    assert item == {"item_id": "i", "position": 0, "seal": [1, 2, 3, 4]}


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 0.1 + 0.2, True, 0, -0.0])
def test_an_answer_is_what_it_was(number: float) -> None:
    """What a judge answered is read as that, be it no finite number: never as nothing."""
    cast = JudgeVote(judge_id="a", status="answered", answer={"rating": number})
    read = parse_vote(line_of_vote(StoredVote("i", "c", "d", cast))).vote
    assert repr(read.answer) == repr(cast.answer)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sample", -1),
        ("sample", 1.0),
        ("sample", 2**62 + 1),
        ("weight", True),
        ("weight", float("nan")),
        ("latency_seconds", float("inf")),
        ("status", "lost"),
        ("verdict", "MAYBE"),
        ("order", ["a", 1]),
        ("token_usage", {"prompt_tokens": -1}),
        ("colour", "red"),
    ],
)
def test_what_was_not_written_is_refused(field: str, value: object) -> None:
    """Whichever of the two JSON parsers reads it."""
    line = json.loads(line_of_vote(StoredVote("i", "c", "d", vote("a", "MET"))))
    for reason in ("Because.", LONE):
        held = {**line, "vote": {**line["vote"], "reason": reason, field: value}}
        with pytest.raises(ValueError):
            parse_vote(json.dumps(held).encode("ascii"))
