"""The `autorubric demo` command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.cli._demo_blocks import (
    SummaryFigures,
    closing_block,
    demo_blocks,
    label_score,
    summary_blocks,
)
from autorubric.cli._judges import ApiBase, ApiKeyEnv, parse_judges
from autorubric.cli._output import Exit, JsonFlag, exit_code, guarded, notice, open_in_browser, print_json
from autorubric.cli._run_options import NoPreflight, RunsDir
from autorubric.cli._runs import mean_score, run_resumable
from autorubric.cli._tables import print_blocks

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalResult
    from autorubric.judges import JudgeLike
    from autorubric.metrics import MetricsResult

_TRAIN = 40
_LABELLED = 50
"""Number of summaries whose labels the corrected coverage uses."""

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="M",
        envvar="AUTORUBRIC_MODEL",
        show_envvar=False,
        help="Model to use as the only judge instead of the two offline judges.  [env var: AUTORUBRIC_MODEL]",
        show_default=False,
    ),
]
Report = Annotated[
    bool,
    typer.Option(
        "--report",
        help="Write an HTML report on the run with real judges, and open it in a browser if possible.",
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Seed of the split into training and graded replies.  [default: 0]",
        show_default=False,
    ),
]


@guarded
def demo(  # noqa: PLR0913
    model: Model = None,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    runs_dir: RunsDir = Path("experiments"),
    seed: Seed = 0,
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
    from autorubric.demo import (
        demo_dataset,
    )  # late, since it loads pydantic, and `--help` need not wait for it

    train, test = demo_dataset().split_train_test(_TRAIN, seed=seed)
    notice(f"Grading {len(test)} replies with {model or 'two offline judges'} …")
    grader = autorubric.CriterionGrader(judges=_judges(train, model, api_base, api_key_env), seed=seed)
    # A rerun reuses stored votes, except those that a newer version of a judge could cast differently.
    result = run_resumable(
        test,
        grader,
        how_to_go_on="the same command again",
        preflight=not no_preflight,
        experiment_name=_run_name(model, seed),
        experiments_dir=runs_dir,
        on_mismatch="rejudge",
    )
    if mean_score(result) is None:
        notice(f"No reply could be judged: {result.errors[0][1]}")
        return Exit.UNJUDGED
    measured = result.compute_metrics(per_judge=True, seed=seed)
    if model is None:
        notice("Grading 200 summaries with the recorded verdicts of six judges …")
    summaries = _grade_summaries(runs_dir, report=report) if model is None else None
    if as_json:
        print_json(
            {
                **_json(result, measured, len(train)),
                "real_judges": summaries.to_dict() if summaries is not None else None,
            }
        )
    else:
        print_blocks(
            [
                *demo_blocks(result, measured, n_train=len(train), model=model),
                *(summary_blocks(summaries) if summaries is not None else ()),
                closing_block(result, summaries),
            ]
        )
    if summaries is not None and summaries.report is not None:
        open_in_browser(summaries.report.resolve().as_uri())
    if result.failed_items:
        notice(f"{result.failed_items} replies could not be judged; first error: {result.errors[0][1]}")
    return exit_code(mean_score(result), None, unjudged=result.failed_items)


def _grade_summaries(runs_dir: Path, *, report: bool) -> SummaryFigures:
    """Grade the summaries with the recorded verdicts of six judges, and compute the metrics."""
    # Imported late, since they load numpy.
    from autorubric.demo import summary_dataset, summary_judges
    from autorubric.metrics import compare_run, corrected_score
    from autorubric.report import write_report

    data = summary_dataset()
    result = run_resumable(
        data,
        autorubric.CriterionGrader(judges=summary_judges()),
        how_to_go_on="the same command again",
        experiment_name="demo-summaries",
        experiments_dir=runs_dir,
        on_mismatch="rejudge",
    )
    path = None
    if report:
        path = runs_dir / "demo-summaries" / "report.html"
        write_report(result, path)
    # Every fourth summary keeps its labels; the coverage of the others is estimated.
    step = len(data) // _LABELLED
    hidden = [
        one if at % step == 0 else one.model_copy(update={"ground_truth": None})
        for at, one in enumerate(data)
    ]
    return SummaryFigures(
        result=result,
        measured=result.compute_metrics(per_judge=True),
        comparison=compare_run(result),
        corrected=corrected_score(result, autorubric.RubricDataset(items=hidden), method="ppi++", on="items"),
        report=path,
    )


def _judges(
    train: RubricDataset, model: str | None, api_base: str | None, api_key_env: str | None
) -> list[JudgeLike]:
    if model is not None:
        return parse_judges([model], api_base=api_base, api_key_env=api_key_env)
    return [autorubric.LexicalJudge(), autorubric.SupervisedJudge.fit(train)]


def _run_name(model: str | None, seed: int) -> str:
    """Return a name per model and seed, so that one run never replaces another."""
    parts = ["demo"]
    if model is not None:
        parts.append(re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-_"))
    if seed:
        parts.append(f"seed{seed}")
    return "-".join(parts)


def _json(result: EvalResult, measured: MetricsResult, n_train: int) -> dict[str, Any]:
    reports = [one.report for one in result.item_results if one.report is not None]
    return {
        "experiment_dir": str(result.experiment_dir),
        "judges": list(reports[0].judge_scores) if reports else [],
        "n_train": n_train,
        "n_test": result.total_items,
        "mean_score": mean_score(result),
        "items": [
            {
                "id": result.dataset.item_id(one.item_idx),
                "score": one.report.score if one.report else None,
                "label_score": label_score(result.dataset, one.item_idx),
                "judge_scores": one.report.judge_scores if one.report else {},
            }
            for one in result.item_results
        ],
        "metrics": measured.to_dict(),
    }
