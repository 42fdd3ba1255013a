"""The grader: a panel of one or more judges that cast votes on each criterion."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from autorubric.criteria.comparative import ComparativeCriterion
from autorubric.criteria.criterion import Criterion, CriterionOption
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.grading.base import Grader, GraderDescription
from autorubric.judges.panel import panel_members
from autorubric.judges.prompts import Material, PromptQuestion, compose, compose_batch
from autorubric.scoring.calibration import ProbabilityCalibration, read_calibrations
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig
from autorubric.scoring.report_builder import EscalationRule, GradingPolicy, build_report
from autorubric.support.objects import is_whole

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.grading.base import GradingTask
    from autorubric.grading.plan import EscalationConfig, ExamplePool, FewShotConfig, JudgeCall, Planner
    from autorubric.judges.panel import JudgeLike, PanelMember
    from autorubric.llm.config import LLMConfig
    from autorubric.rubric.rubric import Rubric
    from autorubric.scoring.policies import (
        BinaryAggregation,
        LengthPenalty,
        NominalAggregation,
        OnFailure,
        OrdinalAggregation,
        RankingAggregation,
        VoteMode,
    )
    from autorubric.scoring.reports import EnsembleEvaluationReport
    from autorubric.scoring.votes import JudgeVote, Listener, Votes
    from autorubric.support.objects import Json


LLMCalls = Literal["per_criterion", "per_item"] | int


class CriterionGrader(Grader):
    """A grader that asks every judge about every criterion and aggregates the votes.

    Args:
        llm_config: A model, as an `LLMConfig` or a name, for a panel of one. Pass either this or `judges`.
        judges: The panel: `JudgeSpec`s, judges, models, model names, or functions of a `JudgeRequest`.
        aggregation: Aggregation method for binary votes.
        ordinal_aggregation: Aggregation method for votes on ordered scales and numbers.
        nominal_aggregation: Aggregation method for votes on unordered choices.
        ranking_aggregation: Aggregation method for votes that compare candidates.
        training_data: Labelled items from which few-shot examples are selected.
        few_shot_config: Settings for the selection; the defaults apply if only `training_data` is passed.
        system_prompt: Custom system prompt for all kinds of criteria, used by models passed as names or
            configs and by critics' models. Other judges keep their own. An empty one sends no system message.
        multi_choice_system_prompt: Custom system prompt for criteria with options.
        length_penalty: Penalty for long submissions.
        normalize: Whether to scale the score to [0, 1].
        cannot_assess_config: How to score criteria that have no judgment.
        shuffle_options: Whether to show options in a random order that differs between judges and calls.
        llm_calls: Whether to send one request per criterion, per item, or per `n` criteria (pass `n`).
        on_failure: What to do with an unreadable reply: count it as the conservative answer, exclude it, or
            raise an error.
        votes: Whether to combine the judges' answers ("hard") or the probabilities that they give ("soft").
            Soft votes are averaged, with the judges' weights if the aggregation method is a weighted one, and
            score the expected value; the most probable answer is reported as the verdict. A vote without
            probabilities is certain of its answer. The policy for missing judgments scores the probability of
            CANNOT_ASSESS and NA.
        thresholds: For soft votes, probability of the positive answer from which on a binary criterion is
            met, by criterion name; by default, the most probable answer is the verdict.
        calibrations: For soft votes, calibrations of judges' probabilities from `calibrate_probabilities`, or
            their files, at most one for each judge. Votes keep the judge's own probabilities.
        seed: Seed for all random choices; None means 0.
        escalation: A second panel, which alone decides the criteria on which `judges` are unsure.
        stop_when_decided: Whether to skip votes that can no longer change a criterion's verdict. Votes are
            then requested in rounds, heaviest judges first, which saves calls but takes longer. Methods based
            on means or medians need all votes.
        warm_prefix: Whether to send each model one request per item first and wait for its reply, so that the
            other requests find their shared prefix in the provider's cache.

    Raises:
        ArgumentError: If the arguments cannot be combined.
    """

    def __init__(  # noqa: PLR0913 - the public constructor
        self,
        *,
        llm_config: LLMConfig | str | None = None,
        judges: Sequence[JudgeLike] | None = None,
        aggregation: BinaryAggregation = "majority",
        ordinal_aggregation: OrdinalAggregation = "mean",
        nominal_aggregation: NominalAggregation = "mode",
        ranking_aggregation: RankingAggregation = "borda",
        training_data: RubricDataset | None = None,
        few_shot_config: FewShotConfig | None = None,
        system_prompt: str | None = None,
        multi_choice_system_prompt: str | None = None,
        length_penalty: LengthPenalty | None = None,
        normalize: bool = True,
        cannot_assess_config: CannotAssessConfig | None = None,
        shuffle_options: bool = True,
        llm_calls: LLMCalls = "per_criterion",
        on_failure: OnFailure = "conservative",
        votes: VoteMode = "hard",
        thresholds: Mapping[str, float] | None = None,
        calibrations: Sequence[ProbabilityCalibration | str | Path] = (),
        seed: int | None = None,
        escalation: EscalationConfig | None = None,
        stop_when_decided: bool = False,
        warm_prefix: bool = False,
    ) -> None:
        self._examples = _make_pool(training_data, few_shot_config)
        panel = _judges_of(llm_config, judges)
        if escalation is not None and isinstance(panel, Sequence) and not isinstance(panel, str):
            panel = [*panel, *escalation.judges]
        self.members = panel_members(
            panel,
            system_prompt=system_prompt,
            multi_choice_system_prompt=multi_choice_system_prompt,
            few_shot=self._examples.criteria if self._examples else (),
        )
        self.policy = GradingPolicy(
            aggregation=AggregationPolicy.of(
                aggregation=aggregation,
                ordinal_aggregation=ordinal_aggregation,
                nominal_aggregation=nominal_aggregation,
                ranking_aggregation=ranking_aggregation,
                on_failure=on_failure,
                votes=votes,
                thresholds=thresholds or {},
                calibrations=read_calibrations(calibrations, [one.judge_id for one in self.members]),
            ),
            cannot_assess=cannot_assess_config or CannotAssessConfig(),
            length_penalty=length_penalty,
            normalize=normalize,
            escalation=_make_rule(escalation, self.members),
            stop_when_decided=stop_when_decided,
        )
        if votes == "soft" and stop_when_decided:
            raise ArgumentError("stop_when_decided has no effect on soft votes, which all count; omit one")
        self.warm_prefix = warm_prefix
        self.shuffle_options = shuffle_options
        self.criteria_per_call = _read_llm_calls(llm_calls)
        if seed is not None and not is_whole(seed):
            raise ArgumentError(f"seed must be an integer or None; got {seed!r}")
        self.seed = seed or 0
        self._system_prompts = (system_prompt, multi_choice_system_prompt)
        warn_of_equal_samples(self.members)

    @cached_property
    def _planner(self) -> Planner:
        # Imported late, as all that plans and collects votes: resuming a finished run grades nothing.
        from autorubric.grading.plan import Planner

        system_prompt, multi_choice_system_prompt = self._system_prompts
        return Planner(
            members=self.members,
            policy=self.policy.aggregation,
            examples=self._examples,
            system_prompt=system_prompt,
            multi_choice_system_prompt=multi_choice_system_prompt,
            shuffle=self.shuffle_options,
            seed=self.seed,
        )

    def plan(self, task: GradingTask) -> tuple[JudgeCall, ...]:
        """Return every vote needed for a task: one per criterion, judge, sample and presentation order.

        Raises:
            ArgumentError: If a criterion's aggregation method is not available for its level, or it needs a
                reference but none is given.
        """
        return self._planner.plan(task)

    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """Judge a task and return all votes by criterion name; votes in `stored` are not requested again.

        Raises:
            ArgumentError: If a criterion's aggregation method is not available for its level, its check is
                not registered, or it needs a reference but none is given.
            JudgeError: If a vote failed and `on_failure` is `"raise"`.
            BudgetError: If the run's budget is used up.
        """
        from autorubric.grading.collect import collect_votes

        return await collect_votes(
            task,
            self.plan(task),
            self.policy,
            stored=stored or {},
            listener=listener,
            per_request=self.criteria_per_call,
            warm_prefix=self.warm_prefix,
        )

    async def first_votes(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """Send one request to each model that has a vote to cast on the task.

        Models in a cascade's second panel are excluded.

        Args:
            task: The submission and its rubric.
            stored: Existing votes, by criterion name, which are not requested again.
            listener: Receives each vote as it arrives.

        Returns:
            The votes cast, including failed ones, by criterion name.

        Raises:
            BudgetError: If the run's budget is used up.
        """
        from autorubric.grading.collect import request_votes

        escalated_to = self.policy.escalation.judges if self.policy.escalation is not None else ()
        first: dict[str, list[JudgeCall]] = {}
        for batch in self.requests(task, stored=stored):
            member = batch[0].member
            if member.config is not None and member.judge_id not in escalated_to:
                first.setdefault(member.judge_id, batch)
        calls = [call for batch in first.values() for call in batch]
        cast = await request_votes(calls, per_request=self.criteria_per_call, listener=listener, raises=False)
        votes: dict[str, list[JudgeVote]] = {}
        for call in calls:
            votes.setdefault(call.criterion_name, []).append(cast[call.key])
        return votes

    def __repr__(self) -> str:
        return f"CriterionGrader(judges={[member.judge_id for member in self.members]!r})"

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models called by the judges, including those in a second panel."""
        return tuple(model for member in self.members for model in member.models)

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Check that judges can answer all criteria, and that those with a threshold exist.

        Raises:
            ArgumentError: If a judge cannot answer a criterion, a criterion is not in any rubric, or a
                calibration was fitted on other criteria.
        """
        for judge in [member.judge for member in self.members if member.asks_whole_items]:
            rubrics = list(rubrics)
            judge.check_rubrics(rubrics)  # type: ignore[attr-defined]
        escalation, aggregation = self.policy.escalation, self.policy.aggregation
        if escalation is not None or aggregation.votes == "soft":
            from autorubric.grading.plan import check_names, check_soft_votes

            known = list(rubrics)
            check_names("per_criterion", escalation.per_criterion if escalation is not None else (), known)
            check_soft_votes(aggregation, known)

    def requests(self, task: GradingTask, *, stored: Votes | None = None) -> list[list[JudgeCall]]:
        """Return all requests that grading a task can require, each as a list of the calls that share it.

        Votes in `stored` are excluded. With early stopping or a cascade, fewer requests may actually be sent.

        Raises:
            ArgumentError: See `plan`.
        """
        from autorubric.grading.collect import group_calls, reusable_votes

        calls = self.plan(task)
        known = reusable_votes(calls, stored or {}, self.policy)
        return group_calls([call for call in calls if call.key not in known], self.criteria_per_call)

    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """Aggregate votes into a report under this grader's policy."""
        return build_report(task.submission, task.rubric.root, votes, self.policy)

    def describe(self) -> GraderDescription:
        """Return the manifest entry: everything that affects the votes, and the aggregation rules."""
        own = ("judge_id", "weight", "samples")
        pool = self._examples
        asking: dict[str, Json] = {
            "judges": {
                member.judge_id: {name: value for name, value in member.to_dict().items() if name not in own}
                for member in self.members
            },
            "prompts": prompt_digest(*self._system_prompts),
            "sampling": {
                "seed": self.seed,
                "samples": {member.judge_id: member.samples for member in self.members},
                "shuffle_options": self.shuffle_options,
                "criteria_per_call": self.criteria_per_call,
            },
            "few_shot": None if pool is None else {**pool.config.model_dump(), "examples": pool.digest},
        }
        deciding = self.policy.model_dump(mode="json")
        deciding["judge_weights"] = {member.judge_id: member.weight for member in self.members}
        counts = {member.judge_id: member.per_prompt(self.criteria_per_call) for member in self.members}
        shared = {judge_id: count for judge_id, count in counts.items() if count != 1}
        return GraderDescription(asking=asking, deciding=deciding, shared_prompts=shared)

    async def aclose(self) -> None:
        """Close the judges' connections; grading again reopens them."""
        for member in self.members:
            await member.aclose()

    async def __aenter__(self) -> CriterionGrader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _judges_of(llm_config: LLMConfig | str | None, judges: Sequence[JudgeLike] | None) -> Sequence[JudgeLike]:
    if (llm_config is None) == (judges is None):
        given = "both" if judges is not None else "neither"
        raise ArgumentError(f"pass exactly one of llm_config and judges; got {given}")
    if judges is not None:
        return judges
    return [llm_config] if llm_config is not None else []


def _make_pool(training_data: RubricDataset | None, config: FewShotConfig | None) -> ExamplePool | None:
    if training_data is not None:
        from autorubric.grading.plan import ExamplePool, FewShotConfig

        return ExamplePool(training_data, config or FewShotConfig())
    if config is not None:
        raise ArgumentError("few_shot_config requires training_data; pass the labelled items to select from")
    return None


def _make_rule(escalation: EscalationConfig | None, members: Sequence[PanelMember]) -> EscalationRule | None:
    if escalation is None:
        return None
    strong = members[-len(escalation.judges) :]
    return EscalationRule(
        judges=tuple(member.judge_id for member in strong),
        threshold=escalation.threshold or 0.0,
        per_criterion=dict(escalation.per_criterion),
        band=escalation.band,
    )


def _read_llm_calls(llm_calls: LLMCalls) -> int:
    """Return the number of criteria in one request; 0 for all criteria of an item."""
    if llm_calls == "per_criterion":
        return 1
    if llm_calls == "per_item":
        return 0
    if is_whole(llm_calls) and llm_calls >= 1:
        return llm_calls
    raise ArgumentError(
        "llm_calls must be 'per_criterion', 'per_item', or a positive number of criteria per request; "
        f"got {llm_calls!r}"
    )


def warn_of_equal_samples(members: Sequence[PanelMember], *, stacklevel: int = 3) -> None:
    """Warn about models that are sampled several times at temperature 0."""
    for member in members:
        if member.samples > 1 and member.config is not None and member.config.temperature == 0:
            warnings.warn(
                f"judge {member.judge_id!r} draws {member.samples} samples at temperature 0, which will be "
                "nearly identical; set a higher temperature, or samples=1",
                stacklevel=stacklevel,
            )


def criterion_grader(grader: object) -> CriterionGrader | None:
    """Return the `CriterionGrader` that does a grader's work, also inside wrappers; None if there is none."""
    inner = grader.inner_grader if isinstance(grader, Grader) else None
    return inner if isinstance(inner, CriterionGrader) else None


def prompt_digest(system: str | None, choice_system: str | None) -> str:
    """Return the SHA-256 digest of sample prompts with these system prompts; any rewording changes it."""
    material = Material(submission=Submission(text="text"), query="query", reference="reference")
    options = (CriterionOption(label="a", value=0.0), CriterionOption(label="b", value=1.0))
    questions = [
        PromptQuestion(criterion=Criterion(name="binary", requirement="r")),
        PromptQuestion(criterion=Criterion(name="choice", requirement="r", options=options)),
    ]
    prompts = [compose(material, question, system_prompt=system) for question in questions]
    prompts.append(compose_batch(material, [("c1", questions[0])], system_prompt=choice_system))
    compared = Submission(text="one", candidates={"a": "one", "b": "two"})
    pair = ComparativeCriterion(name="pair", requirement="r").bind(compared)
    question = PromptQuestion(criterion=pair, shown=pair.show(compared, None))
    prompts.append(compose(Material(submission=compared, order=("a", "b")), question, system_prompt=system))
    digest = hashlib.sha256()
    for prompt in prompts:
        for message in prompt.messages:
            digest.update(message.content.encode("utf-8", "surrogatepass"))
        digest.update(json.dumps(prompt.schema.schema).encode("ascii"))
    return digest.hexdigest()
