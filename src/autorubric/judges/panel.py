"""Panels from the entries of `judges=[...]` and from command-line arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from autorubric.criteria.conditions import code_digest, qualified_name
from autorubric.criteria.values import CHECK_JUDGE_ID
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, FileError
from autorubric.judges.base import BatchJudge, ClosableJudge, DescribedJudge, Judge, ModelAsker, PanelJudge
from autorubric.judges.function import FunctionJudge, JudgeFunction, callable_name
from autorubric.judges.lexical import LexicalJudge
from autorubric.judges.recorded import RecordedJudge
from autorubric.judges.supervised import SupervisedJudge
from autorubric.llm.config import LLMConfig
from autorubric.llm.names import owner_of, unset_variable
from autorubric.support.extensions import JUDGES_GROUP, extension_names, load_extension
from autorubric.support.objects import Json

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


@dataclass(frozen=True, kw_only=True)
class PanelMember:
    judge: Judge
    judge_id: str
    weight: float
    samples: int  # number of votes per criterion
    config: LLMConfig | None = None  # the config of the judge's model; None if the judge is not a model
    logged: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the judge calls; empty if it calls none."""
        return self.judge.models if isinstance(self.judge, ModelAsker) else ()

    @cached_property
    def asks_whole_items(self) -> bool:
        """Whether the judge is asked about all criteria of an item together, whatever the grader says."""
        return getattr(type(self.judge), "asks_whole_items", False) is True

    def per_prompt(self, size: int) -> int:
        """Return the number of criteria, 0 for all, in a prompt of a grader that asks about `size`."""
        size = 0 if self.asks_whole_items else size
        return size if size != 1 and isinstance(self.judge, BatchJudge) else 1

    @property
    def is_offline(self) -> bool:
        """Whether the judge is known to work offline: recorded votes, checks and built-in baselines."""
        return getattr(type(self.judge), "is_offline", False) is True

    # Computed once, because the check for the interface takes a fifth of a vote's time.
    @cached_property
    def counts_as_call(self) -> bool:
        """Whether each use of the judge counts as one call in a budget; for models, requests are counted."""
        return self.config is None and not self.is_offline and not self.models

    @cached_property
    def thread_function(self) -> JudgeFunction | None:
        """The function that the judge calls in threads; None if the judge does anything else."""
        return self.judge.in_thread if type(self.judge) is FunctionJudge else None

    def to_dict(self) -> dict[str, Json]:
        """Return the judge's entry in a run's manifest, without secrets."""
        about = {"judge_id": self.judge_id, "weight": self.weight, "samples": self.samples}
        if isinstance(self.judge, DescribedJudge):
            return {**about, **self.judge.describe()}
        code = {"code": code_digest(self.judge), "describes_itself": False}
        return {**about, "judge": qualified_name(type(self.judge)), **code}

    async def aclose(self) -> None:
        if isinstance(self.judge, ClosableJudge):
            await self.judge.aclose()


def panel_members(
    judges: Sequence[JudgeLike],
    *,
    system_prompt: str | None = None,
    multi_choice_system_prompt: str | None = None,
    few_shot: Collection[str] = (),
) -> tuple[PanelMember, ...]:
    if not isinstance(judges, Iterable) or isinstance(judges, (str, JudgeSpec, LLMConfig)):
        raise ArgumentError(f"judges must be a list; got {judges!r}. Pass a single model as llm_config")
    prompts = {"system_prompt": system_prompt, "multi_choice_system_prompt": multi_choice_system_prompt}
    if not (members := tuple(_make_member(spec, prompts) for spec in judges)):
        raise ArgumentError("judges is empty; pass at least one judge")
    _check_ids([member.judge_id for member in members])
    for member in members:
        if isinstance(member.judge, PanelJudge):
            member.judge.check_panel_settings(member.judge_id, few_shot=few_shot)
    return members


def _check_ids(ids: Sequence[object]) -> None:
    unnamed = [one for one in ids if not isinstance(one, str) or not one]
    if unnamed:
        raise ArgumentError(f"judge_id must be a non-empty string; got {unnamed[0]!r}")
    repeated = sorted({str(one) for one in ids if ids.count(one) > 1})
    if repeated:
        advice = "Use --judge NAME=MODEL or judge_id= in a JudgeSpec"
        raise ArgumentError(f"judge names must be unique; repeated: {', '.join(repeated)}. {advice}")
    if CHECK_JUDGE_ID in ids:
        taken = f"judge_id {CHECK_JUDGE_ID!r} is reserved for a criterion's own check"
        raise ArgumentError(f"{taken}; choose another judge_id")


def _make_member(entry: JudgeLike, prompts: Mapping[str, str | None]) -> PanelMember:
    spec = entry if isinstance(entry, JudgeSpec) else JudgeSpec(entry)
    value: Any = spec.llm_config
    config = None
    if isinstance(value, str | LLMConfig):
        config = LLMConfig(model=value) if isinstance(value, str) else value
        judge: Judge = _make_model_judge(config, spec.judge_id or config.model, prompts)
    elif isinstance(value, Judge) and not isinstance(value, type):
        judge, config = value, _config_of(value)
    elif callable(value) and not isinstance(value, type):
        judge = FunctionJudge(function=value, judge_id=spec.judge_id or callable_name(value))
    else:
        raise ArgumentError(
            f"{value!r} is not a judge; pass a model name, an LLMConfig, a JudgeSpec, an object with "
            "judge_id and async ask(request), or a function of the request"
        )
    name, weight, samples = spec.judge_id or judge.judge_id, spec.weight, spec.samples
    return PanelMember(judge=judge, judge_id=name, weight=weight, samples=samples, config=config)


def _make_model_judge(config: LLMConfig, judge_id: str, prompts: Mapping[str, str | None]) -> Judge:
    # Imported late, here and below, because panels of functions or recorded votes call no model.
    from autorubric.judges.decision import DecisionModelJudge
    from autorubric.judges.model import ModelJudge
    from autorubric.llm.client import LLMClient
    from autorubric.llm.decision_wire import WIRES

    if config.transport in WIRES:
        return DecisionModelJudge(config, judge_id=judge_id)
    return ModelJudge(judge_id=judge_id, client=LLMClient(config), **prompts)


def _config_of(judge: Judge) -> LLMConfig | None:
    """Return the config of a judge that is a single model; None for other judges."""
    if not isinstance(judge, ModelAsker):
        return None
    from autorubric.judges.decision import DecisionModelJudge
    from autorubric.judges.model import ModelJudge

    return judge.client.config if isinstance(judge, ModelJudge | DecisionModelJudge) else None


DECISION: Final = "decision:"  # prefix of the names of decision models
_OWN: Final = ("lexical", "supervised", "recorded")
_NAMED: Final = re.compile(r"([\w.@+ -]+)=(.+)", re.DOTALL)


def named_judges(
    given: Sequence[str],
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    cache_dir: Path | None = None,
    samples: int | None = None,
    option: str = "--judge",
    **sampling: float | None,
) -> list[JudgeLike]:
    """Return the judges described by command-line arguments; `sampling` is as in `LLMConfig`."""
    settings: dict[str, Any] = {"api_base": api_base, "api_key_env": api_key_env}
    settings |= {name: value for name, value in sampling.items() if value is not None}
    if cache_dir is not None:
        settings |= {"cache_enabled": True, "cache_dir": cache_dir}
    judges = [_judge(text, settings, samples, option) for text in given]
    models = [who.removeprefix(DECISION) for _, who in map(split_name, given) if names_model(who)]
    demand_models(models, samples=samples, **sampling, api_key_env=api_key_env)
    providers = {owner_of(model) for model in models}
    if api_key_env is not None and api_base is None and len(providers) > 1:
        raise ArgumentError(
            f"--api-key-env {api_key_env}: the models belong to several providers ({', '.join(models)}), but "
            "a key is sent to one provider only; set api_key_env for each judge in a run file"
        )
    if repeated := [text for position, text in enumerate(given) if text in given[:position]]:
        names = f"{option} a={repeated[0]} {option} b={repeated[0]}"
        raise ArgumentError(f"{option} {repeated[0]!r} is passed twice; name each of them: {names}")
    return judges


def split_name(text: str) -> tuple[str | None, str]:
    """Split `name=judge` into its parts; the name is None if the text has no `=`."""
    found = _NAMED.fullmatch(text)
    return (found[1].strip(), found[2]) if found else (None, text)


def demand_models(models: Collection[str], **options: object) -> None:
    """Check that options that apply only to models, and are not None, are used with a model."""
    variable = options.get("api_key_env")
    if variable is not None and not os.environ.get(str(variable), "").strip():
        raise ArgumentError(unset_variable("--api-key-env", str(variable)))
    given = [name for name, value in options.items() if value is not None]
    if given and not models:
        option = f"--{given[0].removesuffix('_requests').replace('_', '-')}"
        raise ArgumentError(f"{option} applies only to models, but no judge is a model; omit the option")


def _judge(text: str, settings: dict[str, Any], samples: int | None, option: str) -> JudgeLike:
    name, who = split_name(text)
    try:
        if names_model(who):
            model = config_named(who, **settings)
            return model if name is None and samples is None else JudgeSpec(model, name, samples=samples or 1)
        judge = builtin_judge(who)
    except FileError:
        raise
    # The models' specs are pydantic's, whose errors are plain ValueErrors.
    except ValueError as error:
        errors: Any = getattr(error, "errors", None)
        reason = str(errors()[0]["msg"]).removeprefix("Value error, ") if callable(errors) else str(error)
        raise ArgumentError(f"{option} {text!r}: {reason}") from None
    return judge if name is None else JudgeSpec(judge, name)


def config_named(text: str, **settings: Any) -> LLMConfig:
    """Return the config of a model's name, or of `decision:MODEL` or `decision:MODEL#CONTRACT`."""
    if not text.startswith(DECISION):
        return LLMConfig(model=text, **settings)
    model, mark, contract = text.removeprefix(DECISION).partition("#")
    if mark and contract not in ("systemone", "openai"):
        raise ArgumentError(f"the contract after # must be systemone or openai; got {contract!r}")
    if settings.get("transport") is not None:
        raise ArgumentError(
            f"omit transport={settings['transport']!r}: the contract of decision:MODEL (#openai) selects it"
        )
    return LLMConfig(**{**settings, "model": model, "transport": f"{contract or 'systemone'}_decisions"})


def names_model(text: str) -> bool:
    """Return whether a text names a model rather than a built-in judge."""
    kind, colon, rest = text.partition(":")
    if text == "lexical" or (kind in ("supervised", "recorded") and rest):
        return False
    if kind in extension_names(JUDGES_GROUP):
        return False
    if kind in _OWN:
        others = "".join(f", {name}:TEXT" for name in extension_names(JUDGES_GROUP))
        own = "lexical, supervised:TRAIN or recorded:CSV#RATER"
        raise ArgumentError(f"a judge that is not a model must be {own}{others}")
    near = [] if colon else get_close_matches(text.lower(), _OWN, n=1, cutoff=0.8)
    if near:
        # No provider has a model with such a name.
        raise ArgumentError(f"unknown model {text!r}; did you mean {near[0]!r}?")
    return True


def builtin_judge(text: str, folder: Path = Path()) -> Judge:
    kind, _, rest = text.partition(":")
    if kind == "lexical":
        return LexicalJudge()
    if kind == "supervised":
        return SupervisedJudge.fit(RubricDataset.from_file(folder / rest))
    if kind != "recorded":
        judge: Judge = load_extension(JUDGES_GROUP, kind)(rest)
        return judge
    path, mark, rater = rest.rpartition("#")
    if not mark or (folder / rest).exists():
        path, rater = rest, ""
    return RecordedJudge.from_csv(folder / path, rater or None)
