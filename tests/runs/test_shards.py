"""Shards: parts of a dataset as runs of their own, and one run made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, EvalResult, RubricDataset
from autorubric.errors import ArgumentError, RunError, RunFormatError, RunMismatchError
from autorubric.runs import merge_runs, run_shard
from tests.runs.runs import (
    TEXTS,
    CountingJudge,
    as_if_killed,
    edit_lines,
    edit_manifest,
    run,
    small_dataset,
    small_rubric,
)

SAME = ("apple and pear", "apple", "pear", "nothing", "pear and apple", "apple", "pear")


def shard(folder: Path, i: int, n: int, judge: Any = None, dataset: Any = None, **options: Any) -> EvalResult:
    """One shard of a run called `run`."""
    grader = options.pop("grader", None) or CriterionGrader(judges=[judge or CountingJudge()])
    data = small_dataset(*SAME) if dataset is None else dataset
    return run_shard(
        data, grader, i, n, experiment_name="run", experiments_dir=folder, show_progress=False, **options
    )


def folders(folder: Path, n: int) -> list[Path]:
    return [folder / f"run-{i}-of-{n}" for i in range(n)]


def told(result: EvalResult) -> list[Any]:
    """Everything that a run says of its items, but how long it took."""
    return [
        (
            one.item_idx,
            one.item,
            one.error,
            one.report and one.report.score,
            one.report and [(c.name, c.final_answer, [v.answer for v in c.votes]) for c in one.report.report],
        )
        for one in result.item_results
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("named", [True, False])
def test_merged_shards_are_one_local_run(tmp_path: Path, n: int, named: bool) -> None:
    """Result, dataset copy and manifest are those of a run in one piece; every item is asked about once."""
    data = small_dataset(*SAME)
    if not named:
        data = data.with_items([item.model_copy(update={"id": None}) for item in data.items])
    whole = run(tmp_path, CountingJudge(), data, experiment_name="whole")
    judge = CountingJudge()
    sizes = [shard(tmp_path, i, n, judge, data).total_items for i in range(n)]
    assert sum(sizes) == len(SAME)
    assert set(judge.asked.values()) == {1}
    merged = merge_runs(reversed(folders(tmp_path, n)), tmp_path / "merged")
    assert told(merged) == told(whole)
    assert merged.notices == ()
    assert merged.item_results.tally.cost == pytest.approx(whole.item_results.tally.cost)
    copies = [(tmp_path / name / "dataset.jsonl").read_bytes() for name in ("whole", "merged")]
    assert copies[0] == copies[1]
    manifests = [json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in ("whole", "merged")]
    for key in ("asking", "deciding", "dataset", "status"):
        assert manifests[0][key] == manifests[1][key]


def test_a_merged_run_is_gone_on_with_without_a_call(tmp_path: Path) -> None:
    """Under the same dataset and judges, nothing is left to ask."""
    for i in range(2):
        shard(tmp_path, i, 2)
    merge_runs(folders(tmp_path, 2), tmp_path / "merged")
    judge = CountingJudge()
    again = run(tmp_path, judge, small_dataset(*SAME), experiment_name="merged")
    assert not judge.asked
    assert again.total_items == len(SAME)


def test_a_stopped_shard_goes_on_where_it_was(tmp_path: Path) -> None:
    """Run again, it asks for what is missing, and for nothing else."""
    shard(tmp_path, 0, 2, CountingJudge(down={"i2"}))
    judge = CountingJudge()
    shard(tmp_path, 0, 2, judge)
    assert {item for item, _ in judge.asked} == {"i2"}


def test_a_streamed_dataset_has_streamed_shards(tmp_path: Path) -> None:
    """Their items are read row by row, with the ids that they have in the whole."""
    path = tmp_path / "data.jsonl"
    data = small_dataset(*SAME)
    data.with_items([item.model_copy(update={"id": None}) for item in data.items]).to_file(path)
    streamed = RubricDataset.stream(path)
    part = streamed.part(1, 3)
    assert part.is_streamed
    assert [part.item_id(at) for at in range(len(part))] == ["1", "4"] == list(part.item_ids())
    assert [item.submission for item in part] == [SAME[1], SAME[4]]
    assert part[1] == part.items[1]
    whole = run(tmp_path, CountingJudge(), RubricDataset.stream(path), experiment_name="whole")
    for i in range(3):
        shard(tmp_path, i, 3, dataset=RubricDataset.stream(path))
    assert told(merge_runs(folders(tmp_path, 3), tmp_path / "merged")) == told(whole)


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """Shards that were not given and items that are not finished; what is there can be read."""
    shard(tmp_path, 0, 3)
    shard(tmp_path, 2, 3)
    half = folders(tmp_path, 3)[2] / "items.jsonl"
    half.write_bytes(half.read_bytes().splitlines(keepends=True)[0])
    as_if_killed(half.parent)
    merged = merge_runs([folders(tmp_path, 3)[0], folders(tmp_path, 3)[2]], tmp_path / "merged")
    assert [item.item.id for item in merged.item_results] == ["i0", "i2", "i3", "i5", "i6"]
    assert "missing: shard 1 of 3" in merged.notices
    assert "missing: item i5 is unfinished" in merged.notices


def test_what_is_missing_is_told_in_a_few_lines(tmp_path: Path) -> None:
    """However many shards a manifest says that there are, and however many items are not finished."""
    data = small_dataset(*["apple"] * 60)
    shard(tmp_path, 0, 2, dataset=data)
    folder = folders(tmp_path, 2)[0]
    edit_manifest(folder, lambda manifest: manifest["shard"].__setitem__(1, 1_000_000))
    (folder / "items.jsonl").unlink()
    as_if_killed(folder)
    notices = merge_runs([folder], tmp_path / "merged").notices
    told = [notice.removeprefix("missing: ") for notice in notices if notice.startswith("missing: ")]
    assert told == [
        *(f"shard {number} of 1000000" for number in range(1, 6)),
        "999,994 more of 1,000,000 shards",
        *(f"item i{number} is unfinished" for number in range(0, 10, 2)),
        "25 more items are unfinished",
    ]


def test_runs_that_depend_on_other_things_are_refused(tmp_path: Path) -> None:
    """Other judges, other policies, another dataset; all differences are told, and nothing is written."""
    shard(tmp_path, 0, 2)
    shard(tmp_path, 1, 2, CountingJudge(version="2"), small_dataset(*SAME, rubric=small_rubric(weight=1.0)))
    with pytest.raises(RunMismatchError) as refused:
        merge_runs(folders(tmp_path, 2), tmp_path / "merged")
    text = str(refused.value)
    assert "version '1' → '2'" in text
    assert "the dataset's name, shared prompt" in text
    assert not (tmp_path / "merged").exists()


def test_shards_of_a_dataset_that_changed_between_are_refused(tmp_path: Path) -> None:
    """Each knows of what whole it is a part."""
    shard(tmp_path, 0, 2)
    shard(tmp_path, 1, 2, dataset=small_dataset(*SAME[:-1], "another"))
    with pytest.raises(RunMismatchError, match="shards of different datasets"):
        merge_runs(folders(tmp_path, 2), tmp_path / "merged")


def test_overlaps_that_agree_are_merged_and_others_refused(tmp_path: Path) -> None:
    """Of runs that share items, one vote each is kept, with one exchange; contradictions are named."""
    one = run(tmp_path, CountingJudge(), small_dataset(*TEXTS), experiment_name="one")
    run(tmp_path, CountingJudge(), small_dataset(*TEXTS, "more of pear"), experiment_name="two")
    merged = merge_runs([tmp_path / "one", tmp_path / "two"], tmp_path / "merged")
    assert merged.get_scores()[:4] == one.get_scores()
    assert merged.total_items == 5
    votes = (tmp_path / "merged" / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(votes) == 10
    run(tmp_path, CountingJudge(), small_dataset(*TEXTS[:3], "an apple"), experiment_name="three")
    with pytest.raises(RunMismatchError, match="item i3 in one and three: the text differs"):
        merge_runs([tmp_path / "one", tmp_path / "three"], tmp_path / "other")
    edit_lines(tmp_path / "two" / "votes.jsonl", lambda line: line.replace(b'"UNMET"', b'"MET"'))
    (tmp_path / "two" / "items.jsonl").unlink()
    as_if_killed(tmp_path / "two")
    with pytest.raises(RunMismatchError, match=r"item i1 in one and two: the vote of .* on pear"):
        merge_runs([tmp_path / "one", tmp_path / "two"], tmp_path / "other")


def test_prompts_and_replies_are_kept(tmp_path: Path, openai_server: Any) -> None:
    """What was sent for a vote stands in the merged folder as in the shard's."""
    from tests.faults.runs import config, dataset

    grader = CriterionGrader(judges=[config(openai_server)])
    for i in range(2):
        shard(tmp_path, i, 2, grader=grader, dataset=dataset(4, 2))
    merge_runs(folders(tmp_path, 2), tmp_path / "merged")
    lines = (tmp_path / "merged" / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len({(one["item"], one["criterion"]) for one in map(json.loads, lines)}) == len(lines) == 8


def test_runs_that_were_killed_are_merged(tmp_path: Path, openai_server: Any) -> None:
    """A line of prompts that was torn, which going on leaves in the file, is passed over."""
    from tests.faults.runs import config, dataset

    for name in ("one", "two"):
        grader = CriterionGrader(judges=[config(openai_server)])
        run(tmp_path, None, dataset(3, 2), grader=grader, experiment_name=name)
    prompts = tmp_path / "two" / "prompts.jsonl"
    prompts.write_bytes(b'{"item":"0","cri\n\xff\n[]\n{}\n' + prompts.read_bytes()[:-20])
    merged = merge_runs([tmp_path / "two", tmp_path / "one"], tmp_path / "merged")
    assert [one.exchanged.replies != () for one in merged.exchanges("i0")] == [True, True]


@pytest.mark.parametrize(("i", "n"), [(2, 2), (-1, 2), (0, 0), (9, 10)])
def test_shards_that_are_none_are_refused(tmp_path: Path, i: int, n: int) -> None:
    """The number must be below the count, and there must be an item for it."""
    with pytest.raises(ArgumentError, match=f"shard {i} of {n}"):
        shard(tmp_path, i, n)


def test_merging_overwrites_nothing(tmp_path: Path) -> None:
    """Not a folder that is there; nor does it take what is not a run."""
    shard(tmp_path, 0, 1)
    with pytest.raises(RunError, match="already exists"):
        merge_runs(folders(tmp_path, 1), tmp_path)
    with pytest.raises(RunFormatError, match="not a run folder"):
        merge_runs([tmp_path], tmp_path / "merged")
    with pytest.raises(ArgumentError, match="paths must not be empty"):
        merge_runs([], tmp_path / "merged")
