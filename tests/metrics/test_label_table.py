"""Long tables of labels as the one votes table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric import Criterion, CriterionOption, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.grading import CriterionGrader
from autorubric.judges import FunctionJudge
from autorubric.metrics import (
    Binary,
    Interval,
    Nominal,
    Ordinal,
    bias_report,
    judge_report,
    panel_audit,
    variance_components,
)
from autorubric.metrics.core.item_scores import PANEL, TRUTH
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.read_votes import Modes, cells_of
from autorubric.metrics.core.votes_table import UNDECIDED
from autorubric.rubric import Rubric
from autorubric.runs import evaluate_sync


def row(item: str, rater: str, label: Any, kind: str = "judge", **more: Any) -> dict[str, Any]:
    """One row of a long table on the criterion `c`."""
    return {"item_id": item, "criterion": "c", "rater": rater, "label": label, "rater_kind": kind, **more}


def said(table: Any, rater: Any) -> dict[str, Any]:
    """The decisions or labels of a rater, by item."""
    rows = [i for i in table.rows_of(rater) if table.status[i] != UNDECIDED]
    return {table.item_ids[table.item[i]]: table.label[i] for i in rows}


def test_people_stand_for_the_truth_and_judges_for_the_panel() -> None:
    """The majority of people is the truth and that of the judges the panel; where two lead there is none."""
    rows = [row("1", r, label, "human") for r, label in (("x", "yes"), ("y", "yes"), ("z", "no"))]
    rows += [row("2", "x", "yes", "human"), row("2", "y", "no", "human")]
    rows += [row("1", j, label) for j, label in (("a", "no"), ("b", "no"), ("c", "yes"))]
    rows += [row("2", "a", "no"), row("2", "b", "yes")]
    table = table_of(rows, scales=Binary())
    assert said(table, TRUTH) == {"1": "MET"}
    assert said(table, PANEL) == {"1": "UNMET"}
    [undecided] = [i for i in table.rows_of(PANEL) if table.status[i] == UNDECIDED]
    assert table.item_ids[table.item[undecided]] == "2"
    assert said(table, ("judge", "a")) == {"1": "UNMET", "2": "UNMET"}
    assert said(table, ("human", "z")) == {"1": "UNMET"}


def test_rows_of_the_truth_and_panel_stand() -> None:
    """What the table says itself is not worked out anew."""
    rows = [row("1", "x", "yes", "human"), row("1", "gold", "no", "truth"), row("1", "a", "no")]
    rows += [row("1", "panel", "yes", "panel")]
    table = table_of(rows)
    assert said(table, TRUTH) == {"1": "UNMET"}
    assert said(table, PANEL) == {"1": "MET"}


def test_samples_are_votes_and_come_to_a_decision() -> None:
    """Each pass is a vote of its own; the decision is what most of them say."""
    rows = [row("1", "a", label, sample=i) for i, label in enumerate(("yes", "no", "yes"))]
    table = table_of(rows, scales={"c": Binary()})
    votes = (table.rater == table.raters.index(("judge", "a"))) & (table.sample >= 0)
    assert table.label[votes].tolist() == ["MET", "UNMET", "MET"]
    assert table.sample[votes].tolist() == [0, 1, 2]
    assert said(table, ("judge", "a")) == {"1": "MET"}


def test_ordered_answers_are_decided_by_their_mean() -> None:
    """On a scale with values the panel is the category nearest to the mean value: (0 + 0 + 10) / 3 → 2."""
    scale = Ordinal(["low", "some", "high"], [0, 2, 10])
    rows = [row("1", j, label) for j, label in (("a", "low"), ("b", "low"), ("c", "high"))]
    rows += [row("2", "a", "low"), row("2", "b", "some")]
    table = table_of(rows, scales=scale)
    assert said(table, PANEL) == {"1": "some"}
    rows = [row("1", "a", 3.0), row("1", "b", 4.0)]
    table = table_of(rows, scales=Interval(0, 10))
    [place] = table.rows_of(PANEL)
    assert (table.number[place], table.value[place]) == (3.5, 0.35)


def test_what_is_no_answer_stays_apart() -> None:
    """NA and CANNOT_ASSESS abstain, INVALID fails, an empty label is not rated."""
    rows = [row("1", "a", "NA"), row("2", "a", "INVALID"), row("3", "a", None), row("4", "a", "yes")]
    table = table_of(rows)
    column = cells_of(table, Modes()).raters["judge", "a"]
    assert column.status.tolist() == [2, 3, 1]
    assert column.code.tolist() == [-1, -1, 1]


def test_a_label_may_be_called_na() -> None:
    """A declared label is an answer, whatever it is called."""
    table = table_of([row("1", "a", "NA"), row("2", "a", "yes")], scales={"c": Ordinal(["NA", "yes"])})
    assert said(table, ("judge", "a")) == {"1": "NA", "2": "yes"}


RUBRIC = Rubric(
    [
        Criterion(name="c", weight=2.0, requirement="Is good."),
        Criterion(
            name="how",
            requirement="How good?",
            scale_type="ordinal",
            options=[CriterionOption(label=f"g{i}", value=i / 2) for i in range(3)],
        ),
    ]
)


def dataset(truth: bool = True) -> RubricDataset:
    """Three texts, labelled."""
    data = RubricDataset(prompt="Write.", rubric=RUBRIC)
    for i, text in enumerate(("good", "bad", "good too")):
        labels = {"c": "MET" if i != 1 else "UNMET", "how": f"g{i}"} if truth else None
        data.add_item(submission=text, description=f"item {i}", ground_truth=labels)
    return data


def test_a_dataset_says_scales_and_truth() -> None:
    """With a dataset labels are read on its criteria, and its truth stands beside them."""
    data = dataset()
    rows = [
        {"item_id": data.item_id(i), "criterion": "how", "rater": "a", "value": label}
        for i, label in enumerate(("g2", "g1", "g0"))
    ]
    table = table_of(rows, data)
    assert [one.level for one in table.criteria] == ["ordinal", "binary"]
    assert said(table, ("judge", "a")) == {data.item_id(i): f"g{2 - i}" for i in range(3)}
    assert sorted(said(table, TRUTH)) == sorted(data.item_id(i) for i in range(3))


def test_the_frame_of_a_run_reads_back(tmp_path: Path) -> None:
    """The frame of `votes_table` gives the decisions and labels that the run has."""
    data = dataset()
    result = evaluate_sync(
        data, CriterionGrader(judges=[_pick]), show_progress=False, experiments_dir=tmp_path
    )
    own, back = cells_of(table_of(result), Modes()), cells_of(table_of(result.votes_table()), Modes())
    assert [one.name for one in own.criteria] == [one.name for one in back.criteria]
    for rater, column in own.raters.items():
        assert np.array_equal(column.status, back.raters[rater].status)
        assert _labels(own, column) == _labels(back, back.raters[rater])


def _labels(cells: Any, column: Any) -> list[str | None]:
    found: list[str | None] = []
    for criterion, span in zip(cells.criteria, cells.spans, strict=True):
        found += [criterion.categories[c].label if c >= 0 else None for c in column.code[span]]
    return found


def _pick(request: Any) -> str:
    good = "good" in (request.submission.text or "")
    if request.criterion.name == "c":
        return "MET" if good else "UNMET"
    return "g2" if good else "g0"


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("text", {}, "must be an EvalResult"),
        ([["a"]], {}, "row 0"),
        ([{"item_id": "1", "criterion": "c", "rater": "a"}], {}, "no label"),
        ([row("1", "a", "yes", "alien")], {}, "alien"),
        ([row("1", "a", "yes", sample="one")], {}, "sample must be an integer; got 'one'"),
        ([row("1", "a", "yes", status="odd")], {}, "status 'odd'"),
        ([row("1", "a", "yes"), row("1", "a", "no")], {}, "several labels"),
        ([row("1", "a", "maybe")], {"scales": Binary()}, "maybe"),
        ([row("1", "a", "high")], {"scales": Interval()}, "high"),
        ([row("1", "a", "yes")], {"scales": {"d": Binary()}}, r"\['d'\]"),
    ],
)
def test_faulty_tables_are_refused(rows: Any, options: dict[str, Any], message: str) -> None:
    """What is wrong is named with its row or item."""
    with pytest.raises(ArgumentError, match=message):
        table_of(rows, **options)


def test_rows_that_the_dataset_does_not_have_are_refused() -> None:
    """Items and criteria of the rows are the dataset's."""
    data = dataset()
    with pytest.raises(ArgumentError, match="'nobody'"):
        table_of([row("nobody", "a", "yes")], data)
    with pytest.raises(ArgumentError, match="'size'"):
        table_of([{**row(data.item_id(0), "a", "yes"), "criterion": "size"}], data)
    with pytest.raises(ArgumentError, match="scales"):
        table_of([row(data.item_id(0), "a", "yes")], data, scales=Binary())


def test_frames_and_mappings_are_one() -> None:
    """A DataFrame is read as the rows it holds, NaN being no label."""
    rows = [row("1", "a", "yes", sample=None), row("2", "a", float("nan"), sample=None)]
    table = table_of(pd.DataFrame(rows))
    assert said(table, ("judge", "a")) == {"1": "MET"}


@pytest.mark.parametrize("word", ["NA", "n/a", " Cannot_Assess ", None, float("nan")])
def test_an_abstention_is_no_answer_whatever_it_says(word: Any) -> None:
    """Not on a declared scale, not on one that is inferred, and not where the status says so."""
    rows = [row(str(i), "t", "no", "truth", status="answered") for i in range(5)]
    given = [
        ("yes", "answered"),
        ("no", "answered"),
        (word, "abstained"),
        (word, "abstained"),
        ("no", "answered"),
    ]
    rows += [row(str(i), "a", label, status=status) for i, (label, status) in enumerate(given)]
    for scales in (None, Binary(), Nominal(["no", "yes", "other"])):
        report = judge_report(rows, scales=scales, n_resamples=20)
        agreed = report.per_judge["a"].per_criterion["c"]
        assert agreed.n == 3
        assert agreed.accuracy.value == pytest.approx(2 / 3)
        assert report.failures["a"].abstention_rate.value == pytest.approx(0.4)


def test_words_for_no_answer_are_read_in_any_case() -> None:
    """They make no category of an inferred scale."""
    rows = [row("1", "a", "yes"), row("2", "a", "n/a"), row("3", "a", "Invalid"), row("4", "a", "no")]
    table = table_of(rows)
    assert table.criteria[0].level == "binary"
    column = cells_of(table, Modes()).raters["judge", "a"]
    assert column.status.tolist() == [1, 2, 3, 1]


def test_inferred_scales_are_told() -> None:
    """What is not declared is said; numbers that are no whole ones are an interval and no categories."""
    table = table_of([row("1", "a", "low"), row("2", "a", "high")])
    assert table.notes == (
        "the scale of c was inferred from the observed labels as Nominal(labels=('high', 'low')); unused "
        "options and the order are unknown. Pass scales= to declare them",
    )
    assert table_of([row("1", "a", 0.5), row("2", "a", 1.5)]).criteria[0].level == "interval"
    assert table_of([row("1", "a", 1), row("2", "a", 2)]).criteria[0].level == "ordinal"
    assert table_of([row("1", "a", "low")], scales=Nominal(["low", "high"])).notes == ()


def test_every_function_reads_a_run_and_its_frame_alike(tmp_path: Path) -> None:
    """With abstentions in the data: the run, its frame, and its frame beside the dataset.

    A frame alone does not know the order of the options, which leaves that criterion out of means.
    """
    data = RubricDataset(prompt="Write.", rubric=RUBRIC)
    for i in range(12):
        labels = {"c": ("MET", "UNMET", "CANNOT_ASSESS")[i % 3], "how": f"g{i % 3}"}
        data.add_item(submission=f"text {i}", ground_truth=labels)
    judges = [_said("a", 2), _said("b", 5)]
    result = evaluate_sync(
        data, CriterionGrader(judges=judges), show_progress=False, experiments_dir=tmp_path
    )
    frame = result.votes_table()
    found = [
        (
            bias_report(*given, n_resamples=20).to_dict()["per_judge"]["a"]["leniency"],
            variance_components(*given, n_resamples=20).to_dict()["per_criterion"],
            panel_audit(*given, n_resamples=20).to_dict()["n_complete"],
            {
                name: agreed.table
                for name, agreed in judge_report(*given, n_resamples=20).per_judge["a"].per_criterion.items()
            },
        )
        for given in ((result,), (frame,), (frame, data))
    ]
    assert found[0] == found[2]
    assert found[0][2] == found[1][2]
    assert found[0][3]["c"] == found[1][3]["c"]
    assert found[0][1]["c"] == found[1][1]["c"]


def _said(name: str, step: int) -> FunctionJudge:
    def answer(request: Any) -> str | None:
        number = int((request.submission.text or "0").split()[-1])
        if number % step == 0:
            return None
        return ("MET", "UNMET")[number % 2] if request.criterion.name == "c" else f"g{number % 3}"

    return FunctionJudge(judge_id=name, function=answer)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"item_id": None}, "row 2 .* has no item_id"),
        ({"rater_kind": "robot"}, "row 2 .*'robot'"),
        ({"status": "asleep"}, "row 2 .*'asleep'"),
        ({"sample": "first"}, "row 2 .*'first'"),
    ],
)
def test_a_frame_says_which_row_is_wrong(wrong: dict[str, Any], told: str) -> None:
    """Frames are read by columns; what is wrong in one is told as for a list of rows."""
    rows = [row("1", "a", "yes", status="answered", sample=0), row("2", "a", "no", status=None, sample=0)]
    rows.append(row("3", "a", "no", status=None, sample=0) | wrong)
    for table in (rows, pd.DataFrame(rows)):
        with pytest.raises(ArgumentError, match=told):
            table_of(table)


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_the_kind_of_column_does_not_matter(kind: Any) -> None:
    """Columns of objects, texts and categories read as the rows do, what is missing included."""
    rows = [
        row(str(i % 9), f"j{i // 9 % 3}", ["yes", "no", None, ""][i * 7 % 4], sample=i // 27)
        for i in range(81)
    ]
    rows += [row(str(i), "ann", ["yes", "no"][i % 2], "human", sample=None) for i in range(9)]
    wanted = table_of(rows)
    frame = pd.DataFrame(rows)
    names = ["item_id", "criterion", "rater", "label", "rater_kind"]
    found = table_of(frame.astype(dict.fromkeys(names, kind)))
    assert (found.raters, found.item_ids, found.criteria) == (wanted.raters, wanted.item_ids, wanted.criteria)
    for column in ("item", "criterion", "rater", "sample", "code", "status"):
        assert getattr(found, column).tolist() == getattr(wanted, column).tolist()
    assert found.label.tolist() == wanted.label.tolist()


def test_rows_and_frames_with_equal_votes_give_the_same_table() -> None:
    """Cells with the same votes keep their own items; names of two types are one item."""
    rows = [
        {"item_id": item, "criterion": "c", "rater": rater, "label": label}
        for item, labels in ((2, ("yes", "no")), ("1", ("yes", "no")), (1, (None, "no")), ("3", ("no", "no")))
        for rater, label in zip("ab", labels, strict=True)
        if (item, rater) != (1, "b")
    ]
    by_row, by_column = table_of(rows), table_of(pd.DataFrame(rows))
    assert by_row.item_ids == ("2", "1", "3")
    pd.testing.assert_frame_equal(by_row.to_frame(), by_column.to_frame())
    votes = by_row.to_frame().query("sample == 0")
    assert votes.item_id.tolist() == ["2", "2", "1", "1", "3", "3"]
    assert votes.label.tolist() == ["MET", "UNMET", "MET", "UNMET", "UNMET", "UNMET"]


def test_spellings_of_a_rater_or_criterion_are_one() -> None:
    """Names that are equal after folding are merged with a warning; a double label is then an error."""
    rows = [row("1", "ann", "a", "human"), row("2", "ann\u00a0", "b", "human"), row("1", "Ann", "a", "judge")]
    rows[1]["criterion"] = rows[1]["criterion"].upper() + " "
    for table in (rows, pd.DataFrame(rows)):
        with pytest.warns(UserWarning, match=r"raters are read as equal: 'ann\\xa0' as 'ann'"):
            found = table_of(table)
        assert [rater for rater in found.raters if rater[0] == "human"] == [("human", "ann")]
        assert len(found.criteria) == 1
    with (
        pytest.warns(UserWarning, match="read as equal"),
        pytest.raises(ArgumentError, match="'ann' has several labels"),
    ):
        table_of([*rows, row("1", "ANN", "b", "human")])
