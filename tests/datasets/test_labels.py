"""Labels that people saved, brought back into their dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import Rubric, RubricDataset, merge_labels
from autorubric.errors import ArgumentError, DatasetError

RUBRIC = Rubric(
    [
        {"name": "clear", "requirement": "It is clear."},
        {"name": "stars", "type": "likert", "rating": {"min_val": 1, "max_val": 5}},
    ]
)
EARLY, LATE = "2026-01-01T10:00:00.000Z", "2026-01-02T10:00:00.000Z"


@pytest.fixture
def dataset() -> RubricDataset:
    """Two items, one with a truth and a rating in the rubric's order."""
    items: list[dict[str, Any]] = [
        {"id": "a", "submission": "A.", "ground_truth": ["UNMET", 2], "ratings": {"ada": ["MET", None]}},
        {"id": "b", "submission": "B.", "metadata": {"k": 1}},
    ]
    return RubricDataset(rubric=RUBRIC, items=items)


def label(
    item: Any = "a", criterion: str = "clear", rater: str = "bob", value: Any = "MET", **more: Any
) -> Any:
    """A line of a label file."""
    return {"item_id": item, "criterion": criterion, "rater": rater, "value": value, "time": EARLY, **more}


def write(path: Path, *rows: Any) -> Path:
    """The rows under a head, as pages save them."""
    head = {"format": 1, "kind": "labels", "rater": "bob", "dataset": "", "fingerprint": "0", "seed": 0}
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]), encoding="utf-8")
    return path


def test_labels_become_ratings_with_where_they_come_from(dataset: RubricDataset, tmp_path: Path) -> None:
    """Under the rater's name, with time, file, line and reason in the metadata; the rest stays."""
    path = write(
        tmp_path / "bob.jsonl",
        label(reason="plain", sha256=dataset.item_fingerprint(0)),
        label("b", "stars", value=4, time=LATE),
    )
    merged = merge_labels(dataset, [path])
    assert (merged.n_labels, merged.raters, merged.notices) == (2, ("bob",), ())
    assert merged.dataset.item_ratings(0) == {"ada": {"clear": "MET"}, "bob": {"clear": "MET"}}
    assert merged.dataset.item_ratings(1) == {"bob": {"stars": 4}}
    told = {"time": EARLY, "source": "bob.jsonl:2", "reason": "plain"}
    assert merged.dataset[0].metadata == {"label_sources": {"bob": {"clear": told}}}
    assert merged.dataset[1].metadata["k"] == 1
    assert merged.dataset[0].ground_truth == dataset[0].ground_truth
    out = tmp_path / "out.jsonl"
    merged.dataset.to_file(out)
    assert RubricDataset.from_file(out) == merged.dataset


def test_merging_twice_changes_nothing(dataset: RubricDataset, tmp_path: Path) -> None:
    """The same file again says nothing new."""
    path = write(tmp_path / "bob.jsonl", label(), label("b", "stars", value=4))
    once = merge_labels(dataset, [path]).dataset
    again = merge_labels(once, [path])
    assert again.dataset == once
    assert again.notices == ()


def test_the_last_label_of_a_rater_counts(dataset: RubricDataset, tmp_path: Path) -> None:
    """By its time, whatever the order of files and lines; and it is told."""
    late = write(tmp_path / "late.jsonl", label(value="UNMET", time=LATE))
    early = write(tmp_path / "early.jsonl", label(value="MET", time=EARLY))
    for paths in ([late, early], [early, late]):
        merged = merge_labels(dataset, paths)
        assert merged.dataset.item_ratings(0)["bob"] == {"clear": "UNMET"}
        assert merged.n_labels == 1
        assert "'bob' labelled 'clear' of 'a' 2 times" in merged.notices[0]
        assert "late.jsonl:2" in merged.notices[0]


def test_older_labels_do_not_replace_newer_ones(dataset: RubricDataset, tmp_path: Path) -> None:
    """Merged one after the other, the newer one stays, too; both ways are told."""
    early = write(tmp_path / "early.jsonl", label(value="MET", time=EARLY))
    late = write(tmp_path / "late.jsonl", label(value="UNMET", time=LATE))
    newer = merge_labels(dataset, [late]).dataset
    kept = merge_labels(newer, [early])
    assert kept.dataset.item_ratings(0)["bob"] == {"clear": "UNMET"}
    assert "is older than 'UNMET', which is kept" in kept.notices[0]
    replaced = merge_labels(merge_labels(dataset, [early]).dataset, [late])
    assert replaced.dataset.item_ratings(0)["bob"] == {"clear": "UNMET"}
    assert "replaces 'MET'" in replaced.notices[0]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"item": "aa"}, "of 'aa', which is not an item"),
        ({"criterion": "cleer"}, "on 'cleer', which is not a criterion; did you mean 'clear'"),
        ({"sha256": "f" * 64}, "of 'a', whose text has changed since"),
    ],
)
def test_what_does_not_belong_is_left_out_and_told(
    dataset: RubricDataset, tmp_path: Path, odd: Any, told: str
) -> None:
    """The rest is merged."""
    path = write(tmp_path / "l.jsonl", label("b"), label(**odd))
    merged = merge_labels(dataset, [path])
    assert merged.n_labels == 1
    assert "skipped 1 labels" in merged.notices[0]
    assert told in merged.notices[0]


def test_labels_of_another_dataset_are_refused(dataset: RubricDataset, tmp_path: Path) -> None:
    """Where nothing belongs, nothing is written."""
    with pytest.raises(DatasetError, match="no label belongs to an item of the dataset: skipped 2 labels"):
        merge_labels(dataset, [write(tmp_path / "l.jsonl", label("x"), label("x", "stars", value=1))])
    with pytest.raises(DatasetError, match="the files contain no labels"):
        merge_labels(dataset, [write(tmp_path / "l.jsonl")])


def test_labels_that_are_none_are_faults(dataset: RubricDataset, tmp_path: Path) -> None:
    """All of them at once, each with its file and line."""
    path = write(tmp_path / "l.jsonl", label(value="so so"), label("b"), label("b", "stars", value=9))
    with pytest.raises(DatasetError) as caught:
        merge_labels(dataset, [path])
    told = [fault.message for fault in caught.value.faults]
    assert [one.split(": ")[0] for one in told] == ["l.jsonl:2", "l.jsonl:4"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (7, "expected a mapping with the keys item_id, criterion"),
        ({"item_id": "a"}, "'criterion' is missing"),
        (label(rater=""), "String should have at least 1 character; got ''"),
        (label(item=3), "expected a string; got 3"),
        (label(tiem=EARLY), "unknown key 'tiem'; did you mean 'time'"),
        ({"format": 9}, "format"),
    ],
)
def test_faulty_files(dataset: RubricDataset, tmp_path: Path, row: Any, message: str) -> None:
    """What is no label is a fault with its line."""
    path = write(tmp_path / "l.jsonl", label(), row)
    with pytest.raises(DatasetError, match=message) as caught:
        merge_labels(dataset, [path])
    assert {fault.line for fault in caught.value.faults} == {3}


def disputed(said: dict[str, Any]) -> RubricDataset:
    """Item `a`, handed out with what was said."""
    return RubricDataset(
        rubric=RUBRIC, items=[{"id": "a", "submission": "A.", "metadata": {"disputed": said}}]
    )


def test_decisions_become_the_truth_with_where_they_come_from(dataset: RubricDataset, tmp_path: Path) -> None:
    """Who decided, when, from which votes, and what stood there before; ratings stay as they are."""
    votes = {"people": {"ada": "MET", "bob": "UNMET"}, "judges": {"j": "MET"}}
    path = write(tmp_path / "eve.jsonl", label(rater="eve", time=LATE, reason="read it"))
    merged = merge_labels(dataset, [path], disputed=disputed({"clear": votes}))
    assert merged.dataset[0].ground_truth == {"clear": "MET", "stars": 2}
    assert merged.dataset[0].metadata["adjudicated"]["clear"] == {
        "by": "eve",
        "time": LATE,
        "source": "eve.jsonl:2",
        "reason": "read it",
        "votes": votes,
        "before": "UNMET",
    }
    assert merged.dataset.item_ratings(0) == dataset.item_ratings(0)
    assert merged.raters == ("eve",)


def test_only_what_was_handed_out_is_decided(dataset: RubricDataset, tmp_path: Path) -> None:
    """Labels on other cells are left out and told; deciders who differ decide nothing."""
    path = write(
        tmp_path / "l.jsonl",
        label(rater="eve", value="MET"),
        label(rater="kim", value="UNMET"),
        label("b", rater="eve"),
        label("a", "stars", rater="eve", value=5),
        label("a", "stars", rater="kim", value=5),
    )
    merged = merge_labels(dataset, [path], disputed=disputed({"clear": {}, "stars": {}}))
    assert merged.dataset[0].ground_truth == {"clear": "UNMET", "stars": 5}
    assert merged.n_labels == 1
    assert any("1 labels of criteria that were not in dispute" in told for told in merged.notices)
    assert any(
        "'clear' of 'a' was not decided because 'eve' says 'MET', 'kim'" in told for told in merged.notices
    )


@pytest.mark.parametrize("own", [3, {"ada": 1}, ["x"]])
def test_metadata_of_somebodys_own_is_not_written_over(tmp_path: Path, own: Any) -> None:
    """Where the name is taken by something else, the message says so."""
    items = [{"id": "a", "submission": "A.", "metadata": {"label_sources": own, "adjudicated": own}}]
    taken = RubricDataset(rubric=RUBRIC, items=items)
    path = write(tmp_path / "l.jsonl", label())
    with pytest.raises(ArgumentError, match="'label_sources'"):
        merge_labels(taken, [path])
    with pytest.raises(ArgumentError, match="'adjudicated'"):
        merge_labels(taken, [path], disputed=disputed({"clear": {}}))
