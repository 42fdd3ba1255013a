"""The base class of criteria; everything specific to a kind of criterion is in its registered subclass."""

from __future__ import annotations

import difflib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from autorubric.criteria.declaration import Declaration
from autorubric.criteria.fields import MOST_STEPS, says_yes, unwrap_reply
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.support.extensions import KINDS_GROUP, extension_names, load_extension
from autorubric.support.names import fold_name
from autorubric.support.objects import Json
from autorubric.support.reading_errors import fields_text, short_repr

_ROUNDING: Final = 1e-9

EntryT = TypeVar("EntryT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The presentation of a criterion to a judge in one call.

    Attributes:
        order: Indices of the options in the order shown; empty for the declared order.
        names: Names of the compared candidates in the order shown; empty if the criterion compares nothing.
    """

    order: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @staticmethod
    def arrange(entries: Iterable[EntryT], shown: Shown | None) -> list[EntryT]:
        """Return entries in the order shown."""
        given = list(entries)
        return [given[place] for place in shown.order] if shown and shown.order else given


AS_DECLARED: Final = Shown()
"""The default presentation: options, if any, in their declared order, and no candidates."""


def show_shuffled(count: int, rng: random.Random | None) -> Shown:
    """Return a random order of `count` entries, or the declared order if `rng` is None."""
    return AS_DECLARED if rng is None else Shown(order=tuple(rng.sample(range(count), count)))


class AnswerChoice(NamedTuple):
    """An answer as shown to a judge that chooses one from a list."""

    label: str
    text: str  # the answer as shown, with letters for candidates
    meaning: str  # what the answer says about a submission; empty if the text says it
    answer: Answer


PartT = TypeVar("PartT", bound="BaseCriterion")


def answer_without_parts(number: float, value: float) -> Answer:
    return Answer(code=number, value=value, label=f"{number:g}")


class BaseCriterion(Declaration):
    """Base class of criteria; subclasses declare the fields of a reply as `EvalField`s and set `level`.

    Attributes:
        name: Name in reports, ground truth and metrics; a rubric assigns one if it is missing.
        requirement: The requirement to judge; `description` is an alias.
        weight: Weight in the score; negative for a penalty.
        gate: Value that the criterion must reach; otherwise its group's score is capped. `"required"` means
            that the group's score is 0 unless the criterion is met.
        bonus: Whether the criterion can only raise the score: it counts in the numerator of its group's score
            but not in the denominator.
        when: Condition on another criterion, by name; unless it is met, this criterion does not apply.
        check: Function of the text, registered name or `TranscriptCheck` that judges instead of the panel.
        aggregation: Method for combining the votes on the criterion, overriding the grader's method.

    If the class attribute `takes_bare` is true, a model's reply of one word or number, such as `yes` or `7`,
    is read as the value of the only field with `measures=True`; otherwise, the model is asked again.
    """

    @cached_property
    def measures(self) -> bool:
        """Whether answers have a value in [0, 1]; if not, the criterion does not count towards a score."""
        if type(self).value_of is not BaseCriterion.value_of:
            return True
        fields = any(field.measures for field in self.eval_fields.values())
        return fields or any(answer.value is not None for answer in self.answers())

    @property
    def needs_reference(self) -> bool:
        """Whether judging the criterion requires a reference submission for comparison."""
        return False

    @cached_property
    def part_fields(self) -> Mapping[str, BaseCriterion]:
        """The parts of the criterion, as criteria by the evaluation field of each; empty for most kinds.

        Votes are aggregated separately for each part, and metrics have a separate row for each part.
        """
        return {}

    @cached_property
    def part_weights(self) -> tuple[float, ...]:
        """The weights of the parts; the criterion's value is the weighted mean of the parts' values."""
        return (1.0,) * len(self.part_fields)

    def part_answers(self, answer: Answer) -> tuple[Answer | None, ...]:
        """Return the answer to each of `part_fields`, in order; None for a part that has no answer."""
        given = answer.code if answer.evaluation is None else answer.evaluation
        known = given if isinstance(given, Mapping) else {}
        return tuple(part.parse_truth(known.get(name)) for name, part in self.part_fields.items())

    def whole(self, answers: Sequence[Answer]) -> Answer:
        """Combine the answers to `part_fields` and return the answer to the whole criterion."""
        codes = {name: answer.code for name, answer in zip(self.part_fields, answers, strict=True)}
        return self.read({**self._blank_texts(), **codes})

    @cached_property
    def _declared_codes(self) -> tuple[Json, ...]:
        measuring = self._measuring_fields()
        if len(measuring) != 1 or self.part_fields:
            return ()
        field = self.eval_fields[measuring[0]]
        return field.listed_replies() or (field.steps() if self.level == "ordinal" else ())

    def answers(self) -> tuple[Answer, ...]:
        """Return the possible answers in their declared order; empty if they cannot be listed."""
        return self._declared_answers

    @cached_property
    def _declared_answers(self) -> tuple[Answer, ...]:
        return tuple(replace(self.read(code), reason="", evaluation=None) for code in self._declared_codes)

    def answer_at(self, value: float) -> Answer:
        """Return the answer for a value in [0, 1]; a mean can lie between the possible answers."""
        measuring = self._measuring_fields()
        own = type(self).value_of is not BaseCriterion.value_of
        code = self.eval_fields[measuring[0]].at(value) if len(measuring) == 1 and not own else None
        return Answer(code=code, value=value, label=None if code is None else str(code))

    @cached_property
    def is_shuffled(self) -> bool:
        """Whether the criterion may be shown in a random order, so that it needs a random generator."""
        own = type(self)
        return own.show is not BaseCriterion.show or own.presentations is not BaseCriterion.presentations

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """Return how the criterion is presented in one call; if `rng` is None, nothing is shuffled."""
        return AS_DECLARED

    def bind(self, submission: Submission) -> BaseCriterion:
        """Return the criterion for one submission, including the candidates if it compares any."""
        return self

    def why_inapplicable(self, submission: Submission) -> str | None:
        """Return why this criterion cannot judge a submission, or None if it can."""
        return None

    def presentations(self, submission: Submission, rng: random.Random | None) -> tuple[tuple[str, ...], ...]:
        """Return the orders in which to show candidates, one per vote; by default a single empty order."""
        return ((),)

    def example(self, submission: Submission, answer: Answer) -> tuple[str | None, str | None]:
        """Return a judged submission as a prompt example: its text and the answer in words."""
        if answer.label is not None or answer.code is None:
            return submission.text, answer.label
        return submission.text, json.dumps(answer.code, ensure_ascii=False)

    def candidate_values(self, answer: Answer) -> tuple[float, ...]:
        """Return the value that an answer assigns to each candidate; empty if nothing is compared."""
        return ()

    def ranking_answer(self, points: Sequence[float]) -> Answer:
        """Return the ranking by points, most points first. Override it with `candidate_values`."""
        kind = type(self).__name__
        raise NotImplementedError(f"{kind} overrides candidate_values() but not ranking_answer()")

    def render(self, shown: Shown | None = None) -> str:
        """Return the criterion's text as shown to a judge."""
        head = self.name or "criterion"
        return f"{head}: {self.requirement}" if self.requirement else head

    def question(self) -> str:
        """Return the name and requirement as a question to a judge that chooses from `answer_choices`."""
        return BaseCriterion.render(self)

    def answer_choices(self, shown: Shown | None = None) -> tuple[AnswerChoice, ...]:
        """Return the answers in declared order, for a range of numbers the whole ones; empty if unlisted."""
        pairs = [(str(one.label), one) for one in self.answers() or map(self.read, self._whole_numbers())]
        told = self._meanings()
        return tuple(AnswerChoice(x, x.removesuffix(".0"), told.get(x, ""), one) for x, one in pairs)

    def _meanings(self) -> Mapping[str, str]:
        texts = ("It is not true of the text.", "It is true of the text.") if self.level == "binary" else ()
        return {str(one.label): text for one, text in zip(self.answers(), texts, strict=False)}

    def _whole_numbers(self) -> Sequence[int]:
        measuring = self._measuring_fields() if self.level == "interval" else ()
        scale = self.eval_fields[measuring[0]] if len(measuring) == 1 else None
        low, high = getattr(scale, "min_val", 0.5), getattr(scale, "max_val", 0.5)
        is_whole = low == int(low) and high == int(high) and high - low < MOST_STEPS
        return range(int(low), int(high) + 1) if is_whole else ()

    def value_of(self, evaluation: Any) -> float | None:
        """Return an evaluation's value in [0, 1]: by default, the mean over fields with `measures=True`."""
        places = [field.position(getattr(evaluation, name)) for name, field in self.eval_fields.items()]
        known = [place for place in places if place is not None]
        return sum(known) / len(known) if known else None

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Parse a reply and return its answer.

        Args:
            reply: An evaluation, its dict, or the plain value of the only field with `measures=True`.
            shown: How the criterion was presented to the judge.

        Raises:
            ReplyError: If the reply is not a valid answer to this criterion; the message can be sent back to
                the judge.
        """
        given = reply.model_dump() if isinstance(reply, BaseModel) else reply
        fields = self.eval_fields
        if isinstance(given, Mapping) and given.keys() != fields.keys():
            given = unwrap_reply(given, (*fields, "cannot_assess", "reason", "criterion_name"))
        if self._says_cannot_assess(given):
            return Answer(code=None, cannot_assess=True, reason=self._reason(given))
        given = self._complete_reply(given)
        evaluation = self._validate(given)
        values = {k: v for k, v in evaluation.model_dump().items() if k != "criterion_name"}
        code = self._code(values)
        bare = not isinstance(code, Mapping)
        return Answer(
            code=code,
            value=self._checked_value(evaluation),
            label=self._label(code) if bare else None,
            index=self._declared_codes.index(code) if bare and code in self._declared_codes else None,
            reason=self._reason(values) or self._reason(given),
            evaluation=values,
        )

    def _complete_reply(self, given: Json) -> Json:
        """Return a reply that is not an abstention with the fields that follow from the given ones."""
        return given

    def _checked_value(self, evaluation: BaseModel) -> float | None:
        value = self.value_of(evaluation)
        if value is None:
            return None
        # A weighted mean may exceed the range by a rounding error.
        if not isinstance(value, int | float) or not -_ROUNDING <= value <= 1.0 + _ROUNDING:
            what = f"{type(self).__name__}.value_of must return a number from 0 to 1 or None"
            raise ArgumentError(f"{what}; got {value!r} for {self._title!r}")
        return min(max(float(value), 0.0), 1.0)

    def _says_cannot_assess(self, given: Json) -> bool:
        if isinstance(given, Mapping):
            return says_yes(given.get("cannot_assess"))
        is_other = isinstance(given, str) and given not in self._declared_codes
        return is_other and fold_name(given) in ("cannot_assess", "cannot assess")

    def _label(self, code: Json) -> str:
        return str(code)

    def _part(self, kind: type[PartT], key: str, requirement: str, **fields: Any) -> PartT:
        name = f"{self.name or ''}/{key}"
        shared = {"weight": self.weight, "aggregation": self.aggregation}
        return kind(name=name, requirement=requirement, **shared, **fields)

    def _reason(self, given: Json) -> str:
        """Return the rater's reason: the texts of a reply, or its `reason`."""
        if not isinstance(given, Mapping):
            return ""
        texts = [str(given[name]) for name in self._blank_texts() if given.get(name)]
        return " ".join(texts) or str(given.get("reason") or "")

    def _code(self, fields: Mapping[str, Json]) -> Json:
        """Return the value of the only measuring field, or a dict of all measuring fields or all fields."""
        measuring = self._measuring_fields()
        if len(measuring) == 1 and not isinstance(fields[measuring[0]], Mapping):
            return fields[measuring[0]]
        return {name: fields[name] for name in measuring} if measuring else dict(fields)

    def _validate(self, given: Json) -> BaseModel:
        measuring = self._measuring_fields()
        if not isinstance(given, Mapping):
            if len(measuring) != 1:
                wanted = ", ".join(self.eval_fields)
                raise ReplyError(f"{self._title}: expected an object with {wanted}; got {short_repr(given)}")
            given = {measuring[0]: given}
        if measuring:
            # Only the value is required; explanations may be omitted.
            given = {**self._blank_texts(), **given}
        fields = self.eval_fields
        kept = {
            key: fields[key].normalize(raw) if key in fields else raw
            for key, raw in given.items()
            if key not in ("criterion_name", "cannot_assess")
        }
        try:
            return self.evaluation_schema.model_validate(kept)
        except ValidationError as fault:
            raise ReplyError(f"{self._title}: {fields_text(fault, 'reply')}") from None

    def parse_truth(self, raw: Json) -> Answer | None:
        """Parse a ground-truth label and return the answer, or None if the label is missing.

        Raises:
            ReplyError: If the label is not a valid answer to this criterion.
        """
        if raw is None:
            return None
        # A label, like a stored vote's answer, needs no explanation.
        if not isinstance(raw, str) and isinstance(raw, Mapping):
            raw = {**self._blank_texts(), **raw}
        return self.read(raw)

    def conservative(self) -> Answer:
        """Return the worst answer for the score: the highest for a penalty, otherwise the lowest.

        If answers to the criterion have no values (`measures` is false), the answer is empty.
        """
        if self.part_fields:
            return self.whole([part.conservative() for part in self.part_fields.values()])
        placed = [answer for answer in self.answers() if answer.value is not None]
        if not placed:
            worst = 0.0 if self.weight >= 0 else 1.0
            return self.answer_at(worst) if self.measures else Answer(code=None)
        pick = min if self.weight >= 0 else max
        return pick(placed, key=lambda answer: answer.value or 0.0)

    def with_name(self, name: str) -> BaseCriterion:
        """Return a copy of the criterion with a different name."""
        fields = {field: getattr(self, field) for field in type(self).model_fields}
        return type(self).model_validate({**fields, "name": name})


KindT = TypeVar("KindT", bound=type[BaseCriterion])


_OWN: Final[Mapping[str, str]] = {
    "analytic_rubric": "levels",
    "checklist": "checklist",
    "comparative": "comparative",
    "holistic_rubric": "levels",
    "likert": "ratings",
    "narrative": "narrative",
    "numerical_rating": "ratings",
    "pass_fail": "ratings",
}
"""The modules that register the built-in kinds, except the plain one, by tag."""

_kinds: dict[str | None, type[BaseCriterion]] = {}


def register_kind(tag: str | None) -> Callable[[KindT], KindT]:
    """Return a class decorator that registers a criterion class under a `type` tag.

    The tag None is reserved for the plain criterion, whose `type` is omitted in files.

    Raises:
        ArgumentError: If the class is not a subclass of `BaseCriterion`, or another class uses the tag.
    """

    def register(kind: KindT) -> KindT:
        if not (isinstance(kind, type) and issubclass(kind, BaseCriterion)):
            raise ArgumentError(f"register_kind({tag!r}) requires a subclass of BaseCriterion; got {kind!r}")
        _load_own(tag)
        taken = _kinds.get(tag)
        # Running a notebook cell again redefines the same class, which is allowed.
        if taken and (taken.__module__, taken.__qualname__) != (kind.__module__, kind.__qualname__):
            raise ArgumentError(f"the tag {tag!r} is already used by {taken.__qualname__}; use another tag")
        kind.kind = tag
        _kinds[tag] = kind
        return kind

    return register


def registered_kinds() -> dict[str, type[BaseCriterion]]:
    """Return all criterion classes by tag: built-in classes first, then registered and installed ones."""
    for tag in (*_OWN, *extension_names(KINDS_GROUP)):
        kind_of(tag)
    others = {tag: kind for tag, kind in _kinds.items() if tag is not None}
    return {tag: _kinds[tag] for tag in _OWN} | others


def criterion_to_dict(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a criterion as written in a rubric file, with its `type` tag and without default values."""
    own, known = type(criterion), _kinds.get(criterion.kind)
    if known is None or (known.__module__, known.__qualname__) != (own.__module__, own.__qualname__):
        what = f"{own.__qualname__} has no type tag, so {criterion.name or 'it'!r} cannot be written"
        raise ArgumentError(f"{what} to a file; decorate the class with @register_kind('…')")
    fields = criterion.model_dump(mode="json", exclude_defaults=True)
    return {**fields, "weight": criterion.weight}


def criterion_from_dict(given: Mapping[str, Json]) -> BaseCriterion:
    """Create a criterion from a mapping returned by `criterion_to_dict`."""
    return kind_of(given.get("type")).model_validate({k: v for k, v in given.items() if k != "type"})


def kind_of(tag: Json) -> type[BaseCriterion]:
    """Return the class registered under a `type` tag; None is the tag of the plain criterion."""
    if isinstance(tag, str) and tag not in _kinds:
        _load_own(tag)
        if tag not in _kinds and (kind := load_extension(KINDS_GROUP, tag)):
            register_kind(tag)(kind)
    if (tag is None or isinstance(tag, str)) and tag in _kinds:
        return _kinds[tag]
    known = registered_kinds()
    near = difflib.get_close_matches(str(tag), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(known) or 'none'}."
    what = f"unknown kind of criterion {tag!r}"
    raise ArgumentError(f"{what}; {hint} Register your own kinds with @register_kind")


def _load_own(tag: str | None) -> None:
    """Import the module that registers the built-in kind with this tag, if any."""
    if tag is not None and tag in _OWN:
        import_module(f"autorubric.criteria.{_OWN[tag]}")
