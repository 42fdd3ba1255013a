"""The mean score of a run, corrected by the labelled items of another run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autorubric import Criterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import corrected_rate, corrected_score
from tests.metrics.asserting import brackets, number
from tests.metrics.reports import BINARY, labelled, report, run

WORD = {0: "UNMET", 1: "MET"}
FAULT = Criterion(name="fault", requirement="It has a fault.", weight=-0.5)


@dataclass
class Judged:
    """A run by hand that says how it was judged."""

    item_results: list[Any]
    dataset: RubricDataset
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"judges": {"j": {"model": "a"}}})


def judged_run(truth: Any, said: Any, criteria: list[BaseCriterion], *, labels: bool) -> Judged:
    """A run with these verdicts `(n, criteria)`, with labels or without."""
    reports = [
        [report(one, WORD[int(v)]) for one, v in zip(criteria, row, strict=True)] for row in said.astype(int)
    ]
    made = run(*reports)
    for one, row in zip(made.item_results, said, strict=True):
        score = float(np.clip(row @ [c.weight for c in criteria], 0, 1))
        one.report.node_scores[""] = score
    names = [one.name or "" for one in criteria]
    truths = [{n: WORD[int(v)] for n, v in zip(names, row, strict=True)} if labels else None for row in truth]
    return Judged(made.item_results, labelled(criteria, *truths))


def drawn(n: int, prevalence: float, rng: np.random.Generator, n_criteria: int = 1) -> tuple[Any, Any]:
    """Truth, and a judge with sensitivity .9 and specificity .85."""
    truth = (rng.random((n, n_criteria)) < prevalence).astype(int)
    right = rng.random(truth.shape) < np.where(truth == 1, 0.9, 0.85)
    return truth, np.where(right, truth, 1 - truth)


def test_errors_of_one_run_correct_the_other_by_hand() -> None:
    """Each criterion by Rogan and Gladen: p of the run, se and sp of the labelled run; then folded."""
    rng = np.random.default_rng(1)
    criteria: list[BaseCriterion] = [BINARY, FAULT]
    hidden, said = drawn(200, 0.3, rng, 2)
    truth, known = drawn(80, 0.6, rng, 2)
    tested = judged_run(hidden, said, criteria, labels=False)
    found = corrected_score(tested, calibration=judged_run(truth, known, criteria, labels=True))
    rates = [corrected_rate(said[:, c], truth[:, c], known[:, c], ci=None) for c in (0, 1)]
    values = [float(one.value) for one in found.per_criterion.values()]
    assert values == pytest.approx([float(rate) for rate in rates])
    assert found.score == pytest.approx(values[0] - values[1] / 2)
    assert found.raw == pytest.approx(said[:, 0].mean() - said[:, 1].mean() / 2)
    assert (found.n_items, found.n_labelled) == (200, 80)
    assert brackets(found.score)
    # Labels of the run itself do not count.
    with_labels = judged_run(hidden, said, criteria, labels=True)
    again = corrected_score(with_labels, calibration=judged_run(truth, known, criteria, labels=True))
    assert again.score.to_dict() == found.score.to_dict()


@pytest.mark.parametrize("on", ["criteria", "items"])
def test_ppi_takes_the_labelled_run_as_its_labels(on: Any) -> None:
    """lam=1: mean of the run's verdicts plus the mean of label minus verdict in the labelled run."""
    rng = np.random.default_rng(2)
    hidden, said = drawn(300, 0.6, rng)
    truth, known = drawn(90, 0.6, rng)
    tested = judged_run(hidden, said, [BINARY], labels=False)
    calibration = judged_run(truth, known, [BINARY], labels=True)
    found = corrected_score(tested, calibration=calibration, method="ppi++", on=on, lam=1.0)
    assert found.score == pytest.approx(said.mean() + (truth - known).mean())
    assert found.n_items == 300
    assert found.raw == pytest.approx(said.mean())


def test_the_error_of_both_runs_counts() -> None:
    """More items under test, or more labels, narrow the interval; neither does alone to nothing."""
    rng = np.random.default_rng(3)
    widths = {}
    for n, m in ((100, 60), (3000, 60), (100, 600)):
        tested = judged_run(*drawn(n, 0.5, rng), [BINARY], labels=False)
        found = corrected_score(tested, calibration=judged_run(*drawn(m, 0.5, rng), [BINARY], labels=True))
        widths[n, m] = number(found.score.high) - number(found.score.low)
    assert widths[3000, 60] < 0.9 * widths[100, 60]
    assert widths[100, 600] < 0.9 * widths[100, 60]
    assert min(widths.values()) > 0.05


@pytest.mark.slow
def test_the_interval_holds_the_true_mean_and_is_no_wider_than_that_takes() -> None:
    """Labelled at even prevalence, tested at others: at least .93 of 135 intervals, 2 errors to each side."""
    held, widths = [], []
    for prevalence in [at / 10 for at in range(1, 10)]:
        rng = np.random.default_rng(round(100 * prevalence))
        for _ in range(15):
            tested = judged_run(*drawn(80, prevalence, rng), [BINARY], labels=False)
            calibration = judged_run(*drawn(80, 0.5, rng), [BINARY], labels=True)
            found = corrected_score(tested, calibration=calibration, n_resamples=300).score
            low, high = number(found.low), number(found.high)
            held.append(low <= prevalence <= high)
            if low > 0 and high < 1:
                widths.append((high - low) / (2 * number(found.se)))
    assert np.mean(held) >= 0.93
    assert 1.8 < np.median(widths) < 2.2


@pytest.mark.parametrize(
    ("fingerprint", "message"),
    [
        ({"judges": {"j": {"model": "b"}}}, "judge 'j' differs \\(model: 'a' and 'b'\\)"),
        (
            {"judges": {"k": {"model": "a"}}},
            "judge 'j' occurs only in result; judge 'k' occurs only in calibration",
        ),
        ({"judges": {"j": {"model": "a"}}, "prompts": "other"}, "prompts differ"),
        ({"judges": {"j": {"model": "a"}}, "few_shot": {"n": 2}}, "few shot differs"),
    ],
)
def test_another_judge_or_prompt_is_refused_by_name(fingerprint: dict[str, Any], message: str) -> None:
    """What differs between the runs is in the message."""
    rng = np.random.default_rng(4)
    tested = judged_run(*drawn(30, 0.5, rng), [BINARY], labels=False)
    other = judged_run(*drawn(30, 0.5, rng), [BINARY], labels=True)
    other.fingerprint = fingerprint
    with pytest.raises(ArgumentError, match=message):
        corrected_score(tested, calibration=other)


def test_other_criteria_are_refused_by_name() -> None:
    """A criterion with another text or weight, or that one run alone has."""
    rng = np.random.default_rng(5)
    tested = judged_run(*drawn(30, 0.5, rng), [BINARY], labels=False)
    reworded = BINARY.model_copy(update={"requirement": "It is very clear."})
    heavier = BINARY.model_copy(update={"weight": 2.0})
    renamed = BINARY.model_copy(update={"name": "clarity"})
    for criterion, message in (
        (reworded, "criterion 'clear' differs"),
        (heavier, "criterion 'clear' differs"),
        (renamed, "criterion 'clear' occurs only in result; criterion 'clarity' occurs only in calibration"),
    ):
        with pytest.raises(ArgumentError, match=message):
            corrected_score(tested, calibration=judged_run(*drawn(30, 0.5, rng), [criterion], labels=True))
    with pytest.raises(ArgumentError, match=r"calibration must be an EvalResult.* got dict"):
        corrected_score(tested, calibration={})  # type: ignore[arg-type]


def test_stored_runs_of_one_judge_belong_together(tmp_path: Path) -> None:
    """Two runs of one judge correct each other; one of another judge is refused by its name."""

    def strict(request: JudgeRequest) -> str:
        return (request.submission.text or "").split()[0]

    def lenient(request: JudgeRequest) -> str:
        return "MET"

    def made(name: str, function: Any, *, labels: bool, guidelines: str | None = None) -> Any:
        rng = np.random.default_rng(len(name))
        truth, said = drawn(60, 0.5, rng)
        items = [
            DataItem(
                id=f"{name} {i}",
                submission=f"{WORD[int(said[i, 0])]} {i}",
                ground_truth={"clear": WORD[int(truth[i, 0])]} if labels else None,
            )
            for i in range(60)
        ]
        grader = CriterionGrader(judges=[FunctionJudge(function=function, judge_id="judge")])
        data = RubricDataset(name=name, rubric=Rubric([BINARY], guidelines=guidelines), items=items)
        return evaluate_sync(data, grader, experiments_dir=tmp_path, show_progress=False)

    tested = made("tested", strict, labels=False)
    found = corrected_score(tested, calibration=made("labelled run", strict, labels=True))
    assert (found.n_items, found.n_labelled, found.reason) == (60, 60, None)
    assert brackets(found.score)
    with pytest.raises(ArgumentError, match=r"judge 'judge' differs \(function"):
        corrected_score(tested, calibration=made("other", lenient, labels=True))
    with pytest.raises(ArgumentError, match="the rubrics have different guidelines"):
        corrected_score(tested, calibration=made("guided", strict, labels=True, guidelines="Be strict."))


@pytest.mark.parametrize("on", ["criteria", "items"])
def test_items_without_a_decision_are_counted(on: Any, tmp_path: Path) -> None:
    """What rests on unreadable replies is left out of both runs, and both counts are shown."""

    def judge(request: JudgeRequest) -> str:
        text = request.submission.text or ""
        return "?" if "unread" in text else "MET" if "good" in text else "UNMET"

    def graded(name: str, n: int, *, labels: bool) -> Any:
        words = ["good", "bad", "good unread", "good", "bad"] * (n // 5)
        items = [
            DataItem(id=f"{name}{at}", submission=word, ground_truth=["MET"] if labels else None)
            for at, word in enumerate(words)
        ]
        dataset = RubricDataset(name=name, rubric=Rubric([BINARY]), items=items)
        grader = CriterionGrader(judges=[judge])
        return evaluate_sync(
            dataset, grader, experiment_name=name, experiments_dir=tmp_path, show_progress=False
        )

    tested, calibration = graded("a", 60, labels=False), graded("b", 80, labels=True)
    found = corrected_score(tested, calibration=calibration, method="ppi++", on=on)
    assert (found.n_items, found.n_unjudged) == (48, 12)
    assert (found.n_labelled, found.n_labelled_unjudged) == (64, 16)
    assert "labelled items excluded because they have no decision" in found.summary()
    alone = corrected_score(calibration, method="ppi++", on=on)
    assert (alone.n_unjudged, alone.n_labelled_unjudged) == (16, 16)
