"""Run files: a dataset, a rubric, judges and their settings in one YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, create_model

from autorubric.datasets.fields import FieldMap
from autorubric.errors import ArgumentError, FileError
from autorubric.grading.grader import LLMCalls
from autorubric.grading.plan import FewShotConfig
from autorubric.judges.panel import config_named, names_model
from autorubric.llm.config import LLMConfig, ThinkingLevel, TransportName, TruncatePolicy
from autorubric.llm.specs import holds_secret
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.policies import (
    BinaryAggregation,
    CannotAssessConfig,
    LengthPenalty,
    NominalAggregation,
    OnFailure,
    OrdinalAggregation,
    RankingAggregation,
    VoteMode,
)
from autorubric.support.field_types import Share
from autorubric.support.objects import Json
from autorubric.support.read import format_fault, parse_structured, read_structured, read_text
from autorubric.support.reading_errors import Faults, FilePath, short_repr, type_changes

FORMAT: Final = 1
"""The newest format of run files that this version reads."""


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def _under(key: str) -> BeforeValidator:
    """Return a validator that accepts a plain string as the value of one key."""
    return BeforeValidator(
        lambda given: {key: given} if isinstance(given, str) else given, json_schema_input_type=Any
    )


if TYPE_CHECKING:
    Columns = BaseModel
else:
    Columns = create_model(
        "Columns",
        __base__=_Section,
        **{name: (kind | None, None) for name, kind in get_type_hints(FieldMap).items()},
    )


class DataSource(_Section):
    """A dataset file and the roles of its columns."""

    path: Path
    """A JSON, JSONL, YAML, CSV, TSV or Parquet file."""
    columns: Columns = Field(default_factory=Columns)
    """Columns of the file by role; the keys are those of `FieldMap`."""

    @property
    def fields(self) -> FieldMap:
        """The column mapping, as arguments of `RubricDataset.from_file`."""
        found: FieldMap = self.columns.model_dump(exclude_none=True)  # type: ignore[assignment]
        return found

    def replace_columns(self, fields: FieldMap) -> DataSource:
        """Return a copy in which the given columns are replaced."""
        return self.model_copy(update={"columns": self.columns.model_copy(update=dict(fields))})


class JudgeEntry(_Section):
    """A judge: a model with its settings, or a built-in judge."""

    model: str
    """A model's name, `decision:MODEL#CONTRACT`, `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`."""
    name: str | None = Field(default=None, min_length=1)
    """The judge's name in votes and reports; defaults to the name of the model."""
    weight: float = Field(default=1.0, ge=0)
    """The judge's weight in weighted aggregations."""
    samples: int = Field(default=1, ge=1)
    """Number of votes that the judge casts per criterion."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; the provider's default if not set."""
    logprobs: int | None = Field(default=None, ge=1, le=20)
    """Number of alternatives to each token whose log-probabilities are requested."""
    reasoning_effort: ThinkingLevel | None = None
    """How much the model reasons before it answers."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server, such as `http://localhost:8000/v1`."""
    api_key_env: str | None = Field(default=None, json_schema_extra={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
    """Name of the environment variable that holds the API key. A run file must not contain keys."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Probability mass that tokens are sampled from (nucleus sampling)."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Maximum number of tokens in a reply, including reasoning."""
    max_reason_chars: int | None = Field(default=None, ge=1)
    """Maximum number of characters in a reason; 600 by default."""
    seed: int | None = None
    """Sampling seed, for providers that support one."""
    timeout: float | None = Field(default=None, gt=0)
    """Timeout of a request, in seconds."""
    max_retries: int | None = Field(default=None, ge=0)
    """Maximum number of retries of a failed request."""
    max_parallel_requests: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent requests."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Maximum number of requests in any 60 seconds."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Maximum number of tokens, sent and received, in any 60 seconds."""
    input_cost_per_token: float | None = Field(default=None, ge=0)
    """US dollars per token sent, for models without a known price."""
    output_cost_per_token: float | None = Field(default=None, ge=0)
    """US dollars per token received."""
    transport: TransportName | str | None = None
    """Transport that sends the requests."""
    truncate: TruncatePolicy | None = None
    """Part of a submission that is omitted if it is too long for the model."""
    takes_images: bool | None = None
    """Whether the model takes images; unknown if not set."""
    fallbacks: tuple[str, ...] | None = None
    """Models to ask, in order, if this one fails."""
    extra_params: dict[str, Any] | None = None
    """Additional request parameters, as named by the provider."""

    @property
    def is_model(self) -> bool:
        """Whether the judge is a model rather than a built-in judge."""
        return names_model(self.model)

    @property
    def settings(self) -> dict[str, Any]:
        """The model settings that are not None, as arguments of `LLMConfig`."""
        own = {"name", "weight", "samples", "reasoning_effort"}
        given = self.model_dump(exclude=own, exclude_none=True)
        return given if self.reasoning_effort is None else {**given, "thinking": self.reasoning_effort}

    def to_config(self, cache_dir: Path | None = None) -> LLMConfig:
        """Return the model's configuration."""
        cache: dict[str, Any] = {} if cache_dir is None else {"cache_enabled": True, "cache_dir": cache_dir}
        settings = self.settings
        return config_named(settings.pop("model"), **settings, **cache)


class Budget(_Section):
    """Limits on a run's cost and number of requests."""

    max_cost: float | None = Field(default=None, gt=0)
    """Maximum cost in US dollars; the price of every model must be known."""
    max_calls: int | None = Field(default=None, ge=1)
    """Maximum number of requests to models."""

    def replace_limits(self, **limits: float | None) -> Budget:
        """Return a copy in which the limits that are not None are replaced."""
        return self.model_copy(update={key: value for key, value in limits.items() if value is not None})


class FewShotSource(FewShotConfig):
    """A dataset of labelled items to draw few-shot examples from, with the sampling settings."""

    data: Annotated[DataSource, _under("path")]


class FileLengthPenalty(LengthPenalty):
    """A length penalty that counts words, since a file cannot name a counting function."""

    count_fn: None = None


class RunFile(_Section):
    """The content of a run file: dataset, rubric, judges, and the rules that turn votes into scores."""

    format: int = Field(default=FORMAT, ge=1, le=FORMAT)
    """Version of the file format."""
    name: str | None = None
    """Name of the run; an existing run with this name is resumed. Default: the data's name and the time."""
    runs_dir: Path = Path("experiments")
    """Folder of the runs."""
    rubric: Json = None
    """A rubric file, or the rubric itself; defaults to the rubric of the dataset."""
    data: Annotated[DataSource, _under("path")]
    """The dataset to grade: a file, or a file with `columns`."""
    judges: tuple[Annotated[JudgeEntry, _under("model")], ...] = ()
    """The judges of the panel."""
    aggregation: BinaryAggregation = "majority"
    """How votes on binary criteria are combined."""
    ordinal_aggregation: OrdinalAggregation = "mean"
    """How votes on ordered scales and numbers are combined."""
    nominal_aggregation: NominalAggregation = "mode"
    """How votes on unordered choices are combined."""
    ranking_aggregation: RankingAggregation = "borda"
    """How votes that compare candidates are combined."""
    on_failure: OnFailure = "conservative"
    """How replies that cannot be read are counted."""
    votes: VoteMode = "hard"
    """Whether the judges' answers or their probabilities are combined."""
    thresholds: Mapping[str, Share] = Field(default_factory=dict)
    """For soft votes, the probability from which on a binary criterion is met, by criterion name."""
    calibrations: tuple[Path, ...] = ()
    """For soft votes, files of calibrations of the judges' probabilities."""
    cannot_assess: Annotated[CannotAssessConfig, _under("strategy")] = CannotAssessConfig()
    """How criteria without a judgment are counted."""
    length_penalty: FileLengthPenalty | None = None
    """Penalty that is subtracted from the score for length."""
    normalize: bool = True
    """Whether the score is normalised to [0, 1]."""
    llm_calls: LLMCalls = "per_criterion"
    """Whether to send one request per criterion, per item, or per given number of criteria."""
    stop_when_decided: bool = False
    """Whether votes that can no longer change a verdict are skipped."""
    few_shot: FewShotSource | None = None
    """Source of few-shot examples."""
    budget: Budget = Budget()
    """Limits on the cost and the requests of the run."""
    cache_dir: Path | None = None
    """Folder of the model response cache; replies are not cached by default."""
    seed: int | None = None
    """Seed of all random draws; 0 by default."""

    _folder: Path = PrivateAttr(default=Path())
    _text: str | None = PrivateAttr(default=None)

    @property
    def folder(self) -> Path:
        """The folder that relative paths are resolved against."""
        return self._folder

    @property
    def text(self) -> str | None:
        """The raw text of the file; None if the content was not read from a file."""
        return self._text

    def with_model_settings(self, settings: Mapping[str, Any]) -> RunFile:
        """Return a copy with settings replaced in every judge that is a model."""
        # A key is for one address.
        update = {"api_key_env": None, **settings} if "api_base" in settings else dict(settings)
        judges = tuple(one.model_copy(update=update) if one.is_model else one for one in self.judges)
        return self.model_copy(update={"judges": judges})


SUFFIXES: Final = (".yaml", ".yml")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RENAMED: Final = {"thinking": "reasoning_effort"}


def is_run_file(path: Path) -> bool:
    """Return whether a YAML file is a run file (a mapping with `data` or `judges`) rather than a dataset."""
    if path.suffix.lower() not in SUFFIXES:
        return False
    data = read_structured(path).data
    if isinstance(data, list) or (isinstance(data, Mapping) and "items" in data):
        return False
    if isinstance(data, Mapping) and {"data", "judges"} & data.keys():
        return True
    keys = f"a mapping with the keys {', '.join(map(str, data))}" if isinstance(data, Mapping) else ""
    raise FileError.whole(
        path,
        "the file is neither a dataset (a list of items, or a mapping with 'items') nor a run file (a "
        f"mapping with 'data' and 'judges'); got {keys or short_repr(data)}",
    )


def read_run_file(path: str | Path) -> RunFile:
    """Return the content of a run file."""
    text = read_text(path)
    document = parse_structured(text, "yaml", source=str(path))
    faults = document.faults()
    if not isinstance(document.data, Mapping):
        faults.add(
            (), f"a run file must be a mapping with 'data' and 'judges'; got {short_repr(document.data)}"
        )
        faults.raise_as(FileError)
    if fault := format_fault(document.data.get("format", 1), FORMAT):
        faults.add(("format",), fault)
        faults.raise_as(FileError)
    data = {key: _without_secrets(value, faults, (key,)) for key, value in document.data.items()}
    data = _without_secrets(data, faults, ())
    file = _validate(data, faults)
    _check_judges(data.get("judges"), faults)
    if data.get("rubric") is not None and not isinstance(data["rubric"], str):
        Rubric._read_inside(data["rubric"], faults, ("rubric",))
    faults.raise_as(FileError)
    assert file is not None
    file._folder, file._text = Path(path).parent, text
    return file


def _validate(data: Mapping[str, Json], faults: Faults) -> RunFile | None:
    try:
        file = RunFile.model_validate(data)
    except ValidationError as error:
        faults.add_validation(error, RunFile, data)
        return None
    for path, message in type_changes(data, file.model_dump(mode="json", exclude={"rubric"})):
        faults.add(path, message)
    return file


def _without_secrets(given: Json, faults: Faults, at: FilePath) -> Json:
    """Return the data without secrets; each is reported by its key, without its value."""
    if at and at[0] in ("rubric", "data", "few_shot"):
        return given
    if isinstance(given, list):
        return [_without_secrets(one, faults, (*at, position)) for position, one in enumerate(given)]
    if not isinstance(given, Mapping):
        return given
    kept: dict[str, Any] = {}
    for key, value in given.items():
        place = (*at, str(key))
        if key == "api_key_env" and isinstance(value, str) and not _VARIABLE.fullmatch(value):
            faults.add(
                place, "set the name of an environment variable, such as OPENAI_API_KEY, not the key itself"
            )
        elif str(key) not in JudgeEntry.model_fields and holds_secret(str(key), ""):
            faults.add(
                place,
                f"{key!r} is not allowed: a run file must not contain secrets. Put the key in an "
                "environment variable and set its name, such as api_key_env: OPENAI_API_KEY",
            )
        else:
            kept[key] = _without_secrets(value, faults, place)
    return kept


def _check_judges(given: Json, faults: Faults) -> None:
    """Report unknown judges, settings that a judge does not support, and duplicate names."""
    known: set[str] = set()
    for position, entry in enumerate(given if isinstance(given, list) else ()):
        at: FilePath = ("judges", position)
        try:
            judge = JudgeEntry.model_validate({"model": entry} if isinstance(entry, str) else entry)
        except ValidationError:
            # Reported with the rest of the file.
            continue
        _check_judge(judge, faults, at)
        name = judge.name or judge.model
        if name in known:
            faults.add(at, f"two judges are named {name!r}; set a different 'name' for each")
        known.add(name)


def _check_judge(judge: JudgeEntry, faults: Faults, at: FilePath) -> None:
    try:
        if judge.is_model:
            judge.to_config()
            return
    except ArgumentError as error:
        faults.add((*at, "model"), str(error))
        return
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            loc = [_RENAMED.get(str(step), step) for step in detail["loc"] if not str(step).startswith(":")]
            faults.add((*at, *loc), detail["msg"])
        return
    for key in judge.settings:
        if key != "model":
            faults.add((*at, key), f"{key!r} applies only to models, and {judge.model!r} is not a model")


def run_file_schema() -> dict[str, Json]:
    """Return the JSON schema (2020-12) of run files."""
    rubric = Rubric.json_schema()
    schema = RunFile.model_json_schema()
    schema["properties"]["rubric"] = {
        "description": schema["properties"]["rubric"]["description"],
        "anyOf": [{"type": "string"}, *rubric["anyOf"]],
    }
    definitions = {**rubric["$defs"], **schema["$defs"]}
    return {**schema, "$schema": rubric["$schema"], "title": "autorubric run file", "$defs": definitions}
