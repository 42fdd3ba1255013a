"""A part of a dataset as a run of its own, for schedulers that start the same command many times."""

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
    """The result of grading every `n`-th item from item `i` on, in a run folder of its own; blocks.

    Run for each `i` from 0 to n - 1, on whatever machines, the shards grade each item once; `merge_runs`
    makes one run of their folders. A shard that is stopped goes on where it was when it is run again.

    Args:
        dataset: The whole dataset, the same for all shards.
        grader: By whom it is graded.
        i: The shard, from 0.
        n: How many there are.
        options: As for `evaluate`. The run is called `experiment_name`, or what the dataset is called, with
            `-i-of-n` added.

    Raises:
        ArgumentError: There is no such shard, or no item for it; or as for `evaluate`.
        RunError: The run folder cannot be used as asked.
    """
    part, config = shard_of(dataset, EvalConfig(**options), i, n)
    grader.check_rubrics(dataset.rubrics())
    return EvalRunner(part, grader, config).run_sync()


def shard_of(dataset: RubricDataset, config: EvalConfig, i: int, n: int) -> tuple[RubricDataset, EvalConfig]:
    """The items of one shard, and the options of the run that grades them.

    Raises:
        ArgumentError: There is no such shard, or no item for it.
    """
    if n < 1 or not 0 <= i < n:
        raise ArgumentError(f"shard {i} of {n}: shards are counted from 0 to one less than there are")
    if i >= len(dataset):
        raise ArgumentError(
            f"shard {i} of {n} has no item, since the dataset has {len(dataset)}; use at most so many shards"
        )
    shard = Shard(i, n, dataset.source_digest() or dataset.fingerprint)
    name = f"{config.experiment_name or plain_name(dataset)}-{i}-of-{n}"
    return dataset.part(i, n), config.model_copy(update={"experiment_name": name, "shard": shard})
