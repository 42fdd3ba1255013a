"""Pass@k and pass^k: formulas, tasks and trials, outcomes of runs, intervals."""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from autorubric import Criterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import BaseCriterion, CriterionOption, Gate
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.metrics import PassRates, pass_at_k
from autorubric.scoring import Decision, EnsembleCriterionReport, EnsembleEvaluationReport
from tests.metrics.asserting import brackets, number
from tests.metrics.reports import FAILED, NOT_APPLICABLE, NOT_ASKED, ORDINAL, report

TASKS = st.dictionaries(
    st.text(max_size=3), st.lists(st.one_of(st.booleans(), st.none()), max_size=7), max_size=5
)


@given(TASKS, st.integers(1, 4))
def test_both_are_shares_of_the_subsets_of_k_trials(tasks: dict[str, list[bool | None]], k: int) -> None:
    """Counting all subsets of k judged trials gives the same as the formulas."""
    found = pass_at_k(tasks, k, ci=None)
    judged = [[one for one in trials if one is not None] for trials in tasks.values()]
    used = [trials for trials in judged if len(trials) >= k]
    for function, one in ((any, found.pass_at_k), (all, found.pass_hat_k)):
        shares = [np.mean([function(drawn) for drawn in combinations(trials, k)]) for trials in used]
        if used:
            assert one.value == pytest.approx(np.mean(shares))
        else:
            assert one.value is None
            assert one.reason == ("no_repeats" if any(judged) else "no_values")
        assert (one.n, one.n_missing) == (len(used), len(tasks) - len(used))
    assert found.n_trials == sum(map(len, used))
    assert found.n_passed == sum(map(sum, used))
    assert found.n_unjudged == sum(trials.count(None) for trials in tasks.values())


@given(
    st.dictionaries(st.integers(), st.lists(st.booleans(), min_size=4, max_size=9), min_size=1, max_size=6)
)
def test_more_trials_pass_more_often_and_fail_more_often(tasks: dict[int, list[bool]]) -> None:
    """Pass@k rises and pass^k falls with k, from the pass rate at k=1; swapped outcomes swap them."""
    swapped = {task: [not one for one in trials] for task, trials in tasks.items()}
    rates = [pass_at_k(tasks, k, ci=None) for k in (1, 2, 3, 4)]
    share = np.mean([np.mean(trials) for trials in tasks.values()])
    assert rates[0].pass_at_k.value == pytest.approx(rates[0].pass_hat_k.value) == pytest.approx(share)
    for less, more in pairwise(rates):
        assert number(less.pass_at_k.value) <= number(more.pass_at_k.value) + 1e-12
        assert number(less.pass_hat_k.value) >= number(more.pass_hat_k.value) - 1e-12
    for k, one in enumerate(rates, start=1):
        other = pass_at_k(swapped, k, ci=None)
        assert one.pass_at_k.value == pytest.approx(1 - number(other.pass_hat_k.value))


def test_values_by_hand() -> None:
    """Of 5 trials 2 passed: 1 - C(3, 2)/C(5, 2) = 7/10 and C(2, 2)/C(5, 2) = 1/10; of 4 all: 1 and 1."""
    found = pass_at_k({"a": [1, 1, 0, 0, 0], "b": [True] * 4, "c": [0]}, 2)
    assert found.pass_at_k.value == pytest.approx((0.7 + 1) / 2)
    assert found.pass_hat_k.value == pytest.approx((0.1 + 1) / 2)
    assert (found.k, found.pass_at_k.n, found.pass_at_k.n_missing) == (2, 2, 1)
    assert (found.n_trials, found.n_passed, found.n_unjudged) == (9, 6, 0)
    assert brackets(found.pass_at_k) and brackets(found.pass_hat_k)
    assert found.pass_at_k.method == "pass@2, mean over tasks; logit-t interval, 95%, 2 units"


def test_many_trials_do_not_overflow() -> None:
    """200 trials with 10 passed: the product form of Chen et al. agrees to 12 digits."""
    found = pass_at_k({"a": [1] * 10 + [0] * 190, "b": [0] * 200}, 100, ci=None)
    product = 1 - math.prod(1 - 100 / i for i in range(191, 201))
    assert found.pass_at_k.value == pytest.approx(product / 2, rel=1e-12)
    assert found.pass_hat_k.value == 0.0


@pytest.mark.parametrize(("outcome", "value", "low", "high"), [(1, 1.0, 0.3, 1.0), (0, 0.0, 0.0, 0.7)])
def test_equal_tasks_have_the_score_interval(outcome: int, value: float, low: float, high: float) -> None:
    """All trials passed, or none: one end of the interval is the value, the other is far from it."""
    found = pass_at_k({task: [outcome] * 3 for task in "abcdef"}, 3)
    for one in (found.pass_at_k, found.pass_hat_k):
        assert one.value == value
        assert one.low == pytest.approx(low, abs=0.35) and one.high == pytest.approx(high, abs=0.35)
        assert number(one.high) - number(one.low) > 0.3
        assert "score interval" in one.method
    resampled = pass_at_k({task: [outcome] * 3 for task in "abcdef"}, 3, ci="percentile").pass_at_k
    assert (resampled.low, resampled.high, resampled.reason) == (None, None, "no_variance")


def test_one_task_has_no_interval() -> None:
    """Tasks are the sampling units: many trials of one task say nothing about other tasks."""
    found = pass_at_k({"a": [1, 0] * 50}, 2).pass_at_k
    assert found.value is not None
    assert (found.low, found.high, found.reason) == (None, None, "too_few_units")


@pytest.mark.parametrize("ci", ["percentile", "bca", None])
def test_other_intervals(ci: Any) -> None:
    """Tasks are resampled on request; the same seed gives the same limits."""
    tasks = {task: [task % 3 == 0, task % 2 == 0, True] for task in range(12)}
    found = [pass_at_k(tasks, 2, ci=ci, n_resamples=200, rng=seed).pass_hat_k for seed in (1, 1, 2)]
    assert found[0].to_dict() == found[1].to_dict()
    if ci is None:
        assert found[0].low is None
    else:
        assert f"{ci} bootstrap" in found[0].method and brackets(found[0])
        assert (found[0].low, found[0].high) != (found[2].low, found[2].high)


def test_interval_covers_the_truth_with_few_tasks() -> None:
    """20 tasks of 5 trials, pass rates uniform: the true pass^3 is 1/4; 95% within .92 and 1 of 200 draws."""
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        rates = rng.random(20)
        trials = {task: (rng.random(5) < rate).tolist() for task, rate in enumerate(rates)}
        found = pass_at_k(trials, 3).pass_hat_k
        hits += number(found.low) <= 0.25 <= number(found.high)
    assert hits >= 184


def test_clusters_of_tasks() -> None:
    """Tasks of one repository are resampled together; clusters with equal means have the score interval."""
    tasks = {task: [task % 2, 1] for task in range(12)}
    alone = pass_at_k(tasks, 1).pass_at_k
    clustered = pass_at_k(tasks, 1, cluster=[task % 2 for task in tasks]).pass_at_k
    assert alone.value == clustered.value == pytest.approx(0.75)
    assert clustered.method == "pass@1, mean over tasks; logit-t interval, 95%, 2 clusters"
    assert number(clustered.se) > number(alone.se)
    equal = pass_at_k(tasks, 1, cluster=[task // 2 for task in tasks]).pass_at_k
    assert equal.method == "pass@1, mean over tasks; score interval, 95%, 6 clusters"
    one = pass_at_k(tasks, 1, cluster=["a"] * 12).pass_at_k
    assert (one.low, one.reason) == (None, "too_few_units")


def test_columns_of_a_table() -> None:
    """A column with one task id per trial, in any container, in any order of rows."""
    tasks: dict[str, list[bool | None]] = {"x": [True, False, None], "y": [False, False, True]}
    expected = pass_at_k(tasks, 2).to_dict()
    rows = [(task, one) for task, trials in tasks.items() for one in trials][::-1]
    frame = pd.DataFrame(rows, columns=["task", "passed"])
    for passed in (frame["passed"], frame["passed"].astype("Float64"), [one for _, one in rows]):
        found = pass_at_k(passed, 2, task=frame["task"])
        assert found.to_dict() == expected
    floats = np.array([np.nan if one is None else float(one) for _, one in rows])
    assert pass_at_k(floats, 2, task=[task for task, _ in rows]).to_dict() == expected


@pytest.mark.parametrize(
    ("trials", "options", "message"),
    [
        ({"a": [1, "yes"]}, {}, r"trials\['a'\]\[1\] must be True, False, 1, 0 or None; got 'yes'"),
        ({"a": [0.5]}, {}, r"trials\['a'\]\[0\] must be True, False, 1, 0 or None; got 0.5"),
        ({"a": [[1]]}, {}, r"trials\['a'\]\[0\] must be"),
        ({"a": "10"}, {}, r"trials\['a'\] must be a sequence"),
        ({"a": 3}, {}, r"trials\['a'\] must be a sequence"),
        ([1, 0], {}, "task is missing; pass one id per outcome"),
        ([1, 0], {"task": ["a"]}, "task has 1 ids for 2 units"),
        ([1, 0], {"task": ["a", None]}, "task has no id at position 1"),
        ({"a": [1]}, {"task": ["a"]}, "task can only be passed with a column of outcomes or with runs"),
        ({"a": [1]}, {"passes": 0.5}, "passes can only be passed with runs"),
        ({"a": [1], "b": [1]}, {"cluster": ["x"]}, "cluster has 1 ids for 2 units"),
        ({"a": [1]}, {"k": 0}, "k must be an integer of at least 1; got 0"),
        ({"a": [1]}, {"k": 1.5}, "k must be an integer of at least 1; got 1.5"),
        ({"a": [1]}, {"k": True}, "k must be an integer of at least 1; got True"),
        ({"a": [1]}, {"ci": "smoothed"}, "ci='smoothed' needs a finite number of categories"),
        ({"a": [1]}, {"ci": "no"}, "ci must be one of"),
        (None, {}, "trials must be a sequence"),
    ],
)
def test_invalid_trials(trials: Any, options: dict[str, Any], message: str) -> None:
    """Errors name the value, its place and what is allowed."""
    with pytest.raises(ArgumentError, match=message):
        pass_at_k(trials, **({"k": 1} | options))


DONE = Criterion(name="done", requirement="It is done.", weight=2.0)
RUDE = Criterion(name="rude", requirement="It is rude.", weight=-1.0)
SAFE = Criterion(
    name="safe",
    requirement="How safe?",
    options=[
        CriterionOption(label=label, value=value) for label, value in (("no", 0), ("so", 0.5), ("yes", 1))
    ],
    scale_type="ordinal",
    gate=Gate(at_least=0.5),
)
ABSTAINED = Decision(status="abstained")
ASSUMED = Decision(status="answered", answer=DONE.parse_truth("UNMET"), assumed=True)


def _run(reports: list[list[EnsembleCriterionReport] | None], **report_fields: Any) -> Any:
    """A run whose items are trials of one task, with reports made by hand."""
    rubric = Rubric([one.criterion for one in next(filter(None, reports))])
    items = [DataItem(submission="text", id=str(i), metadata={"task": "t"}) for i in range(len(reports))]
    fields: dict[str, Any] = {"score": 0.5, **report_fields}
    results = [
        SimpleNamespace(
            item_idx=i,
            item=items[i],
            report=None if one is None else EnsembleEvaluationReport(report=one, **fields),
        )
        for i, one in enumerate(reports)
    ]
    return SimpleNamespace(item_results=results, dataset=RubricDataset(rubric=rubric, items=items))


def _counts(found: PassRates) -> tuple[int, int, int]:
    return found.n_passed, found.n_trials - found.n_passed, found.n_unjudged


@pytest.mark.parametrize(
    ("answers", "criteria", "expected"),
    [
        ({DONE: "MET", RUDE: "UNMET"}, None, True),
        ({DONE: "MET", RUDE: "MET"}, None, False),
        ({DONE: "UNMET", RUDE: "UNMET"}, None, False),
        ({DONE: "MET", RUDE: "MET"}, "done", True),
        ({DONE: "MET", RUDE: "MET"}, ["done", "rude"], False),
        ({DONE: "MET", RUDE: "UNMET"}, ["rude"], True),
        ({SAFE: "so", DONE: "MET"}, None, True),
        ({SAFE: "no", DONE: "MET"}, None, False),
        ({SAFE: "yes", DONE: "UNMET"}, "gates", True),
        ({ORDINAL: "some", DONE: "MET"}, None, False),
        ({ORDINAL: "high", DONE: "MET"}, None, True),
        ({ORDINAL: "n/a", DONE: "MET"}, None, True),
        ({DONE: "MET", RUDE: NOT_APPLICABLE}, None, True),
        ({DONE: NOT_APPLICABLE, RUDE: NOT_APPLICABLE}, None, None),
        ({DONE: FAILED, RUDE: "UNMET"}, None, None),
        ({DONE: FAILED, RUDE: "MET"}, None, False),
        ({DONE: "UNMET", RUDE: FAILED}, None, False),
        ({DONE: ABSTAINED, RUDE: "UNMET"}, None, None),
        ({DONE: ABSTAINED, RUDE: "UNMET"}, "rude", True),
        ({DONE: NOT_ASKED, RUDE: "UNMET"}, None, None),
        ({DONE: ASSUMED, RUDE: "UNMET"}, None, None),
        ({DONE: ASSUMED}, "done", None),
    ],
)
def test_outcome_of_a_trial(answers: dict[BaseCriterion, Any], criteria: Any, expected: bool | None) -> None:
    """Lost and abstained criteria never fail a trial, unless another criterion fails it anyway."""
    run = _run([[report(criterion, answer) for criterion, answer in answers.items()]])
    counts = {True: (1, 0, 0), False: (0, 1, 0), None: (0, 0, 1)}
    assert _counts(pass_at_k(run, 1, task="task", passes=criteria)) == counts[expected]


def test_score_of_a_trial() -> None:
    """A trial passes at the minimum; a score that a lost criterion is missing from is no outcome."""
    whole = _run([[report(DONE, "MET")], [report(DONE, "UNMET")]])
    assert _counts(pass_at_k(whole, 1, task="task", passes=0.5)) == (2, 0, 0)
    assert _counts(pass_at_k(whole, 1, task="task", passes=0.51)) == (0, 2, 0)
    lost = _run([[report(DONE, "MET"), report(RUDE, FAILED)], [report(DONE, ASSUMED)], None])
    assert _counts(pass_at_k(lost, 1, task="task", passes=0.0)) == (0, 0, 3)
    unscored = _run([[report(DONE, ABSTAINED)]], score=None, cannot_assess_count=1)
    assert _counts(pass_at_k(unscored, 1, task="task", passes=0.0)) == (0, 0, 1)


def test_errors_about_runs() -> None:
    """Unknown criteria and keys are named with what is available."""
    run = _run([[report(DONE, "MET"), report(RUDE, "UNMET")]])
    with pytest.raises(ArgumentError, match="unknown criterion 'don'; available: done, rude"):
        pass_at_k(run, 1, task="task", passes="don")
    with pytest.raises(ArgumentError, match="unknown criterion 'gates'; available: done, rude"):
        pass_at_k(run, 1, task="task", passes="gates")
    with pytest.raises(ArgumentError, match="task='name': item '0' has no metadata key 'name'; keys: task"):
        pass_at_k(run, 1, task="name")
    with pytest.raises(ArgumentError, match="unknown criterion 'x'; available: done, rude"):
        pass_at_k(run, 1, task="task", passes=["done", "x"])


def _agent_run(folder: Path, name: str, **options: Any) -> Any:
    """A stored run over three tasks with four trials; trials of `b` pass twice, one of `c` is not judged."""

    def judge(request: JudgeRequest) -> JudgeReply:
        text = str(request.submission.text)
        if text == "broken":
            raise ValueError("no answer")
        return JudgeReply(answer="MET" if text == "good" else "UNMET")

    texts = {"a": ["good"] * 4, "b": ["good", "bad", "bad", "good"], "c": ["bad", "bad", "bad", "broken"]}
    items = [
        DataItem(submission=text, id=f"{task}{i}", metadata={"task": {"name": task}})
        for i in range(4)
        for task, texts_of in texts.items()
        for text in (texts_of[i],)
    ]
    dataset = RubricDataset(rubric=Rubric([DONE]), items=items)
    grader = CriterionGrader(judges=[judge])
    return evaluate_sync(dataset, grader, experiments_dir=folder, experiment_name=name, **options)


def test_items_of_a_run_are_grouped_by_task(tmp_path: Path) -> None:
    """A metadata key, whatever its JSON, or a function of an item names the task."""
    run = _agent_run(tmp_path, "agent")
    found = pass_at_k(run, 3, task="task")
    assert found.pass_at_k.value == pytest.approx((1 + 1 + 0) / 3)
    assert found.pass_hat_k.value == pytest.approx((1 + 0 + 0) / 3)
    assert (found.n_trials, found.n_passed, found.n_unjudged) == (11, 6, 1)
    assert pass_at_k(run, 3, task=lambda item: item.id[0]).to_dict() == found.to_dict()
    assert pass_at_k(run, 4, task="task").pass_at_k.n_missing == 1
    alone = pass_at_k(run, 2)
    assert (alone.pass_at_k.reason, alone.pass_at_k.n_missing) == ("no_repeats", 12)
    assert "trials without an outcome: 1;" in found.summary()
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_run_per_trial(tmp_path: Path) -> None:
    """Items of several runs with the same id are trials of one task."""
    runs = [_agent_run(tmp_path, name) for name in ("first", "second")]
    found = pass_at_k(runs, 2)
    assert (found.pass_at_k.n, found.pass_at_k.n_missing, found.n_unjudged) == (11, 1, 2)
    assert found.pass_at_k.value == found.pass_hat_k.value == pytest.approx(6 / 11)
    assert pass_at_k(runs, 5, task="task").n_trials == 8 + 8 + 6


def test_items_that_a_stopped_run_did_not_grade_have_no_outcome(tmp_path: Path) -> None:
    """A run that was stopped early has fewer results than items; these count as without an outcome."""
    run = _run([[report(DONE, "MET")]] * 3)
    run.item_results.pop()
    assert _counts(pass_at_k(run, 1, task="task")) == (2, 0, 1)
