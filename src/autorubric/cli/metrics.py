"""The `autorubric metrics` and `autorubric compare` commands, with gates on metrics."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import autorubric
from autorubric.cli.app import Exit, guarded, notice
from autorubric.cli.gates import VerdictLimits, check_gates, needs_bootstrap, read_gates
from autorubric.cli.labels import LabelledFile, Labels, Truth
from autorubric.cli.options import JsonFlag, RunFolder, Seed, argument, flag, option
from autorubric.cli.output import print_result
from autorubric.cli.runs import labelled_verdicts, open_stored_run
from autorubric.errors import ArgumentError

MetricGates = Annotated[
    list[str] | None,
    option(
        "--fail-under",
        "METRIC=X",
        "Exit with code 1 if a panel metric is below X. For several, repeat or separate by commas. "
        "accuracy, balanced_accuracy, precision, recall, tpr (sensitivity), tnr (specificity), f1 and kappa "
        "are means over criteria; spearman, kendall and pearson are correlations of scores. Add @NAME for "
        "one criterion's metric, such as tnr@NAME. Add .low for the lower confidence bound of tpr, tnr, "
        "spearman, kendall, pearson, accuracy or kappa, such as tnr.low, tnr.low@NAME or kappa.low (which "
        "implies --bootstrap).",
    ),
]


@guarded
def metrics(  # noqa: PLR0913 - one parameter per option
    run: RunFolder,
    labels: Labels,
    bootstrap: Annotated[bool, flag("--bootstrap", "Show bootstrap intervals over items.")] = False,
    per_judge: Annotated[bool, flag("--per-judge", "Show each judge's metrics next to the panel's.")] = False,
    truth: Truth = None,
    fail_under: MetricGates = None,
    *,
    limits: VerdictLimits,
    as_json: JsonFlag = False,
) -> Exit:
    """Measure a run's judges against human labels.

    With --json, prints an object with the keys run, verdicts (on labelled criteria, as for `eval`) and
    metrics (as in `MetricsResult.to_dict`).

    \b
    Examples:
      autorubric metrics experiments/essays-1 --per-judge --bootstrap
      autorubric metrics experiments/essays-1 --fail-under tpr=.9,tnr=.85
      autorubric metrics experiments/essays-1 --fail-under tnr.low@apology=.8

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line, file or run folder, 3 a metric in
    --fail-under is undefined, or more of its verdicts were lost or abstained than --max-lost or
    --max-abstained allows.
    """
    gates = read_gates(fail_under or [])
    result = open_stored_run(run)
    labelled = labels.labelled(result, truth)
    found = result.compute_metrics(
        labelled, bootstrap=bootstrap or needs_bootstrap(gates), per_judge=per_judge
    )
    if not found.na_stats.n_cells:
        raise ArgumentError(f"{run} has no labels; pass --labels FILE, or a labelled dataset with --dataset")
    print_result(
        lambda: {
            "run": str(run),
            "verdicts": labelled_verdicts(result, labelled).to_dict(),
            "metrics": found.to_dict(),
        },
        found.blocks,
        as_json=as_json,
    )
    if not gates and not limits.is_set:
        return Exit.DONE
    criteria = dict.fromkeys(gate.criterion for gate in gates) or (None,)
    missing = [limits.exceeded_by(labelled_verdicts(result, labelled, name), name or "") for name in criteria]
    code = check_gates(gates, found)
    return Exit.UNJUDGED if any(missing) else code


Baseline = Annotated[Path, argument("RUN1", "Folder of the earlier (baseline) run.")]
Compared = Annotated[Path, argument("RUN2", "Folder of the later run.")]
FailOnRegression = Annotated[
    bool,
    flag(
        "--fail-on-regression",
        "Exit with code 1 if RUN2 has lower scores, that is, if the confidence interval of the mean "
        "difference is entirely below 0.",
    ),
]


@guarded
def compare(
    baseline: Baseline,
    run: Compared,
    dataset: LabelledFile = None,
    fail_on_regression: FailOnRegression = False,
    *,
    limits: VerdictLimits,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Compare a run with an earlier run, item by item.

    Items are matched by id, so their texts may differ, for example when two versions of a system answer the
    same questions. Items without ids are matched by row if prompts are equal, and otherwise by prompt or
    text. Verdicts on items that only one run has count as not judged in the other run. Differences are RUN2
    - RUN1, with paired confidence intervals over items and p-values from a sign-flip test. P-values for
    criteria are adjusted for multiple comparisons (Holm).

    With --json, prints an object with the keys baseline, run, regressed (null if undecided) and difference
    (as in `RunDifference.to_dict`).

    \b
    Example:
      autorubric compare experiments/before experiments/after --fail-on-regression

    Exit codes: 0 success, 1 lower scores (--fail-on-regression), 2 invalid command line, file or run folder,
    3 no finished item, too few items to decide, or more verdicts of a run lost, not judged or abstained than
    --max-lost or --max-abstained allows.
    """
    with warnings.catch_warnings():
        # The notices repeat the warnings and name the run.
        warnings.simplefilter("ignore", RuntimeWarning)
        before, after = (autorubric.EvalResult.from_experiment(one) for one in (baseline, run))
    for one in (before, after):
        notice(*(f"{one.experiment_name}: {text}" for text in one.notices))
    if empty := [one for one in (before, after) if one.unfinished_items and not one.total_items]:
        notice(*(f"{one.experiment_name} has no finished item; resume the run first." for one in empty))
        return Exit.UNJUDGED
    labelled = autorubric.RubricDataset.from_file(dataset) if dataset is not None else None
    found = autorubric.metrics.run_difference(before, after, labelled, rng=seed)
    runs = {"baseline": str(baseline), "run": str(run)}
    print_result(
        lambda: {**runs, "regressed": found.regressed, "difference": found.to_dict()},
        found.blocks,
        as_json=as_json,
    )
    if not fail_on_regression and not limits.is_set:
        return Exit.DONE
    sides = {"the baseline": found.baseline_verdicts, "the run": found.run_verdicts}
    missing = [limits.exceeded_by(counts, side) for side, counts in sides.items()]
    if any(missing):
        return Exit.UNJUDGED
    if not fail_on_regression:
        return Exit.DONE
    if found.regressed is None:
        notice("Too few items have a score in both runs to decide whether the scores are lower.")
        return Exit.UNJUDGED
    return Exit.BELOW if found.regressed else Exit.DONE


@guarded
def pass_at_k(
    runs: Annotated[list[Path], argument("RUN...", "Folders of runs whose items are trials of tasks.")],
    k: Annotated[list[int] | None, option("--k", "K", "Number of trials. Repeatable.  [default: 1]")] = None,
    task: Annotated[str | None, option("--task", "KEY", "Metadata key with the task.  [default: id]")] = None,
    passes: Annotated[
        list[str] | None, option("--passes", "RULE", "Minimum score, gates, or a criterion. Repeatable.")
    ] = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Measure how often any, or every one, of k trials of a task passes.

    These are pass@k and pass^k. By default, a trial passes if all criteria are met, and no penalty. Trials
    that could not be judged have no outcome; tasks with fewer than k judged trials are excluded.

    With --json, prints an object with the keys runs and pass_rates (one `PassRates.to_dict` for each K).

    \b
    Examples:
      autorubric pass-at-k experiments/agent-1 --task task --k 1 --k 4
      autorubric pass-at-k experiments/trial-* --k 3 --passes task_done

    Exit codes: 0 success, 2 invalid command line or run folder, 3 a figure is undefined.
    """
    results = [open_stored_run(one) for one in runs]
    rule: float | str | list[str] | None = passes
    if passes and len(passes) == 1:
        rule = float(passes[0]) if passes[0].replace(".", "", 1).isdecimal() else passes[0]
    sizes = dict.fromkeys(k or [1])
    found = [autorubric.metrics.pass_at_k(results, size, task=task, passes=rule) for size in sizes]
    print_result(
        lambda: {"runs": [*map(str, runs)], "pass_rates": [one.to_dict() for one in found]},
        lambda: [block for one in found for block in one.blocks()],
        as_json=as_json,
    )
    if all(one.pass_at_k.is_defined for one in found):
        return Exit.DONE
    notice("Too few trials: group the items with --task KEY, pass more runs, or use a smaller --k.")
    return Exit.UNJUDGED
