"""Votes, decisions and reports: what they say, and their JSON."""

from __future__ import annotations

import json
from functools import partial

from hypothesis import given, strategies as st

import autorubric.scoring as public
from autorubric.criteria import Answer, CriterionVerdict
from autorubric.errors import TokenUsage
from autorubric.scoring import (
    CriterionReport,
    Decision,
    EnsembleCriterionReport,
    EnsembleEvaluationReport,
    EvaluationReport,
    JudgeVote,
    LengthPenalty,
    MultiChoiceJudgeVote,
)
from tests.doubles import binary, choice, lost_vote, open_vote, vote

codes = st.one_of(st.none(), st.text(), st.integers(), st.dictionaries(st.text(), st.integers(), max_size=2))
shares = st.none() | st.floats(0, 1)
votes = st.builds(
    JudgeVote,
    judge_id=st.text(),
    sample=st.integers(0, 9),
    status=st.sampled_from(["answered", "abstained", "failed", "not_asked"]),
    answer=codes,
    verdict=st.none() | st.sampled_from(CriterionVerdict),
    selected_index=st.none() | st.integers(0, 5),
    selected_label=st.none() | st.text(),
    value=shares,
    na=st.booleans(),
    reason=st.text(),
    weight=st.floats(0, 5),
    confidence=shares,
    error=st.none() | st.text(),
    unreadable=st.booleans(),
    order=st.none() | st.tuples(st.text(), st.text()),
    model=st.none() | st.text(),
    truncated=st.booleans(),
    token_usage=st.none() | st.builds(TokenUsage, prompt_tokens=st.integers(0, 99)),
    completion_cost=st.none() | st.floats(0, 9),
    latency_seconds=st.none() | st.floats(0, 9),
)


@given(votes)
def test_votes_survive_json(cast: JudgeVote) -> None:
    """A vote written as JSON comes back equal, its verdict a verdict."""
    assert JudgeVote.from_dict(json.loads(json.dumps(cast.to_dict()))) == cast


def test_a_plain_vote_is_short_in_json() -> None:
    """Fields at their defaults are left out."""
    assert vote("a", "MET").to_dict() == {"judge_id": "a", "status": "answered", "answer": "MET"}


def test_one_class_serves_every_kind() -> None:
    """The other names of the public list are names, not parallel classes."""
    assert MultiChoiceJudgeVote is JudgeVote
    assert CriterionReport is EnsembleCriterionReport
    assert issubclass(EnsembleEvaluationReport, EvaluationReport)
    assert all(hasattr(public, name) for name in public.__all__)


def decided(answer: Answer | None, status: str = "answered", **fields: object) -> Decision:
    return Decision(status=status, answer=answer, **fields)  # type: ignore[arg-type]


def test_binary_verdicts() -> None:
    """MET, UNMET and CANNOT_ASSESS as decided; None where nothing was; no option is selected."""
    criterion = binary()
    for word in ("MET", "UNMET", "CANNOT_ASSESS"):
        answer = criterion.read(word)
        report = EnsembleCriterionReport(criterion=criterion, decision=decided(answer))
        assert report.final_verdict is report.verdict is CriterionVerdict(word)
        assert report.final_multi_choice_verdict is None
    lost = EnsembleCriterionReport(criterion=criterion, decision=decided(None, "failed"))
    assert lost.final_verdict is None
    assert lost.final_answer is None
    assert lost.status == "failed"


def test_selected_options() -> None:
    """An option as decided with its value and the aggregate before it; none for an abstention."""
    criterion = choice(na="none")
    report = EnsembleCriterionReport(
        criterion=criterion, decision=decided(criterion.read("fair"), mean_value=0.4, tie=True, agreement=0.5)
    )
    selected = report.final_multi_choice_verdict
    assert selected is not None
    assert (selected.selected_index, selected.selected_label, selected.value) == (1, "fair", 0.5)
    assert (selected.na, selected.aggregated_value) == (False, 0.4)
    assert report.final_verdict is None
    assert (report.tie, report.agreement, report.final_answer, report.name) == (True, 0.5, "fair", "scale")
    na = EnsembleCriterionReport(criterion=criterion, decision=decided(criterion.read("none"), "abstained"))
    assert na.is_na
    assert na.final_multi_choice_verdict is not None
    assert na.final_multi_choice_verdict.na
    open_one = decided(Answer(code=None, cannot_assess=True), "abstained")
    assert EnsembleCriterionReport(criterion=criterion, decision=open_one).final_multi_choice_verdict is None


def test_distinct_replies_are_counted() -> None:
    """Different (answer, reason) among a judge's answered samples; failures and abstentions are none."""
    samples = [
        JudgeVote(judge_id="a", sample=0, status="answered", answer="MET", reason="one"),
        JudgeVote(judge_id="a", sample=1, status="answered", answer="MET", reason="one"),
        JudgeVote(judge_id="a", sample=2, status="answered", answer="MET", reason="two"),
        JudgeVote(judge_id="a", sample=3, status="answered", answer="UNMET", reason="two"),
        open_vote("a", sample=4),
        vote("b", {"rating": 1}),
        lost_vote("c", unreadable=True),
    ]
    report = EnsembleCriterionReport(
        criterion=binary(), decision=decided(None, "failed"), votes=samples, final_reason="so"
    )
    assert report.distinct_replies == {"a": 3, "b": 1, "c": 0}
    assert report.reason == "so"


def test_reports_survive_json() -> None:
    """A report with votes, decisions, tokens and scores comes back equal."""
    criterion = choice(na="none", check=None)
    decision = decided(criterion.read("good"), mean_value=0.9, agreement=1.0)
    inner = EnsembleCriterionReport(
        criterion=criterion,
        decision=decision,
        votes=[vote("a", "good"), lost_vote("b", unreadable=True)],
        judge_decisions={"a": decision, "b": decided(None, "failed")},
        final_reason="fine",
        error="b: lost",
        score_value=1.0,
    )
    report = EnsembleEvaluationReport(
        score=1.0,
        raw_score=10.0,
        llm_raw_score=10.0,
        report=[inner],
        token_usage=TokenUsage(prompt_tokens=3),
        completion_cost=0.5,
        judge_scores={"a": 1.0, "b": None},
        mean_agreement=1.0,
    )
    written = json.loads(json.dumps(report.to_dict()))
    assert EnsembleEvaluationReport.from_dict(written) == report
    bare = EvaluationReport(score=None, error="nothing")
    assert EvaluationReport.from_dict(json.loads(json.dumps(bare.to_dict()))) == bare


def test_a_count_function_is_written_by_name() -> None:
    """Whatever can be called can be named, a partial too."""
    assert LengthPenalty(count_fn=len).model_dump(mode="json")["count_fn"] == "builtins:len"
    assert LengthPenalty(count_fn=partial(len)).model_dump(mode="json")["count_fn"] == "functools:partial"
