"""Runs gone on with on a dataset whose items have moved, changed, gone or come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from autorubric import DataItem, EvalResult, RubricDataset
from autorubric.errors import DatasetError
from tests.runs.runs import TEXTS, CountingJudge, run, small_dataset, small_rubric


class Text(NamedTuple):
    """An item: its id, if it has one, and its text."""

    item_id: str | None
    text: str


def dataset_of(texts: list[Text], folder: Path | None = None) -> RubricDataset:
    """The dataset of these items; streamed where a folder is given."""
    items = [DataItem(id=item_id, submission=text) for item_id, text in texts]
    dataset = RubricDataset(name="fruit", rubric=small_rubric(), items=items)
    if folder is None:
        return dataset
    dataset.to_file(folder / "fruit.jsonl")
    return RubricDataset.stream(folder / "fruit.jsonl")


def told(result: EvalResult) -> list[Any]:
    """What a run says of each item, in order."""
    return [
        (one.item_idx, one.item.id, one.item.submission, one.report and one.report.score)
        for one in result.item_results
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_lines_stand_wherever_their_items_move(tmp_path: Path, streamed: bool) -> None:
    """Nobody is asked and nothing is written, there and back; every view has the new order."""
    folder = tmp_path if streamed else None
    texts = [Text(f"i{n}", f"{TEXTS[n % 4]} {n}") for n in range(50)]
    run(tmp_path, CountingJudge(), dataset_of(texts, folder))
    lines = (tmp_path / "run" / "items.jsonl").read_bytes()
    turned = random.Random(0).sample(texts, len(texts))
    for order in (turned, turned, texts[::-1], texts):
        fresh = run(
            tmp_path,
            CountingJudge(),
            dataset_of(order),
            experiment_name="fresh",
            resume=True,
            on_mismatch="rejudge",
        )
        judge = CountingJudge()
        result = run(tmp_path, judge, dataset_of(order, folder))
        assert not judge.asked
        assert (tmp_path / "run" / "items.jsonl").read_bytes() == lines
        for one in (result, EvalResult.from_experiment(tmp_path / "run")):
            assert told(one) == told(fresh)
            assert one.get_scores() == fresh.get_scores()
            assert {line.position: line.item_id for line in one.item_results.lines()} == {
                place: item_id for place, (item_id, _) in enumerate(order)
            }


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_to_items_only_what_is_new_is_asked_for(tmp_path: Path, seed: int) -> None:
    """Through moves, edits, removals and returns the result is that of a run from scratch."""
    chance = random.Random(seed)
    texts = [Text(f"i{n}" if n % 3 else None, f"{TEXTS[n % 4]} {n}") for n in range(8)]
    judged: set[tuple[str, str]] = set()
    removed: list[Text] = []
    for step in range(8):
        known = [(one.item_id or str(place), one.text) for place, one in enumerate(texts)]
        judge = CountingJudge()
        dataset = dataset_of(texts, tmp_path if chance.random() < 0.7 else None)
        result = run(tmp_path, judge, dataset, on_mismatch="rejudge")
        assert {item_id for item_id, _ in judge.asked} == {
            item_id for item_id, text in known if (item_id, text) not in judged
        }
        judged |= set(known)
        fresh = told(run(tmp_path, CountingJudge(), dataset_of(texts), experiment_name=f"fresh-{step}"))
        assert told(result) == fresh
        assert told(EvalResult.from_experiment(tmp_path / "run")) == fresh
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(texts))
            match chance.randrange(4):
                case 0:
                    chance.shuffle(texts)
                case 1:
                    texts[at] = texts[at]._replace(text=f"{chance.choice(TEXTS)} {chance.randrange(3)}")
                case 2 if len(texts) > 4:
                    removed.append(texts.pop(at))
                case _:
                    texts.insert(at, removed.pop() if removed else Text(f"n{step}{len(texts)}", "pear"))


def test_all_faults_of_a_changed_file_are_told(tmp_path: Path) -> None:
    """What is known from before is checked together with what is new, as in a file read at first."""
    texts = [Text(f"i{n}", text) for n, text in enumerate(TEXTS)]
    run(tmp_path, CountingJudge(), dataset_of(texts, tmp_path))
    file = tmp_path / "fruit.jsonl"
    header, *rows = file.read_text(encoding="utf-8").splitlines()
    changed = [rows[3], rows[0], '{"id": "i1", "submission": "new"}', rows[1], rows[3], "{", rows[2]]
    file.write_text("\n".join([header, *changed]), encoding="utf-8")
    with pytest.raises(DatasetError) as first:
        list(RubricDataset.stream(file))
    judge = CountingJudge()
    with pytest.raises(DatasetError) as later:
        run(tmp_path, judge, RubricDataset.stream(file))
    assert [(one.line, one.message) for one in later.value.faults] == [
        (one.line, one.message) for one in first.value.faults
    ]
    assert [fault.line for fault in later.value.faults] == [5, 6, 7]
    assert not judge.asked
    assert run(tmp_path, judge, small_dataset(*TEXTS)).get_scores() == [1.0, 10 / 15, 5 / 15, 0.0]
    assert not judge.asked
