"""Log-probabilities of tokens as servers return them, for a model that knows only a few whole replies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any


def logprobs_of(
    said: str,
    replies: Mapping[str, float],
    *,
    cuts: Sequence[int] = (),
    most: int = 20,
    other: Mapping[str, float] | None = None,
    spare: Sequence[str] = (),
) -> dict[str, Any]:
    """The `logprobs` of a choice that said one of several replies with known probabilities.

    Every reply is cut into tokens of as many bytes as `cuts` says, over and over, so tokens end within words,
    within characters, and across the punctuation of JSON. Each token has the `most` most probable ones at
    its place, which may leave out the one that was said, and after the last one may come `spare` ones that
    are not in the content, as llama.cpp sends them. `other` tokens have these shares of the probability
    everywhere: a grammar keeps the model from saying them, and the server lists them all the same.
    """
    texts = {text.encode("utf-8"): share for text, share in replies.items()}
    own, content = said.encode("utf-8"), []
    shares = {text.encode("utf-8"): share for text, share in (other or {}).items()}
    for start, end in pairwise(_bounds(own, cuts)):
        following: dict[bytes, float] = {}
        for text, share in texts.items():
            if text[:start] == own[:start] and len(text) > start:
                following[text[start:end]] = following.get(text[start:end], 0.0) + share
        scale = (1.0 - sum(shares.values())) / sum(following.values())
        found = {piece: share * scale for piece, share in following.items()} | shares
        top = sorted(found.items(), key=lambda one: -one[1])[:most]
        listed = [_entry(piece, share) for piece, share in top if share]
        content.append({**_entry(own[start:end], found[own[start:end]]), "top_logprobs": listed})
    content += [{**_entry(piece.encode("utf-8"), 0.5), "top_logprobs": []} for piece in spare]
    return {"content": content}


def _bounds(text: bytes, cuts: Sequence[int]) -> list[int]:
    bounds = [0]
    while bounds[-1] < len(text):
        cut = cuts[(len(bounds) - 1) % len(cuts)] if cuts else len(text)
        bounds.append(min(len(text), bounds[-1] + cut))
    return bounds


def _entry(piece: bytes, share: float) -> dict[str, Any]:
    return {"token": piece.decode("utf-8", "replace"), "logprob": math.log(share), "bytes": list(piece)}
