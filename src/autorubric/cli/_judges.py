"""From `--judge` to judges: models, offline baselines and recorded votes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.errors import ArgumentError, FileError

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
_OWN = ("lexical", "supervised", "recorded")


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
    return [_parse(text, api_base, cache_dir) for text in given]


def _parse(text: str, api_base: str | None, cache_dir: Path | None) -> JudgeLike:
    kind, colon, rest = text.partition(":")
    try:
        if text == "lexical":
            return autorubric.LexicalJudge()
        if kind == "supervised" and rest:
            return autorubric.SupervisedJudge.fit(autorubric.RubricDataset.from_file(rest))
        if kind == "recorded" and rest:
            path, rater = _split_rater(rest)
            return autorubric.RecordedJudge.from_csv(path, rater)
        if kind in _OWN:
            raise ArgumentError("give lexical, supervised:TRAIN or recorded:CSV#RATER")
        if not colon:
            _refuse_slip(text)
        return _model(text, api_base, cache_dir)
    except FileError:
        raise
    # The models' specs are pydantic's, whose errors are plain ValueErrors.
    except ValueError as error:
        raise ArgumentError(f"--judge {text!r}: {_first_fault(error)}") from None


def _split_rater(rest: str) -> tuple[str, str | None]:
    path, mark, rater = rest.rpartition("#")
    if not mark or Path(rest).exists():
        return rest, None
    return path, rater or None


def _refuse_slip(text: str) -> None:
    """Refuses a name that is nearly one of our own: no provider has such a model."""
    # Late, since only a model's name needs it.
    from difflib import get_close_matches

    near = get_close_matches(text.lower(), _OWN, n=1, cutoff=0.8)
    if near:
        raise ArgumentError(f"no model is called so; did you mean {near[0]!r}?")


def _model(name: str, api_base: str | None, cache_dir: Path | None) -> JudgeLike:
    settings: dict[str, Any] = {"model": name, "api_base": api_base}
    if cache_dir is not None:
        settings |= {"cache_enabled": True, "cache_dir": cache_dir}
    return autorubric.LLMConfig(**settings)


def _first_fault(error: ValueError) -> str:
    errors = getattr(error, "errors", None)
    return str(errors()[0]["msg"]).removeprefix("Value error, ") if callable(errors) else str(error)
