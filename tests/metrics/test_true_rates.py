"""Sensitivity and specificity of a run: of each criterion, of all, pooled, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import recall_score
from statsmodels.stats.proportion import proportion_confint

from autorubric.criteria import Criterion
from autorubric.metrics import CriterionMetrics, compute_metrics, judge_report
from autorubric.metrics.summaries.macro_bootstrap import mean_share_ends
from tests.metrics.reports import ORDINAL, binary_run, labelled, report, run

FIRST = Criterion(name="first", requirement="a")
SECOND = Criterion(name="second", requirement="b")
LABELS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


def word(met: bool) -> str:
    """The label of a verdict."""
    return "MET" if met else "UNMET"


@given(LABELS)
def test_rates_are_recall_of_either_class(pairs):
    """Sensitivity is the recall of MET and specificity that of UNMET; intervals are Wilson's."""
    truth, judged = (np.array(column) for column in zip(*pairs, strict=True))
    found = binary_run([word(one) for one in truth], [word(one) for one in judged])
    one = found.per_criterion[0]
    assert isinstance(one, CriterionMetrics)
    for name, positive in (("sensitivity", True), ("specificity", False)):
        value, ends = getattr(one, name), getattr(one, f"{name}_ci")
        n = int((truth == positive).sum())
        if not n:
            assert value is None and ends is None
            assert one.reasons[name] == f"no_{'positive' if positive else 'negative'}_in_truth"
            assert getattr(found, f"criterion_{name}") is None
            assert getattr(found, f"criterion_{name}_ci") is None
            continue
        assert value == pytest.approx(recall_score(truth == positive, judged == positive))
        hits = int(((truth == positive) & (judged == positive)).sum())
        assert [ends.lower, ends.upper] == pytest.approx(proportion_confint(hits, n, method="wilson"))
        assert (ends.method, ends.confidence) == ("Wilson", 0.95)
        assert getattr(found, f"criterion_{name}") == getattr(found.pooled, name) == value
    assert one.sensitivity == one.recall


@pytest.fixture
def two():
    """Two criteria of different rates, and an ordinal one that has none."""
    rng = np.random.default_rng(5)
    truths, reports = [], []
    for _ in range(60):
        labels = {"first": word(rng.random() < 0.5), "second": word(rng.random() < 0.8), "depth": "low"}
        truths.append(labels)
        flip = {name: rng.random() < rate for name, rate in (("first", 0.1), ("second", 0.3))}
        said = {name: word((labels[name] == "MET") != flip[name]) for name in flip}
        answers = [(FIRST, said["first"]), (SECOND, said["second"]), (ORDINAL, "low")]
        reports.append([report(criterion, answer, {"a": answer}) for criterion, answer in answers])
    return run(*reports), labelled([FIRST, SECOND, ORDINAL], *truths)


def test_overall_rates_are_means_over_binary_criteria(two):
    """Each binary criterion counts alike, and the interval is that of `judge_report`."""
    found = compute_metrics(*two)
    rates = [one for one in found.per_criterion if isinstance(one, CriterionMetrics)]
    assert found.criterion_specificity == pytest.approx(np.mean([one.specificity for one in rates]))
    assert found.criterion_sensitivity == found.criterion_recall
    assert found.defined["criterion_specificity"] == (2, 2)
    macro = judge_report(*two).panel.macro
    assert macro.sensitivity is macro.recall
    for name in ("sensitivity", "specificity"):
        estimate, ends = getattr(macro, name), getattr(found, f"criterion_{name}_ci")
        assert float(estimate) == pytest.approx(getattr(found, f"criterion_{name}"))
        assert [ends.lower, ends.upper] == pytest.approx([estimate.low, estimate.high])
        assert ends.lower < float(estimate) < ends.upper
    assert found.pooled.specificity == pytest.approx(float(judge_report(*two).micro.specificity))


def test_the_interval_covers_the_mean_rate():
    """Over 400 samples of two criteria with rates .9 and .7 the 95 % interval holds .8 in 93 % or more."""
    rng = np.random.default_rng(11)
    held = 0
    n_runs, n_items = 400, 40
    item = np.tile(np.arange(n_items), 2)
    criterion = np.repeat([0, 1], n_items)
    for _ in range(n_runs):
        hit = (rng.random(2 * n_items) < np.where(criterion == 0, 0.9, 0.7)).astype(float)
        low, high, _ = mean_share_ends(item, criterion, hit, 0.95)
        held += low is not None and high is not None and low <= 0.8 <= high
    assert held / n_runs >= 0.93


def test_summaries_show_both_rates(two):
    """The summaries of metrics and of the judge report have them overall and for each criterion."""
    for text in (compute_metrics(*two).summary(), judge_report(*two).summary()):
        assert "sensitivity (recall, TPR)" in text and "specificity (TNR)" in text
        rows = text[text.index("Sensitivity and specificity, with MET as the positive class") :].splitlines()
        starts = {line.split()[0] for line in rows if line.strip()}
        assert {"first", "second"} <= starts


def test_frames_and_json_hold_both_rates(two):
    """`to_dict` and `to_dataframe` name them, with the intervals in JSON."""
    found = compute_metrics(*two)
    told = found.to_dict()
    assert told["criterion_specificity_ci"]["method"] == "logit-t over items"
    assert told["per_criterion"][0]["specificity_ci"]["lower"] < told["per_criterion"][0]["specificity"]
    frame = found.to_dataframe()
    assert list(frame["criterion"]) == ["macro", "first", "second", "depth"]
    assert frame["specificity"].notna().tolist() == [True, True, True, False]
