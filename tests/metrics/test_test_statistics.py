"""Statistics of tests as numbers: t, F, chi-squared and z with their degrees of freedom and p."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as formulas
from scipy import stats
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.contingency_tables import mcnemar

from autorubric.metrics import (
    OrdinalCriterionMetrics,
    alt_test,
    bias,
    compare_judges,
    compute_metrics,
    cronbach_alpha,
    icc,
    kendall_w,
)
from tests.metrics.reports import ORDINAL, labelled, report, run

RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=(12, 1)) + RNG.normal(size=(12, 4))


def _one_better() -> tuple[list[int], list[int], list[int]]:
    """Twenty items of which a has all right and b three."""
    truth = [0, 1] * 10
    return truth, truth, [*truth[:3], *[1 - one for one in truth[3:]]]


@pytest.mark.parametrize("method", ["mcnemar", "mcnemar-asymptotic"])
def test_mcnemar_counts_belong_to_the_judge_they_name(method):
    """The judge with more right answers has them in either order, in numbers and in words."""
    truth, good, bad = _one_better()
    first, second = (compare_judges(truth, *pair, method=method) for pair in ((good, bad), (bad, good)))
    assert (first.n_only_a, first.n_only_b) == (17, 0)
    assert (second.n_only_a, second.n_only_b) == (0, 17)
    assert "17 items that only a got right, 0 that only b got right" in first.test
    assert "0 items that only a got right, 17 that only b got right" in second.test
    assert first.p_value == second.p_value


def test_williams_t_has_the_sign_of_the_difference():
    """Exchanging the judges changes the sign of t and nothing else."""
    truth = RNG.normal(size=40)
    near, far = truth + RNG.normal(size=40) * 0.3, truth + RNG.normal(size=40) * 2
    better, worse = (
        compare_judges(truth, *pair, method="williams").statistic for pair in ((near, far), (far, near))
    )
    assert better is not None and worse is not None
    assert better.value > 0 > worse.value
    assert better.value == pytest.approx(-worse.value)
    assert (better.name, better.df) == ("t", 37)
    assert better.p_value == pytest.approx(worse.p_value)


def test_asymptotic_mcnemar_is_that_of_statsmodels():
    """Chi-squared and p without continuity correction, with one degree of freedom, as JSON too."""
    truth = RNG.integers(0, 2, 200)
    a, b = (np.where(RNG.random(200) < right, truth, 1 - truth) for right in (0.8, 0.7))
    found = compare_judges(truth, a, b, method="mcnemar-asymptotic")
    table = np.array(pd.crosstab(a == truth, b == truth))
    known = mcnemar(table, exact=False, correction=False)
    assert found.statistic is not None
    assert found.statistic.value == pytest.approx(known.statistic)
    assert found.statistic.df == 1
    assert found.statistic.p_value == pytest.approx(known.pvalue)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["statistic"]["name"] == "chi-squared"
    assert compare_judges(truth, a, b).statistic is None


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)"])
def test_icc_has_the_f_test_of_the_analysis_of_variance(form):
    """F, both degrees of freedom and p equal those of statsmodels' table."""
    rows = pd.DataFrame(
        [(unit, rater, SCORES[unit, rater]) for unit in range(12) for rater in range(4)],
        columns=["unit", "rater", "score"],
    )
    model = "score ~ C(unit)" if form.startswith("ICC(1") else "score ~ C(unit) + C(rater)"
    known = anova_lm(formulas.ols(model, rows).fit())
    found = icc(SCORES, form=form).test
    assert found is not None
    assert found.value == pytest.approx(known.loc["C(unit)", "F"])
    assert (found.df, found.df_denominator) == (11, known.loc["Residual", "df"])
    assert found.p_value == pytest.approx(known.loc["C(unit)", "PR(>F)"])


def test_icc_of_shrout_and_fleiss_by_hand():
    """Their table 2: BMS 11.24 over EMS 1.02 with 5 and 15 degrees of freedom; alpha has the same test."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = icc(ratings).test
    assert found is not None
    assert found.value == pytest.approx(11.0272, abs=1e-4)
    assert (found.name, found.df, found.df_denominator) == ("F", 5, 15)
    assert cronbach_alpha(ratings).test == found


def test_kendall_w_has_friedmans_test():
    """Chi-squared of ranks with ties equals scipy's, and is absent where items are clustered."""
    ratings = RNG.integers(1, 5, size=(15, 4))
    found = kendall_w(ratings).test
    assert found is not None
    known = stats.friedmanchisquare(*(ratings[unit] for unit in range(15)))
    assert found.value == pytest.approx(known.statistic)
    assert found.df == 14
    assert found.p_value == pytest.approx(known.pvalue)
    assert kendall_w(ratings, cluster=np.arange(15) // 3).test is None


def test_a_figure_without_a_test_serialises_without_one():
    """JSON of an estimate has `test` where there is one only; perfect agreement has no finite F."""
    assert json.loads(json.dumps(icc(SCORES).to_dict()))["test"]["df"] == 11
    assert "test" not in icc([[1, 1], [2, 2], [3, 3]]).to_dict()


def test_paired_t_is_that_of_scipy():
    """t, degrees of freedom and p of the mean difference, two-sided and one-sided."""
    truth, pred = RNG.normal(size=30), RNG.normal(0.3, size=30)
    for alternative in ("two-sided", "greater"):
        found = bias(truth, pred, alternative=alternative)
        known = stats.ttest_rel(pred, truth, alternative=alternative)
        assert found.t_test is not None
        assert found.t_test.df == 29
        assert found.t_test.value == pytest.approx(known.statistic)
        assert found.t_test.p_value == found.p_value == pytest.approx(known.pvalue)


def test_alt_test_reports_t_for_each_annotator():
    """The one-sided t of each annotator gives its p."""
    humans = RNG.integers(0, 2, size=(60, 3))
    found = alt_test(RNG.integers(0, 2, 60), humans)
    for one in found.per_annotator.values():
        assert one.t_test is not None and one.p_value is not None
        assert one.t_test.p_value == one.p_value == pytest.approx(stats.t.cdf(one.t_test.value, 59))


def test_correlations_of_a_run_report_their_statistic():
    """Spearman's t and Kendall's z of a criterion belong to their p-values."""
    pairs = [("low", "low"), ("some", "high"), ("high", "high"), ("low", "some"), ("some", "some")] * 3
    dataset = labelled([ORDINAL], *({"depth": truth} for truth, _ in pairs))
    found = compute_metrics(run(*([report(ORDINAL, said)] for _, said in pairs)), dataset).per_criterion[0]
    assert isinstance(found, OrdinalCriterionMetrics)
    rho, tau = found.spearman.test, found.kendall.test
    assert rho is not None and tau is not None
    assert (rho.name, rho.df, rho.p_value) == ("t", 13, found.spearman.p_value)
    assert rho.value == pytest.approx(stats.t.isf(rho.p_value / 2, 13))
    assert (tau.name, tau.df, tau.p_value) == ("z", None, found.kendall.p_value)
    assert tau.value == pytest.approx(stats.norm.isf(tau.p_value / 2))
