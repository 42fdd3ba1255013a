"""Reports on the grading of one submission, per criterion and as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from autorubric.criteria.base import BaseCriterion, criterion_from_dict, criterion_to_dict
from autorubric.criteria.values import CriterionVerdict, NamedList, VerdictCounts
from autorubric.errors import TokenUsage
from autorubric.scoring.votes import (
    NO_VOTE,
    Decision,
    DecisionStatus,
    JudgeVote,
    count_verdicts,
    position_inconsistent,
)
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.support.blocks import Block, Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiChoiceVerdict:
    """The option chosen for a multi-choice criterion.

    Attributes:
        selected_index: Index of the option.
        selected_label: Label of the option.
        value: Value of the option in [0, 1]; None for an NA option.
        na: Whether it is an NA option.
        aggregated_value: Aggregate of the votes in [0, 1], before an option was selected.
    """

    selected_index: int
    selected_label: str
    value: float | None
    na: bool
    aggregated_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleCriterionReport:
    """The decision on one criterion and the votes it is based on; a single judge is a panel of one.

    Attributes:
        criterion: The criterion that was judged.
        decision: The panel's decision.
        votes: Every vote, in the planned order.
        judge_decisions: Each judge's decision, combined from its samples, by judge id.
        final_reason: Reasons given in the votes that agree with the decision.
        error: Reason why there is no decision, or errors of individual votes; None if nothing failed.
        score_value: The criterion's value in the score, in [0, 1]; None if it is excluded.
        score_share: Share of the criterion's weight that counts in the score, in [0, 1]. It is below 1 only
            with soft votes, if abstentions are excluded from the score and have a probability.
        abstention_value: Value of an abstention in the score, in [0, 1]; None if it is excluded.
        confidence: The first panel's confidence, in [0, 1]; None if escalation is not configured or the
            judges report no confidence.
        escalated: Whether the criterion was escalated to a second panel, which alone decides it.
        verdicts: Counts of verdicts by outcome; see `VerdictCounts`.
    """

    criterion: BaseCriterion
    decision: Decision
    votes: list[JudgeVote] = field(default_factory=list)
    judge_decisions: dict[str, Decision] = field(default_factory=dict)
    final_reason: str = ""
    error: str | None = None
    score_value: float | None = None
    score_share: float = 1.0
    abstention_value: float | None = None
    confidence: float | None = None
    escalated: bool = False
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)

    @property
    def name(self) -> str:
        """Name of the criterion."""
        return self.criterion.name or ""

    @property
    def status(self) -> DecisionStatus:
        """Outcome of the criterion.

        The status is also `failed` if the answer is assumed: no vote has an answer, and unreadable replies
        count as the conservative answer (see `decision`).
        """
        return "failed" if self.decision.assumed else self.decision.status

    @property
    def is_lost(self) -> bool:
        """Whether no judge gave a readable answer, or unreadable replies decided the answer."""
        return self.decision.status == "failed" or self.decision.assumed or self.decision.swayed

    @property
    def tie(self) -> bool:
        """Whether the votes were tied and the conservative answer was used."""
        return self.decision.tie

    @property
    def agreement(self) -> float | None:
        """Fraction of answered votes equal to the decision, in [0, 1]; None if no vote was answered."""
        return self.decision.agreement

    @property
    def position_inconsistent(self) -> tuple[str, ...]:
        """Ids of the judges whose answer changed when the candidates were shown in a different order."""
        return position_inconsistent(self.votes)

    @property
    def judge_verdicts(self) -> dict[str, VerdictCounts]:
        """Verdict counts by judge id."""
        assumes = self.verdicts.assumed > 0
        by_judge: dict[str, list[JudgeVote]] = {}
        for vote in self.votes:
            by_judge.setdefault(vote.judge_id, []).append(vote)
        if self.status == "not_applicable":
            return dict.fromkeys(by_judge, VerdictCounts())
        count = partial(count_verdicts, assumes=assumes, of_panel=self.verdicts.lost_cause == NO_VOTE)
        return {judge: count(votes) for judge, votes in by_judge.items()}

    @property
    def distinct_replies(self) -> dict[str, int]:
        """Number of distinct (answer, reason) pairs among a judge's answered samples, by judge id."""
        replies: dict[str, set[str]] = {vote.judge_id: set() for vote in self.votes}
        for vote in self.votes:
            if vote.status == "answered":
                replies[vote.judge_id].add(repr((vote.answer, vote.reason)))
        return {judge: len(different) for judge, different in replies.items()}

    @property
    def is_na(self) -> bool:
        """Whether the panel decided on "not applicable"."""
        return bool(self.decision.answer and self.decision.answer.na)

    @property
    def final_answer(self) -> Json:
        """The panel's answer as JSON; None if there is no answer."""
        return self.decision.answer.code if self.decision.answer else None

    @property
    def final_verdict(self) -> CriterionVerdict | None:
        """The verdict; None if the criterion is not binary or there is no answer."""
        if self.criterion.level != "binary" or self.decision.answer is None:
            return None
        if self.decision.answer.cannot_assess:
            return CriterionVerdict.CANNOT_ASSESS
        return CriterionVerdict.MET if self.decision.answer.value == 1.0 else CriterionVerdict.UNMET

    @property
    def final_multi_choice_verdict(self) -> MultiChoiceVerdict | None:
        """The chosen option; None if the criterion is binary or no option was chosen."""
        answer = self.decision.answer
        if self.criterion.level == "binary" or answer is None or answer.index is None:
            return None
        return MultiChoiceVerdict(
            selected_index=answer.index,
            selected_label=answer.label or "",
            value=answer.value,
            na=answer.na,
            aggregated_value=self.decision.mean_value,
        )

    @property
    def verdict(self) -> CriterionVerdict | None:
        """Alias of `final_verdict`, for single-judge reports."""
        return self.final_verdict

    @property
    def reason(self) -> str:
        """Alias of `final_reason`, for single-judge reports."""
        return self.final_reason

    def to_dict(self) -> dict[str, Json]:
        """Return the report as a JSON-compatible dict."""
        return {
            "criterion": criterion_to_dict(self.criterion),
            "decision": self.decision.to_dict(),
            "votes": [vote.to_dict() for vote in self.votes],
            "judge_decisions": {judge: made.to_dict() for judge, made in self.judge_decisions.items()},
            "final_reason": self.final_reason,
            "error": self.error,
            "score_value": self.score_value,
            "score_share": self.score_share,
            "abstention_value": self.abstention_value,
            "confidence": self.confidence,
            "escalated": self.escalated,
            "verdicts": self.verdicts.to_dict(),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> EnsembleCriterionReport:
        """Create a report from the output of `to_dict`."""
        return cls(
            criterion=criterion_from_dict(given["criterion"]),
            decision=Decision.from_dict(given["decision"]),
            votes=[JudgeVote.from_dict(vote) for vote in given["votes"]],
            judge_decisions={j: Decision.from_dict(made) for j, made in given["judge_decisions"].items()},
            final_reason=given["final_reason"],
            error=given["error"],
            score_value=given["score_value"],
            score_share=given.get("score_share", 1.0),
            abstention_value=given.get("abstention_value"),
            confidence=given.get("confidence"),
            escalated=given.get("escalated", False),
            verdicts=VerdictCounts(**given.get("verdicts") or {}),
        )


CriterionReport = EnsembleCriterionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleEvaluationReport:
    """The result of grading one submission with a panel of judges; a single judge is a panel of one.

    Attributes:
        score: The score after the length penalty, in [0, 1] if normalized; None if nothing could be judged,
            in which case `error` gives the reason.
        raw_score: Sum of value × weight over the members of the rubric's root before gates, normalization and
            length penalty; a group's value is its score. None if nothing was judged or the sum exceeds the
            largest float.
        llm_raw_score: Same as `raw_score`, which excludes the length penalty.
        length_penalty: Length penalty that was subtracted.
        node_scores: Normalized group scores before the length penalty, by name; `""` is the rubric. None if
            nothing in the group can be scored or one of its gates could not be judged.
        report: One report per criterion, in the rubric's order.
        cannot_assess_count: Number of criteria on which the judges abstained.
        token_usage: Total token usage of all votes; None if no usage was reported.
        completion_cost: Total known cost of the votes in US dollars; None if no cost is known.
        error: Criteria that could not be judged and why; None if everything was judged.
        verdicts: Counts of verdicts by outcome; see `VerdictCounts`.
        judge_scores: Scores from each judge's votes alone, by judge id; None if the judge judged nothing.
        mean_agreement: Mean over the criteria of the fraction of answered votes equal to the decision.
    """

    score: float | None
    raw_score: float | None = None
    llm_raw_score: float | None = None
    length_penalty: float = 0.0
    node_scores: dict[str, float | None] = field(default_factory=dict)
    report: list[EnsembleCriterionReport] = field(default_factory=list)
    cannot_assess_count: int = 0
    token_usage: TokenUsage | None = None
    completion_cost: float | None = None
    error: str | None = None
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    judge_scores: dict[str, float | None] = field(default_factory=dict)
    mean_agreement: float | None = None

    @property
    def per_criterion(self) -> NamedList[EnsembleCriterionReport]:
        """The reports in `report`, as a list that also supports lookup by criterion name."""
        return NamedList(self.report)

    @property
    def escalated(self) -> tuple[str, ...]:
        """Names of the criteria that were escalated."""
        return tuple(criterion.name for criterion in self.report if criterion.escalated)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the criteria whose answers depend on unreadable replies.

        Either no vote has an answer, or the panel would have decided differently without these replies.
        """
        return tuple(one.name for one in self.report if one.decision.assumed or one.decision.swayed)

    @property
    def calls_saved(self) -> int:
        """Number of votes skipped because they could not change the result.

        With `llm_calls="per_criterion"`, each skipped vote saves one call.
        """
        return sum(vote.skipped for criterion in self.report for vote in criterion.votes)

    def to_dict(self) -> dict[str, Json]:
        """Return the report as a JSON-compatible dict."""
        shallow = {name: getattr(self, name) for name in self.__dataclass_fields__}
        shallow["report"] = [criterion.to_dict() for criterion in self.report]
        shallow["token_usage"] = asdict(self.token_usage) if self.token_usage else None
        shallow["verdicts"] = self.verdicts.to_dict()
        return shallow

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> EnsembleEvaluationReport:
        """Create a report from the output of `to_dict`."""
        usage = given.get("token_usage")
        return cls(
            **{
                **given,
                "report": [EnsembleCriterionReport.from_dict(entry) for entry in given["report"]],
                "token_usage": TokenUsage(**usage) if usage else None,
                "verdicts": VerdictCounts(**given.get("verdicts") or {}),
            }
        )

    def blocks(self) -> list[Block]:
        """Return the report as blocks for rendering: criteria, groups, and the score with its details."""
        # Imported late, since most reports are not shown.
        from autorubric.support.blocks import ScalarBlock, TableBlock

        panel = len(self.judge_scores) > 1
        # With soft votes, the value does not follow from the answer.
        soft = any(one.decision.probabilities is not None for one in self.report)
        optional = (*(("value",) if soft else ()), *(("agreement",) if panel else ()))
        columns = ("criterion", "weight", "answer", *optional, "reason")
        rows = tuple(
            (
                one.name,
                f"{one.criterion.weight:g}{' (gate)' if one.criterion.gate else ''}",
                answer_text(one),
                *((one.score_value,) if soft else ()),
                *((one.agreement,) if panel else ()),
                one.final_reason or one.error or "",
            )
            for one in self.report
        )
        figures: list[tuple[str, Cell]] = [("score", self.score), ("raw score", self.raw_score)]
        if panel:
            figures += [(f"score by {judge}", score) for judge, score in self.judge_scores.items()]
            figures.append(("mean agreement", self.mean_agreement))
        figures.append(("verdicts", str(self.verdicts)))
        if self.token_usage is not None:
            figures.append(("tokens", self.token_usage.total_tokens))
        if self.completion_cost is not None:
            figures.append(("cost in US dollars", self.completion_cost))
        groups = tuple((name, score) for name, score in self.node_scores.items() if name)
        tables = [TableBlock(columns=columns, rows=rows)]
        if groups:
            tables.append(TableBlock(columns=("group", "score"), rows=groups))
        return [*tables, ScalarBlock(figures=tuple(figures))]

    def _repr_html_(self) -> str:
        from autorubric.support.blocks import card

        return card(self.blocks())

    def summary(self) -> str:
        """Return each criterion's answer and reason, and the score, as plain text."""
        from autorubric.support.blocks import TextBlock, render_text

        error = [TextBlock(title="Could not be judged", text=self.error)] if self.error else []
        return render_text([*self.blocks(), *error])

    def __str__(self) -> str:
        return self.summary()


EvaluationReport = EnsembleEvaluationReport


def run_headline(name: str, n_finished: int, n_unfinished: int) -> str:
    """Return a run's name and, if items are unfinished, how many are finished and how many are not."""
    return f"{name}: {n_finished:,} items finished, {n_unfinished:,} unfinished" if n_unfinished else name


def verdicts_by_judge(reports: Iterable[EnsembleEvaluationReport]) -> dict[str, VerdictCounts]:
    """Count the verdicts in reports, by judge id."""
    found: dict[str, list[VerdictCounts]] = {}
    for report in reports:
        for criterion in report.report:
            for judge, counts in criterion.judge_verdicts.items():
                found.setdefault(judge, []).append(counts)
    return {judge: VerdictCounts.sum(counts) for judge, counts in found.items()}


NEAR: Final = 0.25
"""Difference, relative to the range, up to which two numbers count as equal; other answers must be equal."""


def is_split(report: EnsembleCriterionReport) -> bool:
    """Return whether answered votes differ, as `reports.items` marks them; not for rankings."""
    votes = [vote for vote in report.votes if vote.status == "answered"]
    if report.criterion.level == "interval":
        values = [vote.value for vote in votes if vote.value is not None]
        return max(values, default=0.0) - min(values, default=0.0) > NEAR
    return report.criterion.level != "text" and len({*map(_answer_key, votes)}) > 1


def _answer_key(vote: JudgeVote) -> int | str:
    if vote.selected_index is not None:
        return vote.selected_index
    return str(vote.verdict or vote.selected_label or vote.answer)


def answer_text(report: EnsembleCriterionReport) -> str:
    """Return the chosen answer in words or, if there is none, the outcome of the criterion."""
    decision = report.decision
    label = decision.answer.label if decision.answer else None
    # A panel that abstained has an empty answer.
    if label is None and report.final_answer is None:
        return decision.status.replace("_", " ")
    text = label if label is not None else json.dumps(report.final_answer, ensure_ascii=False)
    marks = [word for word, so in (("tie", decision.tie), ("no readable vote", decision.assumed)) if so]
    return f"{text} ({', '.join(marks)})" if marks else text
