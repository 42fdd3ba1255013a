"""The `autorubric compare` command."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric.cli.judges import Seed
from autorubric.cli.metrics import LabelledFile
from autorubric.cli.output import Exit, JsonFlag, MaxLost, notice, print_json, report_errors, too_many_missing
from autorubric.cli.tables import print_blocks

Baseline = Annotated[
    Path, typer.Argument(metavar="RUN1", help="Folder of the earlier (baseline) run.", show_default=False)
]
Compared = Annotated[
    Path, typer.Argument(metavar="RUN2", help="Folder of the later run.", show_default=False)
]
FailOnRegression = Annotated[
    bool,
    typer.Option(
        "--fail-on-regression",
        help="Exit with code 1 if RUN2 has lower scores, that is, if the confidence interval of the mean "
        "difference is entirely below 0.",
        show_default=False,
    ),
]


@report_errors
def compare(
    baseline: Baseline,
    run: Compared,
    dataset: LabelledFile = None,
    fail_on_regression: FailOnRegression = False,
    max_lost: MaxLost = None,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Compare a run with an earlier run, item by item.

    Items are matched by id. Their texts may differ, for example when two versions of a system answer the same
    questions. Differences are RUN2 - RUN1, with paired confidence intervals over items and p-values from a
    sign-flip test. P-values for criteria are adjusted for multiple comparisons (Holm).

    With --json, prints an object with the keys baseline, run, regressed (null if undecided) and difference
    (as in `RunDifference.to_dict`).

    \b
    Example:
      autorubric compare experiments/before experiments/after --fail-on-regression

    Exit codes: 0 success, 1 lower scores (--fail-on-regression), 2 invalid command line, file or run folder,
    3 too few items to decide, or more verdicts lost or assumed in a run than --max-lost allows.
    """
    with warnings.catch_warnings():
        # The notices repeat the warnings and name the run.
        warnings.simplefilter("ignore", RuntimeWarning)
        before, after = (autorubric.EvalResult.from_experiment(one) for one in (baseline, run))
    for one in (before, after):
        for text in one.notices:
            notice(f"{one.experiment_name}: {text}")
    labelled = autorubric.RubricDataset.from_file(dataset) if dataset is not None else None
    found = autorubric.metrics.run_difference(before, after, labelled, rng=seed)
    if as_json:
        told = {"baseline": str(baseline), "run": str(run), "regressed": found.regressed}
        print_json({**told, "difference": found.to_dict()})
    else:
        print_blocks(found.blocks())
    if not fail_on_regression and max_lost is None:
        return Exit.DONE
    sides = (("the baseline", before), ("the run", after))
    missing = [too_many_missing(one.verdicts, max_lost, side) for side, one in sides]
    if any(missing):
        return Exit.UNJUDGED
    if not fail_on_regression:
        return Exit.DONE
    if found.regressed is None:
        notice("Too few items have a score in both runs to decide whether the scores are lower.")
        return Exit.UNJUDGED
    return Exit.BELOW if found.regressed else Exit.DONE
