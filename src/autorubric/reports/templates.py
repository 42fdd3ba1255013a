"""Rendering of pages from templates, styles and scripts, with encoded data and reasons in words."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.metrics.core.estimate import Estimate
    from autorubric.metrics.figures.bias import BiasResult

REASONS: Final[dict[str, str]] = {
    "no_pairs": "no pairs of values to compare",
    "no_ratings": "no ratings to compare",
    "no_values": "no answer has a value",
    "single_class": "all answers are the same",
    "single_category_scale": "the scale has only one category",
    "no_variance": "the values do not vary",
    "too_few_units": "too few items",
    "no_positive_in_truth": "no label is positive",
    "no_positive_in_pred": "no answer is positive",
    "no_positive": "there are no positive answers or labels",
    "no_negative": "there are no negative answers or labels",
    "no_negative_in_truth": "no label is negative",
    "degenerate_resamples": "undefined in most resamples",
    "na_as_category": "abstentions count as a category, so the categories have no order",
    "no_criterion_defined": "not defined for any criterion",
    "not_comparable": "the values cannot be compared",
    "infinite_loss": "the loss is infinite",
    "no_confidence": "the judges reported no confidence",
    "not_connected": "the comparisons are not connected",
    "too_few_labels": "too few labels",
    "uninformative_judge": "the judge's answers do not depend on the label",
    "nonlinear_score": "the score is not a weighted mean",
    "no_spread": "the values have no spread",
    "no_truth": "no item has a label",
    "one_judge": "there is only one judge",
    "no_repeats": "no question was asked twice",
    "no_generator": "no item names the model that wrote it",
    "no_text": "no text has a known length",
    "no_order": "no comparison has a known order",
    "unattainable": "cannot be attained",
    "not_on_scale": "not defined for this scale",
    "not_requested": "not requested",
    "no_interval": "no interval is available",
    "errors_cancel": "the errors cancel each other out",
}
"""Explanations of the codes of `Estimate.reason`."""

_DIGITS: Final = 5
_UNSAFE: Final = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def script_json(content: Json, *, ascii_only: bool = False) -> str:
    """Return JSON that is safe inside script tags: markup, line separators and surrogates are escaped."""
    text = json.dumps(content, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: Any) -> float | int | None:
    """Return a number rounded for display; None for a non-number, NaN or infinity."""
    if value is None or isinstance(value, bool) or not math.isfinite(value):
        return None
    rounded = round(float(value), _DIGITS)
    return int(rounded) if rounded.is_integer() else rounded


def figure(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate with its interval, n and method, and with the reason if it is undefined."""
    if estimate is None:
        return None
    low, high = estimate.low, estimate.high
    return _figure(estimate.value, low, high, estimate.n, estimate.method, estimate.reason)


def bias_figure(found: BiasResult) -> dict[str, Any]:
    """Return a mean difference in the form of `figure`."""
    low, high, method = None, None, "mean difference"
    if found.ci:
        low, high = found.ci.lower, found.ci.upper
        method += f"; {found.ci.method}, {found.ci.confidence:.0%}"
    return _figure(found.mean_bias, low, high, found.n_samples, method, found.reason)


def _figure(
    value: float | None, low: float | None, high: float | None, n: int, method: str, reason: str | None
) -> dict[str, Any]:
    fields = {
        "lo": number(low),
        "hi": number(high),
        "n": n,
        "how": method,
        "why": REASONS[reason] if reason else None,
    }
    return {"v": number(value), **{key: one for key, one in fields.items() if one is not None}}


class StringTable:
    """A table of strings that are stored once and referred to by position."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._positions: dict[str, int] = {}

    def index_of(self, text: str | None) -> int:
        """Return the position of the text; -1 for None."""
        if text is None:
            return -1
        found = self._positions.get(text)
        if found is None:
            found = self._positions[text] = len(self.texts)
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


def page(
    *,
    title: str,
    scripts: Iterable[str],
    data: Mapping[str, str],
    section: Markup,
    template: str,
    connects: bool = False,
) -> str:
    """Render a page that may only use its own styles, scripts and, with `connects`, its own server.

    `data` are texts from `script_json`, by the id of their element.
    """
    style = read_asset("report.css")
    script = "\n".join(read_asset(name) for name in scripts)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n' if script else ""
    policy = [
        "default-src 'none'",
        f"script-src {csp_digest(script) if script else chr(39) + 'none' + chr(39)}",
        f"style-src {csp_digest(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if connects else []),
    ]
    return render(
        template,
        title=title,
        policy="; ".join(policy),
        # Own files, and JSON in which nothing is markup: the only texts that are not escaped.
        style=Markup(style),
        script=Markup(script),
        data={name: Markup(text) for name, text in data.items()},
        section=section,
    )


def render(template: str, **content: Any) -> str:
    """Return a template of this package with its content, which is escaped unless it is `Markup`."""
    # Imported late, since `autorubric show` uses this package's marks but renders no page.
    from jinja2 import Environment, FunctionLoader

    loader = FunctionLoader(lambda name: read_asset(f"{name}.j2"))
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(template).render(**content)


def read_asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def csp_digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
