"""Items of a dataset, and their labels: access, validation, combination of several raters."""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, time
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, CriterionVerdict, Level, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.rubric.rubric import Rubric
from autorubric.support.field_types import NonEmptyText
from autorubric.support.images import read_image
from autorubric.support.json_text import parse_json
from autorubric.support.names import describe_merged, fold_name, match_name, merge_names
from autorubric.support.objects import IdentityCache, Json, is_number
from autorubric.support.reading_errors import FilePath, SyntaxFault, nearest_key, short_repr

CodeT = TypeVar("CodeT")

Labels = list[Json] | dict[str, Json]
"""One label per criterion, in the rubric's order or by name; None for a missing label."""


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_JSON_START: Final = re.compile(r'[ \t\n\r]*+(?:["{\[0-9-]|true|false|null)')


def as_json(given: Any) -> Json:
    """Return a copy of a value after conversion to JSON and back."""
    try:
        return _copy_json(given)
    except (TypeError, RecursionError):
        pass
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the value cannot be stored as JSON: {error}") from None


def _copy_json(given: Any) -> Json:
    """Copy a value; `TypeError` if conversion to JSON and back, which takes longer, would change it."""
    kind = given.__class__
    # Two surrogates in a row would become one character.
    if kind is str and (given.isascii() or not _SURROGATE.search(given)):
        return given
    if given is None or kind is bool or (kind is float and math.isfinite(given)):
        return given
    # Python rejects integers with thousands of digits.
    if kind is int and abs(given) < 10**18:
        return given
    if kind is list:
        return given.copy() if _are_ascii(given) else [_copy_json(one) for one in given]
    if kind is dict and _are_ascii([*given, *given.values()]):
        return given.copy()
    if kind is dict and {*map(type, given)} <= {str}:
        return {_copy_json(key): _copy_json(one) for key, one in given.items()}
    raise TypeError


def _are_ascii(given: Collection[Any]) -> bool:
    return {*map(type, given)} <= {str} and all(map(str.isascii, given))


def to_json_cell(cell: Any) -> Json:
    """Return a cell of a table as JSON; what JSON lacks, such as a decimal or infinity, becomes its text."""
    if cell is None or isinstance(cell, (str, bool, int)) or (type(cell) is float and math.isfinite(cell)):
        return cell
    try:
        return json.loads(json.dumps(cell, default=_to_plain, allow_nan=False))
    except (TypeError, ValueError):
        return str(cell)


def decode_cell(cell: Any) -> Json:
    """Decode a cell of a file as JSON, or return it unchanged if it is not JSON."""
    if not isinstance(cell, str) or not _JSON_START.match(cell):
        return cell
    try:
        return parse_json(cell)
    except (SyntaxFault, RecursionError):
        return cell


def _to_plain(value: Any) -> Any:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    # Scalars and arrays of numpy.
    return value.tolist() if hasattr(value, "tolist") else str(value)


_none_as_dict = BeforeValidator(lambda given: {} if given is None else given)
JsonDict = Annotated[dict[str, Any], _none_as_dict, BeforeValidator(as_json)]


def _read_submission(given: Any) -> Json:
    found = as_json(given)
    if found is None or isinstance(found, str):
        return found
    try:
        Submission.parse(found)
    except ArgumentError as error:
        raise ValueError(str(error).replace("to_grade", "submission")) from None
    return found


def _check_prompt(given: Any) -> Any:
    if given is not None and not isinstance(given, str | list):
        raise ValueError("expected a string or content parts")
    Submission(text=None).with_prompt(given)
    return given


PromptValue = Annotated[Any, BeforeValidator(_check_prompt), BeforeValidator(as_json)]

RubricValue = Annotated[
    Rubric,
    BeforeValidator(lambda given: Rubric.from_dict(given) if isinstance(given, (Mapping, list)) else given),
    PlainSerializer(lambda rubric: rubric.to_dict(), return_type=dict),
]


class DataItem(BaseModel):
    """A submission to grade, with its prompt, labels and metadata; all arguments are keyword-only.

    Attributes:
        submission: Submission to grade: a string, `{"thinking", "output"}`, named candidates, a conversation
            in the chat format (a list of `{"role", "content"}`, with tool calls and tool results), or None if
            there is no text. Contents can be lists of texts and images in the chat format.
        description: Short description for human readers.
        ground_truth: One label per criterion, in the rubric's order or by name: a verdict, an option's label,
            a number, or None.
        rubric: Rubric of this item, instead of the dataset's.
        reference_submission: Reference answer of this item, instead of the dataset's.
        prompt: Prompt of this item, instead of the dataset's: a string, or content parts with images.
        id: Id by which recorded votes and ratings refer to the item; by default, its position as a string.
        reasons: Reasons for the labels, by criterion name.
        ratings: Labels by rater, which are combined to fill in missing ground-truth labels.
        metadata: Additional data, as JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    submission: Annotated[Any, BeforeValidator(_read_submission)]
    description: str = ""
    ground_truth: Annotated[Labels, BeforeValidator(as_json)] | None = None
    rubric: RubricValue | None = None
    reference_submission: str | None = None
    prompt: PromptValue = None
    id: NonEmptyText | None = None
    reasons: Annotated[dict[str, str], _none_as_dict] = Field(default_factory=dict)
    ratings: Annotated[dict[str, Labels], _none_as_dict, BeforeValidator(as_json)] = Field(
        default_factory=dict
    )
    metadata: JsonDict = Field(default_factory=dict)

    @field_validator("id", mode="before")
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        """Return a number as text; tables and JSON lines often have numeric ids."""
        if isinstance(given, str):
            return given
        return str(int(given)) if is_number(given) and given % 1 == 0 else given

    def to_dict(self) -> dict[str, Json]:
        """Return the item in the dataset file format, without default values.

        Raises:
            ArgumentError: If the rubric has an unregistered check function, which a file cannot refer to.
        """
        return self._dump(self.rubric.to_dict() if self.rubric is not None else None)

    def snapshot(self) -> dict[str, Json]:
        """Return the item as a mapping for `restore`, with unregistered checks as qualified names."""
        return self._dump(self.rubric.snapshot() if self.rubric is not None else None)

    @classmethod
    def restore(cls, given: Mapping[str, Any]) -> Self:
        """Restore an item from the output of `snapshot`; its checks need not be registered."""
        rubric = given.get("rubric")
        return cls.model_validate({**given, "rubric": None if rubric is None else Rubric.restore(rubric)})

    def _dump(self, rubric: Json) -> dict[str, Json]:
        kept = self.model_dump(mode="json", exclude_defaults=True, exclude={"rubric"})
        found = {"id": self.id, "submission": self.submission, **kept, "rubric": rubric}
        return {key: value for key, value in found.items() if value is not None or key == "submission"}


def canonical_sha256(given: Json) -> str:
    """Return the SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(_canonical(given).encode("ascii")).hexdigest()


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
).encode


def _with_digests(value: Json) -> Json:
    """Return a value with the SHA-256 of each image, on which votes depend, in place of its bytes."""
    if isinstance(value, list):
        return [_with_digests(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "image_url":
        with suppress(ArgumentError):
            found = read_image(value.get("image_url"), "", "")
            return {"type": "image_url", "image_url": found.sha256 or found.url}
    return {key: _with_digests(one) for key, one in value.items()}


def seen_by_judges(item: DataItem, prompt: Json, reference_submission: str | None) -> Json:
    """Return the parts of an item that a judge may see, for a fingerprint."""
    submission = item.submission
    if isinstance(submission, dict) and not set(submission) <= {"thinking", "output"}:
        # The order of named candidates matters, because the first one is the text that is judged.
        submission = [list(pair) for pair in submission.items()]
    seen = {"submission": submission, "prompt": prompt, "reference_submission": reference_submission}
    return seen if isinstance(submission, str) and isinstance(prompt, str | None) else _with_digests(seen)


TruthRule: TypeAlias = Literal["mode", "majority", "median", "mean"]
"""Rule for combining the labels of several raters.

- `"mode"`: the most frequent label; no label in case of a tie.
- `"majority"`: the label of more than half of the raters; otherwise no label.
- `"median"`: the middle label, which is the lower of two middle options or the mean of two middle numbers.
- `"mean"`: the mean of numbers, or the option nearest to the mean value (the lower of two equally near ones).

The last two rules always result in a label if a rater gave an answer. CANNOT_ASSESS is ignored, unless
all raters gave it. NA counts like any other label for the first two rules; for the last two, it must
outnumber the answers to be chosen.
"""

_NEAR = 1e-12
_NO_LABEL = {"", "-", "n/a", "#n/a", "na", "nan", "null", "none"}


def truth_answer(
    answers: Sequence[Answer], level: Level, options: Sequence[Answer], rule: TruthRule | None, name: str
) -> Answer | None:
    """Combine raters' answers on a categorical criterion, or return None if the rule selects no answer."""
    votes = [one for one in answers if not one.cannot_assess]
    if not votes:
        return next(iter(answers), None)
    rule = rule or ("median" if level == "ordinal" else "mean" if level == "interval" else "mode")
    if rule in ("mode", "majority"):
        return _most_frequent(votes, strict=rule == "majority")
    said_na, rated = [one for one in votes if one.na], [one for one in votes if not one.na]
    if len(said_na) > len(rated):
        return said_na[0]
    scale = _order_options(level, options, rule, name)
    codes = [repr(one.code) for one in scale]
    places = [codes.index(repr(one.code)) for one in rated]
    if rule == "median":
        return scale[statistics.median_low(places)]
    values = [one.value or 0.0 for one in scale]
    mean = statistics.fmean(values[place] for place in places)
    nearest = min(abs(value - mean) for value in values)
    return next(one for one, value in zip(scale, values, strict=True) if abs(value - mean) <= nearest + _NEAR)


def _order_options(level: Level, options: Sequence[Answer], rule: str, name: str) -> list[Answer]:
    """Return the options from the lowest to the highest."""
    scale = [one for one in options if not one.na]
    valued = bool(scale) and all(one.value is not None for one in scale)
    if level not in ("binary", "ordinal") or not scale or (rule == "mean" and not valued):
        needs = "values on every option" if rule == "mean" else "ordered options"
        raise ArgumentError(
            f"truth={rule!r} requires {needs}, which criterion {name!r} ({level}) lacks; use 'mode' or "
            "'majority', or omit truth to use the default rule of each criterion"
        )
    return sorted(scale, key=lambda one: one.value or 0.0) if valued else scale


def _most_frequent(votes: Sequence[Answer], *, strict: bool) -> Answer | None:
    by_code = {json.dumps(_code(one), sort_keys=True): one for one in reversed(votes)}
    code = _most_common([json.dumps(_code(one), sort_keys=True) for one in votes], strict=strict)
    return None if code is None else by_code[code]


def _most_common(codes: Sequence[CodeT], *, strict: bool) -> CodeT | None:
    """Return the most frequent code, or None if it is tied or, if `strict`, not in the majority."""
    if not codes:
        return None
    (code, n), *others = Counter(codes).most_common(2)
    tied = 2 * n <= len(codes) if strict else others and others[0][1] == n
    return None if tied else code


def truth_number(numbers: Sequence[float], rule: TruthRule | None) -> float | None:
    """Combine the numbers from one or more raters, or return None if the rule selects no number."""
    match rule:
        case "mode" | "majority":
            return _most_common(numbers, strict=rule == "majority")
        case "median":
            return statistics.median(numbers)
        case "mean" | None:
            return statistics.fmean(numbers)


def stratum_labels(item: DataItem, rubric: Rubric | None, rule: TruthRule | None) -> list[tuple[str, str]]:
    """Return the strata of an item: each criterion with its category, or with a quarter of [0, 1]."""
    strata = []
    for name, label in (truth_of(item, rubric, rule) or {}).items():
        answer = bind_item(rubric.by_name(name), item).parse_truth(label) if rubric else None
        if answer is not None and answer.index is None and answer.value is not None:
            strata.append((name, f"quarter {int(answer.value * 4)}"))
        else:
            strata.append((name, json.dumps(label if answer is None else _code(answer), sort_keys=True)))
    return strata


def is_no_label(cell: object, criterion: BaseCriterion | None = None, *more: str) -> bool:
    """Return whether a cell is empty, or has a text such as `N/A`, or of `more`, that is not an answer."""
    if not isinstance(cell, str):
        return cell is None
    folded = fold_name(cell)
    answers = criterion.answers() if criterion is not None else ()
    return folded in {*_NO_LABEL, *more} and all(fold_name(one.label or "") != folded for one in answers)


class LabelFault(NamedTuple):
    """An error about a label that does not match the rubric."""

    path: FilePath
    message: str
    reason: str = ""  # the message without the label; empty if no label is invalid


def all_by_name(labels: Labels | None, rubric: Rubric | None) -> dict[str, Json]:
    """Return labels by the criterion's name in the rubric; missing labels are None."""
    if labels is None or isinstance(labels, Mapping):
        names = () if rubric is None else rubric.names
        exact = {name: label for name, label in (labels or {}).items() if name in names}
        return {match_name(name, names) or name: label for name, label in (labels or {}).items()} | exact
    if rubric is None:
        raise ArgumentError("a list of labels requires a rubric; add a rubric or use labels by criterion")
    return dict(zip(rubric.names, labels, strict=True))


def by_name(labels: Labels | None, rubric: Rubric | None) -> dict[str, Json]:
    """Return labels by criterion name, without missing labels."""
    return {name: label for name, label in all_by_name(labels, rubric).items() if label is not None}


def ratings_of(item: DataItem, rubric: Rubric | None) -> dict[str, dict[str, Json]]:
    """Return labels by rater and criterion; contradictory ones of a rater in two spellings are missing."""
    first = merge_names(item.ratings)
    found: dict[str, dict[str, Json]] = {}
    for rater, labels in item.ratings.items():
        found.setdefault(first[rater], {}).update(by_name(labels, rubric))
    if len(found) < len(first):
        message = describe_merged(first, "raters") or ""
        for rater, name in _contradictions(item, rubric):
            found[first[rater]].pop(name, None)
            message += f"; contradictory labels of {name!r} by {first[rater]!a} are missing"
        warnings.warn(message, stacklevel=2)
    return found


def _contradictions(item: DataItem, rubric: Rubric | None) -> Iterator[tuple[str, str]]:
    """Yield the later spelling of a rater, and the criterion, if labels of two spellings differ."""
    first, known = merge_names(item.ratings), dict[tuple[str, str], Json]()
    for rater, labels in item.ratings.items() if len({*first.values()}) < len(first) else ():
        for name, label in by_name(labels, rubric).items():
            if rubric is not None:
                with suppress(ReplyError, ArgumentError):  # reported apart
                    label = truth_label([label], bind_item(rubric.by_name(name), item), None)
            if known.setdefault((first[rater], name), label) != label:
                yield rater, name


def truth_of(item: DataItem, rubric: Rubric | None, rule: TruthRule | None) -> dict[str, Json] | None:
    """Return the item's labels by name, with ratings filling in missing ones, or None if it has none."""
    known = by_name(item.ground_truth, rubric)
    rated: dict[str, list[Json]] = {}
    for own in ratings_of(item, rubric).values():
        for name, label in own.items():
            if name not in known:
                rated.setdefault(name, []).append(label)
    for name, labels in rated.items():
        agreed = truth_label(labels, bind_item(rubric.by_name(name), item) if rubric else None, rule)
        if agreed is not None:
            known[name] = agreed
    if rubric is not None:
        known = {name: known[name] for name in rubric.names if name in known}
    return known or None


def truth_label(labels: Sequence[Json], criterion: BaseCriterion | None, rule: TruthRule | None) -> Json:
    """Combine several raters' labels, or return None if the rule selects none."""
    if criterion is None:
        # Without a scale, unparsed labels are compared.
        return _agreed_code([Answer(code=label) for label in labels], "nominal", (), rule, "without a rubric")
    answers = [answer for label in labels if (answer := criterion.parse_truth(label)) is not None]
    if not criterion.part_fields or all(answer.abstains for answer in answers):
        return _truth_on(criterion, answers, rule)
    rows = [criterion.part_answers(answer) for answer in answers if not answer.abstains]
    agreed = {
        name: _truth_on(part, [answer for answer in column if answer is not None], rule)
        for (name, part), column in zip(criterion.part_fields.items(), zip(*rows, strict=True), strict=False)
    }
    return None if not agreed or None in agreed.values() else agreed


def _truth_on(criterion: BaseCriterion, answers: Sequence[Answer], rule: TruthRule | None) -> Json:
    codes = [_code(answer) for answer in answers if not answer.cannot_assess]
    numbers = [code for code in codes if is_number(code)]
    if criterion.level == "interval" and numbers and len(numbers) == len(codes):
        with suppress(ReplyError):
            criterion.parse_truth(number := truth_number(numbers, rule))
            return number
        return statistics.median_low(numbers)
    # Numbers mixed with NA are compared as labels.
    of_level: Level = "nominal" if criterion.level == "interval" else criterion.level
    options = criterion.answers() if of_level in ("binary", "ordinal", "nominal") else ()
    return _agreed_code(answers, of_level, options, rule, criterion.name or "")


def _agreed_code(
    answers: Sequence[Answer], level: Level, options: Sequence[Answer], rule: TruthRule | None, name: str
) -> Json:
    answer = truth_answer(answers, level, options, rule, name)
    return None if answer is None else _code(answer)


def _code(answer: Answer) -> Json:
    if answer.cannot_assess:
        return CriterionVerdict.CANNOT_ASSESS.value
    return answer.label if answer.code is None else answer.code


def label_faults(item: DataItem, rubric: Rubric) -> Iterator[LabelFault]:
    """Yield an error for each invalid entry in the item's ground truth, ratings and reasons."""
    if item.ground_truth is not None:
        yield from _faults_in(item, item.ground_truth, rubric, ("ground_truth",))
    for rater, labels in item.ratings.items():
        yield from _faults_in(item, labels, rubric, ("ratings", rater))
    for rater, name in _contradictions(item, rubric) if len(item.ratings) > 1 else ():
        yield LabelFault(("ratings", rater), f"differs on {name!r} from a rater of equal name; keep one")
    for name in item.reasons:
        if name not in rubric.names:
            hint = nearest_key(name, rubric.names)
            yield LabelFault(("reasons", name), f"unknown criterion {name!r}; {hint}")


def bind_item(criterion: BaseCriterion, item: DataItem) -> BaseCriterion:
    """Return the criterion adapted to the item, whose candidates labels may name."""
    return criterion.bind(Submission.parse(item.submission))


_VALID_LABELS: Final = IdentityCache[Rubric, set[tuple[str, type, Json]]](lambda rubric: set())
_MOST_LABELS: Final = 10_000  # labels of a rubric that are remembered as valid
_SCALARS: Final = (str, int, float, bool, type(None))


def _faults_in(item: DataItem, labels: Labels, rubric: Rubric, at: FilePath) -> Iterator[LabelFault]:
    names = rubric.names
    if isinstance(labels, list) and len(labels) != len(rubric):
        each = f"use a label or null for each: {', '.join(names)}"
        yield LabelFault(at, f"got {len(labels)} labels for {len(rubric)} criteria; {each}")
        return
    given, values = (labels, labels.values()) if isinstance(labels, dict) else (names, labels)
    valid = _VALID_LABELS.of(rubric)
    try:
        if valid.issuperset(zip(given, map(type, values), values, strict=True)):
            return
    except TypeError:
        pass  # lists and mappings are not hashable
    if not {*names}.issuperset(given):
        first: dict[str, str] = {}
        for name in given:
            if (other := first.setdefault(match_name(name, names) or name, name)) != name:
                yield LabelFault((*at, name), f"{other!a} and {name!a} are the same criterion; keep one")
    for position, (name, label) in enumerate(zip(given, values, strict=True)):
        kind = type(label)
        if kind in _SCALARS and (name, kind, label) in valid:
            continue
        known = match_name(name, names)
        if known is None:
            yield LabelFault((*at, name), f"unknown criterion {name!r}; {nearest_key(name, names)}")
            continue
        criterion = rubric.by_name(known)
        try:
            bind_item(criterion, item).parse_truth(label)
        except ReplyError as error:
            path = (*at, name if isinstance(labels, dict) else position)
            yield LabelFault(path, str(error), str(error).replace(short_repr(label), ""))
            continue
        # The candidates of a ranking depend on the item; other spellings are compared with each other above.
        if name == known and kind in _SCALARS and criterion.level != "ranking" and len(valid) < _MOST_LABELS:
            valid.add((name, kind, label))
