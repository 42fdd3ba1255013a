"""Digests of functions: they change with what a function does, and with nothing else."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from autorubric.criteria.conditions import code_digest


def made(answer: Any) -> Callable[[Any], Any]:
    """A function that closes over its answer."""

    def judge(request: Any) -> Any:
        return answer

    return judge


@dataclass(frozen=True)
class Fixed:
    """A callable object that cannot change."""

    answer: str

    def __call__(self, request: Any) -> str:
        return self.answer


class Loose:
    """A callable object that can change."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __call__(self, request: Any) -> str:
        return self.answer

    def method(self, request: Any) -> str:
        return self.answer


def with_default(request: Any, answer: str = "MET", *, strict: bool = False) -> str:
    """A function with defaults."""
    return answer if not strict else "UNMET"


def other_default(request: Any, answer: str = "UNMET", *, strict: bool = False) -> str:
    """A function with other defaults."""
    return answer if not strict else "UNMET"


DIFFERENT = [
    (lambda r: "MET", lambda r: "UNMET"),
    (made("MET"), made("UNMET")),
    (made(("a", 1)), made(("a", 2))),
    (functools.partial(with_default, answer="a"), functools.partial(with_default, answer="b")),
    (Fixed("a"), Fixed("b")),
    (with_default, other_default),
    (lambda r: r in {"a", "b"}, lambda r: r in {"a", "c"}),
    (lambda r: [x for x in r if x], lambda r: [x for x in r if not x]),
    (str.isupper, str.islower),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_does_something_else_has_another_digest(one: Any, other: Any) -> None:
    """Code, constants, defaults, bound arguments, closures and frozen fields all count."""
    assert code_digest(one) != code_digest(other)
    assert code_digest(one) == code_digest(one)


def test_what_can_change_does_not_count() -> None:
    """State that may change while a judge works would refuse its own run."""
    assert code_digest(Loose("a")) == code_digest(Loose("b"))
    assert code_digest(Loose("a").method) == code_digest(Loose("b").method)
    seen: list[int] = []
    judge = made(seen)
    before = code_digest(judge)
    seen.append(1)
    assert code_digest(judge) == before


def test_a_cell_that_is_not_filled_yet_is_passed_over() -> None:
    """A function may close over a name that is assigned later."""

    def early() -> Any:
        return late

    digest = code_digest(early)
    late = 1
    assert code_digest(early) != digest
    assert late == 1


def test_depth_is_bounded() -> None:
    """A function that closes over itself has a digest all the same."""

    def loop(request: Any) -> Any:
        return loop

    assert code_digest(loop) == code_digest(loop)


def test_the_digest_is_the_same_in_every_process() -> None:
    """Sets of constants come in the order of the process; the digest does not."""
    program = (
        "from autorubric.criteria.conditions import code_digest\n"
        "print(code_digest(lambda r: r in {'a', 'b', 'c', 'd'}))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1


def test_the_module_of_our_own_classes_does_not_count() -> None:
    """They may move between versions; a class of another package is another class."""

    def holding(module: str) -> Any:
        held = type("Held", (), {"__module__": module})()
        return lambda: held

    assert code_digest(holding("autorubric.rubric._a")) == code_digest(holding("autorubric.grading"))
    assert code_digest(holding("autorubric.a")) != code_digest(holding("autorubrics.a"))
    assert code_digest(holding("mine.a")) != code_digest(holding("mine.b"))
