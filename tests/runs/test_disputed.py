"""Items on which people disagree or judges split, handed out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    CriterionGrader,
    EvalResult,
    JudgeRequest,
    RubricDataset,
    disputed_items,
    evaluate_sync,
    merge_labels,
)
from autorubric.errors import ArgumentError
from autorubric.reports import annotation_page
from autorubric.reports.items import marks_of
from tests.datasets.test_labels import label, write

RUBRIC = [
    {"name": "clear", "requirement": "It is clear."},
    {"name": "stars", "type": "likert", "rating": {"min_val": 1, "max_val": 5}},
    {"name": "words", "type": "narrative"},
]
AGREED = {"clear": "MET", "stars": 3, "words": "one"}
ITEMS = {
    "same": ({**AGREED}, {**AGREED, "clear": "yes", "words": "another"}),
    "people": ({**AGREED, "clear": "UNMET"}, {**AGREED}),
    "near": ({**AGREED, "stars": 4}, {**AGREED}),
    "judges": ({**AGREED}, {**AGREED}),
    "open": ({**AGREED, "clear": "CANNOT_ASSESS"}, {**AGREED}),
    "one": ({**AGREED}, {}),
}


def dataset() -> RubricDataset:
    """Items named after what is said of them."""
    items = [
        {
            "id": name,
            "submission": name,
            "ratings": {"ada": ada, "bob": bob},
            "ground_truth": {"clear": "MET"},
            "metadata": {"secret": 1},
        }
        for name, (ada, bob) in ITEMS.items()
    ]
    return RubricDataset(rubric=RUBRIC, items=items, prompt="p")


def first(request: JudgeRequest) -> Any:
    """Says what all say, and does not answer on the last item."""
    if request.item_id == "one":
        raise ValueError("no")
    return AGREED[request.criterion.name or ""]


def second(request: JudgeRequest) -> Any:
    """Finds one item unclear."""
    if request.item_id == "judges" and request.criterion.name == "clear":
        return "UNMET"
    return AGREED[request.criterion.name or ""]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run of two judges over the rated items."""
    return evaluate_sync(
        dataset(),
        CriterionGrader(judges=[first, second], on_failure="exclude"),
        experiments_dir=tmp_path_factory.mktemp("runs"),
        experiment_name="r",
        show_progress=False,
    )


def ids(found: RubricDataset) -> list[str]:
    """The ids of the items."""
    return list(found.item_ids())


def test_of_a_dataset_what_people_disagree_on() -> None:
    """By what the criterion reads; abstentions and texts are no disagreement."""
    found = disputed_items(dataset())
    assert ids(found) == ["people", "near"]
    assert found[0].metadata == {"disputed": {"clear": {"people": {"ada": "UNMET", "bob": "MET"}}}}
    assert set(found[1].metadata["disputed"]) == {"stars"}


@pytest.mark.parametrize(
    ("split", "expected"),
    [("any", ["people", "near", "judges"]), ("people", ["people", "near"]), ("judges", ["judges"])],
)
def test_of_a_run_by_who_differs(run: EvalResult, split: Any, expected: list[str]) -> None:
    """People, judges, or either; a judge that failed is not split from another."""
    assert ids(disputed_items(run, split=split)) == expected


def test_an_unreadable_reply_disagrees_with_nobody(tmp_path: Path) -> None:
    """What it counts as in the score is nothing that a judge said."""

    def mumbling(request: JudgeRequest) -> Any:
        return "so so" if request.criterion.name == "clear" else second(request)

    found = evaluate_sync(
        dataset().subset([0]),
        CriterionGrader(judges=[first, mumbling]),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    report = found.get_reports()[0]
    assert report is not None
    assert report.report[0].votes[1].status == "failed"
    assert ids(disputed_items(found, split="judges")) == []


def test_both_sides_are_kept(run: EvalResult) -> None:
    """What the others said stands beside what is split."""
    found = disputed_items(run, split="judges")
    assert found[0].metadata["disputed"]["clear"] == {
        "people": {"ada": "MET", "bob": "MET"},
        "judges": {"first": "MET", "second": "UNMET"},
    }


def test_a_tolerance_passes_over_near_answers(run: EvalResult) -> None:
    """On scales alone: MET and UNMET are never near."""
    assert ids(disputed_items(run, tolerance=0.25)) == ["people", "judges"]
    assert ids(disputed_items(run, tolerance=0.2)) == ["people", "near", "judges"]
    assert ids(disputed_items(run, tolerance=1.0)) == ["people", "judges"]


def test_what_is_handed_out_is_blind_and_the_same_text(run: EvalResult) -> None:
    """No truth, rating or metadata of the item; prompt and fingerprint as they were."""
    found = disputed_items(run)
    assert not any(item.ground_truth or item.ratings for item in found)
    assert all(set(item.metadata) == {"disputed"} for item in found)
    own = dataset()
    places = {item_id: i for i, item_id in enumerate(own.item_ids())}
    for i, item_id in enumerate(ids(found)):
        assert found.item_fingerprint(i) == own.item_fingerprint(places[item_id])


def test_decisions_come_back(run: EvalResult, tmp_path: Path) -> None:
    """From the run to a file, labelled, and into the dataset with the votes that they come from."""
    handed_out = tmp_path / "disputed.jsonl"
    disputed_items(run).to_file(handed_out)
    path = write(tmp_path / "eve.jsonl", label("judges", rater="eve", value="UNMET"))
    merged = merge_labels(dataset(), [path], disputed=RubricDataset.from_file(handed_out))
    item = merged.dataset[3]
    assert item.ground_truth == {"clear": "UNMET"}
    assert item.metadata["adjudicated"]["clear"]["votes"]["judges"] == {"first": "MET", "second": "UNMET"}
    assert item.metadata["adjudicated"]["clear"]["by"] == "eve"


@pytest.mark.parametrize("options", [{"split": "nobody"}, {"tolerance": 2}, {"split": "judges"}])
def test_what_cannot_be_asked_for(options: Any) -> None:
    """Other kinds, tolerances off the scale, and judges of a dataset."""
    with pytest.raises(ArgumentError):
        disputed_items(dataset(), **options)


SAID = {
    "right": {"clear": "MET", "stars": 3},
    "wrong": {"clear": "UNMET", "stars": 3},
    "split": {"clear": "MET", "stars": 3},
    "open": {"clear": "MET", "stars": 3},
    "lost": {"clear": "MET", "stars": 3},
}


def one_judge(request: JudgeRequest) -> Any:
    """Answers as the item's name says, abstains or fails."""
    if request.criterion.name == "stars" and request.item_id == "open":
        return "CANNOT_ASSESS"
    if request.criterion.name == "clear" and request.item_id == "lost":
        raise ValueError("no")
    return SAID[request.item_id or ""][request.criterion.name or ""]


def other_judge(request: JudgeRequest) -> Any:
    """Answers as the first does, but on one item."""
    if request.item_id == "split" and request.criterion.name == "clear":
        return "UNMET"
    return one_judge(request)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run with an item of each mark; every `clear` is labelled MET."""
    items = [{"id": name, "submission": name, "ground_truth": {"clear": "MET"}} for name in SAID]
    return evaluate_sync(
        RubricDataset(rubric=RUBRIC[:2], items=items),
        CriterionGrader(judges=[one_judge, other_judge], aggregation="any", on_failure="exclude"),
        experiments_dir=tmp_path_factory.mktemp("runs"),
        experiment_name="r",
        show_progress=False,
    )


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("wrong", {"wrong": {"clear"}}),
        ("split", {"split": {"clear"}}),
        ("abstained", {"open": {"stars"}}),
        ("lost", {"lost": {"clear"}}),
        (["wrong", "lost"], {"wrong": {"clear"}, "lost": {"clear"}}),
        ([], {}),
    ],
)
def test_items_are_chosen_by_their_marks(marked: EvalResult, where: Any, expected: Any) -> None:
    """Each mark chooses the items that a report marks so, and of them the criteria that bear it."""
    found = disputed_items(marked, where=where)
    assert {item.id: set(item.metadata["disputed"]) for item in found} == expected
    kinds = {"lost": "failed"}
    marks: list[Any] = [where] if isinstance(where, str) else where
    for mark in marks:
        reported = marks_of(marked).items[kinds.get(mark, mark)]
        chosen = ids(disputed_items(marked, where=mark))
        assert [marked.dataset.item_id(i) for i in sorted(reported)] == chosen


def test_what_was_said_goes_with_the_marks(marked: EvalResult) -> None:
    """The label, the panel and its judges are in the metadata, and not on the page that people see."""
    found = disputed_items(marked, where=["wrong", "split"])
    assert found[0].metadata["disputed"]["clear"] == {
        "marks": ["wrong"],
        "judges": {"one_judge": "UNMET", "other_judge": "UNMET"},
        "panel": "UNMET",
        "label": "MET",
    }
    assert found[1].metadata["disputed"]["clear"]["marks"] == ["split"]
    page = annotation_page(found)
    assert "one_judge" not in page and "stars" not in page and "It is clear." in page


def test_an_item_that_could_not_be_graded_is_lost_as_a_whole(tmp_path: Path) -> None:
    """Every criterion of an item without a single vote is asked for."""

    def never(request: JudgeRequest) -> Any:
        raise ValueError("no")

    run = evaluate_sync(
        dataset().subset([0]),
        CriterionGrader(judges=[never], on_failure="exclude"),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    found = disputed_items(run, where="lost")
    assert set(found[0].metadata["disputed"]) == {"clear", "stars", "words"}


def test_marks_that_cannot_be_asked_for(marked: EvalResult) -> None:
    """Other marks, marks of a dataset, and marks next to the other way to choose are errors."""
    with pytest.raises(ArgumentError, match="did you mean 'wrong'"):
        disputed_items(marked, where="wrng")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="requires a run"):
        disputed_items(marked.dataset, where="wrong")
    with pytest.raises(ArgumentError, match="cannot be combined with split= or tolerance="):
        disputed_items(marked, where="wrong", split="judges")
