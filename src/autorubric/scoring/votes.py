"""Votes, each the answer of one judge to one criterion in one sample; their events; decisions from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from autorubric.criteria.values import Answer, CriterionVerdict, VerdictCounts, VoteStatus
from autorubric.errors import TokenUsage
from autorubric.support.objects import Json, maker_of

ProbabilitySource = Literal["decision_model", "logprobs", "samples", "recorded", "classifier"]
"""Where probabilities come from.

They come from a model that answers with probabilities, the log-probabilities of a text model's tokens, the
shares of several samples, a table, or a trained classifier.
"""

Probabilities: TypeAlias = Mapping[str, float | Mapping[str, float]]
"""Probabilities by label of the answer or, for a criterion with parts, by part and label.

`CANNOT_ASSESS` is the key of the probability that the criterion cannot be assessed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVote:
    """One judge's answer to a criterion of any kind, in one sample.

    Attributes:
        judge_id: Id of the judge.
        sample: Index of the sample, from 0.
        status: `answered`, `abstained` (CANNOT_ASSESS or NA), `failed`, or `not_asked`.
        answer: The answer as JSON: a verdict, a label, a number or an evaluation; None if there is no answer.
        verdict: The verdict, for a binary criterion.
        selected_index: Index of the chosen option, for a multi-choice criterion.
        selected_label: Label of the chosen option, for a multi-choice criterion.
        value: Value of the answer in [0, 1]; None if it has no value.
        na: Whether the judge chose an NA option.
        reason: The judge's explanation.
        weight: Weight of the judge in the panel.
        confidence: The judge's reported probability that the answer is correct, in [0, 1], if any.
        probabilities: Probabilities of the answers, by label or by part and label; None if there are none.
        probability_source: Where the probabilities come from.
        probability_backend: Name of the server or library that computed the probabilities, if known.
        probability_reason: Why there are no probabilities, if they were requested.
        error: Error that caused the vote to fail; None if it did not fail.
        unreadable: Whether the vote failed because its reply could not be read.
        order: Candidate names in the order shown, for comparative criteria.
        model: The model that answered, if any.
        truncated: Whether the submission was truncated to fit the model's context.
        shown: The part of the submission that was judged, such as `turns 1-3, 41-60 of 60`; None if nothing
            was omitted or the part is unknown.
        token_usage: Tokens spent, including retries; None if not counted.
        completion_cost: US dollars spent, including retries; None if unknown.
        latency_seconds: Seconds from sending the last request to the answer.
        wait_seconds: Seconds before that: in line under limits and budgets, between retries, and in earlier
            requests for the vote.
        skipped: Whether the vote was skipped because it could not matter: the verdict was already decided, or
            the criterion was not escalated.
    """

    judge_id: str
    sample: int = 0
    status: VoteStatus
    answer: Json = None
    verdict: CriterionVerdict | None = None
    selected_index: int | None = None
    selected_label: str | None = None
    value: float | None = None
    na: bool = False
    reason: str = ""
    weight: float = 1.0
    confidence: float | None = None
    probabilities: Probabilities | None = None
    probability_source: ProbabilitySource | None = None
    probability_backend: str | None = None
    probability_reason: str | None = None
    error: str | None = None
    unreadable: bool = False
    order: tuple[str, ...] | None = None
    model: str | None = None
    truncated: bool = False
    shown: str | None = None
    token_usage: TokenUsage | None = None
    completion_cost: float | None = None
    latency_seconds: float | None = None
    wait_seconds: float = 0.0
    skipped: bool = False

    @property
    def without_reply(self) -> bool:
        """Whether the vote failed because no reply arrived, in which case a retry can help."""
        return self.status == "failed" and not self.unreadable

    @property
    def reason_shown(self) -> str:
        """The reason, or for a vote of a decision model the remark that it gives none."""
        told = "no reason given by this kind of judge"
        return self.reason or (told if self.probability_source == "decision_model" else "")

    @property
    def probabilities_shown(self) -> str:
        """The probabilities with their source and backend, or why there are none; empty if unknown."""
        if self.probabilities is None:
            return f"no probabilities: {self.probability_reason}" if self.probability_reason else ""
        source = (self.probability_source or "").replace("_", " ")
        origin = ", ".join(filter(None, (source, self.probability_backend)))
        return probabilities_text(self.probabilities) + (f" ({origin})" if origin else "")

    @property
    def probability_origin(self) -> str:
        """Source of the probabilities with, if known, the backend and the model: `logprobs, vllm, m-1.2`."""
        return ", ".join(filter(None, (self.probability_source, self.probability_backend, self.model)))

    def to_dict(self) -> dict[str, Json]:
        """Return the vote as a JSON-compatible dict, omitting fields with default values."""
        kept: dict[str, Json] = {
            name: value
            for name, default, value in zip(_NAMES, _DEFAULTS, _values_of(self), strict=True)
            if value is not default and value != default
        }
        if self.token_usage is not None:
            kept["token_usage"] = self.token_usage.to_dict()
        if self.verdict is not None:
            kept["verdict"] = str(self.verdict)
        if self.order is not None:
            kept["order"] = list(self.order)
        return kept

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> JudgeVote:
        """Create a vote from the output of `to_dict`."""
        fields = dict(given)
        if fields.get("token_usage") is not None:
            fields["token_usage"] = TokenUsage(**fields["token_usage"])
        if fields.get("verdict") is not None:
            fields["verdict"] = CriterionVerdict(fields["verdict"])
        if fields.get("order") is not None:
            fields["order"] = tuple(fields["order"])
        return cls(**fields)


MultiChoiceJudgeVote = JudgeVote
make_vote = maker_of(JudgeVote)


class VoteExchange(NamedTuple):
    """The messages sent to a judge for one vote, and its replies."""

    messages: tuple[tuple[str, str], ...] = ()
    replies: tuple[str, ...] = ()
    dropped_params: tuple[str, ...] = ()
    shared_with: str | None = None
    request_id: str | None = None
    attempted: tuple[str, ...] = ()  # models called, in order; not stored in run folders
    cached: bool = False
    # Number of requests to models that may still be sent for the vote; None if unknown; not stored either.
    requests_left: int | None = None


class VoteCast(NamedTuple):
    """The event sent when a vote arrives."""

    item_id: str
    criterion: str
    vote: JudgeVote
    exchanged: VoteExchange | None = None


class Listener(Protocol):
    """A listener for votes, which is called in the grading event loop and must not block."""

    def vote_cast(self, event: VoteCast) -> None:
        """Handle a vote when it arrives."""
        ...


def probabilities_text(probabilities: Probabilities) -> str:
    """Return probabilities in words, most probable answer first."""
    given: Mapping[str, Any] = probabilities
    parts = [(f"{key}: ", one) for key, one in given.items() if isinstance(one, Mapping)] or [("", given)]
    return "; ".join(
        before + ", ".join(f"{label} {p:.1%}" for label, p in sorted(one.items(), key=lambda pair: -pair[1]))
        for before, one in parts
    )


def prefers_alike(one: Json, other: Json) -> bool:
    """Return whether two comparative answers prefer the same candidate, regardless of the margin."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return (one > 0) == (other > 0) and (one < 0) == (other < 0)
    return bool(one == other)


def position_inconsistent(votes: Sequence[JudgeVote]) -> tuple[str, ...]:
    """Return the ids of judges whose answer changed when the same candidates were shown in another order."""
    first: dict[tuple[str, int], JudgeVote] = {}
    found: dict[str, None] = {}
    for vote in votes:
        if vote.order is None or vote.status != "answered":
            continue
        before = first.setdefault((vote.judge_id, vote.sample), vote)
        if before.order != vote.order and not prefers_alike(before.answer, vote.answer):
            found[vote.judge_id] = None
    return tuple(found)


NO_VOTE: Final = "no judge voted on this criterion"


def count_verdicts(votes: Sequence[JudgeVote], *, assumes: bool, of_panel: bool) -> VerdictCounts:
    """Count votes on a criterion by outcome; if no judge of the panel voted, all verdicts are lost."""
    statuses = [vote.status for vote in votes]
    if statuses.count("not_asked") == len(votes):
        is_lost = of_panel and not any(vote.skipped for vote in votes)
        return VerdictCounts.all_lost(len(votes) or 1, NO_VOTE) if is_lost else VerdictCounts()
    if statuses.count("answered") == len(votes):
        return _all_answered(len(votes))
    outcomes: Counter[str] = Counter()
    causes: dict[str, str] = {}
    for vote in votes:
        kind: str = vote.status
        if vote.status == "failed":
            kind = "assumed" if assumes and vote.unreadable else "lost"
            causes.setdefault(kind, f"{vote.judge_id}: {vote.error}")
        outcomes[kind] += 1
    return VerdictCounts(
        asked=outcomes.total() - outcomes["not_asked"],
        answered=outcomes["answered"],
        abstained=outcomes["abstained"],
        lost=outcomes["lost"],
        assumed=outcomes["assumed"],
        lost_cause=causes.get("lost"),
        assumed_cause=causes.get("assumed"),
    )


@lru_cache(maxsize=64)
def _all_answered(count: int) -> VerdictCounts:
    return VerdictCounts(asked=count, answered=count)


_UNSET = object()
_NAMES = tuple(JudgeVote.__dataclass_fields__)
_DEFAULTS: tuple[object, ...] = tuple(
    _UNSET if name in ("judge_id", "status") else field.default
    for name, field in JudgeVote.__dataclass_fields__.items()
)
_values_of = attrgetter(*_NAMES)


Votes: TypeAlias = "Mapping[str, Sequence[JudgeVote]]"
"""Votes by criterion name."""


DecisionStatus = Literal["answered", "abstained", "failed", "not_asked", "not_applicable"]
"""Outcome of a criterion: answered, abstained, failed, not asked, or not applicable.

`not_applicable` means that the criterion's condition does not hold.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision on a criterion, combined from the votes of one judge or the whole panel.

    Attributes:
        status: Outcome of the criterion.
        answer: The chosen answer; None unless `status` is answered, or abstained with an answer.
        mean_value: Aggregated value of the votes in [0, 1] before an answer is chosen; None if there is none.
            With soft votes, the expected value of the answers that have a value.
        tie: Whether the votes were tied, so that the conservative answer was used.
        agreement: Fraction of answered votes equal to the answer, in [0, 1]; None if no vote was answered.
        assumed: Whether no vote was answered, so that the answer is based only on unreadable replies.
        swayed: Whether counting unreadable replies as the conservative answer changed the answer that the
            answered votes alone would give. Such an answer is used in the score but in no other figure.
        probabilities: With soft votes, the mean probabilities of the answers; otherwise None.
        abstention: With soft votes, the probability of an abstention (CANNOT_ASSESS or NA), in [0, 1].
    """

    status: DecisionStatus
    answer: Answer | None = None
    mean_value: float | None = None
    tie: bool = False
    agreement: float | None = None
    assumed: bool = False
    swayed: bool = False
    probabilities: Probabilities | None = None
    abstention: float = 0.0

    @property
    def value(self) -> float | None:
        """Value of the answer in [0, 1]; None if there is no answer with a value."""
        return self.answer.value if self.answer and self.status == "answered" else None

    def to_dict(self) -> dict[str, Json]:
        """Return the decision as a JSON-compatible dict."""
        return {**asdict(self), "answer": asdict(self.answer) if self.answer else None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Decision:
        """Create a decision from the output of `to_dict`."""
        answer = given.get("answer")
        return cls(**{**given, "answer": Answer(**answer) if answer else None})
