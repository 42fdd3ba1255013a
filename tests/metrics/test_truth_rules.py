"""The truth of several raters: its rules, the cells that ties cost, and NA as a category."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from autorubric import (
    ComparativeCriterion,
    Criterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.datasets import TruthRule
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    alt_test,
    compare_run,
    compute_metrics,
    human_agreement,
    judge_report,
    votes_table,
)
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.scales import Scale
from autorubric.reports import report_html
from tests.reports.test_report_data import held

LEVELS = ("low", "some", "good", "best")
VALUES = (0.0, 0.1, 0.2, 1.0)
RUBRIC = Rubric(
    [
        Criterion(
            name="depth",
            requirement="How deep?",
            scale_type="ordinal",
            options=[
                *({"label": one, "value": value} for one, value in zip(LEVELS, VALUES, strict=True)),
                {"label": "NA", "na": True},
            ],
        ),
        Criterion(name="met", requirement="Is it met?"),
    ]
)
SCALES: dict[str, Scale] = {"depth": Ordinal(LEVELS, VALUES), "met": Binary()}


def rated(*items: dict[str, list[str]]) -> RubricDataset:
    """A dataset whose items several people rated, by criterion."""
    made = []
    for at, labels in enumerate(items):
        raters = {f"r{n}" for said in labels.values() for n in range(len(said))}
        ratings = {
            who: {name: said[int(who[1:])] for name, said in labels.items() if int(who[1:]) < len(said)}
            for who in sorted(raters)
        }
        made.append(DataItem(id=str(at), submission=f"text {at}", ratings=ratings))
    return RubricDataset(rubric=RUBRIC, items=made)


def rows_of(dataset: RubricDataset) -> list[dict[str, Any]]:
    """The same ratings, and those of a judge, as a long table."""
    rows: list[dict[str, Any]] = []
    for i in range(len(dataset)):
        for who, labels in dataset.item_ratings(i).items():
            rows += [
                {"item_id": str(i), "criterion": name, "rater": who, "rater_kind": "human", "label": label}
                for name, label in labels.items()
            ]
    return rows


@pytest.mark.parametrize(
    ("rule", "said", "wanted"),
    [
        ("mode", ["low", "some", "some"], "some"),
        ("mode", ["low", "low", "best", "best"], None),
        ("mode", ["low", "low", "some", "best"], "low"),
        ("majority", ["low", "low", "some", "best"], None),
        ("majority", ["low", "low", "low", "best"], "low"),
        ("median", ["low", "some", "best"], "some"),
        ("median", ["low", "low", "best", "best"], "low"),
        ("mean", ["low", "best", "best"], "best"),
        ("mean", ["low", "good"], "some"),
        ("mean", ["low", "some"], "low"),
        ("median", ["NA", "NA", "best"], "NA"),
        ("median", ["NA", "best"], "best"),
        ("mode", ["NA", "best"], None),
        ("mode", ["CANNOT_ASSESS", "best"], "best"),
        ("mode", ["CANNOT_ASSESS", "CANNOT_ASSESS"], "CANNOT_ASSESS"),
        ("mean", ["CANNOT_ASSESS"], "CANNOT_ASSESS"),
        (None, ["low", "low", "best", "best"], "low"),
    ],
)
def test_rules_by_hand(rule: TruthRule | None, said: list[str], wanted: str | None) -> None:
    """Each rule on an ordinal scale, the same from a dataset and from a label table."""
    dataset = rated({"depth": said})
    by_rule = dataset if rule is None else dataset.with_truth(rule)
    assert (by_rule.item_truth(0) or {}).get("depth") == wanted
    table = table_of(rows_of(dataset), scales=SCALES["depth"], truth=rule).to_frame()
    assert table[table.rater_kind == "truth"].label.tolist() == [wanted] * (wanted is not None)


@given(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=7), st.randoms())
def test_rules_of_an_order_lose_no_cell(said: list[str], shuffled: Any) -> None:
    """Median, mean and the default give a label to every cell, whatever the order of the raters."""
    other = list(said)
    shuffled.shuffle(other)
    for rule in (None, "median", "mean"):
        first, second = (rated({"depth": one}) for one in (said, other))
        if rule is not None:
            first, second = (one.with_truth(rule) for one in (first, second))
        assert first.item_truth(0) == second.item_truth(0) is not None


def test_numbers_take_the_same_rules() -> None:
    """Mean by default; the median of two middle numbers is their mean; equal numbers can be a majority."""

    def truth(rule: TruthRule | None, said: list[float]) -> list[float]:
        rows = [
            {"item_id": "a", "criterion": "n", "rater": f"r{n}", "rater_kind": "human", "label": number}
            for n, number in enumerate(said)
        ]
        table = table_of(rows, scales=Interval(low=0, high=10), truth=rule).to_frame()
        return list(table[table.rater_kind == "truth"].number)

    assert truth(None, [1.0, 2.0, 9.0]) == truth("mean", [1.0, 2.0, 9.0]) == [4.0]
    assert truth("median", [1.0, 2.0, 9.0]) == [2.0] and truth("median", [1.0, 2.0]) == [1.5]
    assert truth("majority", [1.0, 2.0, 2.0]) == [2.0] and truth("mode", [1.0, 2.0]) == []


def test_a_rule_that_a_scale_cannot_have_is_refused() -> None:
    """A nominal scale has neither middle nor mean, and other rules are named."""
    rows = [
        {"item_id": "a", "criterion": "tone", "rater": who, "rater_kind": "human", "label": label}
        for who, label in (("x", "warm"), ("y", "cold"))
    ]
    for rule in ("median", "mean"):
        with pytest.raises(ArgumentError, match=r"criterion 'tone' \(nominal\) lacks; use 'mode'"):
            judge_report(rows, scales=Nominal(["warm", "cold"]), truth=rule)
    for call in (lambda: judge_report(rows, truth="most"), lambda: rated().with_truth("most")):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"truth(='most'; give| must be) one of"):
            call()


def test_datasets_keep_the_rule() -> None:
    """Datasets made of one keep its rule, and a split does."""
    dataset = rated(*[{"depth": ["low", "low", "best", "best"]}] * 6).with_truth("mode")
    for one in (
        dataset,
        dataset.subset([0, 1]),
        dataset.with_items(dataset.items),
        dataset.with_rubric(RUBRIC),
    ):
        assert one.item_truth(0) is None
    assert all(part.item_truth(0) is None for part in dataset.split_train_test(n_train=3))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run of items with two raters, who are tied on `met` in 3 of 8 and on `depth` in 2."""
    items = [
        {"met": ["MET", "UNMET" if at < 3 else "MET"], "depth": ["low", "best" if at < 2 else "low"]}
        for at in range(8)
    ]
    judges = [
        FunctionJudge(
            function=lambda request: "low" if request.criterion.name == "depth" else "MET", judge_id=name
        )
        for name in ("a", "b")
    ]
    return evaluate_sync(
        rated(*items),
        CriterionGrader(judges=judges),
        experiments_dir=tmp_path_factory.mktemp("runs"),
        show_progress=False,
    )


@pytest.mark.parametrize(("rule", "tied"), [(None, 3), ("mode", 5), ("majority", 5)])
def test_cells_lost_to_ties_are_always_reported(run: EvalResult, rule: TruthRule | None, tied: int) -> None:
    """By the reports on judges of a run and of a table of the same labels, in numbers and in words."""
    judged = votes_table(run, run.dataset)
    rows = rows_of(run.dataset) + [
        {"item_id": str(row.item), "criterion": row.criterion, "rater": row.rater, "rater_kind": "judge",
         "label": row.label}
        for row in judged[(judged.rater_kind == "judge") & judged["sample"].isna()].itertuples()
    ]  # fmt: skip
    sentence = f"{tied} cells have no label due to ties"
    for found in (
        judge_report(run, truth=rule, n_resamples=20),
        judge_report(rows, scales=SCALES, truth=rule, n_resamples=20),
    ):
        assert found.n_tied_labels == tied and found.n_cells == 16 - tied
        assert sentence in found.summary() and found.to_dict()["n_tied_labels"] == tied
    metrics = run.compute_metrics(truth=rule)
    assert metrics.n_tied_labels == tied and metrics.to_dict()["n_tied_labels"] == tied
    assert any(
        one.startswith(f"{tied} cells (item × criterion) are excluded because") for one in metrics.warnings
    )
    assert compute_metrics(run, run.dataset, truth=rule).n_tied_labels == tied
    assert compare_run(run, truth=rule, n_resamples=20).n_tied_labels == tied
    if rule is None:
        assert held(report_html(run))["data"]["judges"]["tied_labels"] == tied


def test_ties_of_people_are_counted_without_a_run(run: EvalResult) -> None:
    """`human_agreement`, and so `labels merge`, counts the cells that have no label."""
    found = human_agreement(run.dataset, n_resamples=20)
    assert found.n_tied_labels == 3 and "cells without a label because of ties" in found.summary()


def test_the_people_of_an_ordinal_truth_made_it() -> None:
    """A median is people's own label, so that the panel can be compared with them."""
    rows = [
        {"item_id": str(at), "criterion": "depth", "rater": who, "rater_kind": kind,
         "label": LEVELS[(at + shift) % 4]}
        for at in range(12)
        for who, kind, shift in (("x", "human", 0), ("y", "human", 1), ("z", "human", 2), ("j", "judge", 0))
    ]  # fmt: skip
    for rule in (None, *get_args(TruthRule)):
        ceiling = judge_report(rows, scales=SCALES["depth"], truth=rule, n_resamples=20).human_ceiling
        assert ceiling is not None and ceiling.made_the_truth


def test_na_is_a_category_of_the_alt_test_when_asked() -> None:
    """A judge that says NA where everybody does is as good as a person; without NA no test is possible."""
    people = [["NA"] * 3] * 40 + [["good", "good", "good"]] * 20
    judge = ["NA"] * 40 + ["good"] * 20
    left_out, counted = alt_test(judge, people), alt_test(judge, people, abstain="as_category")
    assert left_out.passed is None and {one.n for one in left_out.per_annotator.values()} == {20}
    assert counted.passed is True and {one.n for one in counted.per_annotator.values()} == {60}
    wrong = alt_test(["good"] * 60, people, abstain="as_category")
    assert wrong.passed is False and wrong.abstain == "as_category"
    with pytest.raises(ArgumentError, match="numbers have no categories"):
        alt_test([1.0] * 40, [[1.0, 2.0]] * 40, score="rmse", abstain="as_category")
    with pytest.raises(ArgumentError, match=r"abstain must be.* got 'category'"):
        alt_test(judge, people, abstain="category")  # type: ignore[arg-type]


def test_na_is_a_category_of_the_judge_report_when_asked() -> None:
    """The NA of most raters is the label, with which an NA of the judge agrees."""
    said = [["NA", "NA", "good"], ["NA", "NA", "NA"], ["good", "good", "NA"], ["low", "low", "low"]] * 5
    rows = rows_of(rated(*({"depth": one} for one in said)))
    rows += [
        {"item_id": str(at), "criterion": "depth", "rater": "j", "rater_kind": "judge", "label": one[0]}
        for at, one in enumerate(said)
    ]
    left_out, counted = (
        judge_report(rows, scales=SCALES["depth"], abstain=mode, n_resamples=20)
        for mode in ("exclude", "as_category")
    )
    assert left_out.macro.accuracy.n == 10 and counted.macro.accuracy.n == 20
    assert counted.macro.accuracy.value == 1.0


def test_warnings_of_all_raters_are_one_line_with_their_number(run: EvalResult) -> None:
    """`compute_metrics` gives one line for the panel and its judges."""
    found = run.compute_metrics(per_judge=True).warnings
    assert len({one.partition(": ")[2] or one for one in found}) == len(found)
    assert any("panel, judge a, judge b (3 raters): " in one for one in found)


def test_comparisons_left_out_of_means_are_named(tmp_path: Path) -> None:
    """The means of `compute_metrics` leave comparisons out, and its summary says so."""
    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which?"), RUBRIC.by_name("met")])
    items = [
        DataItem(
            id=str(at),
            submission={"x": f"a {at}", "y": f"b {at}"},
            ground_truth={"better": "x", "met": "MET"},
        )
        for at in range(4)
    ]
    judge = FunctionJudge(
        function=lambda request: "x" if request.criterion.name == "better" else "MET", judge_id="a"
    )
    result = evaluate_sync(
        RubricDataset(rubric=rubric, items=items),
        CriterionGrader(judges=[judge]),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    found = result.compute_metrics()
    words = "means over criteria exclude comparisons (better); judge_report includes them"
    assert words in found.warnings and words in found.summary()
    assert words not in judge_report(result, n_resamples=20).summary()
