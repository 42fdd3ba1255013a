"""Estimating a run before any request is sent."""

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
    """Estimate the calls, tokens and cost of grading a dataset without sending any request.

    Calls are planned and prompts are rendered exactly as in the run. Tokens are estimated at four characters
    of prompt and schema per token, and 80 tokens per criterion in a reply. Prices are read from the models'
    configs, or from litellm's price list.

    Args:
        dataset: The dataset to grade.
        grader: The grader.
        experiment_name: Name of a run whose stored votes are reused; None for a new run.
        experiments_dir: The folder that contains the run folders.

    Raises:
        ArgumentError: If the grader is not a `CriterionGrader` or names criteria that no rubric has, or an
            item cannot be graded.
        RunError: If a run with that name exists but cannot be read.
    """
    # Imported late, since reading a run does not need the modules that send requests.
    from autorubric.eval._planned import planned

    return planned(dataset, grader, experiment_name, Path(experiments_dir))
