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
    """The part of a dataset that a run grades.

    Attributes:
        number: Index of the part, from 0.
        shards: Number of parts.
        whole: Digest of the dataset that is divided.
    """

    number: int
    shards: int
    whole: str


class EvalConfig(BaseModel):
    """Options of a run.

    Attributes:
        fail_fast: Whether the first item without a score, or with a lost verdict, ends the run.
        show_progress: Whether to show progress on stderr, if stderr is a terminal.
        progress_style: One bar for the items, or a second one for the votes.
        max_concurrent_items: Number of items graded at a time; None for 64. `LLMConfig` limits requests.
        experiment_name: Name of the run folder; None generates one.
        experiments_dir: Folder that holds the run folders.
        resume: Whether to resume a run folder of that name. If False, the folder must not exist.
        on_mismatch: What to do if a stored run depends on something that has changed: raise an error that
            lists the changes, ask again for the affected votes, or start a new folder.
        store_prompts: Whether to store the prompt and the raw reply of each vote.
        executor: Where items are graded: `local` is this process; the entry point group
            `autorubric.executors` provides others.
        max_calls: Maximum number of calls of this run: requests to models, including retries and repeated
            questions, and calls of judges that are functions or objects, one per request. Checks and the
            built-in offline judges do not count. At the limit, the run stops with complete items, in order,
            and can be resumed under the same name. None for no limit.
        max_cost: Maximum cost in US dollars, enforced in the same way; the price of every model must be
            known.
        shard: The part of another dataset that this run grades; set by `run_shard`.
        run_file: Text of the run file, stored in the run folder; set by `load_run`. It does not affect the
            run.
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
