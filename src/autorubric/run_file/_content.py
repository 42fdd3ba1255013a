"""The content of a run file, as pydantic models; the JSON schema is generated from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, create_model

from autorubric.aggregation import (
    BinaryAggregation,
    NominalAggregation,
    OnFailure,
    OrdinalAggregation,
    RankingAggregation,
)
from autorubric.dataset import FieldMap
from autorubric.graders import FewShotConfig, LLMCalls
from autorubric.judges import names_model
from autorubric.llm import LLMConfig, ThinkingLevel, TransportName, TruncatePolicy
from autorubric.types import CannotAssessConfig, LengthPenalty
from autorubric.values import Json

FORMAT: Final = 1
"""The newest format of run files that this version reads."""


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def _under(key: str) -> BeforeValidator:
    """Return a validator that takes a plain text as the value of one key."""
    return BeforeValidator(
        lambda given: {key: given} if isinstance(given, str) else given, json_schema_input_type=Any
    )


if TYPE_CHECKING:
    Columns = BaseModel
else:
    Columns = create_model(
        "Columns",
        __base__=_Part,
        **{name: (kind | None, None) for name, kind in get_type_hints(FieldMap).items()},
    )


class DataSource(_Part):
    """A dataset."""

    path: Path
    """A JSON, JSONL, YAML, CSV or Parquet file."""
    columns: Columns = Field(default_factory=Columns)
    """Which column of the file is which; the keys are those of `FieldMap`."""

    @property
    def fields(self) -> FieldMap:
        """The column mapping as `RubricDataset.from_file` takes it."""
        found: FieldMap = self.columns.model_dump(exclude_none=True)  # type: ignore[assignment]
        return found

    def replaced(self, fields: FieldMap) -> DataSource:
        """Return the dataset with columns replaced."""
        return self.model_copy(update={"columns": self.columns.model_copy(update=dict(fields))})


class JudgeEntry(_Part):
    """A judge: a model with its settings, or a built-in judge."""

    model: str
    """A model's name, `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`."""
    name: str | None = Field(default=None, min_length=1)
    """The judge's name in votes and reports; the model's name by default."""
    weight: float = Field(default=1.0, ge=0)
    """Its weight in weighted aggregations."""
    samples: int = Field(default=1, ge=1)
    """Votes that it casts per criterion."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; the provider's by default."""
    reasoning_effort: ThinkingLevel | None = None
    """How much the model reasons before it answers."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server, such as `http://localhost:8000/v1`."""
    api_key_env: str | None = Field(default=None, json_schema_extra={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
    """Name of the environment variable that holds the key. A run file holds no keys."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Share of the probability mass that is sampled from."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Most tokens in a reply, reasoning included."""
    seed: int | None = None
    """Sampling seed, for the providers that take one."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds that a request may take."""
    max_retries: int | None = Field(default=None, ge=0)
    """Most repeats of a failed request."""
    max_parallel_requests: int | None = Field(default=None, ge=1)
    """Most requests in flight at a time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Most requests in any 60 seconds."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Most tokens, sent and received, in any 60 seconds."""
    input_cost_per_token: float | None = Field(default=None, ge=0)
    """US dollars per token sent, for models without a known price."""
    output_cost_per_token: float | None = Field(default=None, ge=0)
    """US dollars per token received."""
    transport: TransportName | None = None
    """How the model is reached."""
    truncate: TruncatePolicy | None = None
    """Which part of a submission is left out if it is too long for the model."""
    fallbacks: tuple[str, ...] | None = None
    """Models to ask, in order, if this one fails."""
    extra_params: dict[str, Any] | None = None
    """Further request parameters in the provider's terms."""

    @property
    def is_model(self) -> bool:
        """Whether it is a model, and not a built-in judge."""
        return names_model(self.model)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model that are set, as arguments of `LLMConfig`."""
        own = {"name", "weight", "samples", "reasoning_effort"}
        given = self.model_dump(exclude=own, exclude_none=True)
        return given if self.reasoning_effort is None else {**given, "thinking": self.reasoning_effort}

    def to_config(self, cache_dir: Path | None = None) -> LLMConfig:
        """Return the model's configuration.

        Args:
            cache_dir: Folder of the reply cache; None for no cache.

        Raises:
            ValidationError: If a setting is not allowed, or two contradict each other.
        """
        cache = {} if cache_dir is None else {"cache_enabled": True, "cache_dir": cache_dir}
        return LLMConfig(**self.settings, **cache)


class Budget(_Part):
    """What a run may send and spend."""

    max_cost: float | None = Field(default=None, gt=0)
    """US dollars; every model's price has to be known."""
    max_calls: int | None = Field(default=None, ge=1)
    """Requests to models."""

    def replaced(self, **limits: float | None) -> Budget:
        """Return the budget with the limits that are not None in place of its own."""
        return self.model_copy(update={key: value for key, value in limits.items() if value is not None})


class FewShotSource(FewShotConfig):
    """Labelled items to draw few-shot examples from, and how they are drawn."""

    data: Annotated[DataSource, _under("path")]


class FileLengthPenalty(LengthPenalty):
    """A length penalty that counts words: a file names no function."""

    count_fn: None = None


class RunFile(_Part):
    """A run: what is graded, by which rubric and which judges, and how votes become scores.

    Relative paths start from the folder of the file.
    """

    format: int = Field(default=FORMAT, ge=1, le=FORMAT)
    """Number of the file's format."""
    name: str | None = None
    """Name of the run; an existing run with this name is resumed. By default the data's name and the time."""
    runs_dir: Path = Path("experiments")
    """The folder of runs."""
    rubric: Json = None
    """A rubric file, or the rubric itself; by default the dataset's."""
    data: Annotated[DataSource, _under("path")]
    """What is graded: a file, or a file with `columns`."""
    judges: tuple[Annotated[JudgeEntry, _under("model")], ...] = ()
    """The panel."""
    aggregation: BinaryAggregation = "majority"
    """How votes on binary criteria are combined."""
    ordinal_aggregation: OrdinalAggregation = "mean"
    """How votes on ordered scales and numbers are combined."""
    nominal_aggregation: NominalAggregation = "mode"
    """How votes on unordered choices are combined."""
    ranking_aggregation: RankingAggregation = "borda"
    """How votes that compare candidates are combined."""
    on_failure: OnFailure = "conservative"
    """How a reply that could not be read counts."""
    cannot_assess: Annotated[CannotAssessConfig, _under("strategy")] = CannotAssessConfig()
    """How criteria without a judgment count."""
    length_penalty: FileLengthPenalty | None = None
    """What length takes off the score."""
    normalize: bool = True
    """Whether the score is normalised to [0, 1]."""
    llm_calls: LLMCalls = "per_criterion"
    """One request per criterion, one per item, or one per so many criteria."""
    stop_when_decided: bool = False
    """Whether votes that can no longer change a verdict are left out."""
    few_shot: FewShotSource | None = None
    """Few-shot examples."""
    budget: Budget = Budget()
    """What the run may send and spend."""
    cache_dir: Path | None = None
    """Folder of a cache of the models' replies; none by default."""
    seed: int | None = None
    """Seed of all draws; 0 by default."""

    _folder: Path = PrivateAttr(default=Path())
    _text: str | None = PrivateAttr(default=None)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return self._folder

    @property
    def text(self) -> str | None:
        """The file as written; None if there is no file."""
        return self._text

    def read_from(self, folder: Path, text: str) -> RunFile:
        """Return the content with the folder and the text of its file."""
        file = self.model_copy()
        file._folder, file._text = folder, text
        return file

    def with_model_settings(self, settings: Mapping[str, Any]) -> RunFile:
        """Return the content with settings replaced in every judge that is a model.

        A new `api_base` without an `api_key_env` removes that of the judge: the key was for another address.

        Args:
            settings: Values by key of `JudgeEntry`.
        """
        update = {"api_key_env": None, **settings} if "api_base" in settings else dict(settings)
        judges = tuple(one.model_copy(update=update) if one.is_model else one for one in self.judges)
        return self.model_copy(update={"judges": judges})
