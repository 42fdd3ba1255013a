"""Conversion of a run file into a dataset, a grader and options of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Unpack

from pydantic import ValidationError

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.store import can_stream
from autorubric.errors import ArgumentError
from autorubric.grading.grader import CriterionGrader
from autorubric.grading.plan import FewShotConfig
from autorubric.judges.panel import JudgeLike, JudgeSpec, builtin_judge
from autorubric.rubric.rubric import Rubric
from autorubric.runs.config import EvalConfig, EvalOptions
from autorubric.runs.result import EvalResult
from autorubric.runs.run_file import DataSource, JudgeEntry, RunFile, read_run_file
from autorubric.runs.runner import EvalRunner
from autorubric.scoring.policies import LengthPenalty
from autorubric.support.concurrency import sync_method

_OF_GRADER: Final = (
    *("aggregation", "ordinal_aggregation", "nominal_aggregation", "ranking_aggregation"),
    *("on_failure", "votes", "thresholds", "normalize", "llm_calls", "stop_when_decided", "seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """A run that is ready to start.

    Attributes:
        dataset: The dataset to grade.
        grader: The grader with its panel of judges.
        config: Options of the run.
    """

    dataset: RubricDataset
    grader: CriterionGrader
    config: EvalConfig

    async def evaluate(self, **options: Unpack[EvalOptions]) -> EvalResult:
        """Grade the dataset, store the results in a run folder, and return them.

        Args:
            **options: Fields of `EvalConfig` that override the run file.

        Raises:
            ArgumentError: If an option is not a field of `EvalConfig`, or its value is invalid.
            RunError: If the run folder cannot be used with these options.
        """
        return await EvalRunner(self.dataset, self.grader, self.config.replace_options(**options)).run()

    evaluate_sync = sync_method(evaluate)
    """Call `evaluate` from synchronous code, even inside a running event loop."""


def load_run(path: str | Path = "autorubric.yaml") -> RunSetup:
    """Return the run that a run file describes: its dataset, grader and options.

    Relative paths in the file are resolved against its folder. The file cannot execute code, and keys are
    read from the environment variables that it names.

    Args:
        path: The run file.

    Raises:
        FileError: If the run file or a file that it names cannot be read or has errors; all errors in a file
            are reported at once.
        ArgumentError: If there are no judges, or settings contradict each other.
    """
    return set_up(read_run_file(path))


def set_up(file: RunFile, judges: Sequence[JudgeLike] | None = None) -> RunSetup:
    """Return the run that a run file's content describes."""
    rubric = _rubric(file)
    panel = [_judge(entry, file) for entry in file.judges] if judges is None else judges
    if not panel:
        raise ArgumentError("the run has no judges; add 'judges' to the run file, or pass --judge")
    few_shot, penalty = file.few_shot, file.length_penalty
    grader = CriterionGrader(
        judges=panel,
        calibrations=[file.folder / one for one in file.calibrations],
        cannot_assess_config=file.cannot_assess,
        length_penalty=None if penalty is None else LengthPenalty(**penalty.model_dump()),
        training_data=None if few_shot is None else _dataset(few_shot.data, file.folder, rubric),
        few_shot_config=None if few_shot is None else FewShotConfig(**few_shot.model_dump(exclude={"data"})),
        **{name: getattr(file, name) for name in _OF_GRADER},
    )
    config = EvalConfig(
        experiment_name=file.name,
        experiments_dir=file.folder / file.runs_dir,
        max_calls=file.budget.max_calls,
        max_cost=file.budget.max_cost,
        run_file=file.text,
    )
    return RunSetup(dataset=_dataset(file.data, file.folder, rubric), grader=grader, config=config)


def _rubric(file: RunFile) -> Rubric | None:
    if isinstance(file.rubric, str):
        return Rubric.from_file(file.folder / file.rubric)
    return None if file.rubric is None else Rubric.from_dict(file.rubric)


def _dataset(source: DataSource, folder: Path, rubric: Rubric | None) -> RubricDataset:
    """Return a dataset, which is streamed if its file can be read row by row."""
    path = folder / source.path
    if not source.fields and can_stream(path):
        return RubricDataset.stream(path, rubric=rubric)
    return RubricDataset.from_file(path, rubric=rubric, **source.fields)


def _judge(entry: JudgeEntry, file: RunFile) -> JudgeSpec:
    if not entry.is_model:
        return JudgeSpec(builtin_judge(entry.model, file.folder), entry.name, entry.weight, entry.samples)
    try:
        config = entry.to_config(None if file.cache_dir is None else file.folder / file.cache_dir)
    except ValidationError as error:
        # Only command-line settings can be invalid here: those of the file were checked.
        raise ArgumentError(f"judge {entry.name or entry.model!r}: {error.errors()[0]['msg']}") from None
    return JudgeSpec(config, entry.name, entry.weight, entry.samples)
