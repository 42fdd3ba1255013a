"""Whether a score passes a threshold, as far as its votes can tell."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from autorubric import Criterion, Rubric
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.graders import CriterionGrader
from autorubric.judges import FunctionJudge, JudgeRequest, JudgeSpec
from autorubric.metrics import decision
from autorubric.rubric import RubricGroup
from autorubric.types import CannotAssessConfig, CannotAssessStrategy, EnsembleEvaluationReport
from tests.metrics.asserting import number
from tests.metrics.reports import ORDINAL, binary_run

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
    assert "give judge_error" in found.summary().splitlines()[1]


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
    assert ("may still carry" in found.summary()) == (verdict == "UNDECIDED")


def test_known_errors_overrule_the_answer() -> None:
    """Where it says met, a is all but never met: raw 1, but 1/4 by the errors; nothing open, no bound vetoes.

    The mirror: where it says unmet, a is all but always met.
    """
    wrong = {"a": [[0, 10_000], [10_000, 0]]}
    found = decision(graded([A, B], judge("one", a="MET", b="MET")), threshold=0.6, judge_error=wrong)
    assert (float(found.raw), float(found.score), found.low, found.high) == (1.0, 0.25, 0.25, 0.25)
    assert (found.n_open, found.hard_low, found.hard_high, found.verdict) == (0, 0.25, 0.25, "FAIL")
    mirror = decision(graded([A, B], judge("one", a="UNMET", b="UNMET")), threshold=0.6, judge_error=wrong)
    assert (float(mirror.raw), float(mirror.score), mirror.verdict) == (0.0, 0.75, "PASS")


def test_bounds_stand_on_the_drawn_answers() -> None:
    """a is not met for all that the judge says, b open: at worst 0, at best 1/4, and never 3/4."""
    report = graded([A, B], judge("one", a="MET", b="CANNOT_ASSESS"))
    found = decision(report, threshold=0.5, judge_error={"a": [[0, 10_000], [10_000, 0]]})
    assert (found.hard_low, found.hard_high, found.verdict) == (0.0, 0.25, "FAIL")


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_the_score(seed: int) -> None:
    """Twenty criteria, each met by 3 of 5 samples: redrawn they fall short of 1, with errors and without."""
    criteria: list[Any] = [Criterion(name=f"c{i}", requirement="It holds.", weight=1.0) for i in range(20)]
    said = ["MET", "UNMET", "MET", "UNMET", "MET"]
    one = JudgeSpec(judge("one", **{f"c{i}": list(said) for i in range(20)}), judge_id="one", samples=5)
    report = graded(criteria, one)
    for errors in (None, {f"c{i}": [[30, 20], [10, 60]] for i in range(20)}):
        found = decision(report, threshold=0.9, judge_error=errors, rng=seed, n_resamples=200)
        assert number(found.low) <= number(found.score.value) <= number(found.high)
        assert errors is not None or found.score == found.high == 1.0
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


def test_known_errors_spread_the_score_by_hand() -> None:
    """Of 1,000 items that the judge met 900 were met: the score is 1 with probability 0.9, else 1/4."""
    report = graded([A, B], judge("one", a="MET", b="MET"))
    found = decision(report, threshold=0.5, judge_error={"a": [[800, 100], [100, 900]]}, n_resamples=4000)
    assert found.sources == ("judge_error",)
    assert found.score.se == pytest.approx(0.75 * np.sqrt(0.9 * 0.1), rel=0.05)
    assert found.verdict == "UNDECIDED"
    sure = decision(report, threshold=0.5, judge_error={"a": [[800, 0], [0, 100_000]]})
    assert sure.verdict == "PASS"


def test_few_labels_spread_wider() -> None:
    """No error among two labelled items proves less than none among two thousand."""
    report = graded([A, B], judge("one", a="MET", b="MET"))
    few = decision(report, threshold=0.5, judge_error={"a": [[2, 0], [0, 2]]})
    many = decision(report, threshold=0.5, judge_error={"a": [[2000, 0], [0, 2000]]})
    assert few.score.se is not None
    assert few.score.se > 0.1
    assert many.score.se is not None
    assert many.score.se < 0.1


def test_figures_of_a_run_give_the_errors() -> None:
    """A `MetricsResult` brings its confusion matrices by criterion name."""
    figures = binary_run(["MET", "UNMET"] * 10, ["MET", "MET"] * 5 + ["MET", "UNMET"] * 5)
    clear = Criterion(name="clear", requirement="It is clear.", weight=1.0)
    found = decision(graded([clear], judge("one", clear="MET")), threshold=0.5, judge_error=figures)
    assert found.sources == ("judge_error",)
    # 10 of the 15 that it met were met.
    assert found.score.se == pytest.approx(np.sqrt(2 / 9), rel=0.1)


def test_same_seed_same_interval() -> None:
    """The seed fixes the draws."""
    report = graded([A, B], judge("x", a="MET", b="MET"), judge("y", a="UNMET", b="MET"))
    assert decision(report, threshold=0.5, rng=7) == decision(report, threshold=0.5, rng=7)


def test_other_policies_must_be_given() -> None:
    """A grader that counts CANNOT_ASSESS as 0 scores 3/4; scored by the default the votes come to 1."""
    policy = CannotAssessConfig(strategy=CannotAssessStrategy.ZERO)
    report = graded([A, B], judge("one", a="MET", b="CANNOT_ASSESS"), cannot_assess_config=policy)
    with pytest.raises(ArgumentError, match=r"0\.75 and its votes come to 1\.0"):
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
    with pytest.raises(ArgumentError, match=r"groups, \['part'\]"):
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
        ({"confidence_level": 1.0}, "confidence_level=1.0"),
        ({"n_resamples": 0}, "n_resamples=0"),
        ({"judge_error": {"c": [[1, 0], [0, 1]]}}, r"names \['c'\]"),
        ({"judge_error": {"a": [[1, 0]]}}, "give 2 × 2 counts"),
        ({"judge_error": {"a": "none"}}, "give 2 × 2 counts"),
        ({"judge_error": 0.1}, "judge_error is a float; give counts"),
        ({"confidence_level": "0.9"}, "confidence_level='0.9'"),
        ({"rng": "x"}, "rng='x'"),
        ({"rubric": "r.yaml"}, "rubric='r.yaml'; give a Rubric"),
        ({"threshold": "0.5"}, "threshold='0.5'; give a number"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"threshold": True}, "threshold=True"),
    ],
)
def test_faulty_options_are_refused(options: dict[str, Any], message: str) -> None:
    """What is given and what is allowed stand in the message."""
    with pytest.raises(ArgumentError, match=message):
        decision(graded([A, B], judge("one", a="MET", b="MET")), **{"threshold": 0.5} | options)


@pytest.mark.parametrize("given", [None, binary_run(["MET"], ["MET"]), {"score": 1.0}])
def test_only_the_report_of_an_item_is_decided(given: Any) -> None:
    """Anything else is named, with what to give."""
    with pytest.raises(ArgumentError, match=rf"{type(given).__name__}; give the report of one item"):
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
