"""Delimiters that a text cannot have been written to contain.

The tag is computed from the texts of an item, so it is the same for every criterion, judge, sample and rerun
(a provider's prefix cache hits), and yet whoever wrote a text could not know it while writing.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

Part = Literal["query", "reference", "thinking", "submission", "candidate", "context", "example"]

_PARTS: tuple[Part, ...] = ("query", "reference", "thinking", "submission", "candidate", "context", "example")
# Everything that could pass for one of our delimiters at a glance: whatever bracket, tag, case, blanks or
# invisible characters it has. No bracket is among what is skipped, so that the search is linear in the text.
_BRACKET = "[<＜﹤〈⟨]|&lt;"
_INVISIBLE = r"\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff\x00-\x1f"
_WORDS = "|".join(f"[{_INVISIBLE}]*".join(part) for part in _PARTS)
_LOOKALIKE = re.compile(rf"(?:{_BRACKET})(?=[\s/{_INVISIBLE}]*(?:{_WORDS})(?![A-Za-z]))", re.IGNORECASE)
_HARMLESS = "‹"


def item_tag(*texts: str | None) -> str:
    """16 hex digits of the SHA-256 of the texts; which of them are missing counts."""
    digest = hashlib.sha256()
    for text in texts:
        # Lone surrogates occur in scraped texts and are no reason not to judge them.
        encoded = b"" if text is None else text.encode("utf-8", "surrogatepass")
        digest.update(b"-" if text is None else b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def neutralise(text: str) -> str:
    """The text with the opening bracket of every look-alike of a delimiter replaced."""
    return _LOOKALIKE.sub(_HARMLESS, text)


def delimit(part: Part, text: str, tag: str, *, name: str | None = None) -> str:
    """The text between delimiters that carry the tag, the first one a name of ours where there is one."""
    named = "" if name is None else f' name="{name}"'
    return f"<{part}-{tag}{named}>\n{neutralise(text)}\n</{part}-{tag}>"
