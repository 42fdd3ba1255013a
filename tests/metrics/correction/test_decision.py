"""Whether a score passes a threshold, as far as its votes can tell."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autorubric import Criterion, Rubric
from autorubric.criteria import BaseCriterion
from autorubric.datasets import DataItem, RubricDataset
from autorubric.errors import ArgumentError
from autorubric.grading import CriterionGrader
from autorubric.judges import FunctionJudge, JudgeRequest, JudgeSpec
from autorubric.metrics import decision
from autorubric.metrics.correction.judge_error import LabelledScores
from autorubric.runs import evaluate_sync
from autorubric.scoring import CannotAssessConfig, CannotAssessStrategy, EnsembleEvaluationReport, RubricGroup
from tests.metrics.asserting import number
from tests.metrics.reports import ORDINAL, binary_run, labelled, report, run

A = Criterion(name="a", requirement="A holds.", weight=3.0)
B = Criterion(name="b", requirement="B holds.", weight=1.0)
FAULT = Criterion(name="fault", requirement="It has a fault.", weight=-2.0)


def judge(name: str, **answers: Any) -> FunctionJudge:
    """A judge with fixed answers by criterion; a list has one for each sample in turn."""
    turns = {key: itertools.cycle(said) for key, said in answers.items() if isinstance(said, list)}

    def function(request: JudgeRequest) -> Any:
        which = request.criterion.name or ""
        return next(turns[which]) if which in turns else answers[which]

    return FunctionJudge(function=function, judge_id=name)


def graded(
    criteria: list[BaseCriterion | RubricGroup], *judges: Any, **settings: Any
) -> EnsembleEvaluationReport:
    """The report of a panel of these judges."""
    return Rubric(criteria).grade_sync("a text", CriterionGrader(judges=list(judges), **settings))


def test_one_vote_shows_no_spread() -> None:
    """A judge asked once, 3 of 4 points: how sure they are nobody knows, on either side of the threshold."""
    report = graded([A, B], judge("one", a="MET", b="UNMET"))
    found = decision(report, threshold=0.7)
    assert (found.verdict, found.low, found.high, found.reason) == ("UNDECIDED", None, None, "no_spread")
    assert (float(found.score), found.score.reason, found.sources) == (0.75, "no_spread", ())
    assert (found.hard_low, found.hard_high, found.n_open) == (0.75, 0.75, 0)
    assert decision(report, threshold=0.8).verdict == "UNDECIDED"
    assert "pass judge_error" in found.summary().splitlines()[1]


def test_abstentions_span_the_hard_bounds() -> None:
    """b left open: the score is 3/3 without it, 3/4 if it came out unmet and 4/4 if met."""
    report = graded([A, B], judge("one", a="MET", b="CANNOT_ASSESS"))
    found = decision(report, threshold=0.9)
    assert (float(found.score), found.hard_low, found.hard_high, found.n_open) == (1.0, 0.75, 1.0, 1)
    assert found.verdict == "UNDECIDED"


@pytest.mark.parametrize(("threshold", "verdict"), [(0.9, "UNDECIDED"), (0.75, "PASS")])
def test_hard_bounds_hold_a_verdict_back(threshold: float, verdict: str) -> None:
    """Three judges agree, b left open: the interval is 1 to 1, and at worst the score is 3/4."""
    panel = [judge(name, a="MET", b="CANNOT_ASSESS") for name in "xyz"]
    found = decision(graded([A, B], *panel), threshold=threshold)
    assert (found.low, found.high, found.hard_low, found.hard_high) == (1.0, 1.0, 0.75, 1.0)
    assert found.verdict == verdict
    assert ("could still move" in found.summary()) == (verdict == "UNDECIDED")


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_the_score(seed: int) -> None:
    """Twenty criteria, each met by 3 of 5 samples: redrawn they fall short of 1."""
    criteria: list[Any] = [Criterion(name=f"c{i}", requirement="It holds.", weight=1.0) for i in range(20)]
    said = ["MET", "UNMET", "MET", "UNMET", "MET"]
    one = JudgeSpec(judge("one", **{f"c{i}": list(said) for i in range(20)}), judge_id="one", samples=5)
    report = graded(criteria, one)
    found = decision(report, threshold=0.9, rng=seed, n_resamples=200)
    assert number(found.low) <= number(found.score.value) <= number(found.high)
    assert found.score == found.high == 1.0
    assert (found.low, found.high) == (found.score.low, found.score.high)


def test_scores_are_compared_within_rounding() -> None:
    """0.7 + 0.1 in floats is 0.7999999999999999, which reaches 0.8; 0.79 does not."""
    weights = {"a": 0.7, "b": 0.1, "c": 0.2}
    criteria: list[Any] = [Criterion(name=n, requirement="It holds.", weight=w) for n, w in weights.items()]
    report = graded(criteria, *[judge(name, a="MET", b="MET", c="UNMET") for name in "xyz"])
    found = decision(report, threshold=0.8)
    assert (number(found.score.value) < 0.8, found.verdict) == (True, "PASS")
    assert decision(report, threshold=0.81).verdict == "FAIL"


def test_penalties_left_open_count_the_other_way() -> None:
    """An open penalty of -2 beside 4 points: (4 - 2)/4 at worst, 4/4 at best."""
    found = decision(
        graded([A, B, FAULT], judge("one", a="MET", b="MET", fault="CANNOT_ASSESS")), threshold=0.4
    )
    assert (found.hard_low, found.hard_high) == (0.5, 1.0)


def test_failures_are_open() -> None:
    """A judge that raises leaves the criterion open."""

    def fails(request: JudgeRequest) -> str:
        if request.criterion.name == "b":
            raise RuntimeError("down")
        return "MET"

    found = decision(graded([A, B], FunctionJudge(function=fails, judge_id="j")), threshold=0.9)
    assert (found.hard_low, found.hard_high, found.n_open) == (0.75, 1.0, 1)
    assert found.verdict == "UNDECIDED"


def test_all_open_can_go_either_way() -> None:
    """Nothing judged: no score, and the bounds are 0 and 1."""
    found = decision(graded([A, B], judge("one", a="CANNOT_ASSESS", b="CANNOT_ASSESS")), threshold=0.5)
    assert (found.verdict, found.score.value, found.hard_low, found.hard_high) == (
        "UNDECIDED",
        None,
        0.0,
        1.0,
    )
    json.dumps(found.to_dict(), allow_nan=False)


def test_panel_spread_by_hand() -> None:
    """Two of three judges say met of a, all say met of b: redrawn, a stays met with probability 20/27.

    P(at least two of three drawn with replacement are of the two) = (2/3)³ + 3(2/3)²(1/3) = 8/27 + 12/27.
    The score is 1 then and 1/4 else, so the standard error is 0.75·√(20/27·7/27) = 0.3287.
    """
    panel = [judge("x", a="MET", b="MET"), judge("y", a="MET", b="MET"), judge("z", a="UNMET", b="MET")]
    found = decision(graded([A, B], *panel), threshold=0.5, n_resamples=4000, rng=1)
    assert found.sources == ("judges",)
    assert (float(found.score), found.low, found.high) == (1.0, 0.25, 1.0)
    assert found.score.se == pytest.approx(0.75 * np.sqrt(20 / 27 * 7 / 27), rel=0.03)
    assert found.verdict == "UNDECIDED"


def test_a_judge_is_drawn_for_all_criteria_at_once() -> None:
    """Three judges that are lenient or strict throughout stay so: a and b are never apart in a draw."""
    panel = [judge("x", a="MET", b="MET"), judge("y", a="MET", b="MET"), judge("z", a="UNMET", b="UNMET")]
    found = decision(graded([A, B], *panel), threshold=0.5, n_resamples=4000)
    assert found.score.se == pytest.approx(np.sqrt(20 / 27 * 7 / 27), rel=0.03)


def test_samples_of_one_judge_spread() -> None:
    """Five samples, three met: redrawn, the majority is met with P(Bin(5, .6) >= 3) = 0.68256."""
    said = ["MET", "UNMET", "MET", "UNMET", "MET"]
    one = JudgeSpec(judge("one", a=said, b="MET"), judge_id="one", samples=5)
    found = decision(graded([A, B], one), threshold=0.5, n_resamples=4000)
    assert found.sources == ("samples",)
    assert found.score.se == pytest.approx(0.75 * np.sqrt(0.68256 * 0.31744), rel=0.03)


def test_unanimous_panels_decide() -> None:
    """Judges and samples that all agree have an interval of no width."""
    panel = [judge(name, a="MET", b="UNMET") for name in "xyz"]
    found = decision(graded([A, B], *panel), threshold=0.75)
    assert (found.verdict, found.low, found.high) == ("PASS", 0.75, 0.75)


def test_same_seed_same_interval() -> None:
    """The seed fixes the draws."""
    report = graded([A, B], judge("x", a="MET", b="MET"), judge("y", a="UNMET", b="MET"))
    assert decision(report, threshold=0.5, rng=7) == decision(report, threshold=0.5, rng=7)


def test_other_policies_must_be_given() -> None:
    """A grader that counts CANNOT_ASSESS as 0 scores 3/4; scored by the default the votes come to 1."""
    policy = CannotAssessConfig(strategy=CannotAssessStrategy.ZERO)
    report = graded([A, B], judge("one", a="MET", b="CANNOT_ASSESS"), cannot_assess_config=policy)
    with pytest.raises(ArgumentError, match=r"0\.75 but its votes yield 1\.0"):
        decision(report, threshold=0.5)
    found = decision(report, threshold=0.5, cannot_assess=policy)
    assert (float(found.score), found.hard_low, found.hard_high) == (0.75, 0.75, 1.0)


def test_groups_take_their_rubric() -> None:
    """Groups stand in the rubric only; with it, scores are those of the tree."""
    criteria: list[BaseCriterion | RubricGroup] = [
        RubricGroup("part", [A, B], weight=1.0),
        FAULT.model_copy(update={"weight": 1.0}),
    ]
    one = judge("one", a="MET", b="UNMET", fault="CANNOT_ASSESS")
    report = graded(criteria, one)
    with pytest.raises(ArgumentError, match=r"groups \['part'\]"):
        decision(report, threshold=0.5)
    found = decision(report, threshold=0.5, rubric=Rubric(criteria))
    assert found.score == 0.75
    assert (found.hard_low, found.hard_high) == (0.375, 0.875)


def test_conditions_hold_in_the_bounds() -> None:
    """b applies where a is met; with a open, b counts only in the case in which a is met."""
    dependent = Criterion(name="b", requirement="B holds.", weight=1.0, when="a")
    found = decision(graded([A, dependent], judge("one", a="CANNOT_ASSESS", b="UNMET")), threshold=0.5)
    # a unmet: 0/3; a met and b unmet: 3/4.
    assert (found.hard_low, found.hard_high) == (0.0, 0.75)


def test_result_serialises() -> None:
    """All fields go into JSON."""
    found = decision(graded([A, B], *[judge(name, a="MET", b="MET") for name in "xy"]), threshold=0.5)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 1.0}, "confidence_level must be.* got 1.0"),
        ({"n_resamples": 0}, "n_resamples must be.* got 0"),
        (
            {"judge_error": {"a": [[1, 0], [0, 1]]}},
            "judge_error must be a labelled run of the same judges.* got dict",
        ),
        ({"judge_error": 0.1}, "judge_error must be a labelled run.* got float"),
        ({"confidence_level": "0.9"}, "confidence_level must be.* got '0.9'"),
        ({"rng": "x"}, "rng must be.* got 'x'"),
        ({"rubric": "r.yaml"}, "rubric must be an instance of Rubric; got 'r.yaml'"),
        ({"threshold": "0.5"}, "threshold must be a finite number.* got '0.5'"),
        ({"threshold": float("nan")}, "threshold must be.* got nan"),
        ({"threshold": True}, "threshold must be.* got True"),
    ],
)
def test_faulty_options_are_refused(options: dict[str, Any], message: str) -> None:
    """What is given and what is allowed stand in the message."""
    with pytest.raises(ArgumentError, match=message):
        decision(graded([A, B], judge("one", a="MET", b="MET")), **{"threshold": 0.5} | options)


@pytest.mark.parametrize("given", [None, binary_run(["MET"], ["MET"]), {"score": 1.0}])
def test_only_the_report_of_an_item_is_decided(given: Any) -> None:
    """Anything else is named, with what to give."""
    with pytest.raises(
        ArgumentError, match=f"report must be the report of one item.* got {type(given).__name__}"
    ):
        decision(given, threshold=0.5)


def test_middle_values_of_conditions_stand_in_the_bounds() -> None:
    """b applies from depth 'some' (0.4) on and is unmet, c is met: what is worst lies between the ends.

    With weights 1, 4 and 1 the score is 1/2 at low, (0.4 + 1)/6 at some, (1 + 1)/6 at high.
    """
    when: Any = {"criterion": "depth", "at_least": 0.4}
    other = Criterion(name="b", requirement="B holds.", weight=4.0, when=when)
    sure = Criterion(name="c", requirement="C holds.", weight=1.0)
    report = graded([ORDINAL, other, sure], judge("one", depth="CANNOT_ASSESS", b="UNMET", c="MET"))
    found = decision(report, threshold=0.5)
    assert number(found.hard_low) == pytest.approx(1.4 / 6)
    assert found.hard_high == 0.5


def test_an_empty_report_is_refused() -> None:
    """A report without criteria says nothing."""
    with pytest.raises(ArgumentError, match="no criteria"):
        decision(EnsembleEvaluationReport(score=1.0), threshold=0.5)


WORD = {0: "UNMET", 1: "MET"}
NAMES = [f"c{i}" for i in range(8)]


class Results(list[Any]):
    """Results of a run that are read once, as those of a run folder."""


def simulated_run(
    n: int, n_labelled: int, seed: int, *, shape: float | None = 0.7, n_judges: int = 1
) -> tuple[Any, Any]:
    """A run on items that meet their criteria with a probability of their own, Beta(shape, shape), or all .6.

    Judges err on the same cells more often than independent ones would. With the true scores `(n,)`.
    """
    rng = np.random.default_rng(seed)
    meets = np.full(n, 0.6) if shape is None else rng.beta(shape, shape, n)
    truth = (rng.random((n, len(NAMES))) < meets[:, None]).astype(int)
    hard = rng.random(truth.shape) < 0.15
    wrong = np.where(hard[..., None], rng.random((*truth.shape, n_judges)) < 0.75, False)
    wrong |= rng.random(wrong.shape) < 0.05
    said = np.where(wrong, 1 - truth[..., None], truth[..., None])
    panel = (2 * said.sum(-1) > n_judges).astype(int)
    criteria: list[BaseCriterion] = [
        Criterion(name=name, requirement="It holds.", weight=1.0) for name in NAMES
    ]
    reports = []
    for item in range(n):
        answers = [{f"j{j}": WORD[int(said[item, c, j])] for j in range(n_judges)} for c in range(len(NAMES))]
        reports.append([report(one, WORD[int(panel[item, c])], answers[c]) for c, one in enumerate(criteria)])
    graded_run = run(*reports)
    for item, one in enumerate(graded_run.item_results):
        score = float(panel[item].mean())
        one.report = replace(one.report, score=score, node_scores={"": score})
    labels = [
        {name: WORD[int(truth[item, c])] for c, name in enumerate(NAMES)} if item < n_labelled else None
        for item in range(n)
    ]
    graded_run.dataset = labelled(criteria, *labels)
    graded_run.item_results = Results(graded_run.item_results)
    return graded_run, truth.mean(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("n_judges", [1, 3])
@pytest.mark.parametrize("shape", [0.7, 2.0, None])
def test_the_interval_holds_true_scores(shape: float | None, n_judges: int) -> None:
    """At 95 % at least .93 of the true scores of new items lie in their intervals, items differing or not."""
    held = []
    for seed in range(8):
        made, truth = simulated_run(90, 60, seed, shape=shape, n_judges=n_judges)
        for item in range(60, 90):
            found = decision(made.item_results[item].report, threshold=0.7, judge_error=made)
            held.append(number(found.low) - 1e-9 <= truth[item] <= number(found.high) + 1e-9)
    assert np.mean(held) >= 0.93


def test_labelled_items_correct_the_score() -> None:
    """A judge that says met throughout: the score is the mean of the labels, its interval their spread."""
    criteria: list[BaseCriterion] = [Criterion(name="clear", requirement="It is clear.", weight=1.0)]
    made = run(*([report(criteria[0], "MET")] for _ in range(61)))
    for one in made.item_results:
        one.report = replace(one.report, score=1.0, node_scores={"": 1.0})
    dataset = labelled(criteria, *({"clear": "MET" if i % 3 else "UNMET"} for i in range(60)), None)
    found = decision(made.item_results[60].report, threshold=0.5, judge_error=made, dataset=dataset)
    assert found.score == pytest.approx(2 / 3)
    assert (found.raw.value, found.low, found.high, found.verdict) == (1.0, 0.0, 1.0, "UNDECIDED")
    assert (found.sources, found.score.n) == (("judge_error",), 60)
    assert "60 labelled items; full conformal, 95%" in found.score.method


def test_a_judge_without_errors_decides() -> None:
    """Judged and true scores are equal on all labelled items: the interval is the score."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, 40) / 8
    found = LabelledScores(scores, scores).interval(0.625, 0.95)
    assert (number(found.low), number(found.high)) == pytest.approx((0.625, 0.625))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_is_what_trying_every_score_gives(seed: int, level: float) -> None:
    """Each true score on a fine grid is added as an item, the line fitted again, and its residual ranked."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 11, 40) / 10
    judged = np.clip(true + rng.normal(0, 0.15, 40).round(1), 0, 1)
    new = float(rng.integers(0, 11) / 10)
    kept = []
    for y in np.linspace(0, 1, 401):
        x, z = np.append(judged, new), np.append(true, y)
        residuals = np.abs(z - np.polyval(np.polyfit(x, z, 1), x))
        if np.mean(residuals >= residuals[-1] - 1e-9) > 1 - level:
            kept.append(y)
    found = LabelledScores(judged, true).interval(new, level)
    ends = (number(found.low), number(found.high))
    assert ends == pytest.approx((min(kept), max(kept)), abs=1 / 400)


def test_few_labelled_items_decide_nothing() -> None:
    """Below 19 labelled items nothing can be said at 95 %; at 80 % four do."""
    made, _ = simulated_run(30, 18, seed=1)
    one = made.item_results[29].report
    found = decision(one, threshold=0.5, judge_error=made)
    assert (found.verdict, found.reason, found.low, found.hard_low, found.hard_high) == (
        "UNDECIDED",
        "too_few_labels",
        None,
        0.0,
        1.0,
    )
    assert "18 labelled items are too few for an interval at 95%" in found.summary()
    assert decision(one, threshold=0.5, judge_error=made, confidence_level=0.8).low is not None
    enough, _ = simulated_run(30, 19, seed=1)
    assert decision(enough.item_results[29].report, threshold=0.5, judge_error=enough).low is not None


def test_a_run_folder_is_read_once(tmp_path: Path) -> None:
    """Decisions on all items of a stored run are those of its reports in memory; the folder is read once."""
    rubric = Rubric([A, B])
    items = [
        DataItem(id=str(i), submission=str(i), ground_truth={"a": WORD[i % 2], "b": WORD[i % 3 > 0]})
        for i in range(30)
    ]
    data = RubricDataset(name="stored", rubric=rubric, items=items)
    made = evaluate_sync(
        data, CriterionGrader(judges=[judge("one", a="MET", b="MET")]), experiments_dir=tmp_path,
        show_progress=False,
    )  # fmt: skip
    one = made.item_results[0].report
    assert one is not None
    first = decision(one, threshold=0.5, judge_error=made)
    assert first.score.n == 30
    # (3 · mean of a + mean of b) / 4
    assert first.score == pytest.approx((3 * 0.5 + 2 / 3) / 4)
    shutil.rmtree(tmp_path)
    assert decision(one, threshold=0.5, judge_error=made) == first


def test_open_criteria_span_the_bounds_of_calibrated_scores() -> None:
    """c0 left open: the hard bounds are the ends of the intervals with c0 unmet and met."""
    made, _ = simulated_run(60, 50, seed=3)
    one = made.item_results[55].report
    criteria = [each.criterion for each in one.report]
    ends = {}
    for label in ("MET", "UNMET", "CANNOT_ASSESS"):
        judged = dict.fromkeys(NAMES, "MET") | {"c0": label}
        given = graded(criteria, judge("j0", **judged))
        ends[label] = decision(given, threshold=0.5, judge_error=made)
    assert ends["CANNOT_ASSESS"].n_open == 1
    assert ends["CANNOT_ASSESS"].hard_low == ends["UNMET"].low
    assert ends["CANNOT_ASSESS"].hard_high == ends["MET"].high


def test_a_length_penalty_comes_off_the_calibrated_score() -> None:
    """Errors are those of the score without the penalty; it is taken off afterwards."""
    made, _ = simulated_run(60, 50, seed=4)
    one = made.item_results[55].report
    plain = decision(one, threshold=0.5, judge_error=made)
    shorter = replace(one, score=max(0.0, number(one.score) - 0.1), length_penalty=0.1)
    found = decision(shorter, threshold=0.5, judge_error=made)
    assert found.high == pytest.approx(number(plain.high) - 0.1)
    assert found.low == pytest.approx(max(0.0, number(plain.low) - 0.1))


def test_other_judges_and_criteria_are_refused() -> None:
    """What differs is named: the judges of the run and of the report, or the criteria."""
    made, _ = simulated_run(40, 40, seed=5)
    criteria = [each.criterion for each in made.item_results[0].report.report]
    other = graded(criteria, judge("else", **dict.fromkeys(NAMES, "MET")))
    with pytest.raises(ArgumentError, match=r"judges \['j0'\] but the report has \['else'\]"):
        decision(other, threshold=0.5, judge_error=made)
    heavier = [criteria[0].model_copy(update={"weight": 2.0}), *criteria[1:]]
    with pytest.raises(ArgumentError, match=r"\['c0'\] differ"):
        decision(graded(heavier, judge("j0", **dict.fromkeys(NAMES, "MET"))), threshold=0.5, judge_error=made)
    raw = graded(criteria, judge("j0", **dict.fromkeys(NAMES, "MET")), normalize=False)
    with pytest.raises(ArgumentError, match="normalize"):
        decision(raw, threshold=0.5, judge_error=made, normalize=False)
