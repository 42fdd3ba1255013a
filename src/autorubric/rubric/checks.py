"""Checks of a rubric: conditions, gates, bonuses, and names that can hardly be distinguished."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.conditions import When
from autorubric.support.chat_tokens import INVISIBLE
from autorubric.support.reading_errors import Faults, FilePath, nearest_key


class PlacedCriterion(NamedTuple):
    """A criterion and its path in the file."""

    path: FilePath
    criterion: BaseCriterion


class UnreadCriterion(NamedTuple):
    """A criterion that could not be parsed because it has errors."""

    path: FilePath
    name: str | None  # name of the criterion; None if it has no name
    when: str | None  # name of the criterion in its condition; None if there is no condition


def condition_of(when: Any) -> str | None:
    """Return the criterion that a condition in a rubric file names; None if the condition is invalid."""
    try:
        return When.model_validate(when).criterion
    except ValidationError:
        return None


def check_conditions(
    found: Mapping[str, PlacedCriterion],
    groups: Collection[str],
    faults: Faults,
    unread: Sequence[UnreadCriterion] = (),
) -> None:
    """Report conditions and gates that can never be decided."""
    known = list(dict.fromkeys([*found, *(one.name for one in unread if one.name is not None)]))
    # If criteria could not be parsed, the names that unnamed criteria will get are not known.
    open_names = re.compile(r"criterion_\d+(_\d+)?" if any(one.name is None for one in unread) else "(?!)")

    def check_target(path: FilePath, other: str) -> None:
        if other in groups:
            faults.add((*path, "when"), f"{other!r} is a group; a condition must name a criterion")
        elif other not in known and not open_names.fullmatch(other):
            faults.add((*path, "when"), f"unknown criterion {other!r}; {nearest_key(other, known)}")

    for one in unread:
        if one.when is not None:
            check_target(one.path, one.when)
    for path, criterion in found.values():
        if criterion.gate is not None and not criterion.measures:
            faults.add((*path, "gate"), "the criterion has no value in [0, 1], so it cannot be a gate")
        if criterion.when is None:
            continue
        other = criterion.when.criterion
        check_target(path, other)
        if other in found and not found[other].criterion.measures:
            message = f"{other!r} has no value in [0, 1], so no condition can use it"
            faults.add((*path, "when"), message)
    conditions = {name: one.criterion.when for name, one in found.items()}
    for circle in _cycles({name: when.criterion for name, when in conditions.items() if when is not None}):
        message = f"conditions form a cycle: {' → '.join([*circle, circle[0]])}"
        faults.add((*found[circle[0]].path, "when"), message)


def _cycles(conditions: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the cycles in `conditions`, where each name points to at most one other name."""
    done: set[str] = set()
    for start in conditions:
        chain: dict[str, None] = {}
        name = start
        while name in conditions and name not in done and name not in chain:
            chain[name] = None
            name = conditions[name]
        if name in chain:
            way = list(chain)
            yield way[way.index(name) :]
        done.update(chain)


def check_bonuses(members: Sequence[BaseCriterion | None], at: FilePath, faults: Faults) -> None:
    """Report a group that contains only bonuses; in `members`, None stands for a nested group."""
    if members and all(one is not None and one.bonus for one in members):
        faults.add(at, "a group must not contain only bonuses; add another criterion")


# Letters of other alphabets (Cyrillic, Greek, Armenian, Cherokee, Lisu, Coptic, Latin small capitals),
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
    """Return pairs of names that look alike, pairing each name with the first earlier name it resembles.

    Two names look alike if they differ only in case, whitespace, invisible characters, or characters that
    look similar in most fonts: letters of other alphabets, `I`, `l`, `1` and `|`, `O` and `0`, dashes, and
    quotation marks. These characters are a subset of the confusable characters in Unicode Technical Standard
    #39, section 4: single characters that look like an ASCII letter, digit or common symbol.
    """
    earlier: dict[str, str] = {}
    pairs = []
    for name in names:
        latin = _skeleton(name)
        keys = (f"folded {_fold(latin)}", f"shape {_fold(latin.translate(_SHAPES))}")
        first = next((earlier[key] for key in keys if key in earlier), name)
        if first != name:
            pairs.append((first, name))
        for key in keys:
            earlier.setdefault(key, name)
    return pairs


def _skeleton(name: str) -> str:
    """Return the name without whitespace, with each character replaced by the one it looks like."""
    # The compatibility forms of some twins are other letters; a lunate sigma becomes a final sigma.
    normal = unicodedata.normalize("NFKC", name.translate(_PROTOTYPES))
    return _GAPS.sub("", normal).translate(_PROTOTYPES)


def _fold(text: str) -> str:
    """Return the text case-folded; lowercase Cherokee folds to capitals, which have lookalikes too."""
    return text.casefold().translate(_PROTOTYPES).casefold()
