"""From `--judge` to judges: models, offline baselines and recorded votes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from autorubric.judges import JudgeLike

JudgeNames = Annotated[
    list[str],
    typer.Option(
        "--judge",
        metavar="J",
        help="Who judges; repeat it for a panel. A model's name, lexical, supervised:TRAIN (trained on a "
        "labelled dataset), or recorded:CSV#RATER (votes in a table; #RATER may be left out where there is "
        "one rater).",
        show_default=False,
    ),
]
ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="Address of an OpenAI-compatible server, for the judges that are models.",
        show_default=False,
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Keep models' replies in this folder and answer equal requests from it.",
        show_default=False,
    ),
]


class OnFailure(StrEnum):
    """How a reply counts that could not be read."""

    conservative = "conservative"
    exclude = "exclude"
    raise_ = "raise"


HowFailuresCount = Annotated[
    OnFailure,
    typer.Option(
        "--on-failure",
        metavar="HOW",
        help="How an unreadable reply counts: conservative, as UNMET (MET for a penalty); exclude, not at "
        "all; or raise, which leaves the item without a score.  [default: conservative]",
        show_default=False,
    ),
]


def parse_judges(
    given: Sequence[str], *, api_base: str | None = None, cache_dir: Path | None = None
) -> list[JudgeLike]:
    """The judges that texts as `--judge` takes them stand for, in order.

    Args:
        given: The texts.
        api_base: Where models are reached.
        cache_dir: Where models' replies are kept; None keeps none.

    Raises:
        ArgumentError: A text stands for no judge; it is named.
        FileError: A file named in one cannot be read, or has faults.
    """
    # Late, since `--help` should not wait for it.
    from autorubric.judges import named_judges

    return named_judges(given, api_base=api_base, cache_dir=cache_dir)
