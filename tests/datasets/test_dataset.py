"""Items and datasets in memory: what belongs to an item, labels, ratings, fingerprints."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import BaseCriterion, BoundFloat, BoundInt, Criterion, CriterionVerdict, TextField
from autorubric.datasets import DataItem, RubricDataset
from autorubric.errors import ArgumentError, DatasetError, RubricError
from autorubric.rubric import Rubric

SCALE = [
    {"label": "low", "value": 0.0},
    {"label": "mid", "value": 0.5},
    {"label": "high", "value": 1.0},
    {"label": "NA", "na": True},
]


class Points(BaseCriterion):
    """Whole points."""

    points: BoundInt = BoundInt(min_val=0, max_val=10)
    explanation: TextField = TextField()


class Share(BaseCriterion):
    """A share."""

    share: BoundFloat = BoundFloat(min_val=0.0, max_val=1.0)


class Remark(BaseCriterion):
    """A text that measures nothing."""

    level = "text"
    remark: TextField = TextField()


def a_rubric() -> Rubric:
    """One binary, one ordinal and one nominal criterion."""
    return Rubric(
        [
            Criterion(name="cites", requirement="It cites.", weight=6),
            Criterion(name="depth", requirement="How deep?", weight=4, options=SCALE),
            Criterion(
                name="tone",
                requirement="Which tone?",
                weight=-2,
                scale_type="nominal",
                options=[{"label": "warm", "value": 0}, {"label": "cold", "value": 1}],
            ),
        ]
    )


def one_item(**fields: Any) -> RubricDataset:
    """A dataset of one item under `a_rubric`."""
    return RubricDataset(rubric=a_rubric(), items=[DataItem(**{"submission": "x", **fields})])


# Items


@pytest.mark.parametrize(
    "submission",
    [
        "text",
        "",
        None,
        {"thinking": "hm", "output": "out"},
        {"a": "one", "b": "two"},
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
    ],
)
def test_submissions_are_kept_as_given(submission: Any) -> None:
    """Every kind of submission is kept as it is, and comes back from JSON so."""
    item = DataItem(submission=submission)
    assert item.submission == submission
    assert DataItem.model_validate(json.loads(json.dumps(item.to_dict()))) == item


@pytest.mark.parametrize(
    ("submission", "message"),
    [
        (5, "submission must be .*; got int"),
        ({"thinking": "hm"}, "'thinking' but no 'output'"),
        ({"a": 1}, "submission must map at least one name to a string"),
        ([{"role": "user"}], r"submission\[0\]"),
        (object(), "the value cannot be stored as JSON"),
        (float("nan"), "the value cannot be stored as JSON"),
    ],
)
def test_submissions_that_are_none(submission: Any, message: str) -> None:
    """What is no submission is refused when the item is made."""
    with pytest.raises(ValidationError, match=message):
        DataItem(submission=submission)


def test_items_are_frozen_and_closed() -> None:
    """An item cannot be changed, has no other fields, and needs a submission."""
    item = DataItem(submission="x")
    with pytest.raises(ValidationError):
        item.prompt = "p"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="colour"):
        DataItem(submission="x", colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="submission"):
        DataItem()  # type: ignore[call-arg]


def test_item_defaults() -> None:
    """None stands for nothing wherever a mapping may be left out."""
    item = DataItem(submission="x", reasons=None, ratings=None, metadata=None)
    assert (item.reasons, item.ratings, item.metadata, item.description) == ({}, {}, {}, "")
    assert item == DataItem(submission="x")
    assert item.to_dict() == {"submission": "x"}


def test_verdicts_become_their_words() -> None:
    """Labels are kept as JSON: a verdict as its word, a tuple as a list."""
    item = DataItem(submission="x", ground_truth=(CriterionVerdict.MET, None))
    assert item.ground_truth == ["MET", None]
    assert type(item.ground_truth[0]) is str


def test_items_may_have_a_rubric() -> None:
    """An item's rubric may be given as a mapping; a faulty one is refused."""
    item = DataItem(submission="x", rubric=[{"name": "a", "requirement": "b"}])
    assert item.rubric == Rubric([{"name": "a", "requirement": "b"}])
    assert DataItem.model_validate(item.to_dict()) == item
    with pytest.raises(ValidationError, match="unknown key 'requirment'"):
        DataItem(submission="x", rubric=[{"requirment": "b"}])
    with pytest.raises(ValidationError, match="Rubric"):
        DataItem(submission="x", rubric=5)


def is_short(text: str) -> bool:
    """Whether a text is short."""
    return len(text) < 9


def test_stored_items_open_without_their_checks() -> None:
    """An item whose rubric has an unregistered check can be stored and opened, but not written to a file."""
    item = DataItem(submission="x", rubric=Rubric([{"name": "a", "requirement": "b", "check": is_short}]))
    with pytest.raises(ArgumentError, match=r"is not registered .* register it with register_check"):
        item.to_dict()
    stored = json.loads(json.dumps(item.snapshot()))
    again = DataItem.restore(stored)
    assert again.snapshot() == stored
    assert DataItem.restore(DataItem(submission=None).snapshot()) == DataItem(submission=None)


# Datasets


def test_what_items_share() -> None:
    """An item has its own prompt, reference and rubric, or else the dataset's; an empty text is its own."""
    own = Rubric([{"name": "own", "requirement": "x"}])
    dataset = RubricDataset(
        "shared prompt",
        a_rubric(),
        [
            DataItem(submission="a"),
            {"submission": "b", "prompt": "", "reference_submission": "own reference", "rubric": own},
        ],
        name="d",
        reference_submission="shared reference",
        metadata={"year": 2024},
    )
    assert [dataset.get_item_prompt(i) for i in range(2)] == ["shared prompt", ""]
    assert [dataset.get_item_reference_submission(i) for i in range(2)] == [
        "shared reference",
        "own reference",
    ]
    assert [dataset.get_item_rubric(i) for i in range(2)] == [a_rubric(), own]
    assert (len(dataset), dataset[1], list(dataset)) == (2, dataset.items[1], list(dataset.items))
    assert dataset.metadata == {"year": 2024}
    assert repr(dataset) == "RubricDataset('d', 2 items, 3 criteria)"


def test_items_without_any_rubric() -> None:
    """A rubric that is nowhere is an error where it is asked for."""
    dataset = RubricDataset(items=[DataItem(submission="a", id="first")])
    with pytest.raises(ArgumentError, match="neither item 'first' nor the dataset has a rubric"):
        dataset.get_item_rubric(0)
    with pytest.raises(ArgumentError, match="the dataset has no shared rubric"):
        _ = dataset.total_positive_weight
    with pytest.raises(ArgumentError, match="the dataset has no shared rubric"):
        dataset.compute_weighted_score([])
    assert dataset.criterion_names == ()
    assert dataset.num_criteria == 0


def test_figures_of_the_rubric() -> None:
    """Names, weights and scores are those of the rubric, or of the one given."""
    dataset = one_item()
    assert dataset.criterion_names == ("cites", "depth", "tone")
    assert dataset.num_criteria == 3
    assert dataset.total_positive_weight == 10
    assert dataset.compute_weighted_score(["MET", "low", "warm"]) == pytest.approx(0.6)
    assert dataset.compute_weighted_score(["MET", "low", "cold"], normalize=False) == 4.0
    assert dataset.compute_weighted_score(["UNMET"], rubric=Rubric([{"requirement": "x"}])) == 0.0


def test_criteria_of_item_rubrics() -> None:
    """Without a rubric of its own a dataset has the criteria of its items' rubrics."""
    rubrics = [Rubric([{"name": n, "requirement": "x"} for n in names]) for names in ("ab", "bc")]
    dataset = RubricDataset(items=[DataItem(submission="x", rubric=rubric) for rubric in rubrics])
    assert dataset.criterion_names == ("a", "b", "c")


def test_ids_are_given_or_positions() -> None:
    """An item without an id has its position; negative positions count from the end."""
    dataset = RubricDataset(items=[DataItem(submission="a", id="x"), DataItem(submission="b")])
    assert [dataset.item_id(i) for i in (0, 1, -1, -2)] == ["x", "1", "1", "x"]
    with pytest.raises(IndexError):
        dataset.item_id(2)


def test_ids_are_unique() -> None:
    """Two items of one id are refused, also where one of them has it from its position."""
    with pytest.raises(DatasetError, match=r"items\[1\]\.id: the id 'a' is already used by item 0"):
        RubricDataset(items=[DataItem(submission="x", id="a"), DataItem(submission="y", id="a")])
    with pytest.raises(DatasetError, match="the id '1' is already used by item 0"):
        RubricDataset(items=[DataItem(submission="x", id="1"), DataItem(submission="y")])


def test_all_faults_at_once() -> None:
    """Faults of the header, of items and of labels are reported together, each with its place."""
    with pytest.raises(DatasetError) as caught:
        RubricDataset(
            prompt=5,
            rubric=a_rubric(),
            metadata=[1],  # type: ignore[arg-type]
            items=[
                {"submission": "x", "ground_truth": {"cites": "maybe", "deep": "low"}, "id": "a"},
                {"submision": "x"},
                {"submission": "x", "ground_truth": ["MET"]},
                {"submission": "x", "ratings": {"r1": ["MET", "deep", None]}, "reasons": {"tune": "x"}},
                5,  # type: ignore[list-item]
                {"submission": "x", "rubric": {"criteria": [{"wieght": 1}]}},
                {"submission": "x", "rubric": "rubric.yaml"},
            ],
        )
    lines = [line.strip() for line in str(caught.value).split("\n")]
    assert lines[0] == "RubricDataset: 13 errors"
    found = "\n".join(lines[1:])
    for expected in (
        "- prompt: expected a string or content parts; got 5",
        "- metadata: expected a mapping",
        "- items[0].ground_truth.cites: item 'a': cites: 'maybe' is not a verdict; allowed: MET",
        "- items[0].ground_truth.deep: item 'a': unknown criterion 'deep'; did you mean 'depth'?",
        "- items[1]: the key 'submission' is missing",
        "- items[1].submision: unknown key 'submision'; did you mean 'submission'?",
        "- items[2].ground_truth: item '2': got 1 labels for 3 criteria; use a label or null for each: cites",
        "- items[3].ratings.r1[1]: item '3': depth: 'deep' is not an option",
        "- items[3].reasons.tune: item '3': unknown criterion 'tune'; did you mean 'tone'?",
        "- items[4]: an item must be a mapping with 'submission'; got 5",
        "- items[5].rubric.criteria[0]: the key 'requirement' is missing",
        "- items[5].rubric.criteria[0].wieght: unknown key 'wieght'",
        "- items[6].rubric: 'rubric.yaml' is a file name, which is supported only in dataset files",
    ):
        assert expected in found


def test_metadata_is_json() -> None:
    """What JSON cannot carry is no metadata."""
    with pytest.raises(DatasetError, match="metadata: the value cannot be stored as JSON"):
        RubricDataset(metadata={"x": {1, 2}})


def test_faulty_rubric_of_a_dataset() -> None:
    """A dataset's rubric may be given as a list; its faults are the dataset's."""
    assert RubricDataset(rubric=[{"name": "a", "requirement": "x"}]).criterion_names == ("a",)
    with pytest.raises(DatasetError, match=r"rubric\[0\]\.wieght: unknown key") as caught:
        RubricDataset(rubric=[{"requirement": "x", "wieght": 1}])
    assert not isinstance(caught.value, RubricError)


def test_adding_items() -> None:
    """An item is added whole or by its fields; a faulty one changes nothing."""
    dataset = one_item()
    assert dataset.add_item("y", ground_truth=["MET", "low", "warm"], id="y").id == "y"
    assert dataset.add_item(DataItem(submission="z")) is dataset[2]
    assert [dataset.item_id(i) for i in range(3)] == ["0", "y", "2"]
    for wrong in ({"id": "y"}, {"id": "2"}, {"ground_truth": ["MET"]}, {"colour": "red"}):
        with pytest.raises(DatasetError):
            dataset.add_item("w", **wrong)
    assert len(dataset) == 3


def test_equality() -> None:
    """Datasets are equal where all their parts are, and have no hash since items can be added."""
    assert one_item() == one_item()
    assert one_item() != one_item(id="a")
    assert one_item() != [1]
    with pytest.raises(TypeError):
        hash(one_item())


# Labels


def test_truth_in_order_or_by_name() -> None:
    """Labels come by name, as they were given; missing ones are left out."""
    in_order = one_item(ground_truth=["yes", None, "cold"])
    by_name = one_item(ground_truth={"tone": "cold", "cites": "yes", "depth": None})
    assert in_order.item_truth(0) == {"cites": "yes", "tone": "cold"}
    assert list((by_name.item_truth(0) or {}).items()) == [("cites", "yes"), ("tone", "cold")]
    assert one_item().item_truth(0) is None
    assert one_item(ground_truth=[None, None, None]).item_truth(0) is None


def test_truth_without_a_rubric() -> None:
    """Labels by name need no rubric; labels in order do. Raters' majority is of the labels as they are."""
    named = RubricDataset(items=[DataItem(submission="x", ground_truth={"a": "MET"})])
    assert named.item_truth(0) == {"a": "MET"}
    rated = RubricDataset(
        items=[DataItem(submission="x", ratings={"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 2}})]
    )
    assert rated.item_truth(0) == {"a": 1}
    with pytest.raises(ArgumentError, match="requires a rubric"):
        RubricDataset(items=[DataItem(submission="x", ground_truth=["MET"])]).item_truth(0)


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("cites", ["MET", "yes", "no"], "MET"),
        ("cites", ["MET", "UNMET"], None),
        ("cites", ["CANNOT_ASSESS", "CANNOT_ASSESS", "no"], "UNMET"),
        ("cites", ["CANNOT_ASSESS"], "CANNOT_ASSESS"),
        ("depth", ["low", "high", "HIGH"], "high"),
        ("depth", ["low", "low", "high", "high", "mid"], "mid"),
        ("depth", ["NA", "NA", "low"], "NA"),
        ("depth", ["cannot_assess", "low"], "low"),
        ("tone", ["warm"], "warm"),
        ("tone", [None, None], None),
    ],
)
def test_majority_of_raters(name: str, labels: list[Any], expected: Any) -> None:
    """Most raters decide, on an ordinal scale the median; elsewhere a tie leaves the label missing."""
    ratings = {f"r{n}": {name: label} for n, label in enumerate(labels)}
    truth = one_item(ratings=ratings).item_truth(0)
    assert truth == (None if expected is None else {name: expected})


def test_ground_truth_goes_before_ratings() -> None:
    """Raters stand in only for labels that ground truth lacks."""
    dataset = one_item(
        ground_truth=["MET", None, None],
        ratings={"p": ["UNMET", "low", "warm"], "q": {"cites": "UNMET", "depth": "low", "tone": "cold"}},
    )
    assert dataset.item_truth(0) == {"cites": "MET", "depth": "low"}


@pytest.mark.parametrize(
    ("criterion", "labels", "expected"),
    [
        (Points(name="c"), [3, 5], 4.0),
        (Points(name="c"), [3, 4], 3),
        (Points(name="c"), [3, {"points": 4, "explanation": "x"}, 9], 4),
        (Share(name="c"), [0.25, 0.5], 0.375),
        (Points(name="c"), [{"cannot_assess": True}, 7], 7.0),
        (Points(name="c"), [{"cannot_assess": True}], "CANNOT_ASSESS"),
    ],
)
def test_centre_of_raters_on_an_interval_level(
    criterion: BaseCriterion, labels: list[Any], expected: Any
) -> None:
    """On an interval level it is the mean, or the lower median where the mean is no allowed answer."""
    ratings = {f"r{n}": {"c": label} for n, label in enumerate(labels)}
    dataset = RubricDataset(rubric=Rubric([criterion]), items=[DataItem(submission="x", ratings=ratings)])
    assert dataset.item_truth(0) == (None if expected is None else {"c": expected})


@given(st.lists(st.sampled_from(["low", "mid", "high", "NA"]), min_size=1))
def test_majority_does_not_depend_on_order(labels: list[str]) -> None:
    """The order of raters changes nothing."""

    def truth(given_: list[str]) -> Any:
        return one_item(ratings={f"r{n}": {"depth": label} for n, label in enumerate(given_)}).item_truth(0)

    assert truth(labels) == truth(sorted(labels)) == truth(labels[::-1])


def test_ratings_by_name() -> None:
    """Ratings come by rater and criterion, as they were given; missing ones are left out."""
    dataset = one_item(ratings={"p": ["yes", None, "warm"], "q": {"depth": "low"}})
    assert dataset.item_ratings(0) == {"p": {"cites": "yes", "tone": "warm"}, "q": {"depth": "low"}}


# Fingerprints


def test_fingerprints_see_what_judges_see() -> None:
    """A fingerprint changes with submission, prompt and reference, and with nothing else."""
    base = one_item().item_fingerprint(0)
    assert len(base) == 64
    unseen = one_item(
        id="a",
        description="d",
        ground_truth=["MET", None, None],
        reasons={"cites": "r"},
        metadata={"a": 1},
        ratings={"p": ["MET", None, None]},
    )
    assert unseen.item_fingerprint(0) == base
    seen: list[dict[str, Any]] = [
        {"submission": "y"},
        {"submission": None},
        {"prompt": "p"},
        {"reference_submission": "r"},
    ]
    assert len({base, *(one_item(**fields).item_fingerprint(0) for fields in seen)}) == 5


def test_fingerprints_use_what_is_shared() -> None:
    """A prompt counts the same whether it is the item's or the dataset's."""
    items = [DataItem(submission="x")]
    shared = RubricDataset("p", items=items, reference_submission="r").item_fingerprint(0)
    assert shared == one_item(prompt="p", reference_submission="r").item_fingerprint(0)


def test_order_of_candidates_counts() -> None:
    """Candidates in another order are another submission; thinking and output are not."""

    def fingerprint(submission: Any) -> str:
        return one_item(submission=submission).item_fingerprint(0)

    assert fingerprint({"a": "1", "b": "2"}) != fingerprint({"b": "2", "a": "1"})
    assert fingerprint({"thinking": "1", "output": "2"}) == fingerprint({"output": "2", "thinking": "1"})


def test_fingerprint_of_a_dataset() -> None:
    """A dataset's fingerprint changes with ids, order and what judges see, not with labels."""

    def fingerprint(*items: dict[str, Any]) -> str:
        return RubricDataset(rubric=a_rubric(), items=items).fingerprint

    one: dict[str, Any] = {"submission": "1", "id": "a"}
    two: dict[str, Any] = {"submission": "2", "id": "b"}
    assert fingerprint(one, two) == fingerprint({**one, "ground_truth": ["MET", None, None]}, two)
    assert (
        len({fingerprint(one, two), fingerprint(two, one), fingerprint(one), fingerprint({**one, "id": "c"})})
        == 4
    )


def test_values_of_items_are_copied_as_json() -> None:
    """Values are copied, and what JSON lacks becomes JSON or is refused, at every depth."""
    odd = {"a": [{"b": "\ud83d\ude00"}, -0.0, 10**19], "c": (1, True)}
    kept = DataItem(submission="s", metadata=odd).metadata
    assert json.dumps(kept) == json.dumps({"a": [{"b": "😀"}, -0.0, 10**19], "c": [1, True]})
    plain = {"a": [{"b": "ü"}]}
    assert DataItem(submission="s", metadata=plain).metadata["a"] is not plain["a"]
    for wrong in (float("nan"), {1, 2}, 10**5000):
        with pytest.raises(ValueError, match="the value cannot be stored as JSON"):
            DataItem(submission="s", metadata={"a": [wrong]})


def test_equal_labels_are_checked_once_and_reported_each_time() -> None:
    """A valid label stays valid, and every item with an invalid one counts."""
    rubric = Rubric.from_dict([{"name": "a", "requirement": "x"}])
    items = [{"submission": "s", "ground_truth": [label]} for label in ("MET", "MET", "wrong", "wrong")]
    assert len(RubricDataset(rubric=rubric, items=items[:2])) == 2
    with pytest.raises(DatasetError, match=r"items\[2\]") as found:
        RubricDataset(rubric=rubric, items=items)
    assert found.value.faults[0].count == 2
