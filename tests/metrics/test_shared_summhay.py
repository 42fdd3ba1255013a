"""Six recorded judges on summaries with a rubric each: pooled by scale, matched by name."""

from __future__ import annotations

import pytest

from autorubric.judges import RecordedJudge
from autorubric.metrics import Ordinal, accuracy, cohen_kappa, kendall_tau_b, pearson, spearman
from autorubric.metrics._weights import Weights
from tests.conftest import SHARED_DATA
from tests.metrics.shared_runs import cells, references, run, same
from tests.proof.real_data import summhay

pytestmark = pytest.mark.shared_data

JUDGES = ["gpt-4o", "9fs-gpt-4o", "claude3-opus", "claude3-haiku", "gemini-1.5-pro", "gpt3.5"]
VALUES = {"not_covered": 0.0, "partially_covered": 0.5, "fully_covered": 1.0}
SCALE = Ordinal(list(VALUES), list(VALUES.values()))


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """Figures of the panel of six and of each."""
    path = SHARED_DATA / "summhay" / "labels.csv"
    dataset = summhay(SHARED_DATA / "summhay")
    result = run(dataset, RecordedJudge.panel_from_csv(path), tmp_path_factory.mktemp("summhay"))
    return result.compute_metrics(per_judge=True)


@pytest.mark.parametrize("judge", JUDGES)
def test_published_correlation_over_all_cells(metrics, judge):
    """Pearson over 1419 cells of 29 rubrics, with accuracy and kappas over the shared scale."""
    found, reference = metrics.per_judge[judge].pooled, references("summhay")
    assert found.n == 1419
    assert same(found.pearson, reference[f"{judge}/pearson"])
    assert same(found.accuracy, reference[f"{judge}/accuracy"])
    assert same(found.kappa, reference[f"{judge}/cohen_kappa_unweighted"])
    assert same(found.weighted_kappa, reference[f"{judge}/cohen_kappa_quadratic"])


@pytest.mark.parametrize("judge", JUDGES)
def test_summary_scores(metrics, judge):
    """Scores of the 200 summaries under their own rubrics."""
    found, reference = metrics.per_judge[judge], references("summhay")
    assert found.n_scores == 200
    assert same(found.score_pearson.coefficient, reference[f"{judge}/item_score/pearson"])
    assert same(found.score_spearman.coefficient, reference[f"{judge}/item_score/spearman"])
    assert same(found.score_rmse, reference[f"{judge}/item_score/rmse"])
    assert same(found.bias.mean_bias, reference[f"{judge}/item_score/mean_bias"])


@pytest.mark.parametrize("judge", JUDGES)
def test_label_columns(judge):
    """The functions on plain columns give the same figures, and linear kappa and rank correlations."""
    truth, judged = cells("summhay")["human"], cells("summhay")[judge]
    columns = [[given[cell] for cell in truth] for given in (truth, judged)]
    numbers = [[VALUES[label] for label in column] for column in columns]
    reference = references("summhay")
    kinds: list[tuple[Weights, str]] = [
        (None, "unweighted"),
        ("linear", "linear"),
        ("quadratic", "quadratic"),
    ]
    for weights, name in kinds:
        kappa = cohen_kappa(*columns, scale=SCALE, weights=weights, ci=None)
        assert same(kappa.value, reference[f"{judge}/cohen_kappa_{name}"])
    for function, name in ((pearson, "pearson"), (spearman, "spearman"), (kendall_tau_b, "kendall_b")):
        assert same(function(*numbers, ci=None).value, reference[f"{judge}/{name}"])
    assert same(accuracy(*columns).value, reference[f"{judge}/accuracy"])


def test_criteria_that_few_items_share_are_said_to_be_undefined(metrics):
    """On 195 insights of seven summaries each many kappas are undefined, and a warning counts them."""
    assert (metrics.n_items, metrics.n_criteria, metrics.n_ordinal_criteria) == (200, 195, 195)
    done, of = metrics.defined["mean_kappa"]
    assert 0 < done < of == 195
    assert any("weighted_kappa undefined (single_class)" in warning for warning in metrics.warnings)
    assert list(metrics.pooled_by_scale) == ["not_covered | partially_covered | fully_covered"]
