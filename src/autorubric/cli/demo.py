"""`autorubric demo`: grade the demonstration dataset with recorded judges, and explain the figures."""

from __future__ import annotations

import re
from typing import Annotated

import autorubric
from autorubric import cli
from autorubric.cli.app import Exit, Without, guarded, notice
from autorubric.cli.options import RUN_DEFAULTS, JsonFlag, NoPreflight, RunsDir, flag, option
from autorubric.cli.output import open_in_browser, print_result
from autorubric.cli.panel import Models
from autorubric.cli.runs import mean_score, run_resumable

_TRAIN = 40
Model = Annotated[
    str | None,
    option(
        "--model",
        "M",
        "Model to use as the only judge instead of the two offline judges.  [env var: AUTORUBRIC_MODEL]",
        envvar="AUTORUBRIC_MODEL",
        show_envvar=False,
    ),
]
Report = Annotated[
    bool,
    flag(
        "--report", "Write an HTML report on the run with real judges, and open it in a browser if possible."
    ),
]
SplitSeed = Annotated[
    int, option("--seed", "N", "Seed of the split into training and graded replies.  [default: 0]", min=0)
]


@guarded
def demo(
    model: Model = None,
    *,
    models: Annotated[Models, Without("cache_dir")],
    runs_dir: RunsDir = RUN_DEFAULTS.experiments_dir,
    seed: SplitSeed = 0,
    no_preflight: NoPreflight = False,
    report: Report = False,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade and audit two small datasets offline, without an API key, network access or a model.

    The first has 72 synthetic replies from a support desk, labelled by hand. Of these, 40 train one of two
    offline judges; both judges, as a baseline panel, grade the other 32. The second has 200 summaries with
    recorded verdicts from six LLM judges and one human annotator.

    With --json, prints an object with the keys experiment_dir, judges, n_train, n_test, mean_score, items
    (id, score, label_score and judge_scores of each), metrics (as in `autorubric metrics`) and real_judges
    (experiment_dir, report, metrics, comparison and corrected_score; null with --model).

    \b
    Examples:
      autorubric demo
      autorubric demo --report
      autorubric demo --model gpt-6-luna

    Exit codes: 0 success, 2 invalid command line or folder, 3 a reply could not be judged, 130 interrupted.
    """
    figures = cli.demo_figures
    train, test = figures.demo_dataset().split_train_test(_TRAIN, seed=seed)
    notice(f"Grading {len(test)} replies with {model or 'two offline judges'} …")
    judges = figures.offline_judges(train) if model is None else models.judges([model])
    # A name per model and seed, so that one run never replaces another.
    name = "demo" if model is None else "demo-" + re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-_")
    name += f"-seed{seed}" if seed else ""
    # A rerun reuses stored votes, except those that a newer version of a judge could cast differently.
    result = run_resumable(
        test,
        autorubric.CriterionGrader(judges=judges, seed=seed),
        resume_command="the same command again",
        preflight=not no_preflight,
        experiment_name=name,
        experiments_dir=runs_dir,
        on_mismatch="rejudge",
    )
    if mean_score(result) is None:
        notice(f"No reply could be judged: {result.errors[0][1]}")
        return Exit.UNJUDGED
    measured = result.compute_metrics(per_judge=True, seed=seed)
    if model is None:
        notice("Grading 200 summaries with the recorded verdicts of six judges …")
    summaries = figures.grade_summaries(runs_dir, report=report) if model is None else None
    print_result(
        lambda: figures.demo_json(result, measured, len(train), summaries),
        lambda: figures.demo_blocks(result, measured, summaries, n_train=len(train), model=model),
        as_json=as_json,
    )
    if summaries is not None and summaries.report is not None:
        open_in_browser(summaries.report.resolve().as_uri())
    if result.failed_items:
        notice(f"{result.failed_items} replies could not be judged; first error: {result.errors[0][1]}")
    return Exit.UNJUDGED if result.failed_items else Exit.DONE
