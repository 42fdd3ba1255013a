"""Frozen dataclasses that are made quickly: the same as others in all that can be seen of them."""

from __future__ import annotations

import copy
import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from autorubric.criteria import Answer, Submission
from autorubric.errors import ReplyError, TokenUsage
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.scoring import JudgeVote
from autorubric.support.objects import fast_init
from tests.doubles import binary


def kind() -> Any:
    """A dataclass of every sort of field."""

    @dataclass(frozen=True, slots=True)
    class Kind:
        name: str
        number: int = 3
        held: list[int] = field(default_factory=list)
        weight: float = field(default=1.0, kw_only=True)

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("below 0")

    return Kind


Plain: Any = kind()
Quick: Any = fast_init(kind())


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Wider(Quick):  # type: ignore[misc]
    """One with fields of the class above it."""

    label: str | None = None


def shown(one: object) -> str:
    return repr(one).partition("(")[2]


@pytest.mark.parametrize(
    ("args", "named"),
    [(("a",), {}), (("a", 5, [1]), {"weight": 2.0}), ((), {"name": "a", "held": [2], "number": 0})],
)
def test_what_is_given_is_held(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Positions, names and defaults mean what they mean in any dataclass."""
    assert shown(Quick(*args, **named)) == shown(Plain(*args, **named))


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), (("a", 1, [], 2.0), {}), (("a",), {"other": 1}), (("a",), {"name": "b"})]
)
def test_what_does_not_fit_is_refused(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Arguments that are missing, unknown, repeated or too many raise, with the same words."""
    with pytest.raises(TypeError) as plain:
        Plain(*args, **named)
    with pytest.raises(TypeError) as quick:
        Quick(*args, **named)
    assert str(quick.value) == str(plain.value)


def test_each_has_its_own_list() -> None:
    """A default factory makes one for each instance."""
    one, other = Quick("a"), Quick("b")
    one.held.append(1)
    assert other.held == []


def test_it_looks_after_itself() -> None:
    """`__post_init__` is called, and nothing can be changed."""
    with pytest.raises(ValueError, match="below 0"):
        Quick("a", -1)
    with pytest.raises(FrozenInstanceError):
        Quick("a").number = 2


def test_it_is_copied() -> None:
    """Copies and replacements are equal to it."""
    made: Any = Wider(name="a", held=[1], label="b")
    assert made == replace(made) == copy.copy(made) == copy.deepcopy(made)
    assert replace(made, number=4) == Wider(name="a", held=[1], label="b", number=4)


def test_its_signature_is_the_same() -> None:
    """Editors and documentation see names, types and kinds of the parameters."""
    quick, plain = inspect.signature(Quick), inspect.signature(Plain)
    for name, parameter in plain.parameters.items():
        found = quick.parameters[name]
        assert (found.kind, found.annotation) == (parameter.kind, parameter.annotation)
        assert name == "held" or found.default == parameter.default


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
