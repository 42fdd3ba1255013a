"""Items of a dataset, each of which is a submission with labels, a prompt and metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date, time
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator

from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.values import Json, Submission

Labels = list[Json] | dict[str, Json]
"""One label per criterion, in the rubric's order or by name; None for a missing label."""


def _as_rubric(given: Any) -> Any:
    return Rubric.from_dict(given) if isinstance(given, (Mapping, list)) else given


def _as_dict(given: Any) -> Any:
    return {} if given is None else given


def as_json(given: Any) -> Json:
    """Return a copy of a value after conversion to JSON and back.

    Raises:
        ValueError: If the value cannot be represented as JSON.
    """
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the value cannot be stored as JSON: {error}") from None


def stored(cell: Any) -> Json:
    """Return a cell of a table as JSON.

    Dates and times become text in ISO 8601, and sets sorted lists; everything else that JSON lacks, such as a
    decimal or infinity, becomes its text.
    """
    if cell is None or isinstance(cell, (str, bool, int)):
        return cell
    try:
        return json.loads(json.dumps(cell, default=_plain, allow_nan=False))
    except (TypeError, ValueError):
        return str(cell)


def _plain(value: Any) -> Any:
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    # Scalars and arrays of numpy.
    return value.tolist() if hasattr(value, "tolist") else str(value)


JsonValue = Annotated[Any, BeforeValidator(as_json)]
RubricValue = Annotated[
    Rubric, BeforeValidator(_as_rubric), PlainSerializer(lambda rubric: rubric.to_dict(), return_type=dict)
]


class DataItem(BaseModel):
    """A submission to grade, with its prompt, labels and metadata; all arguments are keyword-only.

    Attributes:
        submission: Submission to grade: a string, `{"thinking", "output"}`, named candidates, a conversation
            (a list of `{"role", "content"}`), or None if there is no text.
        description: Short description for human readers.
        ground_truth: One label per criterion, in the rubric's order or by name: a verdict, an option's label,
            a number, or None.
        rubric: Rubric of this item, instead of the dataset's.
        reference_submission: Reference answer of this item, instead of the dataset's.
        prompt: Prompt of this item, instead of the dataset's.
        id: Id by which recorded votes and ratings refer to the item; by default, its position as a string.
        reasons: Reasons for the labels, by criterion name.
        ratings: Labels by rater, which are combined to fill in missing ground-truth labels.
        metadata: Additional data, as JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    submission: JsonValue
    description: str = ""
    ground_truth: Annotated[Labels, BeforeValidator(as_json)] | None = None
    rubric: RubricValue | None = None
    reference_submission: str | None = None
    prompt: str | None = None
    id: str | None = Field(default=None, min_length=1)
    reasons: Annotated[dict[str, str], BeforeValidator(_as_dict)] = Field(default_factory=dict)
    ratings: Annotated[dict[str, Labels], BeforeValidator(_as_dict), BeforeValidator(as_json)] = Field(
        default_factory=dict
    )
    metadata: Annotated[dict[str, Any], BeforeValidator(_as_dict), BeforeValidator(as_json)] = Field(
        default_factory=dict
    )

    @field_validator("id", mode="before")
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        """Return a number as text; tables and JSON lines often have numeric ids."""
        is_whole = isinstance(given, int | float) and not isinstance(given, bool) and given % 1 == 0
        return str(int(given)) if is_whole else given

    @field_validator("submission")
    @classmethod
    def _check_submission(cls, given: Json) -> Json:
        try:
            Submission.parse(given)
        except ArgumentError as error:
            raise ValueError(str(error).replace("to_grade", "submission")) from None
        return given

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
        head = {"id": self.id, "submission": self.submission}
        kept = self.model_dump(mode="json", exclude_defaults=True, exclude={"rubric"})
        found = {**head, **kept, "rubric": rubric}
        return {key: value for key, value in found.items() if value is not None or key == "submission"}


def canonical_sha256(given: Json) -> str:
    """Return the SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(_canonical(given).encode("ascii")).hexdigest()


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
).encode


def seen_by_judges(item: DataItem, prompt: str | None, reference_submission: str | None) -> Json:
    """Return the parts of an item that a judge may see, for a fingerprint."""
    submission = item.submission
    if isinstance(submission, dict) and not set(submission) <= {"thinking", "output"}:
        # The order of named candidates matters, because the first one is the text that is judged.
        submission = [list(pair) for pair in submission.items()]
    return {"submission": submission, "prompt": prompt, "reference_submission": reference_submission}
