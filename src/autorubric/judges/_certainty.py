"""A model's confidence in its verdict, computed from the log-probabilities of its tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from autorubric.criteria import BaseCriterion, TextField


def probability_of(criterion: BaseCriterion, tokens: Sequence[tuple[str, float]]) -> float | None:
    """Return the probability, in [0, 1], of a reply's answer tokens; None if unknown.

    It is the product of the probabilities of the tokens that overlap the JSON value of the deciding field,
    conditional on the preceding reasoning. If a reply contains several such values, the last one counts, as
    for the answer itself, because models draft before they answer.

    Args:
        criterion: The criterion; the probability is unknown if it has several deciding fields.
        tokens: The tokens of the whole reply with their log-probabilities.
    """
    deciding = [name for name in criterion.wire_schema["properties"] if _decides(criterion, name)]
    if len(deciding) != 1 or not tokens:
        return None
    text = "".join(token for token, _ in tokens)
    starts = [found.end() for found in re.finditer(rf'(?<!\\)"{re.escape(deciding[0])}"\s*:\s*', text)]
    if not starts:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, starts[-1])
    except ValueError:
        return None
    total, at = 0.0, 0
    for token, logprob in tokens:
        if at < end and at + len(token) > starts[-1]:
            total += logprob
        at += len(token)
    return None if math.isnan(total) else min(1.0, math.exp(total))


def _decides(criterion: BaseCriterion, name: str) -> bool:
    return name not in ("reason", "cannot_assess") and not isinstance(
        criterion.eval_fields.get(name), TextField
    )
