"""Values of the library are frozen, and check what they hold."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from autorubric.criteria import Answer, Submission
from autorubric.errors import ReplyError, TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.scoring import JudgeVote
from autorubric.support.objects import maker_of
from tests.doubles import binary


def test_a_vote_is_copied_and_never_changed() -> None:
    """Copies and replacements are equal to it, and its fields cannot be set."""
    made = JudgeVote(judge_id="a", status="answered", answer=["x", "y"])
    assert made == replace(made) == copy.copy(made) == copy.deepcopy(made)
    with pytest.raises(FrozenInstanceError):
        made.sample = 2  # type: ignore[misc]


def test_those_of_the_library_are_what_they_were() -> None:
    """Each holds what it is given, and checks it."""
    assert JudgeVote(judge_id="a", status="answered").weight == 1.0
    assert TokenUsage(prompt_tokens=2) + TokenUsage(prompt_tokens=3) == TokenUsage(prompt_tokens=5)
    assert Answer(code="MET").value is None
    request = JudgeRequest(criterion=binary(), submission=Submission(text="x"), reference_submission=" ")
    assert request.reference_submission is None
    with pytest.raises(ReplyError, match="confidence must be between 0 and 1"):
        JudgeReply(answer="MET", confidence=2.0)
    with pytest.raises(TypeError, match="status"):
        JudgeVote(judge_id="a")  # type: ignore[call-arg]


def test_objects_made_in_bulk_are_like_others() -> None:
    """They have the class, the defaults and the hash of others, and are frozen."""
    fields: dict[str, Any] = {"judge_id": "a", "status": "answered", "answer": "MET"}
    made, plain = maker_of(JudgeVote)(**fields), JudgeVote(**fields)
    assert type(made) is JudgeVote
    assert made == plain == copy.copy(made) == copy.deepcopy(made)
    assert hash(made) == hash(plain)
    assert repr(made) == repr(plain)
    with pytest.raises(FrozenInstanceError):
        made.sample = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="status"):
        maker_of(JudgeVote)(judge_id="a")
