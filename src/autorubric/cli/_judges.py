"""Conversion of `--judge` values to judges: models, offline baselines and recorded votes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.judges import JudgeLike
    from autorubric.values import Level

JUDGE = (
    "Judge to grade with; repeat for a panel. Use a model name, lexical, supervised:TRAIN (trained on a "
    "labelled dataset), or recorded:CSV#RATER (votes from a table; omit #RATER if the table has one rater). "
    "Write NAME=J to name the judge in votes and reports."
)


def judge_option(help: str) -> Any:
    """Return the option `--judge`."""
    return typer.Option("--judge", metavar="J", help=help, show_default=False)


JudgeNames = Annotated[list[str], judge_option(JUDGE)]
ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="Base URL of an OpenAI-compatible server, used for all judges that are models.",
        show_default=False,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the API key of the models.  [default: the provider's "
        "variable; with --api-base, AUTORUBRIC_API_KEY]",
        show_default=False,
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Cache model responses in this folder, and reuse them for identical requests.",
        show_default=False,
    ),
]


_LEVELS: tuple[Level, ...] = ("binary", "ordinal", "nominal", "ranking")


class OnFailure(StrEnum):
    """Policy for unreadable replies."""

    conservative = "conservative"
    exclude = "exclude"
    raise_ = "raise"


ON_FAILURE = typer.Option(
    "--on-failure",
    metavar="HOW",
    help="How to count an unreadable reply: conservative (as UNMET, or MET for a penalty), exclude (ignore "
    "it), or raise (leave the item without a score).  [default: conservative]",
    show_default=False,
)
HowFailuresCount = Annotated[OnFailure, ON_FAILURE]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        min=1,
        help="Number of votes that each model casts per criterion.  [default: 1]",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="T",
        min=0,
        max=2,
        help="Sampling temperature of the models, from 0 to 2.  [default: set by the provider]",
        show_default=False,
    ),
]
Aggregation = Annotated[
    list[str] | None,
    typer.Option(
        "--aggregation",
        metavar="[LEVEL=]METHOD",
        help="How to combine votes. For binary criteria: majority, weighted, unanimous or any. For other "
        "levels: ordinal=METHOD (mean, median, weighted_mean, mode, min, max), nominal=METHOD (mode, "
        "weighted_mode, unanimous), ranking=METHOD (borda, bradley_terry). Repeat for several levels.  "
        "[default: majority, mean, mode, borda]",
        show_default=False,
    ),
]


def parse_judges(given: Sequence[str], **settings: Any) -> list[JudgeLike]:
    """Return the judges that the `--judge` values describe, in order; see `named_judges`."""
    from autorubric.judges import named_judges

    return named_judges(given, **settings)


def parse_aggregation(given: Sequence[str] | None) -> dict[str, Any]:
    """Convert `--aggregation` values to arguments of `CriterionGrader`.

    Raises:
        ArgumentError: If a value names an unknown level, or a method that its level does not support.
    """
    from autorubric.aggregation import AGGREGATORS

    known: dict[str, Collection[str]] = {level: AGGREGATORS[level] for level in _LEVELS}
    found: dict[str, Any] = {}
    for text in given or ():
        level, _, method = text.rpartition("=")
        methods = known.get(level or "binary")
        if methods is None:
            raise ArgumentError(
                f"--aggregation {text!r}: unknown level {level!r}; available: {', '.join(known)}"
            )
        if method not in methods:
            others = [f"{one}={method}" for one in known if method in known[one]]
            hint = f"; did you mean {' or '.join(others)}?" if others and not level else ""
            raise ArgumentError(
                f"--aggregation {text!r}: unknown method {method!r} for {level or 'binary'} criteria; "
                f"available: {', '.join(methods)}{hint}"
            )
        found["aggregation" if level in ("", "binary") else f"{level}_aggregation"] = method
    return found
