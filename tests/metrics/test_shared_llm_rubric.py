"""An ordinal rubric with NA answers: figures of the published baselines, NA left out or counted as asked."""

from __future__ import annotations

import csv

import pytest

from autorubric.judges import RecordedJudge
from autorubric.metrics import Ordinal, cohen_kappa, kendall_tau_b, pearson, rmse, spearman
from tests.conftest import SHARED_DATA
from tests.metrics.shared_runs import cells, references, run, same
from tests.proof.real_data import llm_rubric

pytestmark = pytest.mark.shared_data

QUESTIONS = [f"Q{number}" for number in range(9)]
ARGMAX = "gpt-3.5-turbo-16k:argmax"
SYSTEMS = {"random": "baseline:random", "sample_llm": "baseline:sample_llm", "argmax_llm": ARGMAX}


def _human(question: str) -> dict[str, float]:
    return {
        item: float(value)
        for rater, given in cells("llm_rubric").items()
        if rater.startswith("judge_")
        for (item, criterion), value in given.items()
        if criterion == question and value != "NA" and item.startswith("real:")
    }


def _expected(question: str) -> dict[str, float]:
    found = {}
    with (SHARED_DATA / "llm_rubric" / "llm_distributions.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["criterion"] == question:
                shares = [float(row[f"p{k}"] or 0) for k in (1, 2, 3, 4)]
                # The source divides by the sum only where that is below 1.
                found[row["item_id"]] = sum(k * p for k, p in enumerate(shares, 1)) / min(1.0, sum(shares))
    return found


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("system", [*SYSTEMS, "expected_llm"])
def test_error_and_correlation_of_each_system(system, question):
    """RMSE and three correlations on the real dialogues; None where a system always answers the same."""
    truth = _human(question)
    if system == "expected_llm":
        judged = _expected(question)
    else:
        given = cells("llm_rubric")[SYSTEMS[system]]
        judged = {item: float(value) for (item, name), value in given.items() if name == question}
    items = sorted(truth.keys() & judged.keys())
    columns = [[given[item] for item in items] for given in (truth, judged)]
    reference = references("llm_rubric")
    for name, function in (
        ("rmse", rmse),
        ("pearson", pearson),
        ("spearman", spearman),
        ("kendall_b", kendall_tau_b),
    ):
        assert same(function(*columns, ci=None).value, reference[f"real/{question}/{system}/{name}"]), name
    kappa = reference.get(f"real/{question}/{system}/cohen_kappa_quadratic")
    if kappa is not None:
        scale = Ordinal([1.0, 2.0, 3.0, 4.0])
        assert same(cohen_kappa(*columns, scale=scale, weights="quadratic", ci=None).value, kappa)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A run of the most probable answers over the real dialogues."""
    path = SHARED_DATA / "llm_rubric" / "labels.csv"
    every = llm_rubric(SHARED_DATA / "llm_rubric")
    real = every.subset(i for i in range(len(every)) if every.item_id(i).startswith("real:"))
    return run(real, [RecordedJudge.from_csv(path, ARGMAX)], tmp_path_factory.mktemp("llm_rubric"))


def test_na_answers_are_missing_by_default(result):
    """Dialogues without references have no truth on four questions, and the figures leave them out."""
    found = {one.name: one for one in result.compute_metrics().per_criterion}
    for question in QUESTIONS:
        reference = references("llm_rubric")[f"real/{question}/argmax_llm/rmse"]["value"]
        steps = len(found[question].per_option) - 1
        assert steps * found[question].rmse == pytest.approx(reference)
    assert found["Q4"].n_samples == 146
    assert found["Q4"].spearman.coefficient is None
    assert found["Q4"].spearman.reason == "no_variance"


def test_na_as_a_category_leaves_no_order(result):
    """As a category NA enters accuracy and kappa, and what needs an order is None with the reason."""
    found = {one.name: one for one in result.compute_metrics(na_mode="as_category").per_criterion}
    assert found["Q4"].n_samples > 146
    assert found["Q4"].weighted_kappa is None
    assert found["Q4"].reasons["weighted_kappa"] == "na_as_category"
    assert found["Q4"].kappa is not None


def test_na_as_the_worst_is_recorded(result):
    """Counted as the worst option, NA enters the order, and the result says so."""
    metrics = result.compute_metrics(na_mode="as_worst")
    found = {one.name: one for one in metrics.per_criterion}
    assert found["Q4"].n_samples > 146
    assert found["Q4"].weighted_kappa is not None
    assert "NA counts as worst" in metrics.warnings
    assert metrics.na_mode == "as_worst"
