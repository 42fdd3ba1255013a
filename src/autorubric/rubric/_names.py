"""Detection of names that readers and judges can hardly distinguish."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from autorubric._chat_tokens import INVISIBLE

# Letters of other alphabets (Cyrillic, Greek, Armenian, Cherokee, Lisu, Coptic, Latin small capitals),
# quotation marks, dashes and signs, by the character that they resemble in most fonts. Full-width,
# mathematical and Roman characters are not included, because they have compatibility forms.
_TWINS: Final = {
    "a": "аαɑᴀ",
    "b": "ЬьвʙᏏ",
    "c": "сϲᴄ",
    "d": "ԁᴅ",
    "e": "еҽᴇ",
    "f": "ꜰ",
    "g": "ɡցԍɢ",
    "h": "һнհʜᏂ",
    "i": "іιıɩɪᎥ",
    "j": "јϳȷյᴊ",
    "k": "кκᴋ",
    "l": "Ӏӏʟ",
    "m": "мᴍ",
    "n": "пηոɴ",
    "o": "оοσօᴏ०০੦૦౦೦൦๐໐၀",
    "p": "рρᴘ",
    "q": "ԛզք",
    "r": "гʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսᴜ",
    "v": "ѵνᴠ",
    "w": "ԝωաᴡ",
    "x": "хχ",
    "y": "уүγʏᎩ",
    "z": "ᴢ",
    "A": "АΑᎪꓮⲀ",
    "B": "ВΒᏴꓐⲂ",
    "C": "СϹᏟꓚⲤ",
    "D": "Ꭰꓓ",
    "E": "ЕΕᎬꓰ",
    "F": "Ϝꓝ",
    "G": "ԌᏀᏳꓖ",
    "H": "НΗᎻꓧⲎ",
    "I": "ІΙꓲⲒ",
    "J": "ЈͿᎫꓙ",
    "K": "КΚᏦꓗⲔ",
    "L": "ԼᏞꓡ",
    "M": "МΜᎷꓟⲘ",
    "N": "ΝꓠⲚ",
    "O": "ОΟՕꓳⲞ",
    "P": "РΡᏢꓑⲢ",
    "Q": "Ԛ",
    "R": "ᎡᏒꓣ",
    "S": "ЅՏᏚᏕꓢ",
    "T": "ТΤᎢꓔⲦ",
    "U": "Սꓴ",
    "V": "ѴᏙꓦ",
    "W": "ԜᎳᏔꓪ",
    "X": "ХΧꓫⲬ",
    "Y": "УҮΥᎽꓬⲨ",
    "Z": "ΖᏃꓜ",
    "2": "Ƨ",
    "3": "ЗӠзӡƷ",
    "4": "Ꮞ",
    "5": "Ƽ",
    "6": "б",
    "8": "Ȣȣ",
    "|": "ǀ∣",
    "'": "‘’‛′`´ʹʻʼ՚",
    '"': "“”‟″〃ˮ",
    "-": "‐‑‒–—―−⁃˗",
    "/": "⁄∕",
    ":": "∶ː꞉",
    ",": "‚\u066b",
    "*": "∗⁎",
    "~": "∼˜",
    "!": "ǃ",
    "·": "•‧∙⋅",
    "ß": "β",
    "ɛ": "ε",
    "æ": "ӕ",
    "ə": "әǝ",
    "Г": "Γ",
    "П": "Π",
    "Ф": "Φ",
    "ф": "φ",
}
_PROTOTYPES: Final = str.maketrans({twin: letter for letter, twins in _TWINS.items() for twin in twins})
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
        keys = (f"folded {_folded(latin)}", f"shape {_folded(latin.translate(_SHAPES))}")
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


def _folded(text: str) -> str:
    """Return the text case-folded; lowercase Cherokee folds to capitals, which have lookalikes too."""
    return text.casefold().translate(_PROTOTYPES).casefold()
