"""Encoding of Python values for a page: JSON that is safe in HTML, and compact columns."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from autorubric.metrics import BiasResult, Estimate
from autorubric.report._reasons import reason_words
from autorubric.values import Json

_DIGITS: Final = 5
_UNSAFE: Final = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def script_json(content: Json) -> str:
    """Return JSON that is safe inside script tags: markup, line separators and surrogates are escaped.

    The escaped markup characters are `<`, `>` and `&`.
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(given: Any) -> float | int | None:
    """Return a number rounded for display; None for a non-number, NaN or infinity."""
    if given is None or isinstance(given, bool) or not math.isfinite(given):
        return None
    rounded = round(float(given), _DIGITS)
    return int(rounded) if rounded.is_integer() else rounded


def figure(given: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate with its interval, n and method, and with the reason if it is undefined."""
    if given is None:
        return None
    told = {
        "v": number(given.value),
        "lo": number(given.low),
        "hi": number(given.high),
        "n": given.n,
        "how": given.method,
        "why": reason_words(given.reason) if given.reason else None,
    }
    return {key: value for key, value in told.items() if value is not None or key == "v"}


def bias_figure(given: BiasResult) -> dict[str, Any]:
    """Return a mean difference in the form of `figure`."""
    told = {
        "v": number(given.mean_bias),
        "lo": number(given.ci.lower) if given.ci else None,
        "hi": number(given.ci.upper) if given.ci else None,
        "n": given.n_samples,
        "how": f"mean difference; {given.ci.method}, {given.ci.confidence:.0%}"
        if given.ci
        else "mean difference",
        "why": reason_words(given.reason) if given.reason else None,
    }
    return {key: value for key, value in told.items() if value is not None or key == "v"}


class Strings:
    """A table of strings that are stored once and referred to by position."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str | None) -> int:
        """Return the position of the text; -1 for None."""
        if text is None:
            return -1
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = len(self.texts)
            self.texts.append(text)
        return found


def answer_words(answer: Json) -> str | None:
    """Return an answer in readable form; None if there is no answer."""
    if answer is None or isinstance(answer, str):
        return answer
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, int | float):
        return f"{answer:g}"
    return json.dumps(answer, ensure_ascii=False)
