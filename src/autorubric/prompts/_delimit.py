"""Delimiters that a text cannot have been written to contain, and texts without chat-template tokens.

The tag is computed from the texts of an item, so it is the same for every criterion, judge, sample and rerun
(a provider's prefix cache hits), and yet whoever wrote a text could not know it while writing.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Literal

Part = Literal["query", "reference", "thinking", "submission", "candidate", "context", "example"]

_PARTS: tuple[Part, ...] = ("query", "reference", "thinking", "submission", "candidate", "context", "example")
# Everything that could pass for one of our delimiters at a glance: whatever bracket, tag, case, blanks or
# invisible characters it has. No bracket is among what is skipped, so that the search is linear in the text.
_BRACKET = "[<＜﹤〈⟨〈《⟪❬❮]|&(?:lt|#0*60|#x0*3c);"
# Also marks that turn the direction of a text, join or vary characters, fill a place, or mirror ASCII unseen.
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef\x00-\x1f\x7f-\x9f"
)
_WORDS = "|".join(f"[{_INVISIBLE}]*".join(part) for part in _PARTS)
_SLASHES = "/／∕⁄"
# Special tokens of chat templates, which some servers read as such wherever they occur: with them a text
# could end its turn and begin another. ChatML, GPT, Qwen, Llama 3, Phi, Command-R, Granite and GLM have
# <|name|>, DeepSeek the same with full-width bars, Gemma <start_of_turn>, <|turn> and <turn|>, Llama 2
# <<SYS>> and [INST], Mistral [INST] and other names in capitals, EXAONE [|name|].
_TURNS = (
    r"(?:start|end)_of_(?:turn|image)|s|bos|eos|pad|unk|sop|eop|eoh|eoa|extra_id_\d{1,3}|reserved_\d{1,4}|"
    r"(?:BOS|EOS|PAD|UNK)_TOKEN"
)
_TOKEN = rf"[|｜][\w.:/▁-]{{1,64}}[|｜]?[>＞]|[\w.:/▁-]{{1,64}}[|｜][>＞]|/?(?:{_TURNS})[>＞]|[<＜]/?SYS[>＞]"
_OPENING = re.compile(_BRACKET, re.IGNORECASE)
_LOOKALIKE = (
    rf"(?:{_BRACKET})"
    rf"(?=[\s{_SLASHES}{_INVISIBLE}]*(?:{_WORDS})(?![A-Za-z])|[{_INVISIBLE}]*(?:{_TOKEN}))"
)
_HARMLESS = "‹"
_SQUARE = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|MODEL_SETTINGS|THINK|gMASK)\]"
    r"|\|\w{1,64}\|\])"
)
_HARMLESS_SQUARE = "⟦"


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
    """Return the text with the opening bracket of each delimiter look-alike and chat-template token replaced.

    `<` becomes `‹` and `[` becomes `⟦`, which no tokenizer turns back; all other characters stay.
    """
    if "[" in text:
        text = _SQUARE.sub(_HARMLESS_SQUARE, text)
    if text.isascii() and "<" not in text and "&" not in text:
        # Most texts: to look for each of the brackets would take many times as long.
        return text
    return _lookalike().sub(_HARMLESS, text) if _OPENING.search(text) else text


@cache
def _lookalike() -> re.Pattern[str]:
    """Compiled when it is first used, which takes longer than loading the module."""
    return re.compile(_LOOKALIKE, re.IGNORECASE)


def delimit(part: Part, text: str, tag: str, *, name: str | None = None) -> str:
    """The text between delimiters that carry the tag, the first one a name of ours where there is one."""
    named = "" if name is None else f' name="{name}"'
    return f"<{part}-{tag}{named}>\n{neutralise(text)}\n</{part}-{tag}>"
