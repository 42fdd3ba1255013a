"""Files that users keep: `autorubric init`, `validate`, `schema` and `cache`."""

from __future__ import annotations

import os
import re
import shlex
import string
import unicodedata
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

import autorubric
from autorubric.cli.app import Exit, command_group, guarded, notice
from autorubric.cli.options import Columns, JsonFlag, argument, check_texts, flag, notice_columns, option
from autorubric.cli.output import print_json, print_result
from autorubric.errors import ArgumentError, Fault, FileError
from autorubric.llm.cache import CacheStats, ReplyCache
from autorubric.llm.config import LLMConfig
from autorubric.support.blocks import ScalarBlock
from autorubric.support.chat_tokens import INVISIBLE
from autorubric.support.names import describe_merged, merge_names
from autorubric.support.read import TEXT_FORMATS, read_structured
from autorubric.support.write import write_text_atomic

Template = Literal["support-reply", "rag-faithfulness", "summary", "essay", "code-review", "agent-run"]
"""A set of starter files: a rubric, a run file and sample data."""
_COLUMNS: Final[Mapping[Template, tuple[str, str]]] = {
    "support-reply": ("reply", "question"),
    "rag-faithfulness": ("answer", "question"),
    "summary": ("summary", "document"),
    "essay": ("essay", "task"),
    "code-review": ("comment", "diff"),
    "agent-run": ("transcript", "task"),
}
"""Columns of the submission and the prompt in the sample data."""

Folder = Annotated[
    Path, argument("[DIR]", "Folder to write to; created if missing.  [default: the working directory]")
]
TemplateName = Annotated[
    Template, option("--template", "NAME", f"Template: {', '.join(_COLUMNS)}.", show_default=True)
]
Force = Annotated[bool, flag("--force", "Replace existing files.")]


@guarded
def init(folder: Folder = Path(), template: TemplateName = "support-reply", force: Force = False) -> Exit:
    """Write a rubric, a run file and sample data as a starting point.

    Writes rubric.yaml, autorubric.yaml, and data.csv with ten texts and human labels. The run file names a
    model: set its API key in the environment, or name another model.

    \b
    Examples:
      autorubric init
      autorubric init grading --template essay

    Exit codes: 0 success, 2 a file already exists, or invalid command line.
    """
    source = files("autorubric") / "templates"
    submission, prompt = _COLUMNS[template]
    run_file = string.Template((source / "autorubric.yaml").read_text(encoding="utf-8"))
    texts = {
        "rubric.yaml": (source / template / "rubric.yaml").read_text(encoding="utf-8"),
        "autorubric.yaml": run_file.substitute(submission=submission, prompt=prompt),
        "data.csv": (source / template / "data.csv").read_text(encoding="utf-8"),
    }
    where = "the current folder" if folder == Path() else folder
    there = [name for name in texts if os.path.lexists(folder / name)]
    if there and not force:
        raise ArgumentError(
            f"{where} already contains {', '.join(there)}; choose another folder, or pass --force to replace"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text_atomic(folder / name, text)
    notice(f"Wrote {', '.join(texts)} to {where}.")
    into = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    notice(f"Next: {into}export OPENAI_API_KEY=… && autorubric eval")
    notice("Without a key: autorubric eval --judge lexical, which only compares words.")
    return Exit.DONE


CheckedFile = Annotated[Path, argument("FILE", "Rubric, dataset or run file to check.")]
Kind = Annotated[
    Literal["rubric", "dataset", "run"] | None,
    option("--as", None, "Kind of file.  [default: detected from its content]"),
]
DatasetRubric = Annotated[
    Path | None,
    option(
        "--rubric",
        "R",
        "Rubric that the labels of a dataset must match.  [default: the dataset's own rubric]",
    ),
]


@guarded
def validate(
    file: CheckedFile,
    kind: Kind = None,
    rubric: DatasetRubric = None,
    *,
    columns: Columns,
    as_json: JsonFlag = False,
) -> Exit:
    """Check a rubric, dataset or run file, and report all errors with their line numbers.

    An empty submission is an error, and so is a dataset without items. Criterion names and option labels that
    differ only in case, whitespace, or invisible or look-alike characters cause a warning.

    With --json, prints an object with the keys file, kind, valid, criteria, items, faults (path, line and
    message of each) and warnings (a list of strings).

    \b
    Examples:
      autorubric validate rubric.yaml
      autorubric validate essays.jsonl --rubric rubric.yaml

    Exit codes: 0 no errors, with or without warnings; 2 errors or invalid command line.
    """
    found = kind or _kind_of(file, rubric)
    criteria: int | None = None
    items: int | None = None
    faults: tuple[Fault, ...] = ()
    warnings: list[str] = []
    try:
        if found == "rubric":
            read = autorubric.Rubric.from_file(file)
            criteria, warnings = len(read), _warnings([read])
        else:
            if found == "run":
                dataset = autorubric.load_run(file).dataset
                notice_columns(dataset)
            else:
                dataset = columns.open(file, rubric)
            criteria, items = dataset.num_criteria, len(dataset)
            warnings = _warnings(dataset.rubrics())
            people = merge_names(rater for item in dataset for rater in item.ratings)
            warnings += filter(None, [describe_merged(people, "raters")])
            check_texts(file, dataset)
    except FileError as error:
        # Errors of another file, such as the rubric of a dataset, are reported for that file.
        if not as_json or error.source != str(file):
            raise
        faults = error.faults
    if as_json:
        errors = [{"path": one.path, "line": one.line, "message": one.message} for one in faults]
        head = {"file": str(file), "kind": found, "valid": not faults, "criteria": criteria, "items": items}
        print_json({**head, "faults": errors, "warnings": warnings})
    else:
        for warning in warnings:
            notice(f"warning: {warning}")
        holds = f"{criteria} criteria" if items is None else f"{items} items, {criteria} criteria"
        notice(f"{file}: valid {found}{' file' * (found == 'run')} with {holds}.")
    return Exit.USAGE if faults else Exit.DONE


def _warnings(rubrics: Iterable[autorubric.Rubric]) -> list[str]:
    """Return warnings about similar names and weights that have no effect, without duplicates."""
    found = []
    for rubric in rubrics:
        choices = [one for one in rubric if isinstance(one, autorubric.Criterion) and one.options]
        names = {f"option labels (of {one.name!r})": [o.label for o in one.options or ()] for one in choices}
        found += [
            f"the {what} {one!a} and {other!a} are too similar; rename one of them"
            for what, compared in ({"criterion names": [*rubric.names]} | names).items()
            for one, other in similar_names(compared)
        ]
        found += [
            f"criterion {one.name!r} has a weight but never enters the score: its options have no values; "
            "add a value (0 to 1) to each, or set scale_type: ordinal for options listed from worst to best"
            for one in choices
            if "weight" in one.model_fields_set and all(option.value is None for option in one.options or ())
        ]
    return list(dict.fromkeys(found))


def _kind_of(file: Path, rubric: Path | None) -> Literal["rubric", "dataset", "run"]:
    """Return the kind of a file: tables, JSON lines and files with items or submissions are datasets."""
    if rubric is not None or file.suffix.lower() not in TEXT_FORMATS or file.suffix.lower() == ".jsonl":
        return "dataset"
    try:
        data = read_structured(file).data
    except FileError:
        # Reading the rubric reports the error.
        return "rubric"
    if isinstance(data, dict):
        return "dataset" if "items" in data else "run" if {"data", "judges"} & data.keys() else "rubric"
    first = data[0] if isinstance(data, list) and data else None
    return "dataset" if isinstance(first, dict) and "submission" in first else "rubric"


OfRunFile = Annotated[
    bool, option("--run", None, "Print the schema of run files (autorubric.yaml).", show_default=True)
]


@guarded
def schema(run: OfRunFile = False) -> Exit:
    """Print the JSON schema of rubric files or run files, for editors.

    \b
    Examples:
      autorubric schema > rubric.schema.json
      autorubric schema --run > run.schema.json
    """
    print_json(autorubric.runs.run_file.run_file_schema() if run else autorubric.Rubric.json_schema())
    return Exit.DONE


# From the confusable characters in Unicode Technical Standard #39, section 4:
# letters of other alphabets (Cyrillic, Greek, Armenian, Cherokee, Lisu, Coptic, Latin small capitals),
# quotation marks, dashes and signs that resemble another character in most fonts. Full-width,
# mathematical and Roman characters are not included, because they have compatibility forms. In each word,
# the first character is followed by the characters that resemble it.
_TWINS: Final = """
    aаαɑᴀ bЬьвʙᏏ cсϲᴄ dԁᴅ eеҽᴇ fꜰ gɡցԍɢ hһнհʜᏂ iіιıɩɪᎥ jјϳȷյᴊ kкκᴋ lӀӏʟ mмᴍ nпηոɴ oоοσօᴏ०০੦૦౦೦൦๐໐၀ pрρᴘ
    qԛզք rгʀ sѕꜱ tтτᴛ uυսᴜ vѵνᴠ wԝωաᴡ xхχ yуүγʏᎩ zᴢ AАΑᎪꓮⲀ BВΒᏴꓐⲂ CСϹᏟꓚⲤ DᎠꓓ EЕΕᎬꓰ FϜꓝ GԌᏀᏳꓖ HНΗᎻꓧⲎ
    IІΙꓲⲒ JЈͿᎫꓙ KКΚᏦꓗⲔ LԼᏞꓡ MМΜᎷꓟⲘ NΝꓠⲚ OОΟՕꓳⲞ PРΡᏢꓑⲢ QԚ RᎡᏒꓣ SЅՏᏚᏕꓢ TТΤᎢꓔⲦ UՍꓴ VѴᏙꓦ WԜᎳᏔꓪ XХΧꓫⲬ YУҮΥᎽꓬⲨ
    ZΖᏃꓜ 2Ƨ 3ЗӠзӡƷ 4Ꮞ 5Ƽ 6б 8Ȣȣ |ǀ∣ '‘’‛′`´ʹʻʼ՚ "“”‟″〃ˮ -‐‑‒–—―−⁃˗ /⁄∕ :∶ː꞉ ,‚\u066b *∗⁎ ~∼˜ !ǃ ·•‧∙⋅ ßβ ɛε
    æӕ əәǝ ГΓ ПΠ ФΦ фφ
"""
_PROTOTYPES: Final = str.maketrans({twin: twins[0] for twins in _TWINS.split() for twin in twins[1:]})
_SHAPES: Final = str.maketrans("I1|0", "lllO")
_GAPS: Final = re.compile(rf"[\s\u2800\ufff9-\ufffb{INVISIBLE}]+")
"""Whitespace and invisible characters."""


def similar_names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of names that look alike, pairing each name with the first earlier name it resembles."""
    earlier: dict[str, str] = {}
    pairs = []
    for name in names:
        # Without whitespace, and with each character replaced by the one it looks like. The compatibility
        # forms of some twins are other letters; a lunate sigma becomes a final sigma.
        normal = unicodedata.normalize("NFKC", name.translate(_PROTOTYPES))
        latin = _GAPS.sub("", normal).translate(_PROTOTYPES)
        keys = (f"folded {_fold(latin)}", f"shape {_fold(latin.translate(_SHAPES))}")
        first = next((earlier[key] for key in keys if key in earlier), name)
        if first != name:
            pairs.append((first, name))
        for key in keys:
            earlier.setdefault(key, name)
    return pairs


def _fold(text: str) -> str:
    """Return the text case-folded; lowercase Cherokee folds to capitals, which have lookalikes too."""
    return text.casefold().translate(_PROTOTYPES).casefold()


_DEFAULT = LLMConfig.model_construct(model="").cache_dir
CacheFolder = Annotated[Path, option("--cache-dir", "DIR", f"Cache folder.  [default: {_DEFAULT}]")]

cache_app = command_group("Show or clear the cache of model responses.", "autorubric cache stats")


@cache_app.command("stats")
@guarded
def show_stats(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Show the number of cached replies, their total size and the cache folder.

    With --json, prints an object with the keys path, entries, size_bytes and max_bytes.

    \b
    Example:
      autorubric cache stats --cache-dir .autorubric_cache
    """
    stats = CacheStats(path=str(cache_dir))
    found = _existing(cache_dir)
    if found is not None:
        stats = found.stats()
        found.close()
    figures = {name: getattr(stats, name) for name in ("path", "entries", "size_bytes", "max_bytes")}
    block = ScalarBlock(title="Cached replies", figures=tuple(figures.items()))
    print_result(lambda: figures, lambda: [block], as_json=as_json)
    return Exit.DONE


@cache_app.command("clear")
@guarded
def clear(cache_dir: CacheFolder = _DEFAULT, as_json: JsonFlag = False) -> Exit:
    """Remove all cached replies.

    With --json, prints an object with the keys path and removed.

    \b
    Example:
      autorubric cache clear --cache-dir .autorubric_cache
    """
    found = _existing(cache_dir)
    removed = 0
    if found is not None:
        removed = found.clear()
        found.close()
    if as_json:
        print_json({"path": str(found.path if found else cache_dir), "removed": removed})
    else:
        notice(f"Removed {removed} replies from {cache_dir}.")
    return Exit.DONE


def _existing(folder: Path) -> ReplyCache | None:
    """Return the cache in a folder; None if there is no cache, because opening it would create one."""
    found = ReplyCache(folder)
    return found if found.path.exists() else None
