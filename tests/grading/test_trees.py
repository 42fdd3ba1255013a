"""Reports on nested rubrics, and on criteria with gates and conditions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autorubric import (
    CannotAssessConfig,
    CannotAssessStrategy,
    Criterion,
    CriterionGrader,
    LengthPenalty,
    Rubric,
    RubricGroup,
)
from autorubric.errors import ReplyError, ServerError
from autorubric.scoring import EnsembleEvaluationReport
from tests.doubles import TableJudge, binary, choice

TREE = Rubric(
    [RubricGroup("content", [binary("a", 3.0), binary("b", 1.0)], weight=6.0), binary("style", 2.0)]
)
SAFE = Rubric(
    [
        RubricGroup("safety", [binary("safe", 1.0, gate="required"), binary("kind", 1.0)], weight=5.0),
        binary("style", 5.0),
    ]
)
SOURCED = Rubric([binary("source", 4.0), binary("dated", 6.0, when="source")])


def grade(rubric: Rubric, *judges: dict[str, Any], **options: Any) -> EnsembleEvaluationReport:
    """The report of judges `j0`, `j1`, … with these answers."""
    table = [TableJudge(answers, f"j{i}") for i, answers in enumerate(judges)]
    return rubric.grade_sync("Some words.", CriterionGrader(judges=table, **options))


def test_every_group_has_its_score() -> None:
    """The root under the empty name, before the length penalty; the report comes back from JSON."""
    long = LengthPenalty(free_budget=0, max_cap=1, penalty_at_cap=0.125)
    report = grade(TREE, {"a": "MET", "b": "UNMET", "style": "UNMET"}, length_penalty=long)
    assert report.node_scores == {"": 0.5625, "content": 0.75}
    assert report.score == 0.4375
    assert report.judge_scores == {"j0": 0.4375}
    assert report.raw_score == report.llm_raw_score == 4.5
    again = EnsembleEvaluationReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.node_scores == report.node_scores


def test_a_flat_rubric_has_one_node() -> None:
    """Its score is that of the root."""
    report = grade(Rubric([binary("a"), binary("b")]), {"a": "MET", "b": "UNMET"})
    assert report.node_scores == {"": 0.5}
    assert report.score == 0.5


def test_a_raw_score_takes_groups_by_their_scores() -> None:
    """Not normalised, the score is the sum over the root; node scores are normalised all the same."""
    report = grade(TREE, {"a": "MET", "b": "UNMET", "style": "MET"}, normalize=False)
    assert report.score == report.raw_score == 6.5
    assert report.node_scores == {"": 6.5 / 8, "content": 0.75}


# Gates


def test_a_missed_gate_caps_its_group_for_panel_and_judges() -> None:
    """Each judge alone goes by its own vote on the gate."""
    met = {"safe": "MET", "kind": "MET", "style": "MET"}
    report = grade(SAFE, met, {**met, "safe": "UNMET"}, {**met, "safe": "UNMET"})
    assert report.node_scores == {"": 0.5, "safety": 0.0}
    assert report.score == 0.5
    assert report.raw_score == 5.0
    assert report.judge_scores == {"j0": 1.0, "j1": 0.5, "j2": 0.5}
    assert report.error is None


@pytest.mark.parametrize(
    ("answer", "status"), [(ServerError("down"), "failed"), ("CANNOT_ASSESS", "abstained")]
)
def test_a_gate_that_nobody_judged_is_told(answer: Any, status: str) -> None:
    """Its group has no score, nor has the rubric, and the error says so."""
    report = grade(SAFE, {"safe": answer, "kind": "MET", "style": "UNMET"})
    assert report.node_scores == {"": None, "safety": None}
    assert report.score is None
    assert report.error is not None
    told = f"'safety', and so the rubric, has no score: its gate 'safe' could not be judged ({status})"
    assert report.error.startswith(f"the group {told}")


@pytest.mark.parametrize("normalize", [True, False])
def test_an_open_gate_in_the_root_leaves_no_score(normalize: bool) -> None:
    """What was judged is in the raw score; the score is None, and so is the judge's."""
    rubric = Rubric([binary("safe", gate="required"), binary("style")])
    report = grade(rubric, {"safe": "CANNOT_ASSESS", "style": "MET"}, normalize=normalize)
    assert (report.score, report.raw_score) == (None, 10.0)
    assert report.judge_scores == {"j0": None}
    assert report.error == "the rubric has no score: its gate 'safe' could not be judged (abstained)"
    down = grade(rubric, {"safe": ServerError("down"), "style": "MET"}, normalize=normalize)
    assert down.error is not None
    assert down.error.startswith("the rubric has no score: its gate 'safe' could not be judged (failed); 1")


def test_an_unreadable_gate_is_missed() -> None:
    """An unreadable reply counts as the conservative answer, here as everywhere."""
    report = grade(SAFE, {"safe": ReplyError("no JSON"), "kind": "MET", "style": "MET"})
    assert report.node_scores["safety"] == 0.0
    assert report.error is not None


def test_a_policy_decides_open_gates() -> None:
    """With a value from the policy, an abstention misses the gate."""
    zero = CannotAssessConfig(strategy=CannotAssessStrategy.ZERO)
    report = grade(SAFE, {"safe": "CANNOT_ASSESS", "kind": "MET", "style": "MET"}, cannot_assess_config=zero)
    assert (report.node_scores["safety"], report.error) == (0.0, None)


def test_na_lifts_a_gate() -> None:
    """A demand that does not apply is not missed."""
    gated = choice("fit", na="n/a", gate={"at_least": 0.5, "cap": 0.25})
    rubric = Rubric([gated, binary("style")])
    assert grade(rubric, {"fit": "n/a", "style": "MET"}).score == 1.0
    assert grade(rubric, {"fit": "poor", "style": "MET"}).score == 0.25
    assert grade(rubric, {"fit": "fair", "style": "MET"}).score == 0.75


def test_a_check_may_be_the_gate_of_all() -> None:
    """Judges that were not asked, because code decides, go by what the code found."""

    def short(text: str) -> bool:
        return len(text) < 5

    rubric = Rubric(
        [Criterion(name="short", requirement="Is short.", gate="required", check=short), binary("style")]
    )
    report = grade(rubric, {"style": "MET"}, {"style": "UNMET"}, {"style": "MET"})
    assert report.score == 0.0
    assert report.judge_scores == {"check": 0.0, "j0": 0.0, "j1": 0.0, "j2": 0.0}
    passed = rubric.grade_sync("abc", CriterionGrader(judges=[TableJudge({"style": "MET"}, "j0")]))
    assert passed.judge_scores["j0"] == 1.0


# Conditions


def test_what_does_not_apply_is_in_no_sum() -> None:
    """All are asked; the votes stay; the criterion has no decision, and its reason says why."""
    report = grade(SOURCED, {"source": "UNMET", "dated": "MET"})
    dated = report.report[1]
    assert (dated.status, dated.score_value, dated.final_verdict) == ("not_applicable", None, None)
    assert [vote.status for vote in dated.votes] == ["answered"]
    assert dated.final_reason == "applies only if 'source' reaches 1, which it does not"
    assert dated.judge_decisions["j0"].status == "not_applicable"
    assert (report.score, report.error, report.verdicts.asked) == (0.0, None, 1)
    met = grade(SOURCED, {"source": "MET", "dated": "UNMET"})
    assert (met.report[1].status, met.score) == ("answered", 0.4)


def test_panel_and_judges_have_conditions_of_their_own() -> None:
    """Each judge alone goes by its own votes; the panel by what it decided."""
    yes, no = {"source": "MET", "dated": "MET"}, {"source": "UNMET", "dated": "MET"}
    report = grade(SOURCED, yes, no, no)
    assert report.report[1].status == "not_applicable"
    assert report.judge_scores == {"j0": 1.0, "j1": 0.0, "j2": 0.0}
    statuses = {judge: made.status for judge, made in report.report[1].judge_decisions.items()}
    assert statuses == {"j0": "answered", "j1": "not_applicable", "j2": "not_applicable"}
    assert report.mean_agreement == pytest.approx(2 / 3)


def test_a_failure_that_does_not_matter_is_no_error() -> None:
    """A criterion that does not apply need not have been judged; an unjudged condition is told."""
    assert grade(SOURCED, {"source": "UNMET", "dated": ServerError("down")}).error is None
    report = grade(SOURCED, {"source": ServerError("down"), "dated": "MET"})
    assert (report.report[1].status, report.score) == ("not_applicable", None)
    assert report.error is not None
    assert "source: j0: ServerError: down" in report.error


def test_conditions_reach_into_groups() -> None:
    """A criterion may depend on one of another group; a group with nothing left leaves the score."""
    rubric = Rubric(
        [
            RubricGroup("form", [binary("table", 1.0), binary("neat", 1.0)], weight=1.0),
            RubricGroup("tables", [binary("labelled", 1.0, when="table")], weight=1.0),
        ]
    )
    report = grade(rubric, {"table": "UNMET", "neat": "MET", "labelled": "UNMET"})
    assert report.node_scores == {"": 0.5, "form": 0.5, "tables": None}


def test_bonuses_alone_are_no_score() -> None:
    """Where only a bonus could be judged, nothing is there that it could add to."""
    rubric = Rubric([binary("a"), binary("extra", bonus=True)])
    report = grade(rubric, {"a": "CANNOT_ASSESS", "extra": "MET"})
    assert report.score is None
    assert report.error == "no score: a (abstained), extra (bonus)"
    assert grade(rubric, {"a": "UNMET", "extra": "MET"}).score == 1.0
