"""Converts the entries of `judges=[...]` to judges with weights and samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from autorubric.criteria import code_digest
from autorubric.errors import ArgumentError
from autorubric.judges._base import (
    CHECK_JUDGE_ID,
    ClosableJudge,
    DescribedJudge,
    Judge,
    ModelAsker,
    SeatableJudge,
)

if TYPE_CHECKING:
    from autorubric.judges._function import JudgeFunction
    from autorubric.llm import LLMConfig
    from autorubric.values import Json

JudgeLike: TypeAlias = "JudgeSpec | Judge | LLMConfig | str | JudgeFunction"


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A judge in a panel, with its weight and number of samples.

    Attributes:
        llm_config: The judge: an `LLMConfig`, a model name, a `Judge`, or a function.
        judge_id: Name in votes and metrics; by default the name of the model, judge or function.
        weight: Weight in weighted aggregation methods, at least 0.
        samples: Number of votes per criterion, at least 1.
    """

    llm_config: LLMConfig | str | Judge | JudgeFunction
    judge_id: str | None = None
    weight: float = 1.0
    samples: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise ArgumentError(f"JudgeSpec: weight must be a non-negative number; got {self.weight!r}")
        if self.samples < 1 or int(self.samples) != self.samples:
            raise ArgumentError(f"JudgeSpec: samples must be a positive integer; got {self.samples!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A judge in a panel, with its name, weight and number of samples.

    Attributes:
        judge: The judge that votes.
        judge_id: Name of the judge in votes.
        weight: Weight in weighted aggregation methods.
        samples: Number of votes per criterion.
        config: The config of the judge's model; None if the judge is not a model.
        logged: Locations of programming errors whose tracebacks have been logged.
    """

    judge: Judge
    judge_id: str
    weight: float
    samples: int
    config: LLMConfig | None = None
    logged: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the judge calls; empty if it calls none."""
        return self.judge.models if isinstance(self.judge, ModelAsker) else ()

    @property
    def is_offline(self) -> bool:
        """Whether the judge is known to work offline: recorded votes, checks and built-in baselines."""
        return getattr(type(self.judge), "is_offline", False) is True

    @property
    def counts_as_call(self) -> bool:
        """Whether each use of the judge counts as one call in a budget; for models, requests are counted."""
        return self.config is None and not self.is_offline and not self.models

    def to_dict(self) -> dict[str, Json]:
        """Return the judge's entry in a run's manifest, without secrets."""
        if isinstance(self.judge, DescribedJudge):
            who = dict(self.judge.describe())
        else:
            kind = type(self.judge)
            who = {
                "judge": f"{kind.__module__}:{kind.__qualname__}",
                "code": code_digest(self.judge),
                "describes_itself": False,
            }
        return {"judge_id": self.judge_id, "weight": self.weight, "samples": self.samples, **who}

    async def aclose(self) -> None:
        """Close the judge's connections, if any."""
        if isinstance(self.judge, ClosableJudge):
            await self.judge.aclose()


def seat_judges(
    judges: Sequence[JudgeLike],
    *,
    system_prompt: str | None = None,
    multi_choice_system_prompt: str | None = None,
    few_shot: Collection[str] = (),
) -> tuple[Seat, ...]:
    """Return one `Seat` per judge of the panel, in order.

    Args:
        judges: The judges of the panel.
        system_prompt: Custom system prompt for models passed as names or configs.
        multi_choice_system_prompt: Custom system prompt for criteria with options.
        few_shot: Names of the criteria with few-shot examples.

    Raises:
        ArgumentError: If there are no judges, an entry is not a judge, two judges have the same id, or a
            judge cannot vote in a panel.
    """
    if not isinstance(judges, (list, tuple)) and not _is_several(judges):
        raise ArgumentError(f"judges must be a list; got {judges!r}. Pass a single model as llm_config")
    prompts = (system_prompt, multi_choice_system_prompt)
    seats = tuple(_seat(spec, prompts) for spec in judges)
    if not seats:
        raise ArgumentError("judges is empty; pass at least one judge")
    _check_ids([seat.judge_id for seat in seats])
    for seat in seats:
        if isinstance(seat.judge, SeatableJudge):
            seat.judge.check_seat(seat.judge_id, few_shot=few_shot)
    return seats


def _is_several(judges: object) -> bool:
    from autorubric.llm import LLMConfig

    return isinstance(judges, Iterable) and not isinstance(judges, (str, JudgeSpec, LLMConfig))


def _check_ids(ids: Sequence[object]) -> None:
    unnamed = [one for one in ids if not isinstance(one, str) or not one]
    if unnamed:
        raise ArgumentError(f"judge_id must be a non-empty string; got {unnamed[0]!r}")
    repeated = sorted({str(one) for one in ids if ids.count(one) > 1})
    if repeated:
        raise ArgumentError(
            f"judge names must be unique; repeated: {', '.join(repeated)}. Use --judge NAME=MODEL "
            "or judge_id= in a JudgeSpec"
        )
    if CHECK_JUDGE_ID in ids:
        taken = f"judge_id {CHECK_JUDGE_ID!r} is reserved for a criterion's own check"
        raise ArgumentError(f"{taken}; choose another judge_id")


def _seat(given: JudgeLike, prompts: tuple[str | None, str | None]) -> Seat:
    spec = given if isinstance(given, JudgeSpec) else JudgeSpec(given)
    config = _as_config(spec.llm_config)
    if config is not None:
        return _model_seat(config, spec, prompts)
    judge = _as_judge(spec.llm_config, spec.judge_id)
    return Seat(
        judge=judge,
        judge_id=spec.judge_id or judge.judge_id,
        weight=spec.weight,
        samples=spec.samples,
        config=_config_of(judge),
    )


def _as_config(who: Any) -> LLMConfig | None:
    """Return the config of a model passed as a config or a name; None for other judges."""
    if not isinstance(who, str) and (callable(who) or isinstance(who, Judge)):
        # Imported late, here and below, because panels of functions or recorded votes call no model.
        return None
    from autorubric.llm import LLMConfig

    if isinstance(who, str):
        return LLMConfig(model=who)
    return who if isinstance(who, LLMConfig) else None


def _model_seat(config: LLMConfig, spec: JudgeSpec, prompts: tuple[str | None, str | None]) -> Seat:
    from autorubric.judges._model import ModelJudge
    from autorubric.llm import LLMClient

    judge_id = spec.judge_id or config.model
    judge = ModelJudge(
        judge_id=judge_id,
        client=LLMClient(config),
        system_prompt=prompts[0],
        multi_choice_system_prompt=prompts[1],
    )
    return Seat(judge=judge, judge_id=judge_id, weight=spec.weight, samples=spec.samples, config=config)


def _config_of(judge: Judge) -> LLMConfig | None:
    """Return the config of a judge that is a single model; None for other judges."""
    if not isinstance(judge, ModelAsker):
        return None
    from autorubric.judges._model import ModelJudge

    return judge.client.config if isinstance(judge, ModelJudge) else None


def _as_judge(who: Any, judge_id: str | None) -> Judge:
    if isinstance(who, Judge) and not isinstance(who, type):
        return who
    if callable(who) and not isinstance(who, type):
        from autorubric.judges._function import FunctionJudge

        name = judge_id or (who.__name__ if hasattr(who, "__name__") else type(who).__name__)
        return FunctionJudge(function=who, judge_id=name)
    raise ArgumentError(
        f"{who!r} is not a judge; pass a model name, an LLMConfig, a JudgeSpec, an object with judge_id and "
        "async ask(request), or a function of the request"
    )
