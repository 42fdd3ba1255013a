"""Reports: what grading one submission gives, per criterion and as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from autorubric._frozen import quickly_made
from autorubric.criteria import BaseCriterion, criterion_from_dict, criterion_to_dict
from autorubric.types._decision import Decision, DecisionStatus
from autorubric.types._votes import JudgeVote, count_verdicts, position_inconsistent
from autorubric.values import CriterionVerdict, Json, NamedList, TokenUsage, VerdictCounts

if TYPE_CHECKING:
    from autorubric._blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiChoiceVerdict:
    """The option decided on.

    Attributes:
        selected_index: Its position among the options.
        selected_label: Its label.
        value: Its value on [0, 1]; None for an NA option.
        na: Whether it is an NA option.
        aggregated_value: The aggregate of the votes before the option was selected, on [0, 1].
    """

    selected_index: int
    selected_label: str
    value: float | None
    na: bool
    aggregated_value: float | None


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleCriterionReport:
    """One criterion's decision with the votes behind it; a single judge is a panel of one.

    Attributes:
        criterion: The criterion.
        decision: What the panel decided.
        votes: Every vote, in the order planned.
        judge_decisions: What each judge's samples come to, by judge id.
        final_reason: Reasons of the votes that carry the decision.
        error: Why there is no decision, or what failed on the way; None where nothing did.
        score_value: The value on [0, 1] with which it enters the score; None where it does not.
        confidence: How sure the judges that grade first are, on [0, 1], where unsure criteria are escalated;
            None where they are not, or do not say.
        escalated: Whether the votes of the panel that was escalated to decide, and no others.
        verdicts: How many verdicts were asked for, answered, abstained, lost and assumed.
    """

    criterion: BaseCriterion
    decision: Decision
    votes: list[JudgeVote] = field(default_factory=list)
    judge_decisions: dict[str, Decision] = field(default_factory=dict)
    final_reason: str = ""
    error: str | None = None
    score_value: float | None = None
    confidence: float | None = None
    escalated: bool = False
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)

    @property
    def name(self) -> str:
        """The criterion's name."""
        return self.criterion.name or ""

    @property
    def status(self) -> DecisionStatus:
        """Outcome of the criterion.

        `failed` also where the answer is an assumed one: no vote has an answer, and unreadable replies count
        as the conservative answer (see `decision`).
        """
        return "failed" if self.decision.assumed else self.decision.status

    @property
    def tie(self) -> bool:
        """Whether the votes were tied and the conservative answer was taken."""
        return self.decision.tie

    @property
    def agreement(self) -> float | None:
        """Share of answered votes equal to the decision, on [0, 1]; None without answered votes."""
        return self.decision.agreement

    @property
    def position_inconsistent(self) -> tuple[str, ...]:
        """Ids of the judges whose answer changed with the order in which candidates were shown."""
        return position_inconsistent(self.votes)

    @property
    def judge_verdicts(self) -> dict[str, VerdictCounts]:
        """`verdicts` of each judge alone, by judge id."""
        assumes = self.verdicts.assumed > 0
        by_judge: dict[str, list[JudgeVote]] = {}
        for vote in self.votes:
            by_judge.setdefault(vote.judge_id, []).append(vote)
        return {judge: count_verdicts(votes, assumes=assumes) for judge, votes in by_judge.items()}

    @property
    def distinct_replies(self) -> dict[str, int]:
        """How many different (answer, reason) a judge's answered samples gave, by judge id."""
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
        """The answer in JSON; None where there is none."""
        return self.decision.answer.code if self.decision.answer else None

    @property
    def final_verdict(self) -> CriterionVerdict | None:
        """The verdict, for a binary criterion; None where it could not be judged."""
        if self.criterion.level != "binary" or self.decision.answer is None:
            return None
        if self.decision.answer.cannot_assess:
            return CriterionVerdict.CANNOT_ASSESS
        return CriterionVerdict.MET if self.decision.answer.value == 1.0 else CriterionVerdict.UNMET

    @property
    def final_multi_choice_verdict(self) -> MultiChoiceVerdict | None:
        """The option decided on, for a criterion with options; None where none was."""
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
        """`final_verdict`, by its name in a single judge's report."""
        return self.final_verdict

    @property
    def reason(self) -> str:
        """`final_reason`, by its name in a single judge's report."""
        return self.final_reason

    def to_dict(self) -> dict[str, Json]:
        """The report as JSON."""
        return {
            "criterion": criterion_to_dict(self.criterion),
            "decision": self.decision.to_dict(),
            "votes": [vote.to_dict() for vote in self.votes],
            "judge_decisions": {judge: made.to_dict() for judge, made in self.judge_decisions.items()},
            "final_reason": self.final_reason,
            "error": self.error,
            "score_value": self.score_value,
            "confidence": self.confidence,
            "escalated": self.escalated,
            "verdicts": self.verdicts.to_dict(),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> EnsembleCriterionReport:
        """The report that `to_dict` wrote."""
        return cls(
            criterion=criterion_from_dict(given["criterion"]),
            decision=Decision.from_dict(given["decision"]),
            votes=[JudgeVote.from_dict(vote) for vote in given["votes"]],
            judge_decisions={j: Decision.from_dict(made) for j, made in given["judge_decisions"].items()},
            final_reason=given["final_reason"],
            error=given["error"],
            score_value=given["score_value"],
            confidence=given.get("confidence"),
            escalated=given.get("escalated", False),
            verdicts=VerdictCounts(**given.get("verdicts") or {}),
        )


CriterionReport = EnsembleCriterionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """What grading one submission gives.

    Attributes:
        score: The score, on [0, 1] where normalised, after the length penalty; None where nothing could
            be judged, and then `error` says why.
        raw_score: Sum of value × weight over what stands in the rubric's root, the value of a group being
            its score; before gates, normalising and length penalty. None where nothing was judged, or the sum
            is beyond the largest float.
        llm_raw_score: The same figure; the name says that no length penalty is in it.
        length_penalty: What was taken off for length.
        node_scores: Normalised scores, before the length penalty, of the rubric (`""`) and of every group in
            it by name; None where nothing in it is left to score, or a gate in it could not be judged.
        report: One report a criterion, in the rubric's order.
        cannot_assess_count: Criteria left open by their judges.
        token_usage: Tokens of all votes; None where none was counted.
        completion_cost: US dollars of all votes whose cost is known; None where none is.
        error: What could not be judged, and why; None where everything was.
        verdicts: How many verdicts were asked for, answered, abstained, lost and assumed.
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

    @property
    def per_criterion(self) -> NamedList[EnsembleCriterionReport]:
        """`report`, whose elements are found by the name of the criterion too."""
        return NamedList(self.report)

    @property
    def escalated(self) -> tuple[str, ...]:
        """Names of the criteria that were escalated."""
        return tuple(criterion.name for criterion in self.report if criterion.escalated)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the criteria whose answer is that of unreadable replies.

        No vote on them has an answer, or the panel would have decided otherwise without those replies.
        """
        return tuple(one.name for one in self.report if one.decision.assumed or one.decision.swayed)

    @property
    def calls_saved(self) -> int:
        """Votes that were not asked for, since they could no longer matter.

        Each is a call where every criterion has its own, as under `llm_calls="per_criterion"`.
        """
        return sum(vote.skipped for criterion in self.report for vote in criterion.votes)

    def to_dict(self) -> dict[str, Json]:
        """The report as JSON."""
        shallow = {name: getattr(self, name) for name in self.__dataclass_fields__}
        shallow["report"] = [criterion.to_dict() for criterion in self.report]
        shallow["token_usage"] = asdict(self.token_usage) if self.token_usage else None
        shallow["verdicts"] = self.verdicts.to_dict()
        return shallow

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> EvaluationReport:
        """The report that `to_dict` wrote."""
        usage = given.get("token_usage")
        return cls(
            **{
                **given,
                "report": [EnsembleCriterionReport.from_dict(entry) for entry in given["report"]],
                "token_usage": TokenUsage(**usage) if usage else None,
                "verdicts": VerdictCounts(**given.get("verdicts") or {}),
            }
        )


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleEvaluationReport(EvaluationReport):
    """What grading one submission by a panel gives.

    Attributes:
        judge_scores: The score that each judge's votes give alone, by judge id; None where it judged nothing.
        mean_agreement: Mean over criteria of the share of answered votes equal to the decision.
    """

    judge_scores: dict[str, float | None] = field(default_factory=dict)
    mean_agreement: float | None = None

    def blocks(self) -> list[Block]:
        """The report, for any renderer: criteria, groups, and the score with what is known about it."""
        # Late, since a run makes many reports and prints few.
        from autorubric.types._report_blocks import report_blocks

        return report_blocks(self)

    def summary(self) -> str:
        """Each criterion's answer and reason, and the score, as plain text."""
        from autorubric._blocks import TextBlock, render_text

        error = [TextBlock(title="Could not be judged", text=self.error)] if self.error else []
        return render_text([*self.blocks(), *error])

    def __str__(self) -> str:
        return self.summary()


def verdicts_by_judge(reports: Iterable[EvaluationReport]) -> dict[str, VerdictCounts]:
    """Counts of the verdicts in reports, by judge id."""
    found: dict[str, list[VerdictCounts]] = {}
    for report in reports:
        for criterion in report.report:
            for judge, counts in criterion.judge_verdicts.items():
                found.setdefault(judge, []).append(counts)
    return {judge: VerdictCounts.sum(counts) for judge, counts in found.items()}
