"""One item of a dataset: a submission and its labels, prompt and metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator

from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric
from autorubric.values import Json, Submission

Labels = list[Json] | dict[str, Json]
"""One label per criterion, in the rubric's order or by name; None where there is none."""


def _as_rubric(given: Any) -> Any:
    return Rubric.from_dict(given) if isinstance(given, (Mapping, list)) else given


def _as_dict(given: Any) -> Any:
    return {} if given is None else given


def as_json(given: Any) -> Json:
    """Return a copy of a value as JSON represents it.

    Raises:
        ValueError: If JSON cannot represent it.
    """
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"this is kept as JSON, which it is not: {error}") from None


JsonValue = Annotated[Any, BeforeValidator(as_json)]
RubricValue = Annotated[
    Rubric, BeforeValidator(_as_rubric), PlainSerializer(lambda rubric: rubric.to_dict(), return_type=dict)
]


class DataItem(BaseModel):
    """A submission with its prompt, labels and metadata; all arguments are keywords.

    Attributes:
        submission: The submission to grade: a text, `{"thinking", "output"}`, named candidates, a
            conversation (a list of `{"role", "content"}`), or None if there is no text.
        description: A short description for people.
        ground_truth: One label per criterion, in the rubric's order or by name: a verdict, an option's label,
            a number, or None.
        rubric: The item's own rubric; replaces the dataset's.
        reference_submission: The item's own model answer; replaces the dataset's.
        prompt: The item's own prompt; replaces the dataset's.
        id: The item's id, which recorded votes and ratings refer to; by default its position as text.
        reasons: The reason for a label, by criterion name.
        ratings: Labels by rater; their majority replaces a missing ground-truth label.
        metadata: Other data, as JSON.
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

    @field_validator("submission")
    @classmethod
    def _check_submission(cls, given: Json) -> Json:
        try:
            Submission.parse(given)
        except ArgumentError as error:
            raise ValueError(str(error).replace("to_grade", "submission")) from None
        return given

    def to_dict(self) -> dict[str, Json]:
        """Return the item as a dataset file holds it, without default values.

        Raises:
            ArgumentError: If a check of its rubric is a function that a file cannot name.
        """
        return self._dump(self.rubric.to_dict() if self.rubric is not None else None)

    def snapshot(self) -> dict[str, Json]:
        """Return the item for a store, unregistered checks by their qualified names; see `restore`."""
        return self._dump(self.rubric.snapshot() if self.rubric is not None else None)

    @classmethod
    def restore(cls, given: Mapping[str, Any]) -> Self:
        """Return the item that `snapshot` stored; its checks need not be registered in this process."""
        rubric = given.get("rubric")
        return cls.model_validate({**given, "rubric": None if rubric is None else Rubric.restore(rubric)})

    def _dump(self, rubric: Json) -> dict[str, Json]:
        head = {"id": self.id, "submission": self.submission}
        kept = self.model_dump(mode="json", exclude_defaults=True, exclude={"rubric"})
        found = {**head, **kept, "rubric": rubric}
        return {key: value for key, value in found.items() if value is not None or key == "submission"}


def canonical_sha256(given: Json) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of a value."""
    return hashlib.sha256(_canonical(given).encode("ascii")).hexdigest()


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
).encode


def seen_by_judges(item: DataItem, prompt: str | None, reference_submission: str | None) -> Json:
    """Return the parts of an item that a judge may see, for a fingerprint."""
    submission = item.submission
    if isinstance(submission, dict) and not set(submission) <= {"thinking", "output"}:
        # Of named candidates the order counts: the first one is what is judged.
        submission = [list(pair) for pair in submission.items()]
    return {"submission": submission, "prompt": prompt, "reference_submission": reference_submission}
