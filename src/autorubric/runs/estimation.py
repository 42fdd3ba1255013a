"""Estimates of a run, from its planned calls and rendered prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autorubric.criteria.conditions import check_name
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, MissingDependencyError
from autorubric.grading.base import Grader
from autorubric.grading.grader import CriterionGrader, criterion_grader
from autorubric.grading.plan import JudgeCall
from autorubric.judges.base import JudgeRequest, ModelAsker
from autorubric.judges.decision import DecisionModelJudge
from autorubric.judges.panel import PanelMember
from autorubric.llm.budget import CHARACTERS_PER_TOKEN, prompt_tokens
from autorubric.llm.route import pricings_of
from autorubric.runs.config import EvalConfig
from autorubric.runs.differences import with_checks
from autorubric.runs.executor import refuse_without_batches
from autorubric.runs.index import LineValidity, load_index
from autorubric.runs.item_results import answered_votes, grading_task
from autorubric.runs.items import sum_if_known
from autorubric.runs.manifest import MANIFEST, log_entries, read_manifest, run_path
from autorubric.runs.notices import Notices
from autorubric.runs.vote_reader import ReusableVotes
from autorubric.scoring.votes import Votes
from autorubric.support.blocks import Block, TableBlock, TextBlock, render_text
from autorubric.support.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEstimate:
    """A run's estimated requests to one judge.

    Attributes:
        judge_id: Id of the judge.
        model: The judge's model; None if the judge has no model or its model is unknown.
        votes: Number of votes that the judge would cast.
        calls: Number of requests to the model if no request is repeated; None if unknown.
        prompt_tokens: Estimated tokens sent, at four characters per token; None if unknown.
        completion_tokens: Estimated tokens received, at 80 tokens per criterion; None if unknown.
        cost: Estimated cost in US dollars; None if unknown.
        reason: Reason for an unknown cost; empty if the cost is known.
    """

    judge_id: str
    model: str | None
    votes: int
    calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """A rough estimate of a run; see `JudgeEstimate`.

    Attributes:
        items: Number of items in the dataset.
        judges: One estimate per judge, in panel order.
        stored_votes: Number of votes reused from a stored run with the same name; the estimate excludes them.
        at_most: Whether the figures are upper limits, because votes may be skipped or never escalated.
        notes: Assumptions and limitations of the estimate.
        batch_cost: Cost in batches of the providers in US dollars; None if unknown or not requested.
    """

    items: int
    judges: tuple[JudgeEstimate, ...]
    stored_votes: int = 0
    at_most: bool = False
    notes: tuple[str, ...] = ()
    batch_cost: float | None = None

    @property
    def votes(self) -> int:
        """Number of votes from all judges."""
        return sum(judge.votes for judge in self.judges)

    @property
    def calls(self) -> int | None:
        """Number of requests to all models; None if the number is unknown for a judge."""
        return sum_if_known([judge.calls for judge in self.judges])

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens sent to all models; None if the number is unknown for a judge."""
        return sum_if_known([judge.prompt_tokens for judge in self.judges])

    @property
    def completion_tokens(self) -> int | None:
        """Tokens received from all models; None if the number is unknown for a judge."""
        return sum_if_known([judge.completion_tokens for judge in self.judges])

    @property
    def cost(self) -> float | None:
        """Cost of all judges in US dollars; None if the cost of a judge is unknown."""
        return sum_if_known([judge.cost for judge in self.judges])

    def to_dict(self) -> dict[str, Json]:
        """Return the estimate as a JSON-serializable dictionary."""
        names = ("votes", "calls", "prompt_tokens", "completion_tokens", "cost", "batch_cost")
        return {
            "items": self.items,
            **{name: getattr(self, name) for name in names},
            "at_most": self.at_most,
            "stored_votes": self.stored_votes,
            "judges": [{name: getattr(one, name) for name in one.__slots__} for one in self.judges],
            "notes": list(self.notes),
        }

    def blocks(self) -> list[Block]:
        """Return the estimate and its notes as blocks for renderers."""
        head = ("judge", "votes", "calls", "tokens sent", "tokens received", "US dollars")
        rows = [
            (one.judge_id, one.votes, one.calls, one.prompt_tokens, one.completion_tokens, one.cost)
            for one in self.judges
        ]
        total = ("total", self.votes, self.calls, self.prompt_tokens, self.completion_tokens, self.cost)
        title = f"{'Upper bound' if self.at_most else 'Estimate'} for {self.items} items"
        table = TableBlock(title=title, columns=head, rows=(*rows, total))
        return [table, TextBlock(title="Notes", text="\n".join(self.notes))] if self.notes else [table]

    def summary(self) -> str:
        """Return the estimate as plain text."""
        return render_text(self.blocks())


REPLY_TOKENS_A_CRITERION: Final = 80
"""Tokens of a verdict with a reason of one or two sentences; reasoning models may use many more."""


@dataclass(slots=True)
class _Tally:
    """The calls planned for one judge so far."""

    member: PanelMember
    votes: int = 0
    calls: int = 0
    sent: int = 0
    received: int = 0
    images: int = 0

    def add(self, batch: Sequence[JudgeCall]) -> None:
        self.votes += len(batch)
        judge = self.member.judge
        if not isinstance(judge, ModelAsker) or not judge.models:
            return
        requests: list[JudgeRequest] = [call.request for call in batch]
        decision = judge if isinstance(judge, DecisionModelJudge) else None
        expected = 0 if decision else REPLY_TOKENS_A_CRITERION * len(batch)
        for part in decision.split(requests) if decision else [requests]:
            if (prompt := judge.prompt_for(part)) is None:
                continue
            self.calls += 1
            self.sent += prompt_tokens(prompt.messages, prompt.schema)
            self.images += sum(len(message.images) for message in prompt.messages)
            self.received += min(expected, judge.models[0].max_tokens or expected)

    def estimate(self) -> JudgeEstimate:
        model = self.member.models[0] if self.member.models else None
        is_unknown = model is None and not self.member.is_offline and self.votes > 0
        cost: float | None = None if is_unknown else 0.0
        reason = "the models that the judge calls and their prices are unknown" if is_unknown else ""
        if model is not None and self.calls:
            try:
                pricing = pricings_of(model)[0]
            except MissingDependencyError as error:
                cost, reason = None, str(error)
            else:
                reason = pricing.reason
                cost = None if pricing.price is None else pricing.price.of(self.sent, self.received)
        return JudgeEstimate(
            judge_id=self.member.judge_id,
            model=model.model if model is not None else None,
            votes=self.votes,
            calls=None if is_unknown else self.calls,
            prompt_tokens=None if is_unknown else self.sent,
            completion_tokens=None if is_unknown else self.received,
            cost=cost,
            reason=reason,
        )


def _reader_of_votes(
    dataset: RubricDataset, grader: CriterionGrader, name: str | None, folder: Path
) -> Callable[[int], Votes]:
    """Return a function from an item's position to its stored votes that need not be requested again."""
    path = run_path(folder, name) if name is not None else None
    if path is None or not (path / MANIFEST).exists():
        return lambda position: {}
    manifest = read_manifest(path)
    logs = log_entries(manifest)._replace(is_complete=False)
    rubrics = {id(rubric): rubric for rubric in map(dataset.get_item_rubric, range(len(dataset)))}
    checks = {
        check_name(criterion.check): criterion.check
        for rubric in rubrics.values()
        for criterion in rubric
        if criterion.check is not None
    }
    described = with_checks(grader.describe(), checks)
    reusable = ReusableVotes(dataset, {**manifest, **described.entries()})
    index = load_index(path, dataset, LineValidity(basis="", dataset=""), logs)

    def stored(position: int) -> Votes:
        task = grading_task(dataset, position)
        votes = [vote for _, vote in index.votes(task.item_id, index.line(position))]
        return answered_votes(reusable.select(position, task, votes, Notices()))

    return stored


def _in_batches(tallies: Iterable[_Tally], costs: Sequence[JudgeEstimate]) -> tuple[float | None, str]:
    """Return the cost in batches in US dollars, and a note on it."""
    # Imported late: few runs have batches.
    from autorubric.llm.batches import batch_share

    pairs = [(one.cost, tally.member.models) for one, tally in zip(costs, tallies, strict=True)]
    cost = sum_if_known([c and c * batch_share(models[0]) if models else c for c, models in pairs])
    shown = "unknown" if cost is None else f"{cost:.3f} US dollars"
    return cost, (
        f"In batches: {shown}, by litellm's price list or at half price. A batch takes up to 24 hours. "
        "Requests that expire, repeats, and later votes of early stopping and cascades need another batch."
    )


def _notes(
    judges: Sequence[JudgeEstimate], grader: CriterionGrader, stored: int, images: int, *, at_most: bool
) -> Iterable[str]:
    if any(judge.calls for judge in judges):
        replied = any(judge.completion_tokens for judge in judges)
        reply = f", and {REPLY_TOKENS_A_CRITERION} tokens per criterion in a reply" if replied else ""
        yield (
            f"Tokens are estimated at {CHARACTERS_PER_TOKEN} characters of prompt and schema per token"
            f"{reply}. Retries, and repeats after unreadable replies, are not included."
        )
    if any(isinstance(member.judge, DecisionModelJudge) and member.models for member in grader.members):
        yield "Decision models: replies count no tokens; a server with lower limits needs more requests."
    if images:
        yield f"The tokens of images ({images}) are not counted: their number depends on the provider."
    if at_most:
        yield "The actual figures may be lower if votes are skipped or criteria are not escalated."
    if stored:
        yield f"The estimate excludes {stored} votes that are reused from the stored run."
    if any(model.cache_enabled for model in grader.models):
        yield "Cached replies are free, but they are counted here because the cache was not checked."
    yield from (f"{judge.judge_id}: {judge.reason}" for judge in judges if judge.reason)


def estimate(
    dataset: RubricDataset,
    grader: Grader,
    *,
    experiment_name: str | None = None,
    experiments_dir: str | Path = "experiments",
    batch: bool = False,
) -> RunEstimate:
    """Estimate the calls, tokens and cost of grading a dataset without sending any request.

    Calls are planned and prompts are rendered exactly as in the run. Tokens are estimated at four characters
    of prompt and schema per token, and 80 tokens per criterion in a reply. Prices are read from the models'
    configs, or from litellm's price list.

    Args:
        dataset: The dataset to grade.
        grader: The grader.
        experiment_name: Name of a run whose stored votes are reused; None for a new run.
        experiments_dir: The folder that contains the run folders.
        batch: Whether to include the cost in batches of the provider.

    Raises:
        ArgumentError: If the grader is not a `CriterionGrader`, `batch` is on and a model has no batches, or
            the grader names criteria that no rubric has, or an
            item cannot be graded.
        RunError: If a run with that name exists but cannot be read.
    """
    inner = criterion_grader(grader)
    if inner is None:
        raise ArgumentError(f"grader must be a CriterionGrader to be estimated; got {type(grader).__name__}")
    grader.check_rubrics(dataset.rubrics())
    refuse_without_batches(grader, EvalConfig(batch=batch))
    stored_for = _reader_of_votes(dataset, inner, experiment_name, Path(experiments_dir))
    tallies, n_stored = {member.judge_id: _Tally(member) for member in inner.members}, 0
    for position in range(len(dataset)):
        stored = stored_for(position)
        n_stored += sum(not vote.skipped for votes in stored.values() for vote in votes)
        for calls in inner.requests(grading_task(dataset, position), stored=stored):
            member = calls[0].member
            tallies.setdefault(member.judge_id, _Tally(member)).add(calls)
    judges = tuple(tally.estimate() for tally in tallies.values())
    images = sum(tally.images for tally in tallies.values())
    batch_cost, note = _in_batches(tallies.values(), judges) if batch else (None, "")
    at_most = inner.policy.stop_when_decided or inner.policy.escalation is not None
    return RunEstimate(
        items=len(dataset),
        judges=judges,
        stored_votes=n_stored,
        at_most=at_most,
        notes=(*_notes(judges, inner, n_stored, images, at_most=at_most), *([note] if note else ())),
        batch_cost=batch_cost,
    )
