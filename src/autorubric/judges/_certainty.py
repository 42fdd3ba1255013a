"""The probability that a model gives its own verdict, from the log-probabilities of its tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from autorubric.criteria import BaseCriterion, TextField


def probability_of(criterion: BaseCriterion, tokens: Sequence[tuple[str, float]]) -> float | None:
    """Return the probability, on [0, 1], of a reply's answer tokens; None if unknown.

    That is the product of the probabilities of the tokens which overlap the JSON value of the field that
    decides. What the model reasoned before counts as given. Of several such values the last counts, as it
    does for the answer itself: models draft before they answer.

    Args:
        criterion: The criterion; one of several deciding fields has no such probability.
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
