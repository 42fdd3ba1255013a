"""The `autorubric score` command."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import autorubric
from autorubric.cli.metrics import RunFolder
from autorubric.cli.output import (
    Exit,
    JsonFlag,
    MaxLost,
    MeanFailUnder,
    exit_code,
    notice,
    print_json,
    report_errors,
)
from autorubric.cli.runs import mean_score
from autorubric.cli.tables import print_blocks
from autorubric.errors import ArgumentError
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.runs.result import EvalResult


_MOST_SHOWN = 20

NewRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="Rubric file with different weights, option values, gates, groups or conditions.",
        show_default=False,
    ),
]
Aggregation = Annotated[
    str | None,
    typer.Option(
        "--aggregation",
        metavar="HOW",
        help="Aggregation for binary criteria: majority, weighted, unanimous or any.",
        show_default=False,
    ),
]
OrdinalAggregation = Annotated[
    str | None,
    typer.Option(
        "--ordinal-aggregation",
        metavar="HOW",
        help="Aggregation for ordered scales: mean, median, weighted_mean, mode, min or max.",
        show_default=False,
    ),
]
NominalAggregation = Annotated[
    str | None,
    typer.Option(
        "--nominal-aggregation",
        metavar="HOW",
        help="Aggregation for unordered choices: mode, weighted_mode or unanimous.",
        show_default=False,
    ),
]
CannotAssess = Annotated[
    str | None,
    typer.Option(
        "--cannot-assess",
        metavar="HOW",
        help="How to count criteria that could not be judged: skip, zero, partial or fail.",
        show_default=False,
    ),
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="JUDGE=W",
        help="A judge's weight in weighted aggregation. Repeatable.",
        show_default=False,
    ),
]

NewOnFailure = Annotated[
    Literal["conservative", "exclude"] | None,
    typer.Option(
        "--on-failure",
        help="How to count an unreadable reply: as the conservative answer, or not at all.",
        show_default=False,
    ),
]


@report_errors
def score(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    rubric: NewRubric = None,
    aggregation: Aggregation = None,
    ordinal_aggregation: OrdinalAggregation = None,
    nominal_aggregation: NominalAggregation = None,
    cannot_assess: CannotAssess = None,
    weight: Weights = None,
    on_failure: NewOnFailure = None,
    fail_under: MeanFailUnder = None,
    max_lost: MaxLost = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Rescore a run's stored votes with different weights or policies, without calling judges.

    The run folder is not changed. Criteria whose question has changed have no votes; a notice lists them.

    With --json, prints an object with the keys run, mean_score, mean_score_before, verdicts (as for `eval`),
    notices and items (id, score, before and error of each).

    \b
    Examples:
      autorubric score experiments/essays-1 --rubric reweighted.yaml
      autorubric score experiments/essays-1 --aggregation unanimous

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line, file or run folder, 3 an item has no
    score, or more verdicts were lost or assumed than --max-lost allows.
    """
    before = autorubric.EvalResult.from_experiment(run)
    policies: dict[str, Any] = {
        "aggregation": aggregation,
        "ordinal_aggregation": ordinal_aggregation,
        "nominal_aggregation": nominal_aggregation,
        "cannot_assess_config": _cannot_assess(cannot_assess) if cannot_assess is not None else None,
        "on_failure": on_failure,
        "judge_weights": _weights(weight) if weight else None,
    }
    chosen = {name: given for name, given in policies.items() if given is not None}
    if rubric is None and not chosen:
        raise ArgumentError("nothing to change; pass --rubric or a policy option (see --help)")
    new = autorubric.Rubric.from_file(rubric) if rubric is not None else None
    after = before.rescored(new, **chosen)
    for text in after.notices:
        notice(text)
    if as_json:
        print_json(_json(run, before, after))
    else:
        print_blocks(_blocks(before, after))
    return exit_code(
        mean_score(after), fail_under, unjudged=after.failed_items, verdicts=after.verdicts, max_lost=max_lost
    )


def _cannot_assess(given: str) -> autorubric.CannotAssessConfig:
    try:
        return autorubric.CannotAssessConfig(strategy=autorubric.CannotAssessStrategy(given))
    except ValueError:
        allowed = ", ".join(autorubric.CannotAssessStrategy)
        raise ArgumentError(f"--cannot-assess must be one of {allowed}; got {given!r}") from None


def _weights(given: list[str]) -> dict[str, float]:
    weights = {}
    for one in given:
        judge, _, weight = one.rpartition("=")
        try:
            weights[judge] = float(weight)
        except ValueError:
            raise ArgumentError(f"--weight must be JUDGE=W, such as gpt-6-luna=2; got {one!r}") from None
    return weights


def _pairs(before: EvalResult, after: EvalResult) -> list[tuple[str, float | None, float | None]]:
    """Return the id, the previous score and the new score of each item."""
    old = dict(zip(before.item_results.positions, before.get_scores(), strict=True))
    places = zip(after.item_results.positions, after.get_scores(), strict=True)
    return [(after.dataset.item_id(at), old.get(at), score) for at, score in places]


def _blocks(before: EvalResult, after: EvalResult) -> list[Block]:
    pairs = _pairs(before, after)
    changed = [(item, old, new) for item, old, new in pairs if old != new]
    # The largest changes come first, since readers look for them.
    changed.sort(key=lambda row: -abs((row[2] or 0.0) - (row[1] or 0.0)))
    figures = ScalarBlock(
        title=f"Run {after.experiment_name}, rescored",
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
    rows = tuple(islice(changed, _MOST_SHOWN))
    blocks: list[Block] = [figures, TableBlock(columns=("item", "before", "after"), rows=rows)]
    if len(changed) > _MOST_SHOWN:
        blocks.append(TextBlock(text=f"and {len(changed) - _MOST_SHOWN} more; --json lists all"))
    return blocks


def _json(run: Path, before: EvalResult, after: EvalResult) -> dict[str, Any]:
    errors = dict(after.errors)
    ids = {after.dataset.item_id(at): error for at, error in errors.items()}
    return {
        "run": str(run),
        "mean_score_before": mean_score(before),
        "mean_score": mean_score(after),
        "verdicts": after.verdicts.to_dict(),
        "notices": list(after.notices),
        "items": [
            {"id": item, "score": new, "before": old, "error": ids.get(item)}
            for item, old, new in _pairs(before, after)
        ],
    }
