"""Passes over drafts whose teacher fails, or that were removed, and how many are under way at a time."""

from __future__ import annotations

import asyncio
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, LLMConfig, Rubric, generate_critiques
from autorubric.apps.drafts import TeacherPrompt, refine
from autorubric.errors import ArgumentError
from tests.doubles import until
from tests.drafts.teachers import draft, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Notices are looked for in the statistics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def _drafts(folder: Path, count: int) -> Path:
    rows = [draft(number, output="text") for number in range(count)]
    return write_lines(folder / "drafts.jsonl", rows)


def _unreachable() -> LLMConfig:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    return LLMConfig(
        model="openai/m", api_base=f"http://127.0.0.1:{port}/v1", api_key="sk-none", max_retries=0
    )


class Counting:
    """A teacher that counts how many calls are under way, and holds each until enough of them are."""

    def __init__(self, least: int) -> None:
        self.least, self.now, self.most = least, 0, 0
        self._lock, self._reached = threading.Lock(), threading.Event()

    def _begin(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now >= self.least:
                self._reached.set()

    def _end(self) -> None:
        with self._lock:
            self.now -= 1

    def answer(self, prompt: TeacherPrompt) -> Any:
        self._begin()
        # Where they never are, the first call lets all others go on, and the count says so.
        self._reached.wait(30)
        self._reached.set()
        self._end()
        return "better" if prompt.task == "rewrite" else scored(5, "pass")

    async def answer_later(self, prompt: TeacherPrompt) -> Any:
        self._begin()
        await until(self._reached.is_set)
        # Whatever else may begin is let to.
        for _ in range(20):
            await asyncio.sleep(0)
        self._end()
        return "better" if prompt.task == "rewrite" else scored(5, "pass")


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("most", [1, 3])
def test_the_teacher_says_how_many_drafts_are_under_way(tmp_path: Path, later: bool, most: int) -> None:
    """`max_parallel_requests` bounds the drafts in flight, of functions of both kinds and in both passes."""
    config = {"generation": {"max_parallel_requests": most}}
    drafts = _drafts(tmp_path, 12)
    critiques = write_lines(
        tmp_path / "c.jsonl", [{"id": f"draft_{n}", "critique": scored(1)} for n in range(12)]
    )
    passes: tuple[Callable[[Any], Any], ...] = (
        lambda teacher: generate_critiques(drafts, tmp_path, teacher, config=config),
        lambda teacher: refine(critiques, drafts, tmp_path, teacher, config=config),
    )
    for run in passes:
        teacher = Counting(most)
        stats = run(teacher.answer_later if later else teacher.answer)
        assert (stats["processed"], teacher.most) == (12, most)


def test_a_model_says_how_many_drafts_are_under_way(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """Of a model given with its limit, no more drafts are begun than it has requests."""
    openai_server.script({"do": "answer", "payload": scored(5, "pass")}, repeat="last")
    model = LLMConfig(
        model="openai/m", api_base=openai_server.api_base, api_key="sk-none", max_parallel_requests=2
    )
    stats = generate_critiques(_drafts(tmp_path, 6), tmp_path, model)
    assert stats["processed"] == 6
    assert all(one["running"] <= 2 for one in openai_server.log())


@pytest.mark.parametrize("most", [0, -1, True, "2", 1.5])
def test_a_faulty_bound_is_refused(tmp_path: Path, most: Any) -> None:
    """A bound that is no count is an error of the arguments, before anybody is asked."""
    config = {"generation": {"max_parallel_requests": most}}
    with pytest.raises(ArgumentError, match="max_parallel_requests"):
        generate_critiques(_drafts(tmp_path, 1), tmp_path, lambda prompt: scored(5), config=config)


def test_a_dead_server_stops_the_pass(tmp_path: Path) -> None:
    """Where every draft fails with the same error the pass ends soon, and says why and what is left."""
    stats = generate_critiques(_drafts(tmp_path, 300), tmp_path, _unreachable())
    assert stats["stopped"] == "errors" and stats["processed"] < 50
    assert stats["processed"] + stats["left"] == 300
    (told,) = [one for one in stats["notices"] if one.startswith("the pass was stopped")]
    assert "drafts so far failed with the same error: PROVIDER_ERROR: ProviderConnectionError" in told
    assert "ProviderConnectionError" in stats["first_errors"]["PROVIDER_ERROR"]


def test_a_dead_server_stops_a_refinement(tmp_path: Path) -> None:
    """The refinement pass ends as the critique pass does."""
    rows = [{"id": f"draft_{n}", "critique": scored(1)} for n in range(100)]
    critiques = write_lines(tmp_path / "c.jsonl", rows)
    stats = refine(critiques, _drafts(tmp_path, 100), tmp_path, _unreachable())
    assert stats["stopped"] == "errors" and stats["errors"] < 50
    assert "ProviderConnectionError" in stats["first_error"]


def test_a_function_that_only_raises_stops_the_pass(tmp_path: Path) -> None:
    """Five drafts in a row are enough to tell; with a rubric too. A resume that retries errors finishes."""

    def broken(prompt: Any) -> Any:
        raise KeyError("price")

    drafts = _drafts(tmp_path, 20)
    stats = generate_critiques(drafts, tmp_path, broken)
    assert (stats["processed"], stats["left"], stats["stopped"]) == (5, 15, "errors")
    done = generate_critiques(drafts, tmp_path, lambda _: scored(5), resume=True, retry_errors=True)
    assert (done["processed"], done["records"], done["stopped"]) == (20, 20, None)
    rubric = Rubric([Criterion(name="true", requirement="It is true.")])
    assert generate_critiques(drafts, tmp_path / "r", broken, rubric=rubric)["processed"] == 5


def test_single_failures_do_not_stop_the_pass(tmp_path: Path) -> None:
    """Errors that differ, or come between answers, are those of the drafts."""
    numbers = iter(range(100))

    def differs(prompt: TeacherPrompt) -> Any:
        raise [KeyError, ValueError, RuntimeError][next(numbers) % 3]("no")

    def mostly(prompt: TeacherPrompt) -> Any:
        if next(numbers) % 5:
            raise KeyError("no")
        return scored(5)

    for teacher in (differs, mostly):
        stats = generate_critiques(_drafts(tmp_path, 30), tmp_path, teacher)
        assert (stats["processed"], stats["stopped"]) == (30, None)


def test_records_of_removed_drafts_are_not_counted(tmp_path: Path) -> None:
    """A rejected draft that is taken out of its file counts no more; its record stays, and counts again."""

    def teacher(prompt: TeacherPrompt) -> Any:
        return scored(1, "reject" if prompt.draft_id == "draft_0" else "pass")

    drafts = _drafts(tmp_path, 3)
    whole = drafts.read_bytes()
    assert generate_critiques(drafts, tmp_path, teacher)["verdict_distribution"]["reject"] == 1
    drafts.write_bytes(whole.split(b"\n", 1)[1])
    for limit in (None, 1):
        stats = generate_critiques(drafts, tmp_path, teacher, resume=True, limit=limit)
        assert (stats["verdict_distribution"]["reject"], stats["removed"], stats["records"]) == (0, 1, 2)
        assert any("no longer in drafts.jsonl: 1" in one for one in stats["notices"])
    assert len(read_lines(tmp_path / "critiques_v1.jsonl")) == 3
    drafts.write_bytes(whole)
    stats = generate_critiques(drafts, tmp_path, teacher, resume=True)
    assert (stats["verdict_distribution"]["reject"], stats["removed"], stats["processed"]) == (1, 0, 0)
    drafts.write_bytes(b"damaged\n" + whole.split(b"\n", 1)[1])
    assert generate_critiques(drafts, tmp_path, teacher, resume=True)["removed"] == 0
