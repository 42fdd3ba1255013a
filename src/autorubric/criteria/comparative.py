"""Criteria that compare named candidates: pairwise preference, ranking, or choice of the best."""

from __future__ import annotations

import copy
import math
import random
import re
import string
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from autorubric.criteria.base import AnswerChoice, BaseCriterion, Shown, register_kind
from autorubric.criteria.declaration import object_schema, reason_schema
from autorubric.criteria.fields import FieldSpec, unwrap_reply
from autorubric.criteria.values import Answer, Level, Submission
from autorubric.errors import ReplyError
from autorubric.support.field_types import Count
from autorubric.support.names import clean_name, fold_name, match_name
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

ComparisonMode = Literal["pairwise", "ranking", "best_of"]
TIE = "tie"
_KEYS: dict[ComparisonMode, str] = {"pairwise": "winner", "ranking": "ranking", "best_of": "best"}
_QUESTIONS: dict[ComparisonMode, str] = {
    "pairwise": "Which candidate is better?",
    "ranking": "In what order do the candidates stand, best first?",
    "best_of": "Which candidate is best?",
}
_ANSWERS: dict[ComparisonMode, str] = {
    "pairwise": 'winner, the letter of the better one, or "tie"',
    "ranking": "ranking, the letters of all candidates, best first",
    "best_of": "best, the letter of the best one",
}
_ABSTENTIONS = ("cannot_assess", "cannot assess")
_AROUND_AN_ID = re.compile(r"^\W*(?:candidate\b)?\W*|\W+$", re.IGNORECASE)


class _Candidates(NamedTuple):
    """The identifiers of candidates in replies and labels."""

    # Identifier of each candidate by name: a letter if the judge saw letters, otherwise the name.
    called: Mapping[str, str]
    lettered: bool

    def find_name(self, text: str) -> str | None:
        """Return the name of the candidate to which a text refers; None if it refers to no candidate."""
        if self.lettered:
            letter = _AROUND_AN_ID.sub("", text).upper()
            return next((name for name, known in self.called.items() if known == letter), None)
        if not self.called:
            return text.strip() or None
        return match_name(text, self.called)


def candidate_id(place: int) -> str:
    """Return a candidate's identifier in a prompt: A to Z, then A1, B1 and so on."""
    turn, letter = divmod(place, len(string.ascii_uppercase))
    return string.ascii_uppercase[letter] + (str(turn) if turn else "")


def _values_by_name(groups: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return (k - rank) / (k - 1) for each of k candidates; tied candidates have their mean rank."""
    count = sum(len(group) for group in groups)
    values: dict[str, float] = {}
    above = 0
    for group in groups:
        rank = above + (len(group) + 1) / 2
        values.update(dict.fromkeys(group, (count - rank) / (count - 1)))
        above += len(group)
    return values


@register_kind("comparative")
class ComparativeCriterion(BaseCriterion):
    """A comparison of a submission's named candidates; its value is the first candidate's value.

    Models see letters instead of the candidates' names, and answers are mapped back to names. With
    `both_orders`, a judge is asked twice, with the candidates in declared and in reverse order, and casts a
    separate vote for each order.

    A pair's label is a name, `tie`, or a number from -m to m (negative if the first candidate is better),
    where m is `margin`, or 1 if `margin` is 0. A ranking's label is a list of names, best first, with ties as
    nested lists, or a string such as `a > b = c`.

    Attributes:
        mode: `pairwise` (two candidates; value 1, ½ or 0), `ranking` (value (k - rank) / (k - 1) for k
            candidates) or `best_of` (value 1 if best, 1/n in an n-way tie, otherwise 0).
        margin: Maximum strength of a pairwise preference, in steps; 0 for preferences without strength.
        both_orders: Whether a judge sees the candidates in both orders; otherwise each call uses a random
            order.
    """

    level: ClassVar[Level] = "ranking"

    mode: ComparisonMode = "pairwise"
    margin: Count = 0
    both_orders: bool = True

    _names: tuple[str, ...] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_margin(self) -> Self:
        if self.margin and self.mode != "pairwise":
            raise ValueError(f"margin={self.margin} requires mode 'pairwise'; got mode {self.mode!r}")
        return self

    # What is asked

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        steps = {"margin": (int, Field(default=0, ge=0, le=self.margin))} if self.margin else {}
        kind: Any = list[str] if self.mode == "ranking" else str
        return {_KEYS[self.mode]: (kind, Field()), **steps, "explanation": (str, Field())}

    @cached_property
    def wire_schema(self) -> dict[str, Json]:
        """The JSON schema sent to a model, with the explanation first and letters as an enum.

        The schema depends only on the number of candidates. While the candidates of a ranking or of `best_of`
        are unknown, their letters are arbitrary strings.
        """
        count = 2 if self.mode == "pairwise" else len(self._names or ())
        return _answer_schema(self.mode, self.margin, count)

    @cached_property
    def measures(self) -> bool:
        """Always True: every comparison has a value, since the first candidate is better, equal or worse."""
        return True

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the question about the candidates."""
        return f"{super().render(shown)}\n{_QUESTIONS[self.mode]}"

    def question(self) -> str:
        """Return the name, the requirement, and the question about the candidates."""
        return self.render()

    def answer_choices(self, shown: Shown | None = None) -> tuple[AnswerChoice, ...]:
        """Return all preferences, the best candidates, or the rankings of two candidates, by letter.

        They begin with the first candidate shown, so that both orders cancel out a preference for a place.
        """
        letters = {name: candidate_id(place) for place, name in enumerate(shown.names if shown else ())}
        lettered = copy.copy(self)
        lettered._names = tuple(letters.get(name, name) for name in self._names or ())
        pairs = zip(self._listed_answers(), lettered._listed_answers(), strict=True)
        choices = [AnswerChoice(str(one.label), str(seen.label), "", one) for one, seen in pairs]
        if letters and self.mode == "best_of":
            choices.sort(key=lambda one: list(letters).index(one.label))
        elif letters and choices and not choices[0].text.startswith(candidate_id(0)):
            choices.reverse()
        return tuple(choices)

    def _listed_answers(self) -> tuple[Answer, ...]:
        if self.mode == "ranking" and len(self._names or ()) == 2:
            return tuple(map(self.ranking_answer, ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))))
        return self.answers()

    def instruction(self) -> str:
        """Return a line that explains the expected answer."""
        margin = f"; margin, 1 (slightly) to {self.margin} (far), 0 for a tie"
        return (
            "The candidates' letters and order mean nothing. Give a short explanation that names the "
            f"evidence, then {_ANSWERS[self.mode]}{margin if self.margin else ''}. If it cannot be told, set "
            "cannot_assess to true."
        )

    def why_inapplicable(self, submission: Submission) -> str | None:
        """Return why a submission's candidates cannot be compared, or None if they can."""
        nothing = submission.text is None and not submission.candidates
        return None if nothing else self._why_incomparable(tuple(submission.candidates))

    def _why_incomparable(self, names: tuple[str, ...]) -> str | None:
        if len(names) < 2 or (self.mode == "pairwise" and len(names) != 2):
            wanted = "exactly two" if self.mode == "pairwise" else "two or more"
            return (
                f"{self._title} requires {wanted} candidates; the submission has {len(names) or 'none'}. "
                "Write the submission as a mapping of names to texts"
            )
        answers = (*_ABSTENTIONS, TIE) if self.mode == "pairwise" else _ABSTENTIONS
        for name in names:
            if not name.strip():
                return f"{self._title}: candidate names must not be blank; got {name!r}"
            if fold_name(name) in answers:
                what = f"{self._title}: a candidate must not be named {name!r}, a reserved answer"
                return f"{what}; rename the candidate"
        return None

    def presentations(self, submission: Submission, rng: random.Random | None) -> tuple[tuple[str, ...], ...]:
        """Return the declared order and its reverse or, if `both_orders` is false, a single random order."""
        names = tuple(submission.candidates)
        if self._why_incomparable(names) is not None:
            return ((),)
        if self.both_orders:
            return (names, names[::-1])
        return (names if rng is None else tuple(rng.sample(names, len(names))),)

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """Return the candidates in declared order; for the orders that judges see, use `presentations`."""
        return Shown(names=tuple(submission.candidates))

    def example(self, submission: Submission, answer: Answer) -> tuple[str | None, str | None]:
        """Return the candidates labelled by letter, in an order derived from their texts, and the answer."""
        bound = self.bind(submission)
        names = tuple(submission.candidates)
        if self._why_incomparable(names) is not None or not isinstance(bound, ComparativeCriterion):
            return None, None
        texts = "\n".join(submission.candidates.values()).encode("utf-8", "surrogatepass")
        shown = names if zlib.crc32(texts) % 2 else names[::-1]
        letters = {name: candidate_id(place) for place, name in enumerate(shown)}
        parts = [f"Candidate {letters[name]}:\n{submission.candidates[name]}" for name in shown]
        lettered = copy.copy(bound)
        lettered._names = tuple(letters[name] for name in names)
        return "\n\n".join(parts), lettered.ranking_answer(bound.candidate_values(answer)).label

    # What is read

    def bind(self, submission: Submission) -> Self:
        """Return a copy with the candidates' names, or the criterion itself if the submission is empty."""
        names = tuple(submission.candidates)
        if names == self._names or (submission.text is None and not names):
            return self
        bound = copy.copy(self)
        bound._names = names
        # Only this schema depends on the number of candidates; the others are expensive to create.
        bound.__dict__.pop("wire_schema", None)
        return bound

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Parse a reply, which refers to candidates by letter if `shown` contains names, otherwise by name.

        Raises:
            ReplyError: If the reply names no candidate, does not name all required candidates, or the
                candidates cannot be compared.
        """
        given: Json = reply.model_dump() if isinstance(reply, BaseModel) else reply
        reason, margin = "", None
        if isinstance(given, Mapping):
            fields = (_KEYS[self.mode], "margin", "explanation", "cannot_assess", "reason", "criterion_name")
            given = unwrap_reply(given, fields)
            reason = str(given.get("explanation") or given.get("reason") or "")
            margin = given.get("margin")
        if self._says_cannot_assess(given):
            return Answer(code=None, cannot_assess=True, reason=reason)
        if isinstance(given, Mapping):
            if _KEYS[self.mode] not in given:
                raise ReplyError(f"{self._title}: the reply must contain {_KEYS[self.mode]!r}")
            given = given[_KEYS[self.mode]]
        if self._names is not None and (fault := self._why_incomparable(self._names)):
            raise ReplyError(fault)
        answer = self._read(given, margin, shown)
        return replace(answer, reason=reason, evaluation={**self._fields_of(answer), "explanation": reason})

    def _read(self, given: Json, margin: Json, shown: Shown | None) -> Answer:
        if shown is not None and shown.names:
            letters = {name: candidate_id(place) for place, name in enumerate(shown.names)}
            candidates = _Candidates(letters, lettered=True)
        else:
            candidates = _Candidates({name: name for name in self._names or ()}, lettered=False)
        if self.mode == "pairwise":
            return self._read_pair(given, margin, candidates)
        if self.mode == "ranking":
            return self._read_ranking(given, candidates)
        tied = given if isinstance(given, list) else [given]
        return self._make_best_answer([self._candidate(one, candidates) for one in tied])

    def _candidate(self, given: Json, candidates: _Candidates) -> str:
        name = candidates.find_name(given) if isinstance(given, str) else None
        if name is None:
            called = sorted(candidates.called.values()) if candidates.lettered else candidates.called
            known = f"; candidates: {', '.join(called)}" if self._names else ""
            raise ReplyError(f"{self._title}: {short_repr(given)} is not a candidate{known}")
        return name

    def _read_pair(self, given: Json, margin: Json, candidates: _Candidates) -> Answer:
        name = None
        if isinstance(given, str) and (candidates.lettered or self._names is not None):
            name = candidates.find_name(given)
        if name is None:
            if isinstance(given, str) and given.strip(" \"'`.*").casefold() == TIE:
                if self.margin and margin is not None and _number(margin) != 0:
                    what = f"{self._title}: the margin of a tie must be 0"
                    raise ReplyError(f"{what}; got {short_repr(margin)}")
                return self._preference(0)
            signed = None if candidates.lettered else _number(given)
            if signed is not None:
                if abs(signed) > self._most or not (self.margin or signed == int(signed)):
                    wanted = f"a number from {-self._most} to {self._most}"
                    raise ReplyError(f"{self._title}: a preference must be {wanted}; got {signed:g}")
                return self._preference(signed)
            name = self._candidate(given, candidates)
        steps = self._read_steps(margin, candidates)
        if self._names is None:
            code = {"winner": name, "margin": steps} if self.margin else name
            return Answer(code=code, label=f"{name} by {steps}" if self.margin else name)
        return self._preference(-steps if name == self._names[0] else steps)

    def _read_steps(self, margin: Json, candidates: _Candidates) -> int:
        if not self.margin:
            return 1
        steps = _number(margin)
        if steps is None or steps != int(steps) or not 1 <= steps <= self.margin:
            signed = f"; a label may also be a number from {-self.margin} to {self.margin}"
            message = f"{self._title}: margin must be 1 to {self.margin}; got {short_repr(margin)}"
            raise ReplyError(message if candidates.lettered else message + signed)
        return int(steps)

    def _read_ranking(self, given: Json, candidates: _Candidates) -> Answer:
        if isinstance(given, str):
            given = [[name.strip() for name in group.split("=")] for group in given.split(">")]
        if not isinstance(given, list):
            raise ReplyError(f"{self._title}: a ranking must be a list, best first; got {short_repr(given)}")
        groups = [
            [self._candidate(one, candidates) for one in (group if isinstance(group, list) else [group])]
            for group in given
        ]
        ranked = [name for group in groups for name in group]
        absent = sorted(candidates.called[name] for name in self._names or () if name not in ranked)
        if absent or len(set(ranked)) != len(ranked) or len(ranked) < 2 or not all(groups):
            lacks = f"omits {', '.join(absent)}" if absent else "repeats a candidate or has fewer than two"
            raise ReplyError(f"{self._title}: the ranking {lacks}; rank each candidate exactly once")
        return self._make_ranking_answer(groups)

    # From standings to answers and back

    @property
    def _most(self) -> int:
        return self.margin or 1

    def _preference(self, signed: float) -> Answer:
        """Return the answer for a preference from -m (the first candidate is better) to m."""
        most, signed = self._most, _whole(signed)
        winner = self._winner_name(signed)
        by = f" by {abs(signed):g}" if self.margin and signed else ""
        return Answer(
            code=winner if not self.margin and (self._names or signed == 0) else signed,
            value=(1 - signed / most) / 2,
            label=f"{winner}{by}",
            index=int(most - signed) if signed == int(signed) else None,
        )

    def _winner_name(self, signed: float) -> str:
        names = self._names or ("first", "second")
        return TIE if signed == 0 else names[signed > 0]

    def _make_ranking_answer(self, groups: Sequence[Sequence[str]]) -> Answer:
        code: list[Json] = [group[0] if len(group) == 1 else list(group) for group in groups]
        values = _values_by_name(groups)
        label = " > ".join(" = ".join(group) for group in groups)
        return Answer(code=code, value=values[self._names[0]] if self._names else None, label=label)

    def _make_best_answer(self, tied: Sequence[str]) -> Answer:
        if not tied or len(set(tied)) != len(tied):
            raise ReplyError(f"{self._title}: name at least one best candidate, and each of them only once")
        names, is_one = self._names, len(tied) == 1
        return Answer(
            code=tied[0] if is_one else list(tied),
            value=(1 / len(tied) if names[0] in tied else 0.0) if names else None,
            label=" = ".join(tied),
            index=names.index(tied[0]) if names and is_one else None,
        )

    def _fields_of(self, answer: Answer) -> dict[str, Json]:
        if self.mode != "pairwise" or answer.value is None:
            own = answer.code if isinstance(answer.code, dict) else {_KEYS[self.mode]: answer.code}
            return dict(own)
        signed = _whole((1 - 2 * answer.value) * self._most)
        return {"winner": self._winner_name(signed), **({"margin": abs(signed)} if self.margin else {})}

    def answers(self) -> tuple[Answer, ...]:
        """Return all preferences (for pairs) or candidates (for `best_of`) as answers; empty for rankings."""
        if self.mode == "pairwise":
            return tuple(self._preference(signed) for signed in range(self._most, -self._most - 1, -1))
        if self.mode == "best_of":
            return tuple(self._make_best_answer([name]) for name in self._names or ())
        return ()

    def answer_at(self, value: float) -> Answer:
        """Return an answer with this value; for `best_of` and most values of a ranking, `code` is None."""
        if self.mode == "pairwise" and (self.margin or value in (0.0, 0.5, 1.0)):
            return self._preference((1 - 2 * value) * self._most)
        if self.mode == "ranking" and self._names and value in (0.0, 1.0):
            first, *others = ([name] for name in self._names)
            return self._make_ranking_answer([first, *others] if value else [*others, first])
        return Answer(code=None, value=value)

    def candidate_values(self, answer: Answer) -> tuple[float, ...]:
        """Return the value that the answer assigns to each candidate, in declared order."""
        if self.mode == "pairwise":
            return () if answer.value is None else (answer.value, 1 - answer.value)
        if not self._names or answer.code is None:
            return ()
        if self.mode == "ranking":
            groups = [group if isinstance(group, list) else [group] for group in answer.code]
            values = _values_by_name(groups)
            return tuple(values[name] for name in self._names)
        tied = answer.code if isinstance(answer.code, list) else [answer.code]
        return tuple(1 / len(tied) if name in tied else 0.0 for name in self._names)

    def ranking_answer(self, points: Sequence[float]) -> Answer:
        """Return the answer that ranks candidates by points, highest first; equal points are a tie."""
        if self.mode == "pairwise":
            ahead = points[1] - points[0]
            if not self.margin:
                ahead = 0 if math.isclose(*points, abs_tol=1e-9) else math.copysign(1, ahead)
            return self._preference(ahead * self._most)
        groups: dict[float, list[str]] = {}
        for name, reached in sorted(zip(self._names or (), points, strict=True), key=lambda pair: -pair[1]):
            near = next((one for one in groups if math.isclose(one, reached, abs_tol=1e-9)), reached)
            groups.setdefault(near, []).append(name)
        if self.mode == "best_of":
            return self._make_best_answer(next(iter(groups.values())))
        return self._make_ranking_answer(list(groups.values()))


@lru_cache(maxsize=256)
def _answer_schema(mode: ComparisonMode, margin: int, count: int) -> dict[str, Json]:
    letters = [candidate_id(place) for place in range(count)]
    choices = [*letters, TIE] if mode == "pairwise" else letters
    answer: dict[str, Json] = {"type": "string", "enum": choices} if choices else {"type": "string"}
    if mode == "ranking":
        each: dict[str, Json] = {"minItems": count, "maxItems": count} if letters else {}
        answer = {"type": "array", "items": answer, **each}
    steps = {"margin": {"type": "integer", "minimum": 0, "maximum": margin}} if margin else {}
    abstention = {"cannot_assess": {"type": "boolean"}}
    return object_schema({"explanation": reason_schema(), _KEYS[mode]: answer, **steps, **abstention})


def _number(given: Json) -> float | None:
    if isinstance(given, bool):
        return None
    try:
        text = clean_name(given) if isinstance(given, str) else given
        number = float(text) if isinstance(text, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole(number: float) -> float:
    """Return the nearest integer if the number differs from it only by rounding; otherwise the number."""
    return round(number) if math.isclose(number, round(number), abs_tol=1e-9) else number
