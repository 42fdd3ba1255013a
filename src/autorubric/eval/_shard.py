"""Grading a part of a dataset as a separate run, for schedulers that start the same command many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.eval._config import EvalConfig, Shard
from autorubric.eval._open import plain_name
from autorubric.eval._result import EvalResult
from autorubric.eval._runner import EvalRunner

if TYPE_CHECKING:
    from autorubric.graders import Grader


def run_shard(dataset: RubricDataset, grader: Grader, i: int, n: int, **options: Any) -> EvalResult:
    """Grade every `n`-th item, starting at item `i`, in a separate run folder, and return the result.

    To grade each item once, call this function for each `i` from 0 to n - 1, on any machines, and merge the
    run folders with `merge_runs`. To resume a stopped shard, run it again.

    Args:
        dataset: The whole dataset, which must be the same for all shards.
        grader: The grader.
        i: Index of the shard, from 0.
        n: Number of shards.
        options: See `evaluate`. The run is named after `experiment_name`, or the dataset if not set, with the
            suffix `-i-of-n`.

    Raises:
        ArgumentError: If the shard does not exist or has no items; see also `evaluate`.
        RunError: If the run folder cannot be used as requested.
    """
    part, config = shard_of(dataset, EvalConfig(**options), i, n)
    grader.check_rubrics(dataset.rubrics())
    return EvalRunner(part, grader, config).run_sync()


def shard_of(dataset: RubricDataset, config: EvalConfig, i: int, n: int) -> tuple[RubricDataset, EvalConfig]:
    """Return the items of one shard and the options of the run that grades them.

    Raises:
        ArgumentError: If the shard does not exist or has no items.
    """
    if n < 1 or not 0 <= i < n:
        raise ArgumentError(f"shard {i} of {n} does not exist; shards are numbered from 0 to n - 1")
    if i >= len(dataset):
        raise ArgumentError(
            f"shard {i} of {n} is empty; the dataset has {len(dataset)} items, so use at most as many shards"
        )
    shard = Shard(i, n, dataset.source_digest() or dataset.fingerprint)
    name = f"{config.experiment_name or plain_name(dataset)}-{i}-of-{n}"
    return dataset.part(i, n), config.model_copy(update={"experiment_name": name, "shard": shard})
