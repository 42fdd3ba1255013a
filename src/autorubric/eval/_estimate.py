"""Estimates of a run before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from autorubric.dataset import RubricDataset
from autorubric.eval._run_estimate import RunEstimate

if TYPE_CHECKING:
    from autorubric.graders import Grader


def estimate(
    dataset: RubricDataset,
    grader: Grader,
    *,
    experiment_name: str | None = None,
    experiments_dir: str | Path = "experiments",
) -> RunEstimate:
    """Estimate the calls, tokens and US dollars of grading a dataset; nothing is sent.

    The calls are planned and their prompts rendered as in the run itself, item by item. Tokens are a rule of
    thumb: four characters of prompt and schema each, and 80 a criterion in a reply. Prices are those of the
    models' configs, else of the list that litellm ships with.

    Args:
        dataset: What would be graded.
        grader: By whom.
        experiment_name: A run whose stored votes are used; None for a new run.
        experiments_dir: The folder of runs.

    Raises:
        ArgumentError: The grader is not a `CriterionGrader`, or names criteria that no rubric has; or an item
            cannot be graded as asked.
        RunError: If there is a run of that name, and it cannot be read.
    """
    # Late, since whoever only reads a run needs nothing that makes requests.
    from autorubric.eval._planned import planned

    return planned(dataset, grader, experiment_name, Path(experiments_dir))
