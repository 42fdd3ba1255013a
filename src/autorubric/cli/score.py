"""Stored runs scored with other policies, judged again, or merged: `score`, `rejudge` and `merge`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import autorubric
from autorubric.cli.app import Exit, guarded, notice
from autorubric.cli.gates import ScoreGate, VerdictLimits, fail_under_option
from autorubric.cli.options import (
    JsonFlag,
    MaxCalls,
    MaxCost,
    NoPreflight,
    NoProgress,
    RunFolder,
    Seed,
    argument,
    names_of,
    option,
    read_numbers,
)
from autorubric.cli.output import print_result, run_blocks
from autorubric.cli.panel import (
    METHODS,
    CalibrationOption,
    JudgeNames,
    PanelOptions,
    ThresholdOption,
    VotesOption,
    thresholds_of,
)
from autorubric.cli.runs import mean_score, new_run_name, report_stop, run_counts, run_resumable
from autorubric.errors import ArgumentError
from autorubric.scoring.policies import CannotAssessConfig, CannotAssessStrategy
from autorubric.scoring.reports import run_headline
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

_MOST_SHOWN = 20

RequiredMean = Annotated[float | None, fail_under_option("Exit with code 1 if the mean score is below X.")]
NewRubric = Annotated[
    Path | None,
    option(
        "--rubric", "R", "Rubric file with different weights, option values, gates, groups or conditions."
    ),
]


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """How stored votes are combined and scored; unset options keep the run's policies."""

    aggregation: Annotated[
        str | None,
        option("--aggregation", "HOW", f"Aggregation for binary criteria: {names_of(METHODS['binary'])}."),
    ] = None
    ordinal_aggregation: Annotated[
        str | None,
        option(
            "--ordinal-aggregation", "HOW", f"Aggregation for ordered scales: {names_of(METHODS['ordinal'])}."
        ),
    ] = None
    nominal_aggregation: Annotated[
        str | None,
        option(
            "--nominal-aggregation",
            "HOW",
            f"Aggregation for unordered choices: {names_of(METHODS['nominal'])}.",
        ),
    ] = None
    cannot_assess: Annotated[
        CannotAssessStrategy | None,
        option(
            "--cannot-assess",
            "HOW",
            f"How to count criteria that could not be judged: {names_of(CannotAssessStrategy)}.",
        ),
    ] = None
    weight: Annotated[
        list[str] | None,
        option("--weight", "JUDGE=W", "A judge's weight in weighted aggregation. Repeatable."),
    ] = None
    on_failure: Annotated[
        Literal["conservative", "exclude"] | None,
        option(
            "--on-failure",
            None,
            "How to count an unreadable reply: as the conservative answer, or not at all.",
        ),
    ] = None
    votes: VotesOption = None
    threshold: ThresholdOption = None
    calibration: CalibrationOption = None

    def changes(self) -> dict[str, Any]:
        """Return the policies that are set, as keywords of `EvalResult.rescore`."""
        strategy = self.cannot_assess
        policies: dict[str, Any] = {
            "aggregation": self.aggregation,
            "ordinal_aggregation": self.ordinal_aggregation,
            "nominal_aggregation": self.nominal_aggregation,
            "cannot_assess_config": strategy and CannotAssessConfig(strategy=strategy),
            "on_failure": self.on_failure,
            "votes": self.votes,
            "thresholds": thresholds_of(self.threshold),
            "calibrations": self.calibration,
            "judge_weights": read_numbers("--weight", "JUDGE=W", "gpt-6-luna=2", self.weight),
        }
        return {name: value for name, value in policies.items() if value is not None}


@guarded
def score(
    run: RunFolder,
    rubric: NewRubric = None,
    *,
    policies: PolicyOptions,
    fail_under: RequiredMean = None,
    limits: VerdictLimits,
    as_json: JsonFlag = False,
) -> Exit:
    """Rescore a run's stored votes with different weights or policies, without calling judges.

    The run folder is not changed. Criteria whose question has changed have no votes; a notice lists them.

    With --json, prints an object with the keys run, mean_score_before, total_items, successful_items,
    partly_scored_items, failed_items, unfinished_items, mean_score, verdicts (as for `eval`), notices and
    items (id, score, before and error of each).

    \b
    Examples:
      autorubric score experiments/essays-1 --rubric reweighted.yaml
      autorubric score experiments/essays-1 --aggregation unanimous

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line, file or run folder, 3 an item has no
    score, or more verdicts were lost or abstained than --max-lost or --max-abstained allows.
    """
    before = autorubric.EvalResult.from_experiment(run)
    changes = policies.changes()
    if rubric is None and not changes:
        raise ArgumentError("nothing to change; pass --rubric or a policy option (see --help)")
    new = autorubric.Rubric.from_file(rubric) if rubric is not None else None
    after = before.rescore(new, **changes)
    notice(*after.notices)
    print_result(lambda: _json(run, before, after), lambda: _blocks(before, after), as_json=as_json)
    gate = ScoreGate(fail_under=fail_under, max_lost=limits.max_lost, max_abstained=limits.max_abstained)
    return gate.exit_code(mean_score(after), after.verdicts, unjudged=after.failed_items)


def _pairs(
    before: autorubric.EvalResult, after: autorubric.EvalResult
) -> list[tuple[str, float | None, float | None]]:
    """Return the id, the previous score and the new score of each item."""
    old = dict(zip(before.item_results.positions, before.get_scores(), strict=True))
    places = zip(after.item_results.positions, after.get_scores(), strict=True)
    return [(after.dataset.item_id(at), old.get(at), score) for at, score in places]


def _blocks(before: autorubric.EvalResult, after: autorubric.EvalResult) -> list[Block]:
    pairs = _pairs(before, after)
    changed = [(item, old, new) for item, old, new in pairs if old != new]
    # The largest changes come first, since readers look for them.
    changed.sort(key=lambda row: -abs((row[2] or 0.0) - (row[1] or 0.0)))
    figures = ScalarBlock(
        title=f"Run {run_headline(after.experiment_name, len(pairs), after.unfinished_items)}, rescored",
        figures=(
            ("items", len(pairs)),
            ("changed scores", len(changed)),
            ("mean score before", mean_score(before)),
            ("mean score after", mean_score(after)),
            ("items without a score", after.failed_items),
            ("verdicts", str(after.verdicts)),
        ),
    )
    if not changed:
        return [figures]
    table = TableBlock(columns=("item", "before", "after"), rows=tuple(changed[:_MOST_SHOWN]))
    more = TextBlock(text=f"and {len(changed) - _MOST_SHOWN} more; --json lists all")
    return [figures, table, *([more] if len(changed) > _MOST_SHOWN else ())]


def _json(run: Path, before: autorubric.EvalResult, after: autorubric.EvalResult) -> dict[str, Any]:
    ids = {after.dataset.item_id(at): error for at, error in after.errors}
    return {
        "run": str(run),
        "mean_score_before": mean_score(before),
        **run_counts(after),
        "notices": list(after.notices),
        "items": [
            {"id": item, "score": new, "before": old, "error": ids.get(item)}
            for item, old, new in _pairs(before, after)
        ],
    }


NewName = Annotated[
    str | None,
    option(
        "--name",
        "NAME",
        "Name of the new run, created next to the old run; an existing run with this name is resumed.  "
        "[default: the old run's name and the time]",
    ),
]


@guarded
def rejudge(  # noqa: PLR0913 - one parameter per option
    run: RunFolder,
    judge: JudgeNames,
    name: NewName = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    no_preflight: NoPreflight = False,
    no_progress: NoProgress = False,
    *,
    panel: PanelOptions,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade the items of a run again with different judges, and compare the two runs.

    The items, their rubric and their labels are read from the run folder. The new run is created next to it;
    the old run is not changed.

    With --json, prints an object with the keys run, rejudged (the new run's folder), regressed and
    difference (as for `compare`).

    \b
    Example:
      autorubric rejudge experiments/essays-1 --judge gpt-6-luna --name by-luna

    Exit codes: 0 success, 2 invalid command line, file or run folder, 3 an item was not judged, 130
    stopped by the user or at --max-calls or --max-cost.
    """
    before = autorubric.EvalResult.from_experiment(run)
    chosen = name or new_run_name(f"{before.experiment_name}-rejudged", run.parent)
    resume_command = f"the same command with --name {shlex.quote(chosen)}"
    after = run_resumable(
        before.dataset,
        panel.grader(judge),
        resume_command=resume_command,
        preflight=not no_preflight,
        show_progress=not no_progress,
        experiment_name=chosen,
        experiments_dir=run.parent,
        max_calls=max_calls,
        max_cost=max_cost,
    )
    notice(*after.notices)
    found = autorubric.metrics.run_difference(before, after, rng=seed)
    runs = {"run": str(run), "rejudged": str(after.experiment_dir)}
    print_result(
        lambda: {**runs, "regressed": found.regressed, "difference": found.to_dict()},
        lambda: [*run_blocks(after), *found.blocks()],
        as_json=as_json,
    )
    if after.stopped is not None:
        return report_stop(after.stopped, resume_command)
    return Exit.UNJUDGED if after.failed_items else Exit.DONE


RunFolders = Annotated[list[Path], argument("RUN...", "Folders of the runs to merge.")]
OutFolder = Annotated[Path, option("--out", "DIR", "Folder for the merged run; must not exist yet.")]


@guarded
def merge(runs: RunFolders, out: OutFolder, as_json: JsonFlag = False) -> Exit:
    """Merge several runs into one: the shards of a dataset, or other runs with the same judges.

    Runs with different inputs or contradictory votes are rejected. Missing items are reported.

    With --json, prints an object with the keys experiment_dir, total_items, successful_items,
    partly_scored_items, failed_items, unfinished_items, mean_score, verdicts (as for `eval`) and notices.

    \b
    Example:
      autorubric merge experiments/essays-*-of-8 --out experiments/essays

    Exit codes: 0 success, 2 invalid command line or run folder.
    """
    result = autorubric.merge_runs(runs, out)
    notice(*result.notices)
    print_result(
        lambda: {
            "experiment_dir": str(result.experiment_dir),
            **run_counts(result),
            "notices": list(result.notices),
        },
        lambda: run_blocks(result),
        as_json=as_json,
    )
    return Exit.DONE
