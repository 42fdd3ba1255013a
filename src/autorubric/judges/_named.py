"""Creates judges from command-line arguments: models, offline baselines and recorded votes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError, FileError
from autorubric.judges._base import Judge
from autorubric.judges._lexical import LexicalJudge
from autorubric.judges._recorded import RecordedJudge
from autorubric.judges._specs import JudgeLike, JudgeSpec
from autorubric.judges._supervised import SupervisedJudge
from autorubric.llm import LLMConfig, owner_of, unset_variable

_OWN: Final = ("lexical", "supervised", "recorded")
_NAMED: Final = re.compile(r"([\w.@+ -]+)=(.+)", re.DOTALL)


def named_judges(
    given: Sequence[str],
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    cache_dir: Path | None = None,
    temperature: float | None = None,
    samples: int | None = None,
    option: str = "--judge",
) -> list[JudgeLike]:
    """Return the judges described by command-line arguments, in order.

    Args:
        given: The arguments: model names, `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`, each
            optionally prefixed with `name=`, the judge's name in votes and reports.
        api_base: Base URL of the models' API.
        api_key_env: Environment variable that contains the models' API key; None for the provider's default.
        cache_dir: Folder for cached model replies; None for no cache.
        temperature: Sampling temperature of the models, 0 to 2; None for the provider's default.
        samples: Number of votes that each model casts per criterion, at least 1; None for 1.
        option: Name of the command-line option, for error messages.

    Raises:
        ArgumentError: If an argument does not describe a judge or is repeated, `temperature`, `samples` or
            `api_key_env` is set but there is no model, or one key would be sent to several providers.
        FileError: If a file in an argument cannot be read or has errors.
    """
    settings: dict[str, Any] = {"api_base": api_base, "api_key_env": api_key_env, "temperature": temperature}
    if cache_dir is not None:
        settings |= {"cache_enabled": True, "cache_dir": cache_dir}
    judges = [_judge(text, settings, samples, option) for text in given]
    models = [who for _, who in map(split_name, given) if names_model(who)]
    demand_models(models, samples=samples, temperature=temperature, api_key_env=api_key_env)
    providers = {owner_of(model) for model in models}
    if api_key_env is not None and api_base is None and len(providers) > 1:
        raise ArgumentError(
            f"--api-key-env {api_key_env}: the models belong to several providers ({', '.join(models)}), but "
            "a key is sent to one provider only; set api_key_env for each judge in a run file"
        )
    repeated = [text for position, text in enumerate(given) if text in given[:position]]
    if repeated:
        raise ArgumentError(
            f"{option} {repeated[0]!r} is passed twice; name each of them: {option} a={repeated[0]} "
            f"{option} b={repeated[0]}"
        )
    return judges


def split_name(text: str) -> tuple[str | None, str]:
    """Split `name=judge` into its parts; the name is None if the text has no `=`."""
    found = _NAMED.fullmatch(text)
    return (found[1].strip(), found[2]) if found else (None, text)


def demand_models(models: Collection[str], **options: object) -> None:
    """Check that options that apply only to models are used with a model.

    Args:
        models: Names of the models.
        **options: Option values by name; None for an option that is not set.

    Raises:
        ArgumentError: If an option is set but there is no model, or the key's variable is unset or empty.
    """
    variable = options.get("api_key_env")
    if variable is not None and not os.environ.get(str(variable), "").strip():
        raise ArgumentError(unset_variable("--api-key-env", str(variable)))
    given = [name for name, value in options.items() if value is not None]
    if given and not models:
        option = f"--{given[0].replace('_', '-')}"
        raise ArgumentError(f"{option} applies only to models, but no judge is a model; omit the option")


def _judge(text: str, settings: dict[str, Any], samples: int | None, option: str) -> JudgeLike:
    name, who = split_name(text)
    try:
        if names_model(who):
            model = LLMConfig(model=who, **settings)
            return model if name is None and samples is None else JudgeSpec(model, name, samples=samples or 1)
        judge = builtin_judge(who)
    except FileError:
        raise
    # The models' specs are pydantic's, whose errors are plain ValueErrors.
    except ValueError as error:
        raise ArgumentError(f"{option} {text!r}: {_first_fault(error)}") from None
    return judge if name is None else JudgeSpec(judge, name)


def names_model(text: str) -> bool:
    """Return whether a text names a model rather than a built-in judge.

    Raises:
        ArgumentError: If the text resembles the name of a built-in judge, or its file is missing.
    """
    kind, colon, rest = text.partition(":")
    if text == "lexical" or (kind in ("supervised", "recorded") and rest):
        return False
    if kind in _OWN:
        raise ArgumentError("a built-in judge must be lexical, supervised:TRAIN or recorded:CSV#RATER")
    if not colon:
        _refuse_slip(text)
    return True


def builtin_judge(text: str, folder: Path = Path()) -> Judge:
    """Return the built-in judge that a text describes.

    Args:
        text: `lexical`, `supervised:TRAIN` or `recorded:CSV#RATER`.
        folder: The folder that relative paths are resolved against.

    Raises:
        ArgumentError: If the rater is not in the vote table, or the table has several raters and none is
            selected.
        FileError: If the file cannot be read or has errors.
    """
    kind, _, rest = text.partition(":")
    if kind == "lexical":
        return LexicalJudge()
    if kind == "supervised":
        return SupervisedJudge.fit(RubricDataset.from_file(folder / rest))
    path, rater = _split_rater(rest, folder)
    return RecordedJudge.from_csv(path, rater)


def _split_rater(rest: str, folder: Path) -> tuple[Path, str | None]:
    path, mark, rater = rest.rpartition("#")
    if not mark or (folder / rest).exists():
        return folder / rest, None
    return folder / path, rater or None


def _refuse_slip(text: str) -> None:
    """Reject a name that is similar to a built-in judge, because no provider has such a model."""
    near = get_close_matches(text.lower(), _OWN, n=1, cutoff=0.8)
    if near:
        raise ArgumentError(f"unknown model {text!r}; did you mean {near[0]!r}?")


def _first_fault(error: ValueError) -> str:
    errors = getattr(error, "errors", None)
    return str(errors()[0]["msg"]).removeprefix("Value error, ") if callable(errors) else str(error)
