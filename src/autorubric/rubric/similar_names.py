"""Names that can hardly be distinguished."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from autorubric.support.chat_tokens import INVISIBLE

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
