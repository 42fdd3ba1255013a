"""The panel next to its best judge: the same cells, the same conclusion from a run and from a table."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autorubric import Criterion, CriterionGrader, DataItem, EvalResult, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import (
    Binary,
    Interval,
    JudgeReport,
    PanelAndBest,
    cohen_kappa,
    compare_run,
    judge_report,
    panel_audit,
)
from autorubric.reports import report_html
from autorubric.support.blocks import TableBlock
from tests.conftest import SHARED_DATA
from tests.metrics.asserting import number
from tests.metrics.judge_report.tables import labels
from tests.reports.test_report_data import held

N = 80
RIGHT = {"a": 0.85, "b": 0.75}
"""Two judges, so that every disagreement is a tie."""


def drawn() -> dict[str, list[bool]]:
    """Truth and judges of a binary criterion."""
    draw = random.Random(4)
    truth = [draw.random() < 0.5 for _ in range(N)]
    judges = {who: [one == (draw.random() < right) for one in truth] for who, right in RIGHT.items()}
    return {"truth": truth, **judges}


def word(met: bool) -> str:
    return "MET" if met else "UNMET"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    """A run of both judges, whose panel answers a tie with UNMET."""
    said = drawn()

    def judge(name: str) -> FunctionJudge:
        def answer(request: JudgeRequest) -> str:
            return word(said[name][int(str(request.item_id))])

        return FunctionJudge(function=answer, judge_id=name)

    items = [
        DataItem(id=str(at), submission=f"text {at}", ground_truth={"clear": word(met)})
        for at, met in enumerate(said["truth"])
    ]
    return evaluate_sync(
        RubricDataset(rubric=Rubric([Criterion(name="clear", requirement="Is it clear?")]), items=items),
        CriterionGrader(judges=[judge(name) for name in RIGHT]),
        experiments_dir=tmp_path_factory.mktemp("runs"),
        show_progress=False,
    )


def table() -> list[dict[str, Any]]:
    """The same votes as a long table."""
    return [
        row
        for who, column in drawn().items()
        for row in labels("truth" if who == "truth" else "judge", who, "clear", [word(met) for met in column])
    ]


def compared(found: JudgeReport) -> PanelAndBest:
    assert found.panel_and_best is not None
    return found.panel_and_best


def test_the_panel_and_the_best_judge_are_compared_on_the_cells_that_both_answered() -> None:
    """Where two judges agree each of them is the panel, whatever a judge does alone."""
    said = drawn()
    alike = [at for at in range(N) if said["a"][at] == said["b"][at]]
    truth, judge = ([said[who][at] for at in alike] for who in ("truth", "a"))
    report = judge_report(table(), scales=Binary(), n_resamples=100)
    found = compared(report)
    assert (found.judge, found.figure) == ("a", "kappa")
    assert (found.n_cells, found.n_ties, found.n_ties_answered) == (len(alike), N - len(alike), 0)
    assert found.coverage == pytest.approx(len(alike) / N) and found.coverage < 0.8
    assert number(found.best.value) == pytest.approx(number(cohen_kappa(truth, judge).value))
    assert found.panel.value == found.best.value and number(found.difference.value) == pytest.approx(
        0, abs=1e-12
    )
    # Alone, on the cells where it disagrees with the other too, the judge looks worse than this panel.
    assert number(report.per_judge["a"].macro.kappa.value) < number(report.panel.macro.kappa.value)


def test_a_run_and_a_table_of_the_same_votes_lead_to_the_same_conclusion(graded: EvalResult) -> None:
    """The same figures on the same cells; the run says that its panel answers ties too."""
    run, long = (judge_report(one, n_resamples=100) for one in (graded, table()))
    mine, theirs = compared(run), compared(long)
    same = [
        (one.judge, one.figure, one.panel.value, one.best.value, one.n_cells, one.coverage, one.n_ties)
        for one in (mine, theirs)
    ]
    assert same[0] == same[1]
    assert (mine.n_ties_answered, theirs.n_ties_answered) == (mine.n_ties, 0)
    sentence = (
        f"On the {mine.n_cells} labelled cells that both the panel and a answered ({mine.coverage:.1%})"
    )
    for report in (run, long):
        assert sentence in report.summary()
        assert f"tie on {mine.n_ties} labelled cells" in report.summary()
    assert "the panel gives the conservative answer" in run.summary()
    assert "the panel has no answer on these cells" in long.summary()


def test_compare_run_leaves_ties_out_and_gives_the_coverage_of_every_pair(graded: EvalResult) -> None:
    """Two judges differ only on the cells where their votes tie, which are counted and not compared."""
    run, long = (compare_run(one, n_resamples=100) for one in (graded, table()))
    found = compared(judge_report(table(), scales=Binary(), n_resamples=20))
    for one in (run, long):
        assert (one.panel, one.panel_reason) == (None, "no_variance")
        assert one.judges[0].coverage == 1.0
        assert one.n_ties == found.n_ties
        assert "coverage" in one.summary() and f"excludes {found.n_ties} labelled cells" in one.summary()
    assert (run.n_ties_answered, long.n_ties_answered) == (found.n_ties, 0)


def test_coverage_is_next_to_every_figure_of_the_panel(graded: EvalResult) -> None:
    """In the tables of the report, its sentences, the panel audit, JSON and the page."""
    report = judge_report(table(), scales=Binary(), n_resamples=50)
    share = f"{number(report.panel.coverage):.1%}"
    assert f"{share} of the labelled cells" in report.summary()
    titles = ("Judges, mean over criteria", "Panel and best judge on the same cells")
    tables = [one for one in report.blocks() if isinstance(one, TableBlock) and one.title]
    shown = [one for one in tables if str(one.title).startswith(titles)]
    assert len(shown) == 2 and all("coverage" in one.columns for one in shown)
    assert report.to_dict()["panel_and_best"]["coverage"] == compared(report).coverage
    rows = [row for row in table() if row["rater"] != "b" or int(row["item_id"]) >= 20]
    audit = panel_audit(rows, n_resamples=50)
    assert audit.coverage == pytest.approx(60 / N) and "(75.0% of the labelled cells)" in audit.summary()
    judges = held(report_html(graded))["data"]["judges"]
    assert judges["same_cells"]["coverage"] == pytest.approx(compared(report).coverage)
    assert [row["coverage"] for row in judges["rows"]] == [1.0, 1.0, 1.0]
    assert [row["coverage"] for row in judges["pairs"]] == [1.0]


def test_one_judge_has_nothing_to_be_compared_with() -> None:
    """Neither the comparison nor a sentence on it is there."""
    report = judge_report([row for row in table() if row["rater"] != "b"], scales=Binary(), n_resamples=20)
    assert report.panel_and_best is None and "that both the panel" not in report.summary()


@pytest.mark.shared_data
def test_two_real_judges_agree_on_what_their_panel_answers() -> None:
    """TTCW: the votes of two judges tie on 31 % of the labelled cells; elsewhere each is the panel."""
    path: Path = SHARED_DATA / "ttcw" / "labels.csv"
    with path.open(encoding="utf-8") as file:
        rows = [
            {**row, "rater_kind": row["rater_type"], "label": row["value"]}
            for row in csv.DictReader(file)
            if row["rater_type"] == "human" or row["rater"] in ("cgpt", "claude3-opus")
        ]
    report = judge_report(rows, n_resamples=50)
    found = compared(report)
    assert found.judge == "claude3-opus" and (found.n_cells, found.n_ties) == (466, 206)
    assert found.coverage == pytest.approx(0.693, abs=0.001)
    assert found.panel.value == found.best.value == pytest.approx(0.113, abs=0.001)
    assert number(report.per_judge["claude3-opus"].macro.kappa.value) == pytest.approx(0.134, abs=0.001)


def _rater(
    name: str, kind: str, signal: Any, n_missing: int = 0, missing: str | None = "CANNOT_ASSESS"
) -> list[dict[str, str]]:
    """Labels MET where the signal is above 0; `missing` on so many cells on which it is least sure."""
    least = set(np.argsort(np.abs(signal))[:n_missing].tolist())
    said = [missing if at in least else "MET" if one > 0 else "UNMET" for at, one in enumerate(signal)]
    fields = {"criterion": "c", "rater": name, "rater_kind": kind}
    return [{"item_id": str(at), "label": one, **fields} for at, one in enumerate(said) if one is not None]


MISSING = pytest.mark.parametrize("missing", ["CANNOT_ASSESS", "INVALID", None])
"""Labels of cells that a judge does not answer; None without a row."""


@MISSING
def test_a_judge_without_answers_where_it_is_unsure_does_not_outperform_people(missing: str | None) -> None:
    """A judge exactly like three people, in ten worlds: on the cells it answered alone, it does in most."""
    better = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.choice([-1.0, 1.0], 100)
        rows = [one for who in "abc" for one in _rater(who, "human", truth + rng.normal(0, 1, 100))]
        rows += _rater("judge", "judge", truth + rng.normal(0, 1, 100), 30, missing)
        found = judge_report(rows, n_resamples=200)
        ceiling = found.human_ceiling
        assert ceiling is not None and ceiling.gap_bounds is not None
        worst, best = (float(one.accuracy) for one in ceiling.gap_bounds)
        gap = ceiling.gap["panel"].accuracy
        assert worst < min(float(gap), best) if missing else worst == best
        better += (gap.low or 0) > 0
        shown = " ".join(found.summary().split())
        # Of cells without a row, the sentence is true with its condition.
        assert ("outperforms an annotator" if missing else "outperforms an annotator (") not in shown
        assert f"on the {100 * ceiling.answered[0] / ceiling.answered[1]:.0f}% of cells it answered" in shown
        cases = f"its abstentions and failures as errors ({worst:.3f}) and as right answers ({best:.3f})"
        assert (cases if missing else f"(difference {best:.3f} [") in shown
    assert better >= 4


@MISSING
def test_judges_are_ranked_on_common_cells(missing: str | None) -> None:
    """A judge without answers on the cells on which it errs is right on all others, as is the other judge."""
    truth = np.array([1.0, -1.0] * 50)
    shy, good = truth.copy(), truth.copy()
    shy[:30] *= -0.5
    good[:5] *= -1
    good[95:] *= -1
    rows = [
        *_rater("truth", "truth", truth),
        *_rater("shy", "judge", shy, 30, missing),
        *_rater("good", "judge", good),
    ]
    found = judge_report(rows, n_resamples=200)
    one = found.per_judge["shy"]
    assert one.on_common_cells is not None and one.macro.accuracy == 1.0
    bounds = [float(each.accuracy) for each in one.abstention_bounds or ()]
    assert bounds == ([0.7, 1.0] if missing else [])
    other = found.per_judge["good"].on_common_cells
    assert other is not None and float(other.accuracy) == pytest.approx(65 / 70)
    shown = " ".join(found.summary().split())
    told = "is shy, with" if missing is None else "is clearly the best: shy has"
    assert f"single judges {told} a mean kappa of 1.000 [" in shown
    assert " on the 70% of cells that all judges answered" in shown
    assert judge_report([*rows[:100], *rows[-100:]], n_resamples=200).panel.on_common_cells is None


def test_judges_without_common_cells_are_not_ranked() -> None:
    """One judge has the first half of the items and is always right, the other has the rest and errs."""
    truth = np.array([1.0, -1.0] * 50)
    bad = truth * np.where(np.arange(100) % 3, 1, -1)
    rows = [
        *_rater("truth", "truth", truth),
        *_rater("good", "judge", truth)[:50],
        *_rater("bad", "judge", bad)[50:],
    ]
    shown = " ".join(judge_report(rows, n_resamples=200).summary().split())
    assert "None of the 2 single judges is clearly the best: good has" in shown


def _numbers(name: str, kind: str, numbers: Any, missing: Any = ()) -> list[dict[str, Any]]:
    fields = {"criterion": "c", "rater": name, "rater_kind": kind}
    return [
        {"item_id": str(at), "label": "NA" if at in missing else float(one), **fields}
        for at, one in enumerate(numbers)
    ]


@pytest.mark.parametrize("scale", [Interval(0, 10), Interval(0), Interval()], ids=str)
def test_judges_of_numbers_that_abstain_are_neither_best_nor_better_than_people(scale: Interval) -> None:
    """A judge that is right but abstains on half of the items; without a range, there is no worst case."""
    rng = np.random.default_rng(5)
    truth = rng.uniform(0, 10, 80)
    noisy = [np.clip(truth + rng.normal(0, 2, 80), 0, 10) for _ in range(3)]
    shy = ("shy", "judge", truth, set(range(40)))
    labelled = [*_numbers("truth", "truth", truth), *_numbers("a", "judge", noisy[0]), *_numbers(*shy)]
    found = judge_report(labelled, scales=scale, n_resamples=200)
    worst, best = (one.pearson.value for one in found.per_judge["shy"].abstention_bounds or ())
    errors = np.where(np.arange(80) < 40, np.where(truth > 5, 0.0, 10.0), truth)
    wrong = pytest.approx(np.corrcoef(truth, errors)[0, 1]) if scale.span else None
    assert worst == wrong and best == pytest.approx(1.0)
    assert "single judges is clearly the best: shy has" in " ".join(found.summary().split())
    people = [row for who, one in zip("xyz", noisy, strict=True) for row in _numbers(who, "human", one)]
    shown = judge_report([*people, *_numbers(*shy)], scales=scale, n_resamples=200).summary()
    assert "not distinguishable from an annotator on the 50% of cells it answered" in " ".join(shown.split())


def test_a_best_judge_without_abstentions_is_described_on_all_its_cells() -> None:
    """Only the other judge abstained, so that the best has no two cases but a figure on all cells."""
    truth = np.array([1.0, -1.0] * 50)
    good, shy = truth.copy(), np.where(np.arange(100) < 60, truth, -truth)
    shy[:30] *= 0.5
    signals = {"truth": truth, "good": good, "shy": shy}
    rows = [
        row
        for name, one in signals.items()
        for row in _rater(name, "truth" if name == "truth" else "judge", one, 30 * (name == "shy"))
    ]
    shown = " ".join(judge_report(rows, n_resamples=200).summary().split())
    assert "is good, with a mean kappa of 1.000 [" in shown
    assert "on the 70% of cells that all judges answered (1.000 on all the cells it answered;" in shown


def test_cells_labelled_na_are_not_compared() -> None:
    """Both the panel and the judges answer 30 cells whose label has no answer, and tie on some."""
    truth = np.array([1.0, -1.0] * 50)
    truth[:30] = 0.01
    a, b = truth.copy(), truth.copy()
    b[:10] *= -1
    b[90:] *= -1
    signals = {"truth": truth, "a": a, "b": b}
    rows = [
        row
        for name, one in signals.items()
        for row in _rater(name, "truth" if name == "truth" else "judge", one, 30 * (name == "truth"))
    ]
    found = compared(judge_report(rows, n_resamples=50))
    assert (found.n_cells, found.coverage, found.n_ties) == (60, 0.6, 10)
    assert found.panel.n == found.n_cells
