"""Figures of `autorubric demo`; loaded late, since it needs the metrics and the reports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autorubric.cli.runs import criterion_figure, mean_score, run_resumable
from autorubric.datasets.dataset import RubricDataset
from autorubric.demo import demo_dataset as demo_dataset, summary_dataset, summary_judges
from autorubric.grading.grader import CriterionGrader
from autorubric.judges.lexical import LexicalJudge
from autorubric.judges.panel import JudgeLike
from autorubric.judges.supervised import SupervisedJudge
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.wording import compare_in_words, difference_of
from autorubric.metrics.correction.score import CorrectedScore, corrected_score
from autorubric.metrics.summaries.compute import MetricsResult
from autorubric.metrics.summaries.results import RaterMetrics
from autorubric.metrics.summaries.run_comparison import RunComparison, compare_run
from autorubric.reports.page import write_report
from autorubric.runs.items import ItemResult
from autorubric.runs.result import EvalResult
from autorubric.scoring.reports import CriterionReport, answer_text
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock, as_text

_SHOWN = 5
"""Number of replies in the table of scores."""


def offline_judges(train: RubricDataset) -> list[JudgeLike]:
    """Return the two judges that need no model."""
    return [LexicalJudge(), SupervisedJudge.fit(train)]


def demo_blocks(
    result: EvalResult,
    measured: MetricsResult,
    summaries: SummaryFigures | None,
    *,
    n_train: int,
    model: str | None,
) -> list[Block]:
    """Return an introduction, the scores, one reply's reasons, the metrics, real judges and next steps."""
    chosen = _spread_items(result)
    return [
        _opening(result, n_train, model),
        _scores(result, chosen),
        *_one_reply(result, chosen[0]),
        *_figures(measured),
        *(_summary_blocks(summaries) if summaries is not None else ()),
        _closing_block(result, summaries),
    ]


def label_score(dataset: RubricDataset, position: int) -> float | None:
    """Return the score computed from an item's labels, or None if it has no labels."""
    truth = dataset.item_truth(position)
    if truth is None:
        return None
    return dataset.compute_weighted_score(truth, rubric=dataset.get_item_rubric(position))


def _spread_items(result: EvalResult) -> list[ItemResult]:
    """Return a few scored items, evenly spaced from the best to the worst by their labels."""
    ranked = sorted(
        result.filter_successful(),
        key=lambda one: (-(label_score(result.dataset, one.item_idx) or 0.0), one.item_idx),
    )
    last = max(1, min(_SHOWN, len(ranked)) - 1)
    places = dict.fromkeys(round(step * (len(ranked) - 1) / last) for step in range(last + 1))
    return [ranked[place] for place in places]


def _opening(result: EvalResult, n_train: int, model: str | None) -> TextBlock:
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
    means = (_pair(rater.criterion_accuracy, rater.mean_kappa) for _, rater in raters)
    per_criterion = TableBlock(
        columns=("criterion", "level", "n", *(name for name, _ in raters)),
        rows=(*_criterion_rows(raters), ("mean", "", "", *means)),
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
        cells = (_pair(criterion_figure(one, "accuracy"), criterion_figure(one, "kappa")) for one in found)
        yield (of_first.name, of_first.criterion_type, of_first.n_samples, *cells)


def _pair(accuracy: float | None, kappa: float | None) -> str:
    return " / ".join(f"{figure:.2f}" if figure is not None else "–" for figure in (accuracy, kappa))


@dataclass(frozen=True, kw_only=True)
class SummaryFigures:
    """The run on the summaries with the recorded judges, and its metrics."""

    result: EvalResult
    measured: MetricsResult
    comparison: RunComparison
    corrected: CorrectedScore  # The panel's mean coverage, corrected with the labels of some summaries.
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


def _summary_blocks(found: SummaryFigures) -> list[Block]:
    """Return the real judges' metrics: agreement, leniency, panel against best judge, and coverage."""
    judges = sorted(found.measured.per_judge.items(), key=lambda one: -(one[1].mean_kappa or 0.0))
    table = TableBlock(
        columns=("judge", "kappa", "accuracy", "score bias"),
        rows=tuple(
            (name, one.mean_kappa, one.criterion_accuracy, _signed(one.bias.mean_bias))
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
    first, second = sorted(judges, key=lambda one: -(one[1].bias.mean_bias or 0.0))[:2]
    gap = difference_of(_bias_estimate(first[1]), _bias_estimate(second[1]))
    lenient = f"{first[0]}, {_signed(first[1].bias.mean_bias)} compared with the annotator"
    told = compare_in_words(
        gap,
        above=f"Most lenient: {lenient}",
        otherwise=f"No judge is clearly the most lenient. The largest bias is that of {lenient}",
        quantity=f"{first[0]} minus {second[0]}",
    )
    yield f"{told}."
    panel = found.comparison.panel
    if panel is not None:
        told = compare_in_words(
            panel.comparison.difference,
            above=f"The panel beats its best member, {panel.b}",
            below=f"The panel does not beat its best member, {panel.b}",
            otherwise=f"That the panel beats its best member, {panel.b}, is not shown",
            quantity="difference in accuracy on decisions without ties",
        )
        yield f"{told}."
    corrected = found.corrected.score
    person = found.result.dataset
    scores = [score for at in range(len(person)) if (score := label_score(person, at)) is not None]
    yield (
        f"Coverage: {as_text(found.corrected.raw.value)} as judged by the panel; corrected with the labels "
        f"of {found.corrected.n_labelled} summaries, {as_text(corrected.value)} "
        f"[{as_text(corrected.low)}, {as_text(corrected.high)}]; {as_text(sum(scores) / len(scores))} "
        "as judged by the annotator, on all summaries."
    )


def _bias_estimate(metrics: RaterMetrics) -> Estimate:
    found = metrics.bias
    low, high = (None, None) if found.ci is None else (found.ci.lower, found.ci.upper)
    return Estimate(found.mean_bias or 0.0, low, high, n=found.n_samples)


def _signed(figure: float | None) -> str:
    """Format a figure with its sign and two decimals; a dash if it is undefined."""
    return "–" if figure is None else f"{figure:+.2f}".replace("-", "−")


def _closing_block(result: EvalResult, summaries: SummaryFigures | None) -> TextBlock:
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


_LABELLED = 50
"""Number of summaries whose labels the corrected coverage uses."""


def grade_summaries(runs_dir: Path, *, report: bool) -> SummaryFigures:
    """Grade the summaries with the recorded verdicts of six judges, and compute the metrics."""
    data = summary_dataset()
    result = run_resumable(
        data,
        CriterionGrader(judges=summary_judges()),
        resume_command="the same command again",
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
        corrected=corrected_score(result, RubricDataset(items=hidden), method="ppi++", on="items"),
        report=path,
    )


def demo_json(
    result: EvalResult, measured: MetricsResult, n_train: int, summaries: SummaryFigures | None
) -> dict[str, Any]:
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
        "real_judges": summaries.to_dict() if summaries is not None else None,
    }
