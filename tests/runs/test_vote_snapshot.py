"""The snapshot of a run's votes is used only if it belongs to the state of the logs."""

from __future__ import annotations

import random
import shutil
from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from benchmarks.damage._damage import CHANGES

from autorubric import CriterionGrader, DataItem, EvalResult, JudgeReply, Rubric, RubricDataset, evaluate_sync
from autorubric.errors import AutorubricError, ProviderTimeoutError, RunFormatError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.runs.vote_reader import read_snapshot, write_snapshot

SNAPSHOT = "votes.snapshot"
ITEMS, CRITERIA = 112, 6


def _dataset(n_items: int = ITEMS) -> RubricDataset:
    kinds: list[dict[str, Any]] = [
        {"name": f"c{n}", "requirement": f"Point {n}."} for n in range(CRITERIA - 1)
    ]
    kinds.append(
        {"type": "numerical_rating", "name": "grade", "requirement": "Good.", "min_value": 1, "max_value": 5}
    )
    items = [
        DataItem(id=f"i{n}", submission=f"Text {n}.", ground_truth=["MET"] * 5 + [3]) for n in range(n_items)
    ]
    return RubricDataset(rubric=Rubric(kinds), items=items)


def _judge(judge_id: str, seed: int = 0) -> FunctionJudge:
    def answer(request: JudgeRequest) -> JudgeReply:
        rng = random.Random(f"{seed} {judge_id} {request.item_id} {request.criterion.name}")
        verdict = rng.choice(("MET", "UNMET", "CANNOT_ASSESS"))
        return JudgeReply(answer=rng.randint(1, 5) if request.criterion.name == "grade" else verdict)

    return FunctionJudge(function=answer, judge_id=judge_id)


def _grade(folder: Path, name: str = "run", dataset: RubricDataset | None = None, **options: Any) -> Path:
    seed = options.pop("seed", 0)
    grader = CriterionGrader(judges=[_judge(one, seed) for one in "xyz"], **options)
    given: dict[str, Any] = {"experiments_dir": folder, "experiment_name": name, "on_mismatch": "rejudge"}
    return evaluate_sync(dataset or _dataset(), grader, show_progress=False, **given).experiment_dir


def _table(folder: Path) -> pd.DataFrame:
    return EvalResult.from_experiment(folder).votes_table()


def _without_snapshot(folder: Path) -> pd.DataFrame:
    copy = folder.with_name(f"{folder.name}-without")
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(SNAPSHOT))
    try:
        return _table(copy)
    finally:
        shutil.rmtree(copy)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the snapshot that reading its votes has written."""
    folder = _grade(tmp_path_factory.mktemp("runs"))
    (folder / SNAPSHOT).unlink()
    _table(folder)
    assert (folder / SNAPSHOT).exists()
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def test_the_second_opening_has_the_same_table(run: Path) -> None:
    """The snapshot is not written again, and another order of reading makes no difference."""
    written = (run / SNAPSHOT).stat().st_mtime_ns
    pd.testing.assert_frame_equal(_table(run), _without_snapshot(run), check_exact=True)
    assert (run / SNAPSHOT).stat().st_mtime_ns == written


def test_a_run_writes_the_same_votes(copy: Path) -> None:
    """The snapshot of a run that has just ended has the votes of its log, and so do its results."""
    grader = CriterionGrader(judges=[_judge(one) for one in "xyz"])
    result = evaluate_sync(
        _dataset(), grader, experiments_dir=copy.parent, experiment_name="new", show_progress=False
    )
    written = (result.experiment_dir / SNAPSHOT).read_bytes()
    pd.testing.assert_frame_equal(result.votes_table(), _without_snapshot(result.experiment_dir))
    pd.testing.assert_frame_equal(_table(result.experiment_dir), result.votes_table(), check_exact=True)
    assert (result.experiment_dir / SNAPSHOT).read_bytes() == written


def test_votes_that_are_requested_again_are_in_the_snapshot_once(tmp_path: Path) -> None:
    """Whether they are requested again in the same run or when the run is resumed."""
    attempts: Counter[str | None] = Counter()

    def answer(request: JudgeRequest) -> JudgeReply:
        attempts[request.item_id] += 1
        if request.item_id in ("i3", "i7") and attempts[request.item_id] < 3 * CRITERIA:
            raise ProviderTimeoutError("no reply")
        return JudgeReply(answer=3 if request.criterion.name == "grade" else "MET")

    judges = [_judge("x"), _judge("y"), FunctionJudge(function=answer, judge_id="slow")]
    options: dict[str, Any] = {"experiments_dir": tmp_path, "experiment_name": "run", "show_progress": False}
    for _ in range(3):
        result = evaluate_sync(_dataset(), CriterionGrader(judges=judges), **options)
        found = _table(result.experiment_dir)
        pd.testing.assert_frame_equal(found, _without_snapshot(result.experiment_dir), check_exact=True)
        pd.testing.assert_frame_equal(found, result.votes_table(), check_exact=True)
    assert not result.verdicts.lost


def test_votes_are_taken_from_a_snapshot_that_fits(copy: Path) -> None:
    """Votes of a snapshot with a valid seal are used, so the other tests would notice a snapshot in use."""
    results: Any = EvalResult.from_experiment(copy).item_results
    state = results._state()
    votes = read_snapshot(copy / SNAPSHOT, state)
    assert votes is not None
    write_snapshot(copy / SNAPSHOT, state, array("i", votes.item), array("i", votes.kind[::-1]), votes.kinds)
    assert not _table(copy).equals(_without_snapshot(copy))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_a_damaged_snapshot_never_changes_a_vote(copy: Path, seed: int) -> None:
    """It is ignored and written again."""
    rng, expected, content = random.Random(seed), _without_snapshot(copy), (copy / SNAPSHOT).read_bytes()
    for change in CHANGES.values():
        (copy / SNAPSHOT).write_bytes(change(content, rng))
        pd.testing.assert_frame_equal(_table(copy), expected, check_exact=True)
        assert (copy / SNAPSHOT).read_bytes() == content


@pytest.mark.filterwarnings("ignore:.*damaged:RuntimeWarning")
@pytest.mark.parametrize("file", ["votes.jsonl", "items.jsonl", "manifest.json", "dataset.jsonl"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_other_damage_is_treated_as_without_a_snapshot(
    run: Path, tmp_path: Path, file: str, seed: int
) -> None:
    """A damaged folder has the same table or the same error with its snapshot as without."""
    rng, folder = random.Random(f"{file} {seed}"), tmp_path / "run"
    for change in rng.sample([*CHANGES.values()], 4 if seed == 0 else len(CHANGES)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(run, folder)
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(change(content, rng))
        found: list[Any] = []
        for read in (_without_snapshot, _table):
            try:
                found.append(read(folder))
            except AutorubricError as error:
                found.append(str(error).replace("run-without", "run"))
        if isinstance(found[0], str):
            assert found[0] == found[1]
        else:
            pd.testing.assert_frame_equal(found[0], found[1], check_exact=True)


def test_a_damaged_snapshot_is_replaced(copy: Path) -> None:
    """It is written again when the votes are read."""
    whole = (copy / SNAPSHOT).read_bytes()
    for content in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        whole + b"\n",
        b'{"votes":-1}\n',
        b"[" * 100_000,
    ):
        (copy / SNAPSHOT).write_bytes(content)
        pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)
        assert (copy / SNAPSHOT).read_bytes() == whole


def test_a_stale_snapshot_is_not_used(copy: Path) -> None:
    """Items that are added, and a judge that changes, change the logs or the settings."""
    changes: tuple[dict[str, Any], ...] = (
        {"dataset": _dataset(ITEMS + 5)},
        {"dataset": _dataset(ITEMS + 5), "seed": 1},
    )
    for options in changes:
        stale = (copy / SNAPSHOT).read_bytes()
        _grade(copy.parent, **options)
        pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)
        (copy / SNAPSHOT).write_bytes(stale)
        pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)


def test_another_policy_uses_the_same_votes(copy: Path) -> None:
    """Resuming with another aggregation rescores without calls."""
    before = _table(copy)
    _grade(copy.parent, aggregation="unanimous")
    after = _table(copy)
    pd.testing.assert_frame_equal(after, _without_snapshot(copy), check_exact=True)
    assert not after.equals(before)


def test_the_snapshot_of_another_run_is_not_used(copy: Path) -> None:
    """Runs with the same votes have different marks, so that not even their snapshots are interchangeable."""
    other = _grade(copy.parent, "other")
    _table(other)
    assert (other / SNAPSHOT).read_bytes() != (copy / SNAPSHOT).read_bytes()
    different = _grade(copy.parent, "different", seed=1)
    shutil.copy(copy / SNAPSHOT, different / SNAPSHOT)
    pd.testing.assert_frame_equal(_table(different), _without_snapshot(different), check_exact=True)


def test_a_forged_snapshot_is_not_used(copy: Path) -> None:
    """Other verdicts, and votes on other items, do not match the checksum."""
    whole = (copy / SNAPSHOT).read_bytes()
    first, _, content = whole.partition(b"\n")
    half = len(content) // 4
    forged = (
        whole.replace(b'"MET"', b'"UNMET"'),
        first + b"\n" + content[half : 2 * half] + content[:half] + content[2 * half :],
        first.replace(b'"votes":', b'"votes":1') + b"\n" + content,
        first + b"\n",
    )
    for one in forged:
        assert one != whole
        (copy / SNAPSHOT).write_bytes(one)
        pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)


def test_runs_without_a_snapshot(copy: Path, tmp_path: Path) -> None:
    """A folder that cannot be written is read, small runs need no snapshot, and a link is an error."""
    (copy / SNAPSHOT).unlink()
    (copy / SNAPSHOT).mkdir()
    pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)
    small = _grade(tmp_path, "small", _dataset(5))
    _table(small)
    assert not (small / SNAPSHOT).exists()
    (small / SNAPSHOT).symlink_to(copy / "votes.jsonl")
    with pytest.raises(RunFormatError, match="must be a regular file"):
        _table(small)


def test_a_dataset_that_changes_for_a_moment_leaves_no_snapshot(copy: Path) -> None:
    """Votes that are not valid while the file differs are counted again afterwards."""
    (copy / SNAPSHOT).unlink()
    result = EvalResult.from_experiment(copy)
    whole = (copy / "dataset.jsonl").read_bytes()
    (copy / "dataset.jsonl").write_bytes(whole.replace(b"Text 5.", b"Text X."))
    changed = result.votes_table()
    (copy / "dataset.jsonl").write_bytes(whole)
    assert not (copy / SNAPSHOT).exists()
    pd.testing.assert_frame_equal(_table(copy), _without_snapshot(copy), check_exact=True)
    assert len(changed) < len(_table(copy))
