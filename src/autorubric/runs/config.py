"""Options of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autorubric.errors import ArgumentError
from autorubric.support.reading_errors import validation_text

OnMismatch = Literal["refuse", "rejudge", "fork"]
StopReason = Literal["max_calls", "max_cost", "same_error", "batch"]
"""Reason for stopping early: a limit, a judge that kept failing, or a provider's unfinished batch."""

ProgressStyle = Literal["simple", "detailed"]


class Shard(NamedTuple):
    """The part of a dataset that a run grades."""

    number: int  # index of the part, from 0
    shards: int
    whole: str  # digest of the whole dataset


class EvalOptions(TypedDict, total=False):
    """Options of a run as keywords; `EvalConfig` describes them and has their defaults."""

    fail_fast: bool
    show_progress: bool
    progress_style: ProgressStyle
    max_concurrent_items: int | None
    experiment_name: str | None
    experiments_dir: str | Path
    resume: bool
    on_mismatch: OnMismatch
    store_prompts: bool
    executor: str
    max_calls: int | None
    max_cost: float | None
    batch: bool
    finish_direct: bool


class EvalConfig(BaseModel):
    """Options of a run.

    Attributes:
        fail_fast: Whether to stop the run at the first item that has no score or a lost verdict.
        show_progress: Whether to show progress on stderr, if stderr is a terminal.
        progress_style: `simple` shows a progress bar for items; `detailed` adds a second bar for votes.
        max_concurrent_items: Maximum number of items graded at a time; None means 64. Requests are limited by
            `LLMConfig`.
        experiment_name: Name of the run folder; None generates a name.
        experiments_dir: Folder that contains the run folders.
        resume: Whether to resume the run folder `experiment_name` if it exists. If False, it must not exist.
        on_mismatch: What to do if a stored run's dependencies have changed: `refuse` raises an error that
            lists the changes, `rejudge` requests the affected votes again, `fork` starts a new folder.
        store_prompts: Whether to store the prompt and the raw reply of each vote.
        executor: Where items are graded: `local` means this process; others are registered in the entry
            point group `autorubric.executors`.
        max_calls: Maximum number of calls in this run: requests to models, including retries and repeats
            after unreadable replies, and calls to judges that are functions or objects. Checks and the
            built-in offline judges do not count. Items are started in order while the budget suffices to
            finish them. A stopped run can be resumed under the same name. None for no limit.
        max_cost: Maximum cost in US dollars, enforced like `max_calls`; the price of every model must be
            known. None for no limit.
        batch: Whether to send requests to models in the provider's batches, which cost about half and take up
            to 24 hours. The run stops with `stopped="batch"` while replies are outstanding; evaluating again
            under the same name collects them. `max_calls` and `max_cost` then include the batches of all
            earlier calls, and no test requests are sent.
        finish_direct: Whether to collect what the batches of the run have answered, cancel them, and send the
            remaining requests directly.
        shard: Shard that this run grades, with the digest of the whole dataset; set by `run_shard`.
        run_file: Text of the run file, stored in the run folder without affecting the run; set by `load_run`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fail_fast: bool = False
    show_progress: bool = True
    progress_style: ProgressStyle = "simple"
    max_concurrent_items: int | None = Field(default=None, ge=1)
    experiment_name: str | None = None
    experiments_dir: Path = Path("experiments")
    resume: bool = True
    on_mismatch: OnMismatch = "refuse"
    store_prompts: bool = True
    executor: str = "local"
    max_calls: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    batch: bool = False
    finish_direct: bool = False
    shard: Shard | None = None
    run_file: str | None = Field(default=None, repr=False)

    def replace_options(self, **options: Unpack[EvalOptions]) -> Self:
        """Return a copy with other options.

        Raises:
            ArgumentError: If an option is unknown or its value is invalid.
        """
        given: dict[str, Any] = {**options}
        for name in ("shard", "run_file"):
            if name in given:
                raise ArgumentError(f"unknown run option {name!r}; it is set by run_shard and load_run")
        try:
            return self.model_validate({**dict(self), **given})
        except ValidationError as error:
            raise ArgumentError(f"invalid run options: {validation_text(error, type(self), given)}") from None
