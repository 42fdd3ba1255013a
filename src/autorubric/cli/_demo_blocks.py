"""What `autorubric demo` tells, as blocks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from autorubric._blocks import Block, Cell, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalResult, ItemResult
    from autorubric.metrics import MetricsResult, RaterMetrics
    from autorubric.types import CriterionReport

_SHOWN = 5
"""Replies in the table of scores."""


def demo_blocks(
    result: EvalResult, measured: MetricsResult, *, n_train: int, model: str | None
) -> list[Block]:
    """The whole of what the demo tells: what was done, scores, one reply's reasons, figures, what to do next.

    Args:
        result: The run, with at least one score.
        measured: Its figures, those of each judge among them.
        n_train: Replies that trained the supervised judge.
        model: The model that judged alone; None for the offline panel.
    """
    chosen = spread(result)
    return [
        _opening(result, n_train, model),
        _scores(result, chosen),
        *_one_reply(result, chosen[0]),
        *_figures(measured),
        _closing(result, model),
    ]


def label_score(dataset: RubricDataset, position: int) -> float | None:
    """The score that an item's labels give."""
    truth = dataset.item_truth(position)
    if truth is None:
        return None
    return dataset.compute_weighted_score(truth, rubric=dataset.get_item_rubric(position))


def spread(result: EvalResult) -> list[ItemResult]:
    """A few items with a score, from the best by its labels to the worst, evenly spaced."""
    ranked = sorted(
        result.filter_successful(),
        key=lambda one: (-(label_score(result.dataset, one.item_idx) or 0.0), one.item_idx),
    )
    last = max(1, min(_SHOWN, len(ranked)) - 1)
    places = dict.fromkeys(round(step * (len(ranked) - 1) / last) for step in range(last + 1))
    return [ranked[place] for place in places]


def _opening(result: EvalResult, n_train: int, model: str | None) -> TextBlock:
    if model is not None:
        judges = f"{model} judged alone."
    else:
        judges = (
            "Two judges that need no model: `lexical` compares words and was never trained, `supervised` is "
            f"a classifier trained on {n_train} labelled replies. Where they tie, the conservative "
            "answer stands. They are a floor that a paid judge must beat."
        )
    return TextBlock(
        title="autorubric demo",
        text=f"{result.total_items} replies of a support desk, graded on "
        f"{len(result.dataset.criterion_names)} weighted criteria and compared with hand-set labels. The "
        "replies and labels are synthetic: made up for this, so the figures say nothing about real texts.\n"
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
    title = (
        f"Scores of {len(chosen)} of {result.total_items} replies, from the best by its labels to the worst"
    )
    columns = ("reply", "what it is", "panel" if judges else "score", *judges, "labels")
    return TableBlock(title=title, columns=columns, rows=tuple(rows))


def _one_reply(result: EvalResult, one: ItemResult) -> list[Block]:
    # Late, since the help of all commands imports this file.
    from autorubric.types import answer_text

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
        TableBlock(title=f"Why {item_id} scored as it did", columns=("criterion", "evidence"), rows=rows),
    ]


def _evidence(report: CriterionReport) -> str:
    """The reason of the surest vote that carries the decision, after its judge."""
    carrying = [vote for vote in report.votes if vote.answer == report.final_answer]
    surest = max(carrying or report.votes, key=lambda vote: vote.confidence or 0.0)
    return f"{surest.judge_id}: {surest.reason or surest.error or surest.status}"


def _figures(measured: MetricsResult) -> list[Block]:
    raters = _raters(measured)
    opening = TextBlock(
        title="Accuracy / kappa against the labels",
        text="Kappa is agreement beyond chance: 0 is chance, 1 is perfect; on ordinal criteria a near miss "
        "counts in part.",
    )
    per_criterion = TableBlock(
        columns=("criterion", "level", "n", *(name for name, _ in raters)),
        rows=(*_criterion_rows(raters), _mean_row(raters)),
    )
    scores = TableBlock(
        title="Scores of whole replies against those of their labels",
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
    """Whose figures are shown: the panel's and its judges', or those of a judge that sits alone."""
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
    """Accuracy and the kappa of a criterion's level; both None on levels that have neither."""
    from autorubric import metrics  # late, since it loads numpy

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


def _closing(result: EvalResult, model: str | None) -> TextBlock:
    folder = shlex.quote(str(result.experiment_dir))
    steps = [
        f"The run lies in {result.experiment_dir}: every vote with its reason. Look at it, let a model "
        "try, or grade a text of your own:",
        f"  autorubric report {folder} -o report.html",
        f"  autorubric metrics {folder} --per-judge --bootstrap",
    ]
    if model is None:
        steps.append("  autorubric demo --model gpt-6-luna")
    steps.append('  autorubric grade "Your text" --rubric your-rubric.yaml --judge lexical')
    return TextBlock(title="What now", text="\n".join(steps))
