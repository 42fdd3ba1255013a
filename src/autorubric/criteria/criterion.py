"""The plain criterion, which is met or not met, or a choice among options."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from autorubric.criteria.base import AS_DECLARED, BaseCriterion, Shown, register_kind
from autorubric.criteria.declaration import check_unique, object_schema, reason_schema
from autorubric.criteria.fields import ChoiceField, FieldSpec, TextField, says_yes, unwrap_reply
from autorubric.criteria.values import Answer, CriterionVerdict, Level, ScaleType, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.support.chat_tokens import restore_brackets
from autorubric.support.field_types import NonEmptyText, Share
from autorubric.support.names import fold_name, match_name
from autorubric.support.objects import Json, is_number
from autorubric.support.reading_errors import short_repr

_MET = ("yes", "y", "true", "t", "pass", "1")
_UNMET = ("no", "n", "false", "f", "fail", "0")
_SPELLINGS = f"allowed: MET (also {', '.join(_MET)}), UNMET (also {', '.join(_UNMET)}), CANNOT_ASSESS"
_VERDICT_WORDS = {
    **dict.fromkeys(("met", *_MET, "1.0"), CriterionVerdict.MET),
    **dict.fromkeys(("unmet", *_UNMET, "0.0"), CriterionVerdict.UNMET),
    **dict.fromkeys(("cannot_assess", "cannot assess"), CriterionVerdict.CANNOT_ASSESS),
}
_ENUMERATOR = re.compile(r"^(?:[-*•]|\(?(?:[A-Za-z]|[0-9]{1,2})[.):])\s+")


class CriterionOption(BaseModel):
    """An option of a multi-choice criterion.

    Attributes:
        label: Label that the judge chooses.
        value: Value in [0, 1]; None if the option has no value.
        na: Whether the option means "not applicable" and is excluded from the score.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    value: Share | None
    na: bool = False

    @model_validator(mode="before")
    @classmethod
    def _na_needs_no_value(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("na") is True and given.get("value") is None:
            return {**given, "value": 0.0}
        if isinstance(given, str):
            return {"label": given, "value": None}
        if isinstance(given, (Mapping, cls)):
            return given
        raise ValueError("an option must be a label (a string) or a mapping with label and value")

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> Any:
        """Write an option without a value as a plain label, since TOML has no null."""
        return self.label if self.value is None else handler(self)

    @field_validator("label")
    @classmethod
    def _check_label(cls, label: str) -> str:
        if not label.strip():
            raise ValueError(f"the label of an option must not be blank; got {label!r}")
        return label


@register_kind(None)
class Criterion(BaseCriterion):
    """A requirement that is either met or not or, with `options`, a choice among labels.

    Options are `CriterionOption`s, mappings of their fields, or plain labels. Plain labels have no values and
    make the criterion nominal: its answers are counted and compared but do not contribute to a score. With
    `scale_type="ordinal"`, plain labels are the steps of a scale, lowest first, with evenly spaced values
    from 0 to 1.

    Attributes:
        requirement: The requirement to judge.
        options: Options to choose from; None for MET, UNMET and CANNOT_ASSESS.
        scale_type: `ordinal` for ordered options, `nominal` for unordered options. Defaults to `nominal` if
            no option has a value and to `ordinal` otherwise.
    """

    requirement: NonEmptyText
    # Users pass lists, which are stored as tuples.
    options: Sequence[CriterionOption] | None = None
    scale_type: ScaleType = "ordinal"

    @model_validator(mode="before")
    @classmethod
    def _read_plain_labels(cls, given: Any) -> Any:
        options: Any = given.get("options") if isinstance(given, Mapping) else None
        if not _is_list(options):
            return given
        valued = given.get("scale_type") == "ordinal"
        steps = sum(isinstance(option, str) for option in options) - 1
        values = (place / steps if valued and steps else None for place in range(steps + 1))
        read = [{"label": one, "value": next(values)} if isinstance(one, str) else one for one in options]
        plain = {} if "scale_type" in given or any(map(_has_value, read)) else {"scale_type": "nominal"}
        return {**given, **plain, "options": read}

    @field_validator("options", mode="before")
    @classmethod
    def _check_list(cls, options: Any) -> Any:
        if options is None or _is_list(options):
            return options
        raise ValueError("options must be a list of labels, or of mappings with label and value")

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: Sequence[CriterionOption] | None) -> Any:
        if options is None:
            return None
        check_unique((option.label.strip().casefold() for option in options), "option labels")
        if sum(not option.na for option in options) < 2:
            raise ValueError("options must contain at least two options that are not NA")
        return tuple(options)

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        scored = [option for option in self.options or () if not option.na]
        without = [option.label for option in scored if option.value is None]
        if without and len(without) < len(scored):
            what = "either all options or none must have values from 0 to 1"
            raise ValueError(f"{what}; options without a value: {', '.join(map(repr, without))}")
        if without and self.scale_type == "ordinal":
            advice = "add values, or list plain labels, lowest first"
            raise ValueError(f"options of an ordinal scale must have values; {advice}")
        return self

    @property
    def level(self) -> Level:  # type: ignore[override]
        """The measurement level: `binary` if there are no options, otherwise the scale type."""
        return "binary" if self.options is None else self.scale_type

    @property
    def is_binary(self) -> bool:
        """Whether the answer is MET or UNMET."""
        return self.options is None

    @property
    def is_multi_choice(self) -> bool:
        """Whether the answer is one of `options`."""
        return self.options is not None

    def find_option_by_label(self, label: str) -> int:
        """Return the index of the option with this label, ignoring case and surrounding whitespace.

        Chat-template tokens can be written as they appear in prompts: `‹|end|>` for `<|end|>`.

        Raises:
            ArgumentError: If no option has the label.
        """
        for shown in (str, restore_brackets):
            labels = [shown(option.label) for option in self.options or ()]
            if (match := match_name(shown(label), labels)) is not None:
                return labels.index(match)
        raise ArgumentError(f"{self._title!r} has no option {label!r}; {self._allowed_text()}")

    def get_option_value(self, index: int) -> float | None:
        """Return the value in [0, 1] of the option at an index, or None if it has no value.

        Raises:
            ArgumentError: If no option has the index.
        """
        options = self.options or ()
        if not 0 <= index < len(options):
            raise ArgumentError(f"{self._title!r} has no option at index {index}; {self._allowed_text()}")
        return options[index].value

    def _allowed_text(self) -> str:
        if self.options is None:
            return "allowed: MET, UNMET, CANNOT_ASSESS"
        return "allowed: " + ", ".join(repr(option.label) for option in self.options)

    def _evaluation_fields(self) -> dict[str, FieldSpec]:
        reason = TextField().get_field()
        if self.options is None:
            return {"verdict": ChoiceField(choices=tuple(CriterionVerdict)).get_field(), "reason": reason}
        labels = tuple(option.label for option in self.options)
        return {"label": (Literal[labels], Field()), "reason": reason}

    @cached_property
    def wire_schema(self) -> dict[str, Json]:
        """The JSON schema of a reply, with the reason first, then the verdict or label as an enum.

        Criteria with identical labels in the same order share one schema.
        """
        if self.options is None:
            return _choice_schema("verdict", tuple(map(str, CriterionVerdict)), may_abstain=False)
        labels = tuple(option.label for option in self.options)
        return _choice_schema("label", labels, may_abstain=not self._has_na)

    @property
    def _has_na(self) -> bool:
        return any(option.na for option in self.options or ())

    @cached_property
    def _declared_answers(self) -> tuple[Answer, ...]:
        rows: list[tuple[str, float | None, bool]] = [("UNMET", 0.0, False), ("MET", 1.0, False)]
        if self.options is not None:
            rows = [(one.label, None if one.na else one.value, one.na) for one in self.options]
        return tuple(
            Answer(code=label, value=value, label=label, index=index, na=na)
            for index, (label, value, na) in enumerate(rows)
        )

    @cached_property
    def is_shuffled(self) -> bool:
        """Whether the criterion has options to shuffle, or a subclass may be shown in a random order."""
        return self.options is not None or (type(self) is not Criterion and super().is_shuffled)

    def show(self, submission: Submission, rng: random.Random | None) -> Shown:
        """Return a random order of the options, NA options last, or the declared order if `rng` is None."""
        if self.options is None or rng is None:
            return AS_DECLARED
        scored = [i for i, option in enumerate(self.options) if not option.na]
        rng.shuffle(scored)
        return Shown(order=(*scored, *(i for i, option in enumerate(self.options) if option.na)))

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement and, if any, the options in the order shown."""
        head = super().render(shown)
        if self.options is None:
            return head
        options = Shown.arrange(self.options, shown)
        return "\n".join([head, "Options:", *(f"- {option.label}" for option in options)])

    def vote_fields(self) -> dict[str, Json]:
        """Return the fields that affect a vote; option values are not included."""
        fields = super().vote_fields()
        for option in fields["options"] or ():
            if not isinstance(option, str):
                del option["value"]
        return fields

    def instruction(self) -> str:
        """Return a line that explains the expected answer."""
        if self.options is None:
            return (
                "Give a short reason that quotes or names the evidence, then the verdict: MET if the text "
                "does what the criterion says, UNMET if not, CANNOT_ASSESS if it cannot be told."
            )
        rule = "Give a short reason that quotes or names the evidence, then the label of one option, verbatim"
        return f"{rule}." if self._has_na else f"{rule}. If it cannot be told, set cannot_assess to true."

    def read(self, reply: Json | BaseModel, shown: Shown | None = None) -> Answer:
        """Parse a reply (an evaluation, its dict, or a plain label) and return its verdict or option.

        Raises:
            ReplyError: If the reply does not contain a valid verdict or label.
        """
        if isinstance(reply, str):
            return (self._read_verdict if self.options is None else self._read_label)(reply, False)
        # Most replies are dicts, and checking for the other types is slow.
        given = reply.model_dump() if type(reply) is not dict and isinstance(reply, BaseModel) else reply
        reason, in_words = "", isinstance(given, (dict, Mapping))
        if isinstance(given, (dict, Mapping)):
            key = "verdict" if self.options is None else "label"
            if given.keys() != {key, "reason"}:
                given = unwrap_reply(given, (key, "cannot_assess", "reason"))
            reason = str(given.get("reason") or "")
            if "cannot_assess" in given and says_yes(given["cannot_assess"]):
                return Answer(code=None, cannot_assess=True, reason=reason)
            if key not in given:
                raise ReplyError(f"{self._title}: the reply must contain {key!r}; {self._allowed_text()}")
            given = given[key]
        answer = (self._read_verdict if self.options is None else self._read_label)(given, in_words)
        return _with_reason(answer, reason)

    def _read_verdict(self, given: Json, in_words: bool) -> Answer:
        text = str(given).lower()  # the usual spelling
        verdict = None if given is None else _VERDICT_WORDS.get(text) or _VERDICT_WORDS.get(fold_name(text))
        if verdict is None:
            allowed = self._allowed_text() if in_words else _SPELLINGS
            raise ReplyError(f"{self._title}: {short_repr(given)} is not a verdict; {allowed}")
        if verdict is CriterionVerdict.CANNOT_ASSESS:
            return Answer(code=str(verdict), label=str(verdict), cannot_assess=True)
        return self._declared_answers[int(verdict is CriterionVerdict.MET)]

    def _read_label(self, given: Json, in_words: bool) -> Answer:
        if is_number(given):
            return self._read_number(given, in_words)
        if given is None or isinstance(given, dict | list):
            raise ReplyError(f"{self._title}: {short_repr(given)} is not an option; {self._allowed_text()}")
        text = str(given)
        bare = text.strip().strip("\"'`").strip()
        for label in (text, bare, _ENUMERATOR.sub("", bare)):
            try:
                return self._declared_answers[self.find_option_by_label(label)]
            except ArgumentError:
                continue
        if bare.upper() == CriterionVerdict.CANNOT_ASSESS:
            return Answer(code=None, cannot_assess=True)
        raise ReplyError(f"{self._title}: {short_repr(given)} is not an option; {self._allowed_text()}")

    def _read_number(self, given: float, in_words: bool) -> Answer:
        """Return the option with a number as its label or value; a model (`in_words`) does not see values."""
        try:
            spelt = (str(given), f"{given:g}")
        except (OverflowError, ValueError):
            raise ReplyError(f"{self._title}: the number is too large; {self._allowed_text()}") from None
        named = [a for a in self._declared_answers if a.label in spelt]
        found = named or [a for a in self._declared_answers if a.value == given and not in_words]
        if len(found) != 1:
            what = f"{given!r} is not the {'label' if in_words else 'label or value'} of an option"
            raise ReplyError(f"{self._title}: {what}; {self._allowed_text()}")
        return found[0]


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))


def _has_value(option: Any) -> bool:
    """Return whether an option has a value; False for NA options."""
    if isinstance(option, CriterionOption):
        return option.value is not None and not option.na
    # Invalid options count as having a value; validation of the option reports the error.
    return not isinstance(option, Mapping) or (not option.get("na") and option.get("value", 0) is not None)


@lru_cache(maxsize=256)
def _choice_schema(name: str, choices: tuple[str, ...], *, may_abstain: bool) -> dict[str, Json]:
    abstention = {"cannot_assess": {"type": "boolean"}} if may_abstain else {}
    choice = {name: {"type": "string", "enum": list(choices)}}
    return object_schema({"reason": reason_schema(), **abstention, **choice})


def _with_reason(answer: Answer, reason: str) -> Answer:
    if not reason:
        return answer
    return Answer(
        code=answer.code,
        value=answer.value,
        label=answer.label,
        index=answer.index,
        na=answer.na,
        cannot_assess=answer.cannot_assess,
        reason=reason,
    )
