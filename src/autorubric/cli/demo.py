"""`autorubric demo`: grade the demonstration dataset with recorded judges, and explain the figures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.cli.options import NoPreflight, RunsDir
from autorubric.cli.output import (
    Exit,
    JsonFlag,
    exit_code,
    notice,
    open_in_browser,
    print_json,
    report_errors,
)
from autorubric.cli.panel import ApiBase, ApiKeyEnv, parse_judges
from autorubric.cli.runs import mean_score, run_resumable
from autorubric.cli.tables import print_blocks
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock, as_text

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.judges.panel import JudgeLike
    from autorubric.metrics.correction.score import CorrectedScore
    from autorubric.metrics.summaries.compute import MetricsResult
    from autorubric.metrics.summaries.results import RaterMetrics
    from autorubric.metrics.summaries.run_comparison import RunComparison
    from autorubric.runs.items import ItemResult
    from autorubric.runs.result import EvalResult
    from autorubric.scoring.reports import CriterionReport


_SHOWN = 5
"""Number of replies in the table of scores."""


def demo_blocks(
    result: EvalResult, measured: MetricsResult, *, n_train: int, model: str | None
) -> list[Block]:
    """Return an introduction, the scores, the reasons for one reply's score, and the metrics."""
    chosen = spread(result)
    return [
        _introduction(result, n_train, model),
        _scores(result, chosen),
        *_one_reply(result, chosen[0]),
        *_figures(measured),
    ]


def label_score(dataset: RubricDataset, position: int) -> float | None:
    """Return the score computed from an item's labels, or None if it has no labels."""
    truth = dataset.item_truth(position)
    if truth is None:
        return None
    return dataset.compute_weighted_score(truth, rubric=dataset.get_item_rubric(position))


def spread(result: EvalResult) -> list[ItemResult]:
    """Return a few scored items, evenly spaced from the best to the worst by their labels."""
    ranked = sorted(
        result.filter_successful(),
        key=lambda one: (-(label_score(result.dataset, one.item_idx) or 0.0), one.item_idx),
    )
    last = max(1, min(_SHOWN, len(ranked)) - 1)
    places = dict.fromkeys(round(step * (len(ranked) - 1) / last) for step in range(last + 1))
    return [ranked[place] for place in places]


def _introduction(result: EvalResult, n_train: int, model: str | None) -> TextBlock:
    if model is not None:
        judges = f"{model} was the only judge."
    else:
        judges = (
            "Two judges that need no model: `lexical` compares words without training, and `supervised` is "
            f"a classifier trained on {n_train} labelled replies. A tie counts as the conservative answer. "
            "These judges are a baseline: a real judge must do better."
        )
    return TextBlock(
        title="autorubric demo",
        text=f"{result.total_items} replies from a support desk, graded on "
        f"{len(result.dataset.criterion_names)} weighted criteria and compared with labels written by hand. "
        "The replies are synthetic, so the figures do not apply to real text.\n"
        f"{judges}",
    )


def _scores(result: EvalResult, chosen: list[ItemResult]) -> TableBlock:
    first = chosen[0].report
    judges = list(first.judge_scores) if first is not None and len(first.judge_scores) > 1 else []
    rows: list[tuple[Cell, ...]] = []
    for one in chosen:
        scores = one.report.judge_scores if one.report else {}
        rows.append(
            (
                result.dataset.item_id(one.item_idx),
                one.item.description,
                one.report.score if one.report else None,
                *(scores.get(judge) for judge in judges),
                label_score(result.dataset, one.item_idx),
            )
        )
    title = f"Scores of {len(chosen)} of {result.total_items} replies, sorted by the score from their labels"
    columns = ("reply", "description", "panel" if judges else "score", *judges, "labels")
    return TableBlock(title=title, columns=columns, rows=tuple(rows))


def _one_reply(result: EvalResult, one: ItemResult) -> list[Block]:
    from autorubric.scoring.reports import answer_text

    truth = result.dataset.item_truth(one.item_idx) or {}
    item_id = result.dataset.item_id(one.item_idx)
    reports = one.report.report if one.report else []
    rows = tuple(
        (
            f"{report.name}\n  answer {answer_text(report)}\n  label  {truth.get(report.name)}",
            _evidence(report),
        )
        for report in reports
    )
    return [
        TextBlock(title=f"Reply {item_id}", text=str(one.item.submission)),
        TableBlock(title=f"Reasons for the score of {item_id}", columns=("criterion", "evidence"), rows=rows),
    ]


def _evidence(report: CriterionReport) -> str:
    """Return the reason of the most confident vote that agrees with the decision, with the judge's id."""
    carrying = [vote for vote in report.votes if vote.answer == report.final_answer]
    surest = max(carrying or report.votes, key=lambda vote: vote.confidence or 0.0)
    return f"{surest.judge_id}: {surest.reason or surest.error or surest.status}"


def _figures(measured: MetricsResult) -> list[Block]:
    raters = _raters(measured)
    opening = TextBlock(
        title="Accuracy / kappa against the labels",
        text="Kappa measures agreement beyond chance: 0 is chance level, 1 is perfect. On ordinal criteria, "
        "a near miss gets partial credit.",
    )
    per_criterion = TableBlock(
        columns=("criterion", "level", "n", *(name for name, _ in raters)),
        rows=(*_criterion_rows(raters), _mean_row(raters)),
    )
    scores = TableBlock(
        title="Reply scores compared with label scores",
        columns=("", "n", "mean abs. error", "bias", "Spearman", "abstained", "failed"),
        rows=tuple(
            (
                name,
                rater.n_scores,
                rater.score_mae,
                rater.bias.mean_bias,
                rater.score_spearman.coefficient,
                rater.abstention_rate,
                rater.failure_rate,
            )
            for name, rater in raters
        ),
    )
    return [opening, per_criterion, scores]


def _raters(measured: MetricsResult) -> list[tuple[str, RaterMetrics]]:
    """Return the raters to show: the panel and its judges, or a single judge."""
    if len(measured.per_judge) == 1:
        return [(judge, measured) for judge in measured.per_judge]
    return [("panel", measured), *measured.per_judge.items()]


def _criterion_rows(raters: Sequence[tuple[str, RaterMetrics]]) -> Iterator[tuple[Cell, ...]]:
    for of_first in raters[0][1].per_criterion:
        found = [{one.name: one for one in rater.per_criterion}.get(of_first.name) for _, rater in raters]
        pairs = (accuracy_and_kappa(one) if one else (None, None) for one in found)
        cells = (_pair(*pair) for pair in pairs)
        yield (of_first.name, of_first.criterion_type, of_first.n_samples, *cells)


def _mean_row(raters: Sequence[tuple[str, RaterMetrics]]) -> tuple[Cell, ...]:
    return ("mean", "", "", *(_pair(rater.criterion_accuracy, rater.mean_kappa) for _, rater in raters))


def accuracy_and_kappa(figures: object) -> tuple[float | None, float | None]:
    """Return a criterion's accuracy and the kappa of its level; None for both if the level has neither."""
    from autorubric import metrics

    match figures:
        case metrics.CriterionMetrics():
            return figures.accuracy, figures.kappa
        case metrics.OrdinalCriterionMetrics():
            return figures.exact_accuracy, figures.weighted_kappa
        case metrics.NominalCriterionMetrics():
            return figures.exact_accuracy, figures.kappa
        case _:
            return None, None


def _pair(accuracy: float | None, kappa: float | None) -> str:
    return " / ".join(f"{figure:.2f}" if figure is not None else "–" for figure in (accuracy, kappa))


@dataclass(frozen=True, kw_only=True)
class SummaryFigures:
    """The run with real judges and its metrics.

    Attributes:
        result: The run on the 200 summaries.
        measured: Metrics of the run, including per-judge metrics.
        comparison: Pairwise comparisons between the judges, and between the panel and its best judge.
        corrected: The panel's mean coverage, corrected with the labels of some summaries.
        report: Path of the HTML report; None if none was requested.
    """

    result: EvalResult
    measured: MetricsResult
    comparison: RunComparison
    corrected: CorrectedScore
    report: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a JSON-serializable dictionary."""
        return {
            "experiment_dir": str(self.result.experiment_dir),
            "report": str(self.report) if self.report is not None else None,
            "metrics": self.measured.to_dict(),
            "comparison": self.comparison.to_dict(),
            "corrected_score": self.corrected.to_dict(),
        }


def summary_blocks(found: SummaryFigures) -> list[Block]:
    """Return the real judges' metrics: agreement, leniency, panel against best judge, and coverage."""
    judges = sorted(found.measured.per_judge.items(), key=lambda one: -(one[1].mean_kappa or 0.0))
    table = TableBlock(
        columns=("judge", "kappa", "accuracy", "score bias"),
        rows=tuple(
            (name, one.mean_kappa, one.criterion_accuracy, _with_sign(one.bias.mean_bias))
            for name, one in judges
        ),
    )
    return [
        TextBlock(
            title="Real judges",
            text="200 summaries from SummHay (Apache-2.0): how well do they cover 1,419 insights? The "
            "recorded verdicts of six LLM judges from 2024 are compared with a human annotator's.",
        ),
        table,
        TextBlock(text="\n".join(_sentences(found, judges))),
    ]


def _sentences(found: SummaryFigures, judges: Sequence[tuple[str, RaterMetrics]]) -> Iterator[str]:
    lenient, its = max(judges, key=lambda one: one[1].bias.mean_bias or 0.0)
    yield f"Most lenient: {lenient}, {_with_sign(its.bias.mean_bias)} compared with the annotator."
    panel = found.comparison.panel
    if panel is not None:
        difference = panel.comparison.difference
        verdict = (
            "The panel beats its best member"
            if (difference.low or 0.0) > 0
            else "The panel does not beat its best member"
        )
        yield (
            f"{verdict}, {panel.b}: accuracy {_with_sign(difference.value)} "
            f"[{_with_sign(difference.low)}, {_with_sign(difference.high)}] on decisions without ties."
        )
    corrected = found.corrected.score
    person = found.result.dataset
    scores = [score for at in range(len(person)) if (score := label_score(person, at)) is not None]
    yield (
        f"Coverage: {as_text(found.corrected.raw.value)} as judged by the panel; corrected with the labels "
        f"of {found.corrected.n_labelled} summaries, {as_text(corrected.value)} "
        f"[{as_text(corrected.low)}, {as_text(corrected.high)}]; {as_text(sum(scores) / len(scores))} "
        "as judged by the annotator, on all summaries."
    )


def _with_sign(figure: float | None) -> str:
    """Format a figure with its sign and two decimals; a dash if it is undefined."""
    return "–" if figure is None else f"{figure:+.2f}".replace("-", "−")


def closing_block(result: EvalResult, summaries: SummaryFigures | None) -> TextBlock:
    """Return the suggested next steps."""
    folder = shlex.quote(str(result.experiment_dir))
    steps = []
    if summaries is not None:
        real = shlex.quote(str(summaries.result.experiment_dir))
        if summaries.report is not None:
            steps.append(f"Report on the real judges: {summaries.report}")
        else:
            steps.append("  autorubric demo --report     # the real judges as an HTML page")
        steps.append(f"  autorubric judges audit {real}")
    else:
        steps.append(f"  autorubric report {folder} -o report.html")
    steps.append(f"  autorubric metrics {folder} --per-judge --bootstrap")
    steps.append("  autorubric init              # your own rubric, data and run file")
    return TextBlock(title="Next steps", text="\n".join(steps))


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


@report_errors
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
    from autorubric.demo import demo_dataset

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
    from autorubric.metrics.correction.score import corrected_score
    from autorubric.metrics.summaries.run_comparison import compare_run
    from autorubric.reports.page import write_report

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
    return [autorubric.LexicalJudge(), autorubric.judges.SupervisedJudge.fit(train)]


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
