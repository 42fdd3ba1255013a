"""Delimiters that the author of a text cannot predict, and removal of chat-template tokens.

The tag is a hash of the texts of an item. It is the same for every criterion, judge, sample and rerun, so
that a provider's prefix cache hits, but the author of a text could not know it while writing.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Literal

from autorubric._chat_tokens import BRACKET, HARMLESS, INVISIBLE, OPENING, TOKEN, neutralise_square

Part = Literal["query", "reference", "thinking", "submission", "candidate", "context", "example"]

_PARTS: tuple[Part, ...] = ("query", "reference", "thinking", "submission", "candidate", "context", "example")
# Everything that looks like one of our delimiters, with any bracket, tag, case, blanks or invisible
# characters. The skipped characters do not include a bracket, so that the search takes linear time.
_WORDS = "|".join(f"[{INVISIBLE}]*".join(part) for part in _PARTS)
_SLASHES = "/／∕⁄"
_LOOKALIKE = (
    rf"(?:{BRACKET})"
    rf"(?=[\s{_SLASHES}{INVISIBLE}]*(?:{_WORDS})(?![A-Za-z])|[{INVISIBLE}]*(?:{TOKEN}))"
)


def item_tag(*texts: str | None) -> str:
    """Return 16 hex digits of the texts' SHA-256 digest; None and empty text give different digests."""
    digest = hashlib.sha256()
    for text in texts:
        # Lone surrogates occur in scraped texts, which can be judged nevertheless.
        encoded = b"" if text is None else text.encode("utf-8", "surrogatepass")
        digest.update(b"-" if text is None else b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def neutralise(text: str) -> str:
    """Replace the opening bracket of every delimiter look-alike and chat-template token in a text.

    `<` becomes `‹` and `[` becomes `⟦`, which no tokenizer converts back; all other characters are unchanged.
    """
    text = neutralise_square(text)
    if text.isascii() and "<" not in text and "&" not in text:
        # This is the case for most texts; searching for each bracket would take many times as long.
        return text
    return _lookalike().sub(HARMLESS, text) if OPENING.search(text) else text


@cache
def _lookalike() -> re.Pattern[str]:
    """Compile the pattern on first use, because compiling takes longer than loading the module."""
    return re.compile(_LOOKALIKE, re.IGNORECASE)


def delimit(part: Part, text: str, tag: str, *, name: str | None = None) -> str:
    """Enclose a text in delimiters that contain the tag; the opening one also contains `name`, if any."""
    named = "" if name is None else f' name="{name}"'
    return f"<{part}-{tag}{named}>\n{neutralise(text)}\n</{part}-{tag}>"
