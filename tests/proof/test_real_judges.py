"""Recorded judges of real studies through the grader, runs and metrics give the published figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from autorubric import (
    CriterionGrader,
    EvalResult,
    OrdinalCriterionMetrics,
    RecordedJudge,
    RubricDataset,
    evaluate_sync,
)
from tests.proof.real_data import llm_rubric, reference, summhay, ttcw

pytestmark = pytest.mark.shared_data

# The source counts an answer that is no "yes" as No, so that is how the recorded votes are read.
TTCW_LABELS = {"Yes": "MET", "No": "UNMET", "INVALID": "UNMET"}
TTCW_JUDGES = ("cgpt", "claudev13", "claudev2", "claudev21", "claude3-opus", "gpt4", "gemini-pro")
TTCW_FIGURES = ("balanced_accuracy", "precision", "recall", "f1")


def _run(dataset: RubricDataset, judges: list[RecordedJudge], folder: Path) -> EvalResult:
    grader = CriterionGrader(judges=judges)
    return evaluate_sync(dataset, grader, experiment_name="run", experiments_dir=folder, show_progress=False)


def _rounds_to(value: float | None, entry: dict[str, object]) -> bool:
    """Whether a value is the published one to its printed decimals."""
    assert value is not None
    decimals = int(str(entry["decimals"]))
    printed = float(str(entry["published"]))
    # A source that truncates prints -.02 for -.02499 and .48 for .48767: take the reference's own digits too.
    return (
        value == pytest.approx(float(str(entry["value"])), abs=1e-12) and abs(value - printed) < 10**-decimals
    )


@pytest.fixture(scope="module")
def ttcw_panel(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RubricDataset, EvalResult]:
    """The seven judges of ttcw as one panel."""
    folder = shared_data / "ttcw"
    dataset = ttcw(folder)
    judges = RecordedJudge.panel_from_csv(folder / "labels.csv", labels=TTCW_LABELS, missing="UNMET")
    return dataset, _run(dataset, judges, tmp_path_factory.mktemp("ttcw"))


@pytest.mark.parametrize("judge", TTCW_JUDGES)
def test_ttcw_judges_of_a_panel(
    judge: str, ttcw_panel: tuple[RubricDataset, EvalResult], shared_data: Path
) -> None:
    """Each judge's pooled figures over all 672 cells and its mean over the tests are the published ones."""
    dataset, result = ttcw_panel
    published = reference(shared_data / "ttcw")
    metrics = result.compute_metrics(dataset, per_judge=True)
    own = metrics.per_judge[judge]
    for figure in TTCW_FIGURES:
        assert _rounds_to(getattr(own.pooled, figure), published[f"{judge}/{figure}"]), figure
    assert _rounds_to(own.pooled.pearson, published[f"{judge}/corr"])
    assert _rounds_to(own.criterion_balanced_accuracy, published[f"{judge}/avg_bacc"])
    assert own.pooled.n == 672


@pytest.mark.parametrize("judge", TTCW_JUDGES)
def test_ttcw_judges_one_by_one(judge: str, shared_data: Path, tmp_path: Path) -> None:
    """A judge alone, a panel of one, has the figures that it has within the panel."""
    folder = shared_data / "ttcw"
    dataset = ttcw(folder)
    alone = RecordedJudge.from_csv(folder / "labels.csv", judge, labels=TTCW_LABELS, missing="UNMET")
    metrics = _run(dataset, [alone], tmp_path).compute_metrics(dataset, per_judge=True)
    published = reference(folder)
    assert _rounds_to(metrics.pooled.balanced_accuracy, published[f"{judge}/balanced_accuracy"])
    assert metrics.pooled == metrics.per_judge[judge].pooled


def test_ttcw_panel_vote(ttcw_panel: tuple[RubricDataset, EvalResult], shared_data: Path) -> None:
    """The majority of the seven judges has the reference's accuracy, kappa and balanced accuracy."""
    dataset, result = ttcw_panel
    pooled = result.compute_metrics(dataset).pooled
    published = reference(shared_data / "ttcw")
    for figure, name in [
        ("accuracy", "accuracy"),
        ("kappa", "cohen_kappa"),
        ("balanced_accuracy", "balanced_accuracy"),
    ]:
        assert getattr(pooled, figure) == pytest.approx(published[f"panel7/{name}"]["value"], abs=1e-12)


def test_ttcw_invalid_answers_fail_where_they_are_not_mapped(shared_data: Path, tmp_path: Path) -> None:
    """Without the source's rule INVALID is a failed vote and a missing row is not asked."""
    folder = shared_data / "ttcw"
    judge = RecordedJudge.from_csv(folder / "labels.csv", "gemini-pro", labels={"Yes": "MET", "No": "UNMET"})
    result = _run(ttcw(folder), [judge], tmp_path)
    statuses = [
        vote.status for report in result.get_reports() if report for c in report.report for vote in c.votes
    ]
    assert statuses.count("failed") == 50
    assert statuses.count("not_asked") == 14


@pytest.fixture(scope="module")
def summhay_panel(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RubricDataset, EvalResult]:
    """The six judges of summhay, over 29 different rubrics."""
    folder = shared_data / "summhay"
    dataset = summhay(folder)
    judges = RecordedJudge.panel_from_csv(folder / "labels.csv")
    return dataset, _run(dataset, judges, tmp_path_factory.mktemp("summhay"))


@pytest.mark.parametrize(
    "judge", ["gpt-4o", "9fs-gpt-4o", "claude3-opus", "claude3-haiku", "gemini-1.5-pro", "gpt3.5"]
)
def test_summhay_pearson(
    judge: str, summhay_panel: tuple[RubricDataset, EvalResult], shared_data: Path
) -> None:
    """With a rubric per item, each judge's Pearson over all 1,419 cells is the published one."""
    dataset, result = summhay_panel
    published = [
        entry
        for key, entry in reference(shared_data / "summhay").items()
        if key.startswith(f"{judge}/") and "pearson" in key and entry["published"] is not None
    ]
    pooled = result.compute_metrics(dataset, per_judge=True).per_judge[judge].pooled
    assert pooled.n == 1419
    assert len(published) == 1
    assert _rounds_to(pooled.pearson, published[0])


def test_llm_rubric_runs_with_na_answers(shared_data: Path, tmp_path: Path) -> None:
    """NA answers of people and of the judge leave scores and figures, and are counted."""
    folder = shared_data / "llm_rubric"
    dataset = llm_rubric(folder)
    judges = RecordedJudge.panel_from_csv(folder / "labels.csv", rater_type="llm")
    result = _run(dataset, judges, tmp_path)
    metrics = result.compute_metrics(dataset, per_judge=True)
    labelled = [i for i in range(len(dataset.items)) if dataset.item_truth(i) is not None]
    assert metrics.n_items == len(labelled)
    assert metrics.n_ordinal_criteria == 9
    assert metrics.na_stats is not None


def test_llm_rubric_constant_answers_have_no_correlation(shared_data: Path, tmp_path: Path) -> None:
    """Where a judge says the same of every dialogue, its correlation is undefined with a reason, not 0."""
    folder = shared_data / "llm_rubric"
    whole = llm_rubric(folder)
    real = whole.subset(i for i in range(len(whole.items)) if whole.item_id(i).startswith("real:"))
    judge = RecordedJudge.from_csv(folder / "labels.csv", "gpt-3.5-turbo-16k:argmax")
    figures = {f.name: f for f in _run(real, [judge], tmp_path).compute_metrics(real).per_criterion}
    for constant in ("Q4", "Q5"):
        found = figures[constant]
        assert isinstance(found, OrdinalCriterionMetrics)
        assert found.spearman.coefficient is None
        assert found.spearman.reason == "no_variance"
    varied = figures["Q3"]
    assert isinstance(varied, OrdinalCriterionMetrics)
    assert varied.spearman.coefficient is not None
