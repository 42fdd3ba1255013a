"""Seven recorded judges on creativity tests: the published figures, through a run and its metrics."""

from __future__ import annotations

import pytest

from autorubric.judges import RecordedJudge
from autorubric.metrics import fleiss_kappa
from tests.conftest import SHARED_DATA
from tests.metrics.shared_runs import cells, references, run, same
from tests.proof.real_data import ttcw

pytestmark = pytest.mark.shared_data

JUDGES = ["cgpt", "claudev13", "claudev2", "claudev21", "claude3-opus", "gpt4", "gemini-pro"]
LABELS = {"Yes": "MET", "No": "UNMET"}


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """Figures as the source counts: INVALID and missing answers are No."""
    judges = RecordedJudge.panel_from_csv(
        SHARED_DATA / "ttcw" / "labels.csv", labels={**LABELS, "INVALID": "UNMET"}, missing="UNMET"
    )
    result = run(ttcw(SHARED_DATA / "ttcw"), judges, tmp_path_factory.mktemp("ttcw"))
    return result.compute_metrics(per_judge=True, bootstrap=True)


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Figures as they should be counted: INVALID failed, missing not asked."""
    judges = RecordedJudge.panel_from_csv(SHARED_DATA / "ttcw" / "labels.csv", labels=LABELS)
    result = run(ttcw(SHARED_DATA / "ttcw"), judges, tmp_path_factory.mktemp("ttcw"))
    return result.compute_metrics(per_judge=True)


@pytest.mark.parametrize("judge", JUDGES)
def test_published_figures_over_all_cells(metrics, judge):
    """Balanced accuracy, precision, recall, F1 and Pearson over 672 cells, and kappa beside them."""
    found, reference = metrics.per_judge[judge].pooled, references("ttcw")
    assert found.n == 672
    for name, figure in (
        ("balanced_accuracy", found.balanced_accuracy),
        ("precision", found.precision),
        ("recall", found.recall),
        ("f1", found.f1),
        ("corr", found.pearson),
        ("cohen_kappa", found.kappa),
    ):
        assert same(figure, reference[f"{judge}/{name}"]), (judge, name, figure)


@pytest.mark.parametrize("judge", JUDGES)
def test_published_figures_of_each_test(metrics, judge):
    """Balanced accuracy on each of the fourteen tests, and its mean."""
    reference = references("ttcw")
    for one in metrics.per_judge[judge].per_criterion:
        assert same(one.balanced_accuracy, reference[f"{judge}/{one.name}/balanced_accuracy"]), one.name
    mean = metrics.per_judge[judge].criterion_balanced_accuracy
    assert same(mean, reference[f"{judge}/avg_bacc"])


@pytest.mark.parametrize("judge", JUDGES)
def test_story_scores(metrics, judge):
    """Scores of the stories are their totals over fourteen: same correlations, errors a fourteenth."""
    found, reference = metrics.per_judge[judge], references("ttcw")
    assert same(found.score_pearson.coefficient, reference[f"{judge}/story_total/pearson"])
    assert same(found.score_spearman.coefficient, reference[f"{judge}/story_total/spearman"])
    assert same(found.score_kendall.coefficient, reference[f"{judge}/story_total/kendall_b"])
    assert same(14 * found.bias.mean_bias, reference[f"{judge}/story_total/mean_bias"])
    assert same(14 * found.score_rmse, reference[f"{judge}/story_total/rmse"])


@pytest.mark.parametrize("judge", JUDGES)
def test_failed_and_missing_verdicts_count_nowhere(strict, judge):
    """Left as they are, INVALID answers are failures, missing ones not asked, and figures use the rest."""
    found, reference = strict.per_judge[judge], references("ttcw")
    n_valid = reference[f"{judge}/n_valid"]["value"]
    assert found.pooled.n == n_valid
    assert found.coverage == pytest.approx(n_valid / 672)
    assert same(found.pooled.accuracy, reference[f"{judge}/accuracy_valid_only"])
    assert same(found.pooled.kappa, reference[f"{judge}/cohen_kappa_valid_only"])
    recorded = cells("ttcw")[judge]
    assert found.na_stats.failed == sum(value == "INVALID" for value in recorded.values())
    assert found.na_stats.not_asked == 672 - len(recorded)


def test_experts_agree_moderately():
    """Fleiss' kappa of the three experts over all cells and on each test."""
    rated: dict[tuple[str, str], list[str]] = {}
    for rater, given in cells("ttcw").items():
        if rater.startswith("expert"):
            for cell, value in given.items():
                rated.setdefault(cell, []).append(value)
    reference = references("ttcw")
    assert same(fleiss_kappa(list(rated.values())).value, reference["human/fleiss_kappa_all"])
    for test in sorted({test for _, test in rated}):
        kappa = fleiss_kappa([labels for (_, name), labels in rated.items() if name == test], ci=None)
        assert same(kappa.value, reference[f"human/fleiss_kappa/{test}"])


def test_bootstrap_brackets_the_macro_figures(metrics):
    """Intervals over resampled stories lie around accuracy, kappa and score error, of panel and judges."""
    for found in (metrics, *metrics.per_judge.values()):
        ends = found.bootstrap
        assert ends.accuracy_ci.lower < found.criterion_accuracy < ends.accuracy_ci.upper
        assert ends.kappa_ci.lower < found.mean_kappa < ends.kappa_ci.upper
        assert ends.rmse_ci.lower < found.score_rmse < ends.rmse_ci.upper
