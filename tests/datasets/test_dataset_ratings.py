"""Ratings from long tables, made up and real."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autorubric.criteria import ComparativeCriterion
from autorubric.datasets import DataItem, RubricDataset
from autorubric.datasets.ratings import read_long_table
from autorubric.errors import DatasetError
from autorubric.rubric import Rubric

OPTIONS = [{"label": "1", "value": 0}, {"label": "2", "value": 1}, {"label": "NA", "na": True}]
RUBRIC = Rubric(
    [{"name": "met", "requirement": "x"}, {"name": "scale", "requirement": "x", "options": OPTIONS}]
)
HEAD = "item_id,criterion,rater,rater_type,value"
TABLE = f"""{HEAD}
a,met,ann,human,Yes
a,met,bob,human,INVALID
a,met,gpt,llm,No
a,scale,ann,human,2
a,scale,bob,human,NA
1,met,ann,human,NA
1,met,bob,human,No
elsewhere,met,ann,human,Yes
"""
LABELS = {"Yes": "MET", "No": "UNMET"}


def dataset() -> RubricDataset:
    """Two items, the second without an id."""
    return RubricDataset(rubric=RUBRIC, items=[DataItem(submission="x", id="a"), DataItem(submission="y")])


def table(tmp_path: Path, text: str = TABLE) -> Path:
    """A file with this text."""
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_ratings_are_attached(tmp_path: Path) -> None:
    """Human ratings come to their items, by id or position; NA and INVALID only where they are options."""
    rated = dataset().with_ratings(table(tmp_path), labels=LABELS)
    assert rated.item_ratings(0) == {"ann": {"met": "MET", "scale": "2"}, "bob": {"scale": "NA"}}
    assert rated.item_ratings(1) == {"ann": {}, "bob": {"met": "UNMET"}}
    assert rated.item_truth(0) == {"met": "MET", "scale": "2"}
    assert dataset().item_ratings(0) == {}


def test_raters_and_types_are_chosen(tmp_path: Path) -> None:
    """Raters can be chosen by name and by type; values that labels map to None are no ratings."""
    path = table(tmp_path)
    assert set(dataset().with_ratings(path, rater_type="llm").item_ratings(0)) == {"gpt"}
    assert set(dataset().with_ratings(path, rater_type=None).item_ratings(0)) == {"ann", "bob", "gpt"}
    assert set(dataset().with_ratings(path, raters=["bob"]).item_ratings(0)) == {"bob"}
    mapped = dataset().with_ratings(path, labels={**LABELS, "INVALID": "UNMET", "2": None})
    assert mapped.item_ratings(0) == {"ann": {"met": "MET"}, "bob": {"met": "UNMET", "scale": "NA"}}


def test_ratings_are_added_to_those_there(tmp_path: Path) -> None:
    """Ratings that an item has stay, and a rater's new ones join the old."""
    items = [DataItem(submission="x", id="a", ratings={"ann": ["UNMET", "1"], "cy": {"met": "MET"}})]
    rated = RubricDataset(rubric=RUBRIC, items=items).with_ratings(
        table(tmp_path), labels=LABELS, raters=["ann"]
    )
    assert rated.item_ratings(0) == {"ann": {"met": "MET", "scale": "2"}, "cy": {"met": "MET"}}


def test_first_samples_and_untyped_tables(tmp_path: Path) -> None:
    """A table without types is taken whole; of several samples the first counts."""
    text = "item_id,criterion,rater,value,sample,note\na,met,ann,yes,0,x\na,met,ann,no,1,x\na,met,bob,no,,x\n"
    rated = dataset().with_ratings(table(tmp_path, text))
    assert rated.item_ratings(0) == {"ann": {"met": "yes"}, "bob": {"met": "no"}}
    assert [row.sample for row in read_long_table(table(tmp_path, text))] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("item_id,criterion,value\na,met,yes\n", {}, "column 'rater' not found"),
        (
            f"{HEAD}\na,mett,ann,human,yes\n",
            {},
            "(line 2): item 'a' has no criterion 'mett'; did you mean 'met'?",
        ),
        (
            f"{HEAD}\na,met,ann,human,Si\n",
            {},
            "(line 2): no value is a label. First value: item 'a': met: 'Si' is",
        ),
        (f"{HEAD}\na,met,ann,human,Si\n", {}, "CANNOT_ASSESS. To map it, use labels={'Si': …} in Python"),
        (
            f"{HEAD}\na,met,ann,human,Si\n1,met,ann,human,Oui\na,scale,ann,human,2\n",
            {},
            ": 1 error\n  - column or rater 'ann' (2 cells, first in line 2): item 'a': met: 'Si' is",
        ),
        (
            f"{HEAD}\na,met,ann,human,yes\na,met,ann,human,no\n",
            {},
            "(line 3): 'ann' rated 'met' of item 'a' twice",
        ),
        (
            f"{HEAD}\nb,met,ann,human,yes\n",
            {},
            "no row of type 'human' belongs to a dataset item; table ids: ['b']",
        ),
        (TABLE, {"raters": ["anne"]}, "no rater 'anne' of type 'human'; did you mean 'ann'?"),
    ],
)
def test_faulty_tables(text: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A faulty long table says what is wrong and on which line."""
    with pytest.raises(DatasetError) as caught:
        dataset().with_ratings(table(tmp_path, text), **more)
    assert message in str(caught.value)


REAL = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not REAL.is_dir(), reason="the real judge data (../shared/data) is not there")


def real_rubric(criteria: list[dict[str, Any]], scale: dict[str, Any] | None = None) -> Rubric:
    """A rubric of the real data, with weights of 1 and values from 0 to 1 by rank."""
    made = []
    for criterion in criteria:
        options = (scale or criterion)["options"]
        found = {"name": criterion["name"], "requirement": criterion["requirement"], "weight": 1}
        if (scale or criterion)["kind"] != "binary":
            found["options"] = [{"label": o, "value": i / (len(options) - 1)} for i, o in enumerate(options)]
            if criterion.get("na_option"):
                found["options"].append({"label": criterion["na_option"], "na": True})
        made.append(found)
    return Rubric(made)


def real_dataset(name: str) -> RubricDataset:
    """A set of the real data with its human ratings."""
    given = json.loads((REAL / name / "rubric.json").read_text(encoding="utf-8"))
    rows = [
        json.loads(line) for line in (REAL / name / "items.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    own = {key: real_rubric(held, given["scale"]) for key, held in given.get("rubrics", {}).items()}
    items = [
        DataItem(
            id=row["item_id"],
            submission=row["submission"],
            prompt=row["prompt"],
            rubric=own[row["rubric_id"]] if own else None,
        )
        for row in rows
    ]
    shared = None if own else real_rubric(given["criteria"])
    return RubricDataset(rubric=shared, items=items, name=name).with_ratings(
        REAL / name / "labels.csv", labels={"Yes": "MET", "No": "UNMET"}
    )


@needs_data
@pytest.mark.shared_data
def test_real_experts() -> None:
    """Three experts a story decide every cell; about a third of the cells are met, as published."""
    stories = real_dataset("ttcw")
    truth = [stories.item_truth(i) or {} for i in range(len(stories))]
    counts = Counter(label for labels in truth for label in labels.values())
    assert sum(counts.values()) == 672
    assert round(counts["MET"] / 672, 2) == 0.34


@needs_data
@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "labels"), [("summhay", 1419), ("llm_rubric", None)])
def test_other_real_data(name: str, labels: int | None, tmp_path: Path) -> None:
    """Rubrics per item and NA answers are read, and come back from JSON lines."""
    data = real_dataset(name)
    found = [
        label for i in range(len(data)) for held in data.item_ratings(i).values() for label in held.values()
    ]
    assert len(found) == labels if labels else "NA" in found
    data.to_file(tmp_path / "d.jsonl")
    assert RubricDataset.from_file(tmp_path / "d.jsonl") == data


def test_labels_of_comparisons_name_the_candidates_of_their_item(tmp_path: Path) -> None:
    """A name of another item is a fault; a number and a name may agree."""
    rubric = Rubric([ComparativeCriterion(name="better")])
    items = [
        DataItem(id="a", submission={"x": "1", "y": "2"}),
        DataItem(id="b", submission={"p": "1", "q": "2"}),
    ]
    pairs = RubricDataset(rubric=rubric, items=items)
    rows = "a,better,ann,human,x\na,better,bob,human,-1\na,better,eve,human,y\nb,better,ann,human,tie\n"
    rated = pairs.with_ratings(table(tmp_path, f"{HEAD}\n{rows}"))
    assert rated.item_truth(0) == {"better": "x"}
    assert rated.item_truth(1) == {"better": "tie"}
    with pytest.raises(DatasetError, match="'x' is not a candidate; candidates: p, q"):
        pairs.with_ratings(table(tmp_path, f"{HEAD}\nb,better,ann,human,x\n"))
    with pytest.raises(DatasetError, match="'x' is not a candidate"):
        RubricDataset(rubric=rubric, items=[DataItem(submission={"p": "", "q": ""}, ground_truth=["x"])])


def test_comparisons_survive_files(tmp_path: Path) -> None:
    """Labels of pairs and rankings come back from every form of file as they were."""
    rubric = Rubric(
        [ComparativeCriterion(name="better"), ComparativeCriterion(name="by", margin=2)], guidelines=None
    )
    items = [
        DataItem(id="a", submission={"x": "1", "y": "2"}, ground_truth={"better": "y", "by": -2}),
        DataItem(id="b", submission={"p": "1", "q": "2"}, ground_truth={"better": "tie", "by": 1}),
    ]
    dataset = RubricDataset(rubric=rubric, items=items)
    for suffix in ("json", "csv"):
        dataset.to_file(tmp_path / f"d.{suffix}")
        again = RubricDataset.from_file(tmp_path / f"d.{suffix}", rubric=rubric)
        assert [again.item_truth(i) for i in range(2)] == [dataset.item_truth(i) for i in range(2)]
        assert [item.submission for item in again.items] == [item.submission for item in items]


@pytest.mark.parametrize(
    ("text", "ratings"),
    [
        ("item_id,annotator,stars\na,ann,yes\na,bob,no\n", {"ann": {"met": "yes"}, "bob": {"met": "no"}}),
        ("item_id,met,annotated_by\na,yes,ann\n", {"ann": {"met": "yes"}}),
        ("item_id,WorkerId,human_met,comment\na,w1,yes,ok\na,w2,,x\n", {"w1": {"met": "yes"}}),
        ("item_id,rater_id,note,value\na,7,x,yes\n", {"7": {"met": "yes"}}),
        ("item_id,annotator,annotator_id,Met\na,ann,17,no\n", {"ann": {"met": "no"}}),
        ("item_id,met\na,yes\n", {"labels": {"met": "yes"}}),
        ("item_id,ann,ann_2\na,yes,no\n", {"ann": {"met": "yes"}, "ann_2": {"met": "no"}}),
        ("item_id,criterion,rater,value\na,MET ,ann,yes\n", {"ann": {"met": "yes"}}),
        ("item_id,met,expert\na,yes,ann\n", {"ann": {"met": "yes"}}),
        ("item_id,expert,novice\na,yes,no\n", {"expert": {"met": "yes"}, "novice": {"met": "no"}}),
        *(
            (f"item_id,{first},{other}\na,yes,no\n", {first: {"met": "yes"}, other: {"met": "no"}})
            for first, other in (("expert", "llm_score"), ("judge", "gpt_verdict"), ("doctor", "a_rating"))
        ),
        *(
            (f"item_id,{people},stars\na,1,no\n", {"1": {"met": "no"}})
            for people in (
                *("user", "username", "person", "Annotators", "judge", "agent", "annotator_email"),
                *("raterid", "RATERID", "annotatorids", "ratedby", "completed_by.id", "user.name"),
                *("Annotator: ID", "annotator #", "rater_num", "annotator_number", "AnnotatorNo"),
                *("rater.key", "annotator_code", "rater_index", "human_id", "physician_id"),
                *("doctor", "teacher", "examiner", "moderator"),
            )
        ),
    ],
)
def test_people_are_raters_and_columns_named_like_criteria_hold_labels(
    text: str, ratings: dict[str, Any], tmp_path: Path
) -> None:
    """Ids of people are never labels, and columns that name people are never raters."""
    rubric = Rubric([{"name": "met", "requirement": "It is."}])
    items = [{"id": "a", "submission": "x"}]
    rated = RubricDataset(rubric=rubric, items=items).with_ratings(table(tmp_path, text))
    assert rated.item_ratings(0) == ratings


@pytest.mark.parametrize("people", ["author_id", "reviewed_by", "reviewer", "met"])
def test_named_raters_are_columns_beside_people(people: str, tmp_path: Path) -> None:
    """Whoever names the raters decides that their columns hold the labels."""
    rubric = Rubric([{"name": "met", "requirement": "It is."}])
    data = RubricDataset(rubric=rubric, items=[{"id": "a", "submission": "x"}])
    path = table(tmp_path, f"item_id,{people},ann,bob\na,1,yes,no\n")
    rated = data.with_ratings(path, raters=["ann", "BOB"])
    assert rated.item_ratings(0) == {"ann": {"met": "yes"}, "bob": {"met": "no"}}


@pytest.mark.parametrize("column", ["score", "value", "llm_score"])
def test_named_raters_are_columns_beside_values(column: str, tmp_path: Path) -> None:
    """Numbers in a column such as `expert` may be ids; as a named rater, it holds labels."""
    path = table(tmp_path, f"item_id,criterion,expert,{column}\na,scale,2,1\n")
    assert dataset().with_ratings(path, raters=["expert"]).item_ratings(0) == {"expert": {"scale": "2"}}
    assert [row.value for row in read_long_table(path, raters=["expert"])] == ["2"]


@pytest.mark.parametrize("columns", ["reply,met,ann\na,Hi,yes,fine", "reply,human_met,ann\na,0,yes,1"])
def test_columns_without_labels_are_named_in_a_warning(columns: str, tmp_path: Path) -> None:
    """A table of labels by criterion may have other columns, which are not read even with labels."""
    rubric = Rubric([{"name": "met", "requirement": "It is."}])
    data = RubricDataset(rubric=rubric, items=[{"id": "a", "submission": "x"}])
    with pytest.warns(UserWarning, match=r"not named like criteria and not read: reply, ann"):
        rated = data.with_ratings(table(tmp_path, f"item_id,{columns}\n"))
    assert rated.item_ratings(0) == {"labels": {"met": "yes"}}


@pytest.mark.parametrize(
    "text",
    [
        "item_id,annotator,stars,mood\na,ann,yes,no\n",
        "item_id,annotator,reviewer\na,yes,no\n",
        "item_id,created_by,stars,mood\na,ann,yes,no\n",
        "item_id,nurse,label\na,1,no\n",
        "item_id,criterion,expert,label\na,met,yes,no\n",
        "item_id,criterion,expert,verdict,notes\na,met,yes,no,x\n",
        "item_id,student_id,mood\na,1,no\n",
        "item_id,ann,batch.id\na,yes,1\n",
    ],
)
def test_tables_with_people_and_unclear_labels_are_refused(text: str, tmp_path: Path) -> None:
    """The error lists the columns instead of reading people as labels, or labels as people."""
    with pytest.raises(DatasetError, match=r"column .* not found; use one row per label.*Columns: item_id"):
        dataset().with_ratings(table(tmp_path, text))


def test_spellings_of_a_rater_are_one_person(tmp_path: Path) -> None:
    """A rater is matched with those of the dataset; two labels of a person on a cell are an error."""
    with pytest.warns(UserWarning, match=r"raters are read as equal: 'ann ' as 'ann', 'ANN' as 'ann'"):
        rated = dataset().with_ratings(
            table(tmp_path, f"{HEAD}\na,met,ann,human,yes\n1,met,ann ,human,yes\na,scale,ANN,human,2\n")
        )
    assert [set(rated.item_ratings(at)) for at in range(2)] == [{"ann"}, {"ann"}]
    again = rated.with_ratings(table(tmp_path, f"{HEAD}\n1,scale,Ann,human,2\n"), raters=["ANN"])
    assert again.item_ratings(1) == {"ann": {"met": "yes", "scale": "2"}}
    with (
        pytest.warns(UserWarning, match="read as equal"),
        pytest.raises(DatasetError, match=r"'ann' rated 'met' of item 'a' twice"),
    ):
        dataset().with_ratings(table(tmp_path, f"{HEAD}\na,met,ann,human,yes\na,met,ann ,human,yes\n"))


@pytest.mark.parametrize("at", ["ground_truth", "ratings"])
@pytest.mark.parametrize("exact", ["met", "Met"])
def test_two_labels_of_a_criterion_in_two_spellings_are_refused(exact: str, at: str) -> None:
    """Also where another item has one of the two spellings, which is valid alone."""
    rubric = Rubric([{"name": "met", "requirement": "It is."}])

    def item(labels: dict[str, str]) -> dict[str, Any]:
        return {"submission": "x", at: labels if at == "ground_truth" else {"ann": labels}}

    alone = [item({"MET": "no"}), item({exact: "yes"})]
    assert len(RubricDataset(rubric=rubric, items=alone)) == 2
    with pytest.raises(DatasetError, match=f"'{exact}' and 'MET' are the same criterion; keep one"):
        RubricDataset(rubric=rubric, items=[*alone, item({exact: "yes", "MET": "no"})])
