"""Special tokens of chat templates, which some servers interpret wherever they occur in a text.

A text could use them to end its turn in a conversation and start another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

BRACKET: Final = "[<＜﹤〈⟨〈《⟪❬❮]|&(?:lt|#0*60|#x0*3c);"
"""Pattern of all characters and entities that could be mistaken for `<`.

The characters skipped after a match do not include a bracket, so a search takes linear time.
"""
# Marks that turn the direction of a text, join or vary characters, fill a place, or mirror ASCII unseen.
INVISIBLE: Final = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef\x00-\x1f\x7f-\x9f"
)
# ChatML, GPT, Qwen, Llama 3, Phi, Command-R, Granite and GLM have <|name|>, DeepSeek the same with full-width
# bars, Gemma <start_of_turn>, <|turn> and <turn|>, <unused0>, Llama 2 <<SYS>> and [INST], Mistral [INST] and
# other names in capitals, EXAONE [|name|], Qwen and DeepSeek <think> and <tool_call>, GLM <arg_key>.
_TURNS: Final = (
    r"(?:start|end)_of_(?:turn|image)|s|bos|eos|pad|unk|sop|eop|eoh|eoa|extra_id_\d{1,3}|reserved_\d{1,4}|"
    r"(?:BOS|EOS|PAD|UNK)_TOKEN|think|tools|tool_(?:call|response)|arg_(?:key|value)|unused\d{1,4}"
)
TOKEN: Final = (
    rf"[|｜][\w.:/▁-]{{1,64}}[|｜]?[>＞]|[\w.:/▁-]{{1,64}}[|｜][>＞]|/?(?:{_TURNS})[>＞]|[<＜]/?SYS[>＞]"
)
_OPENING: Final = re.compile(BRACKET, re.IGNORECASE)
_HARMLESS: Final = "‹"
_SQUARE: Final = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|MODEL_SETTINGS|THINK|gMASK)\]"
    r"|\|\w{1,64}\|\])"
)
_HARMLESS_SQUARE: Final = "⟦"


def neutralise_tokens(text: str) -> str:
    """Return the text with the bracket of each token replaced by one that no tokenizer converts back."""
    return neutralise_matches(text, _token_pattern)


def neutralise_matches(text: str, pattern: Callable[[], re.Pattern[str]]) -> str:
    """Replace the opening bracket of each token in square brackets, and of each match of the pattern."""
    text = _SQUARE.sub(_HARMLESS_SQUARE, text) if "[" in text else text
    if text.isascii() and "<" not in text and "&" not in text:
        # This is the case for most texts; searching for each bracket would take many times as long.
        return text
    return pattern().sub(_HARMLESS, text) if _OPENING.search(text) else text


def restore_brackets(text: str) -> str:
    """Restore the brackets that `neutralise_tokens` replaced, so that labels can be compared."""
    return text.replace(_HARMLESS, "<").replace(_HARMLESS_SQUARE, "[")


@cache
def _token_pattern() -> re.Pattern[str]:
    """Compile the pattern on first use, because compiling takes longer than loading the module."""
    return re.compile(rf"(?:{BRACKET})(?=[{INVISIBLE}]*(?:{TOKEN}))", re.IGNORECASE)
