"""Options of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

OnMismatch = Literal["refuse", "rejudge", "fork"]
StopReason = Literal["max_calls", "max_cost", "same_error"]
"""Why a run was stopped before all items were graded: a limit, or a judge that failed over and over."""

ProgressStyle = Literal["simple", "detailed"]


class Shard(NamedTuple):
    """Which part of a dataset a run grades.

    Attributes:
        number: Which it is, from 0.
        shards: How many there are.
        whole: The dataset that they are parts of, as a digest.
    """

    number: int
    shards: int
    whole: str


class EvalConfig(BaseModel):
    """Options of a run.

    Attributes:
        fail_fast: Whether the first item without a score, or with a lost verdict, ends the run.
        show_progress: Whether progress is shown on stderr, where that is a terminal.
        progress_style: A bar for the items, or another one for the votes beside it.
        max_concurrent_items: Items graded at a time; None for 64. Requests are limited by `LLMConfig`.
        experiment_name: The run folder's name; None makes one.
        experiments_dir: The folder that holds run folders.
        resume: Whether a run folder of that name is gone on with; else it must not be there yet.
        on_mismatch: What to do where a stored run depends on something that has changed: refuse and say what,
            ask again for the votes concerned, or go on in a new folder.
        store_prompts: Whether the prompt and raw reply of each vote are kept beside it.
        executor: Who grades: `local` is this process; others are found by the entry point group
            `autorubric.executors`.
        max_calls: Most calls that this run may make: requests to models, retried and re-asked ones included,
            and calls of judges that are functions or objects, one for each request put to them. Checks and
            the built-in judges that work offline are not counted. The run is stopped cleanly there, with
            items finished in order, and is resumed under the same name. None for no limit.
        max_cost: US dollars that they may cost, the same way; every model's price has to be known.
        shard: Which part of another dataset this is; set by `run_shard`.
        run_file: Text of the run file, of which the run folder keeps a copy; set by `load_run`. Nothing of
            the run depends on it.
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
    shard: Shard | None = None
    run_file: str | None = None
