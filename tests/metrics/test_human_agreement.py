"""How far the people agree who labelled a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    CriterionGrader,
    EvalResult,
    RubricDataset,
    evaluate_sync,
    krippendorff_alpha,
    reliability,
)
from autorubric.errors import ArgumentError, DatasetError
from autorubric.metrics import Nominal, human_agreement, human_ceiling

RUBRIC = [
    {"name": "clear", "requirement": "It is clear."},
    {
        "name": "shade",
        "requirement": "Its shade.",
        "scale_type": "nominal",
        "options": [
            {"label": "red", "value": 0.0},
            {"label": "blue", "value": 1.0},
            {"label": "none", "na": True},
        ],
    },
    {"name": "share", "type": "numerical_rating"},
    {"name": "parts", "type": "checklist", "items": {"date": "A date.", "place": "A place."}},
    {"name": "words", "type": "narrative"},
]
CLEAR = [
    ("MET", "MET"),
    ("MET", "UNMET"),
    ("UNMET", "UNMET"),
    ("yes", "MET"),
    ("no", None),
    ("MET", "CANNOT_ASSESS"),
]
SHADE = [("red", "red"), ("blue", "red"), ("none", "red"), ("blue", "blue"), ("red", "red"), ("red", "blue")]
SHARE = [(1.0, 2.0), (4.0, 4.5), (9.0, 8.0), (5.0, 5.0), (0.0, 1.0), (7.0, 9.0)]


def dataset() -> RubricDataset:
    """Six items that two people rated."""
    items = []
    for at, cells in enumerate(zip(CLEAR, SHADE, SHARE, strict=True)):
        ratings: dict[str, dict[str, Any]] = {}
        for place, rater in enumerate(("ada", "bob")):
            clear, shade, share = (cell[place] for cell in cells)
            parts = {"date": True, "place": at % 2 == place}
            given = {"clear": clear, "shade": shade, "share": share, "parts": parts, "words": rater}
            ratings[rater] = {name: label for name, label in given.items() if label is not None}
        items.append({"submission": str(at), "ratings": ratings})
    return RubricDataset(rubric=RUBRIC, items=items)


def test_figures_are_those_of_reliability() -> None:
    """Criterion by criterion, on its own scale, with what the criterion reads; abstentions left out."""
    found = human_agreement(dataset(), n_resamples=50)
    assert found.raters == ("ada", "bob")
    assert (found.n_items, found.n_shared) == (6, 6)
    assert list(found.reliability) == ["clear", "shade", "share", "parts", "parts/date", "parts/place"]
    read = [[{"yes": "MET", "no": "UNMET"}.get(cell or "", cell) for cell in row] for row in CLEAR]
    plain = [[None if cell == "CANNOT_ASSESS" else cell for cell in row] for row in read]
    scale = Nominal(["UNMET", "MET"])
    assert found.reliability["clear"].alpha.value == pytest.approx(
        reliability(plain, scale=scale).alpha.value
    )
    assert found.reliability["clear"].n_pairable == 4
    assert found.reliability["shade"].n_pairable == 5
    assert found.reliability["share"].alpha.value == pytest.approx(
        krippendorff_alpha([list(row) for row in SHARE], level="interval").value
    )
    assert found.reliability["parts/date"].percent_agreement.value == 1.0
    assert found.reliability["parts/place"].percent_agreement.value == 0.0


def test_the_ceiling_is_each_person_against_the_rest() -> None:
    """As `human_ceiling` has it of one criterion."""
    shades = [[None if cell == "none" else cell for cell in row] for row in SHADE]
    found = human_agreement(dataset(), n_resamples=50).ceiling
    expected = human_ceiling(shades, stat="accuracy", scale=Nominal(["red", "blue"])).value
    assert found is not None
    assert found.humans == ("ada", "bob")
    assert found.per_criterion["shade"].accuracy.value == pytest.approx(expected)


def test_people_who_rated_other_items() -> None:
    """Figures are undefined with a reason, and the summary says what to do."""
    items = [
        {"submission": str(at), "ratings": {"ada" if at % 2 else "bob": {"clear": "MET"}}} for at in range(4)
    ]
    found = human_agreement(RubricDataset(rubric=RUBRIC[:1], items=items), n_resamples=50)
    assert found.n_shared == 0
    assert (found.reliability["clear"].alpha.value, found.reliability["clear"].alpha.reason) == (
        None,
        "no_pairs",
    )
    assert "have annotators label the same items" in found.summary()


@pytest.mark.parametrize("ratings", [{}, {"ada": {"clear": "MET"}}])
def test_fewer_than_two_people(ratings: Any) -> None:
    """There is nobody to agree with."""
    with pytest.raises(ArgumentError, match="at least two annotators"):
        human_agreement(RubricDataset(rubric=RUBRIC, items=[{"submission": "x", "ratings": ratings}]))


def test_it_says_itself() -> None:
    """As text with a row a criterion, and as JSON without NaN."""
    found = human_agreement(dataset(), n_resamples=50)
    text = found.summary()
    assert all(name in text for name in found.reliability)
    assert found.to_dict()["raters"] == ["ada", "bob"]


def _stored_run(dataset: RubricDataset, folder: Path) -> EvalResult:
    grader = CriterionGrader(judges=[lambda request: "MET"])
    run = evaluate_sync(dataset, grader, experiments_dir=folder, experiment_name="r", show_progress=False)
    return EvalResult.from_experiment(run.experiment_dir)


def test_spellings_of_a_person_are_one_rater(tmp_path: Path) -> None:
    """A stored run with two spellings of a rater has one, with a notice, and nobody agrees with oneself."""
    labels = [{"ann": "MET", "bob": "UNMET"}, {"ann ": "MET", "Bob": "MET"}, {"ann": "MET", "ann ": "yes"}]
    ratings = [{who: {"Clear ": label} for who, label in one.items()} for one in labels]
    items = [{"submission": str(at), "ratings": one} for at, one in enumerate(ratings)]
    dataset = RubricDataset(rubric=RUBRIC[:1], items=items)
    # Equal labels of one person on an item count once.
    assert [dataset.item_truth(at) for at in range(3)] == [None, {"clear": "MET"}, {"clear": "MET"}]
    assert dataset.item_ratings(2) == {"ann": {"clear": "yes"}}
    stored = _stored_run(dataset, tmp_path)
    with pytest.warns(UserWarning, match="raters are read as equal: 'ann ' as 'ann', 'Bob' as 'bob'"):
        table = stored.votes_table()
    assert list(table.loc[table["rater_kind"] == "human", "rater"]) == ["ann", "bob", "ann", "bob", "ann"]
    with pytest.warns(UserWarning, match="read as equal"):
        found = human_agreement(dataset, n_resamples=50)
    assert found.to_dict()["raters"] == ["ann", "bob"]
    assert (found.n_shared, found.reliability["clear"].percent_agreement.value) == (2, 0.5)


@pytest.mark.parametrize(("label", "rated"), [("no", {}), ("MET", {"clear": "MET"})])
def test_contradictory_labels_of_a_rater_in_two_spellings(
    label: str, rated: dict[str, str], tmp_path: Path
) -> None:
    """They are an error in a dataset and missing, with a warning, in a run; equal labels count once."""
    ratings = {"ann": {"clear": "yes"}, "ANN": {"Clear": label}}
    rubric = [{"name": "clear", "requirement": "It is."}]
    if not rated:
        with pytest.raises(
            DatasetError, match="ANN: item '0': differs on 'clear' from a rater of equal name"
        ):
            RubricDataset(rubric=rubric, items=[{"submission": "x", "ratings": ratings}])
    dataset = RubricDataset(rubric=rubric, items=[{"submission": "x"}])
    dataset[0].ratings.update(ratings)
    lost = "$" if rated else "; contradictory labels of 'clear' by 'ann' are missing"
    stored = _stored_run(dataset, tmp_path)
    with pytest.warns(UserWarning, match=f"raters are read as equal: 'ANN' as 'ann'; .* letters{lost}"):
        assert stored.dataset.item_ratings(0) == {"ann": rated}
    with pytest.warns(UserWarning, match=f"raters are read as equal: 'ANN' as 'ann'; .* letters{lost}"):
        stored.votes_table()
