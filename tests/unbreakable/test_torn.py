"""Files of a run folder that end too early, anywhere: what is whole stands, and the rest is asked again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric import CriterionGrader, EvalResult
from autorubric.judges import JudgeRequest
from tests.doubles import model_judge
from tests.runs.runs import TEXTS, CountingJudge, as_if_killed, run, small_dataset

# Files that are cut without regard to each other are damaged, and said to be.
pytestmark = pytest.mark.filterwarnings("ignore:.* damaged:RuntimeWarning")

FILES = ("votes.jsonl", "items.jsonl", "prompts.jsonl")


def _outcome(result: EvalResult) -> list[Any]:
    """All that a run says but for times."""
    found: list[Any] = []
    for item in result.item_results:
        assert item.report is not None
        votes = [(one.criterion.name, v.answer, v.reason) for one in item.report.report for v in one.votes]
        found.append((item.item.id, item.report.score, item.error, votes))
    return [*found, result.total_completion_cost]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A run, and what it comes to."""
    folder = tmp_path_factory.mktemp("whole")
    result = run(folder, CountingJudge(), grader=_grader(CountingJudge()))
    return folder / "run", _outcome(result)


def _grader(judge: CountingJudge) -> CriterionGrader:
    """A panel of the judge and a model, so that there are prompts."""

    def answer(request: Any) -> dict[str, str]:
        return {"reason": "Read.", "verdict": "MET"}

    model, _ = model_judge(answer)
    return CriterionGrader(judges=[judge, model])


def _goes_on(folder: Path, ends: dict[str, bytes], outcome: list[Any]) -> None:
    for name, content in ends.items():
        (folder / "run" / name).write_bytes(content)
    as_if_killed(folder / "run")
    stored = {
        (vote["item"], vote["criterion"])
        # A line without its line break is torn.
        for vote in map(_parsed, ends.get("votes.jsonl", b"").split(b"\n")[:-1])
        if vote is not None and vote["vote"]["judge_id"] == "counting"
    }
    judge = CountingJudge()
    assert _outcome(run(folder, judge, grader=_grader(judge))) == outcome
    if "votes.jsonl" in ends:
        wanted = {(f"i{n}", name) for n in range(len(TEXTS)) for name in ("apple", "pear")} - stored
        assert judge.asked == dict.fromkeys(wanted, 1)
    else:
        assert not judge.asked
    for name in ends.keys() - {"items.jsonl"}:
        lines = [line for line in ends[name].splitlines(keepends=True) if line.endswith(b"\n")]
        assert (folder / "run" / name).read_bytes().startswith(b"".join(lines))


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("votes.jsonl", "last"),
        ("items.jsonl", "last"),
        *(pytest.param(name, "all", marks=pytest.mark.slow) for name in FILES),
    ],
)
def test_a_file_cut_at_every_byte(
    name: str, lines: str, whole: tuple[Path, list[Any]], quick_path: Path
) -> None:
    """Wherever a file ends, the run goes on from what is whole."""
    folder, outcome = whole
    shutil.copytree(folder, quick_path / "run")
    before = {one: (folder / one).read_bytes() for one in FILES}
    first = before[name].rstrip(b"\n").rfind(b"\n") + 1 if lines == "last" else 0
    for cut in range(first, len(before[name])):
        for other, content in before.items():
            (quick_path / "run" / other).write_bytes(content)
        _goes_on(quick_path, {name: before[name][:cut]}, outcome)


@pytest.mark.slow
@settings(max_examples=15)
@given(data=st.data())
def test_files_cut_anywhere_at_once(
    data: st.DataObject, whole: tuple[Path, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However much of each file is there, zeros behind it or not, the run goes on from what is whole."""
    folder, outcome = whole
    ends = {}
    for name in FILES:
        content = (folder / name).read_bytes()
        kept = data.draw(st.integers(0, len(content)), label=name)
        zeros = data.draw(st.sampled_from([0, 0, 1, 512]), label="zeros")
        ends[name] = content[:kept] + bytes(zeros)
    target = tmp_path_factory.mktemp("cut")
    shutil.copytree(folder, target / "run")
    _goes_on(target, ends, outcome)
    assert _outcome(EvalResult.from_experiment(target / "run")) == outcome
    again = CountingJudge()
    assert _outcome(run(target, again, grader=_grader(again))) == outcome
    assert not again.asked


def test_a_judge_is_asked_with_the_same_words_again(whole: tuple[Path, list[Any]], tmp_path: Path) -> None:
    """What is asked again after a cut is what was asked before it."""
    asked: list[JudgeRequest] = []

    async def judge(request: JudgeRequest) -> str:
        asked.append(request)
        return "MET"

    run(tmp_path, judge, small_dataset(*TEXTS))
    first = {(one.item_id, one.criterion.name): one for one in asked}
    asked.clear()
    (tmp_path / "run" / "votes.jsonl").write_bytes(b"")
    run(tmp_path, judge, small_dataset(*TEXTS))
    assert {(one.item_id, one.criterion.name): one for one in asked} == first
