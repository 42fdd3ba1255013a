"""Probabilities of the answers in a model's reply, read from the log-probabilities of its tokens.

At the first token in which the possible answers differ, the server's alternatives to the token give the
probability of each answer. If some answers differ only later, as `very good` and `very bad`, their common
probability is divided there. A probability is conditional on the fields before it in the reply.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias

from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.fields import MOST_STEPS, TextField
from autorubric.criteria.values import Answer
from autorubric.errors import ReplyError
from autorubric.llm.transport import Token
from autorubric.scoring.probabilities import ABSTENTION
from autorubric.scoring.votes import Probabilities
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

LEAST_MASS: Final = 0.1
"""Smallest probability of the tokens that begin an answer; below it, the schema alone leads to an answer."""
MOST_UNKNOWN: Final = 0.01
"""Largest share of it for tokens that begin several answers, and for an answer without a listed token."""

_TEXT: Final = r'"(?:[^"\\]|\\.)*+"'
_FLAT_OBJECT: Final = re.compile(rf'\{{(?:[^{{}}"]|{_TEXT})*+\}}', re.DOTALL)
_MEMBER: Final = re.compile(rf'({_TEXT})\s*:(\s*)({_TEXT}|[^,}}\]"\s]*+)', re.DOTALL)

_Forms: TypeAlias = Sequence[tuple[str, str]]  # the values of a field as JSON, each with its label
_Begun: TypeAlias = tuple[frozenset[str], float]  # the labels that a token can begin; its probability


class Certainty(NamedTuple):
    """How certain a model is of the answer in its reply."""

    confidence: float | None = None  # product of the probabilities of the answer's tokens
    probabilities: Probabilities | None = None  # of all answers
    unknown: str | None = None  # why there are no probabilities, if they were requested


class TokenText:
    """A reply as its tokens; a position counts bytes, because tokens may end within a character."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        # Transports of other packages may return pairs.
        self.tokens = [Token(*one) for one in tokens]
        self._pieces = [_as_bytes(one.text) for one in self.tokens]
        self._starts = list(accumulate(map(len, self._pieces), initial=0))
        self._text = "".join(self._pieces)
        objects = (_MEMBER.finditer(self._text, *one.span()) for one in _FLAT_OBJECT.finditer(self._text))
        self._objects = [{one[1]: one for one in members} for members in objects]

    def fields(self, key: str) -> Mapping[str, re.Match[str]]:
        """Return the fields of the last object in the reply or, with a key, of the last with this id."""
        ids = [(one, one['"id"'][3] if '"id"' in one else None) for one in self._objects if one]
        return next((one for one, id_ in reversed(ids) if not key or id_ == f'"{key}"'), {})

    def probability(self, field: re.Match[str]) -> float | None:
        """Return the product of the probabilities of a value's tokens; None if one of them is unknown."""
        total = math.fsum(self.tokens[place].logprob for place in self._places(*field.span(3)))
        return None if math.isnan(total) else min(1.0, math.exp(total))

    def distribution(self, field: re.Match[str], forms: _Forms) -> dict[str, float]:
        """Return the probability of each label; labels without any are omitted if there are over 20."""
        shares = dict.fromkeys((label for _, label in forms), 0.0)
        possible, left = frozenset(shares), 1.0
        for place in self._places(field.start(3), len(self._text)):
            if len(possible) <= 1:
                break
            read = self._alternatives(place, field.start(2), forms)
            (said, likely), *others = read
            if said and any(labels != possible for labels, _ in read):
                _demand_certainty(possible, read, self.tokens[place])
                told = [(label, share) for (label, *more), share in others if not more]
                total = math.fsum(share for _, share in told) + likely
                for label, share in told:
                    shares[label] += left * share / total
                left *= likely / total
            possible = said
        if len(possible) != 1:
            written = field[3].encode("latin-1").decode("utf-8", "replace")[:40]
            raise ReplyError(f"the answer {written} is not written as in the schema of the reply")
        shares[next(iter(possible))] += left
        return {label: share for label, share in shares.items() if share or len(shares) <= 20}

    def _places(self, start: int, end: int) -> Iterator[int]:
        for place, piece in enumerate(self._pieces):
            if piece and self._starts[place + 1] > start and self._starts[place] < end:
                yield place

    def _alternatives(self, place: int, colon: int, forms: _Forms) -> list[_Begun]:
        """Return what a token begins, and then what each alternative to it begins, unless that is nothing."""
        start, said = self._starts[place], self._pieces[place]
        before, head = self._text[colon:start], self._text[start:colon]
        top = {_as_bytes(text): logprob for text, logprob in self.tokens[place].top}
        read = [
            (_labels(before + piece[len(head) :], forms), math.exp(min(logprob, 0.0)))
            for piece, logprob in ({said: 0.0} | top | {said: self.tokens[place].logprob}).items()
            if piece and (piece.startswith(head) or head.startswith(piece))
        ]
        return [read[0], *(one for one in read[1:] if one[0])]


def _demand_certainty(possible: frozenset[str], read: Sequence[_Begun], token: Token) -> None:
    """Check that what a token and its alternatives begin tells labels apart."""
    mass = math.fsum(share for _, share in read)
    if not mass >= LEAST_MASS:
        what = f"tokens that begin an answer have a probability of only {mass:.2g}"
        raise ReplyError(f"{what}; {LEAST_MASS:g} is required")
    vague = [one for one in read[1:] if len(one[0]) > 1]
    if math.fsum(share for _, share in vague) > MOST_UNKNOWN * mass:
        alike = sorted(frozenset().union(*(labels for labels, _ in vague)))
        raise ReplyError(f"{short_repr(alike)} begin with the same token and cannot be told apart")
    absent = possible.difference(read[0][0], *(labels for labels, _ in read if len(labels) == 1))
    listed = [math.exp(min(logprob, 0.0)) for _, logprob in token.top]
    hidden = min([*listed, max(0.0, 1.0 - math.fsum(listed))])
    if absent and hidden > MOST_UNKNOWN * mass:
        raise ReplyError(
            f"none of the {len(listed)} most probable tokens begins one of {short_repr(sorted(absent))}, "
            f"whose probability may be {hidden:.2g}; increase logprobs"
        )


def certainty_of(criterion: BaseCriterion, shown: Shown, reply: TokenText, key: str) -> Certainty:
    """Return the certainty of the answer to a criterion; the key is its id if the reply has several answers.

    The probability of `CANNOT_ASSESS` is that of the field `cannot_assess`, and the others share the rest; if
    the reply omits the field, it is not included.
    """
    schema, parts = criterion.wire_schema["properties"], criterion.part_fields
    found = reply.fields(key)
    quoted = {name: _as_bytes(json.dumps(name, ensure_ascii=False)) for name in schema}
    fields = {name: found[text] for name, text in quoted.items() if text in found}
    texts = {name for name, spec in schema.items() if spec.get("type") == "string" and "enum" not in spec}
    texts |= {name for name, field in criterion.eval_fields.items() if isinstance(field, TextField)}
    deciding = [name for name in schema if name not in texts and name != "cannot_assess"]
    only = fields.get(deciding[0]) if len(deciding) == 1 else None
    confidence = None if only is None else reply.probability(only)

    def read(name: str, answer_of: Callable[[Json], Answer | None]) -> dict[str, float]:
        if name not in fields:
            raise ReplyError(f"the field {name!r} was not found in the tokens of the reply")
        found = reply.distribution(fields[name], _forms(name, schema[name], answer_of))
        if "cannot_assess" not in fields:
            return found
        yes, no = "cannot_assess: true", "cannot_assess: false"
        p = reply.distribution(fields["cannot_assess"], [("true", yes), ("false", no)])[yes]
        return {label: share * (1.0 - p) for label, share in found.items()} | {ABSTENTION: p}

    try:
        if not any(one.top for one in reply.tokens):
            raise ReplyError("the provider does not return log-probabilities of alternative tokens")
        if parts:
            return Certainty(None, {name: read(name, part.parse_truth) for name, part in parts.items()})
        if len(deciding) != 1:
            raise ReplyError(f"the answer depends on {len(deciding)} fields; one is required")
        return Certainty(confidence, read(deciding[0], lambda v: criterion.read({deciding[0]: v}, shown)))
    except ReplyError as unknown:
        return Certainty(confidence, unknown=str(unknown))


def _forms(name: str, spec: Mapping[str, Any], answer_of: Callable[[Json], Answer | None]) -> _Forms:
    values: Sequence[Json] = spec.get("enum") or ((True, False) if spec.get("type") == "boolean" else ())
    if spec.get("type") == "integer" and {"minimum", "maximum"} <= spec.keys():
        values = range(spec["minimum"], spec["maximum"] + 1)
    forms: dict[str, str] = {}
    for value in values if len(values) <= MOST_STEPS else ():
        answer = answer_of(value)
        if answer is not None and (label := ABSTENTION if answer.cannot_assess else answer.label):
            forms |= {_as_bytes(json.dumps(value, ensure_ascii=ascii)): label for ascii in (True, False)}
    if not forms:
        raise ReplyError(f"{name} is not one of a list of values with labels")
    return list(forms.items())


def _labels(text: str, forms: _Forms) -> frozenset[str]:
    """Return the labels whose values a text begins or contains."""
    value = text.lstrip(" \t\r\n")
    # 1 is also the beginning of 10.
    ended = [form for form, _ in forms if value.startswith(form) and not value[len(form) - 1 :][:2].isalnum()]
    return frozenset(label for form, label in forms if form in ended or form.startswith(value))


def _as_bytes(text: str) -> str:
    """Return a text in which each character is one byte of its UTF-8, so that tokens can be joined."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("latin-1")
