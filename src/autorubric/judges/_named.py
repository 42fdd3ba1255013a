"""From texts, as a command line has them, to judges: models, offline baselines and recorded votes."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError, FileError
from autorubric.judges._lexical import LexicalJudge
from autorubric.judges._recorded import RecordedJudge
from autorubric.judges._specs import JudgeLike
from autorubric.judges._supervised import SupervisedJudge
from autorubric.llm import LLMConfig

_OWN: Final = ("lexical", "supervised", "recorded")


def named_judges(
    given: Sequence[str],
    *,
    api_base: str | None = None,
    cache_dir: Path | None = None,
    option: str = "--judge",
) -> list[JudgeLike]:
    """The judges that texts stand for, in order.

    Args:
        given: The texts: a model's name, `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`.
        api_base: Where models are reached.
        cache_dir: Where models' replies are kept; None keeps none.
        option: Where the texts were given, for errors.

    Raises:
        ArgumentError: A text stands for no judge; it is named.
        FileError: A file named in one cannot be read, or has faults.
    """
    return [_judge(text, api_base, cache_dir, option) for text in given]


def _judge(text: str, api_base: str | None, cache_dir: Path | None, option: str) -> JudgeLike:
    kind, colon, rest = text.partition(":")
    try:
        if text == "lexical":
            return LexicalJudge()
        if kind == "supervised" and rest:
            return SupervisedJudge.fit(RubricDataset.from_file(rest))
        if kind == "recorded" and rest:
            path, rater = _split_rater(rest)
            return RecordedJudge.from_csv(path, rater)
        if kind in _OWN:
            raise ArgumentError("give lexical, supervised:TRAIN or recorded:CSV#RATER")
        if not colon:
            _refuse_slip(text)
        return _model(text, api_base, cache_dir)
    except FileError:
        raise
    # The models' specs are pydantic's, whose errors are plain ValueErrors.
    except ValueError as error:
        raise ArgumentError(f"{option} {text!r}: {_first_fault(error)}") from None


def _split_rater(rest: str) -> tuple[str, str | None]:
    path, mark, rater = rest.rpartition("#")
    if not mark or Path(rest).exists():
        return rest, None
    return path, rater or None


def _refuse_slip(text: str) -> None:
    """Refuses a name that is nearly one of our own: no provider has such a model."""
    near = get_close_matches(text.lower(), _OWN, n=1, cutoff=0.8)
    if near:
        raise ArgumentError(f"no model is called so; did you mean {near[0]!r}?")


def _model(name: str, api_base: str | None, cache_dir: Path | None) -> JudgeLike:
    settings: dict[str, Any] = {"model": name, "api_base": api_base}
    if cache_dir is not None:
        settings |= {"cache_enabled": True, "cache_dir": cache_dir}
    return LLMConfig(**settings)


def _first_fault(error: ValueError) -> str:
    errors = getattr(error, "errors", None)
    return str(errors()[0]["msg"]).removeprefix("Value error, ") if callable(errors) else str(error)
