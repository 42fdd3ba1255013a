"""Calibrations of a judge's probabilities: their application to votes, and their file."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, model_validator

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError, FileError
from autorubric.scoring.probabilities import by_part
from autorubric.scoring.votes import JudgeVote, Probabilities
from autorubric.support.field_types import Count, FiniteFloat
from autorubric.support.objects import IdentityCache
from autorubric.support.read import format_fault, read_structured
from autorubric.support.write import write_text_atomic

CalibrationMethod = Literal["temperature", "platt", "isotonic"]

SMALLEST: Final = 1e-6  # what smaller probabilities count as, so that a calibration can raise a 0

QUESTIONS: Final = IdentityCache[BaseCriterion, str](
    lambda criterion: sha256(json.dumps(criterion.vote_fields(), sort_keys=True).encode("ascii")).hexdigest()
)
"""SHA-256 of what affects votes on a criterion: not its weight and option values."""


class HeldOutLoss(BaseModel, frozen=True, extra="forbid"):
    """Mean loss on held-out items before and after calibration, and the 95% interval of the improvement."""

    before: float
    after: float
    low: float
    high: float


class ProbabilityCalibration(BaseModel, frozen=True, extra="forbid"):
    """A calibration of one judge's probabilities; create it with `calibrate_probabilities`.

    Attributes:
        format: Version of the file format.
        method: Method of the fit.
        judge: Id of the judge.
        origin: Source of the probabilities, with the backend and model if known.
        questions: SHA-256 of each criterion or part without its weight and option values, by name.
        parameters: By criterion, for each answer that is not NA: the temperature; the slope and intercept on
            the logit scale; or points (x₀, y₀, x₁, y₁, …) between which the result is interpolated.
        data: SHA-256 of the labelled probabilities.
        n_items: Number of items that it was fitted on.
        n_held_out: Number of other items, on which the losses are measured.
        log_loss: Logarithmic loss in nats, with probabilities of at least 1e-6.
        brier: Brier score; see `brier`.
    """

    format: int = 1
    method: CalibrationMethod
    judge: str
    origin: str
    questions: Mapping[str, str]
    parameters: Mapping[str, tuple[tuple[FiniteFloat, ...], ...]]
    data: str
    n_items: Count
    n_held_out: Count
    log_loss: HeldOutLoss
    brier: HeldOutLoss

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        if fault := format_fault(self.format, 1):
            raise ValueError(fault)
        valid = all(_is_valid(self.method, one) for own in self.parameters.values() for one in own)
        if not valid or self.parameters.keys() != self.questions.keys():
            raise ValueError(f"parameters do not match the method {self.method!r} and the questions")
        return self

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a calibration from a JSON file.

        Raises:
            FileError: If the file is not a calibration, or was written by a newer version.
        """
        document = read_structured(path, suffixes={".json": "json"})
        faults = document.faults()
        found = faults.validate(cls, document.data)
        faults.raise_as(FileError)
        assert found is not None
        return found

    def save(self, path: str | Path) -> None:
        """Write the calibration to a JSON file."""
        write_text_atomic(path, self.model_dump_json(indent=1) + "\n")

    def apply(self, criterion: BaseCriterion, vote: JudgeVote) -> Probabilities:
        """Return the calibrated probabilities of a vote; the probability of an abstention stays the same.

        Raises:
            ArgumentError: If the vote's backend, model or criterion is not that of the calibration.
        """
        assert vote.probabilities is not None
        if vote.probability_origin != self.origin:
            raise ArgumentError(
                f"the calibration of judge {self.judge!r} is for probabilities from {self.origin!r}; got "
                f"{vote.probability_origin!r} from {vote.judge_id!r}. Calibrate again on labelled items"
            )
        found = [self._calibrate(*one) for one in by_part(criterion, vote.probabilities)]
        return dict(zip(criterion.part_fields, found, strict=True)) if criterion.part_fields else found[0]

    def check(self, criterion: BaseCriterion) -> None:
        """Check that the calibration was fitted on this criterion, or part of a criterion.

        Raises:
            ArgumentError: If it was not, or if the criterion or the file of the calibration has changed.
        """
        name, answers = criterion.name or "", [one for one in criterion.answers() if not one.na]
        is_other = self.questions.get(name) != QUESTIONS.of(criterion)
        if is_other or len(self.parameters[name]) != len(answers):
            told = "another question" if name in self.questions else f"only {', '.join(self.questions)}"
            told = told if is_other else f"{len(self.parameters[name])} answers, not {len(answers)}"
            raise ArgumentError(
                f"the calibration of judge {self.judge!r} does not apply to criterion {name!r}: it was "
                f"fitted on {told}. Calibrate again on labelled items with this rubric"
            )

    def _calibrate(self, criterion: BaseCriterion, given: Mapping[str, float]) -> dict[str, float]:
        self.check(criterion)
        labels = [answer.label or "" for answer in criterion.answers() if not answer.na]
        answered = math.fsum(given.get(label, 0.0) for label in labels)
        if not answered:
            return dict(given)
        shares = [given.get(label, 0.0) / answered for label in labels]
        made = calibrated_shares(self.method, self.parameters[criterion.name or ""], shares)
        return {**given, **{label: answered * p for label, p in zip(labels, made, strict=True)}}


def read_calibrations(
    given: Sequence[ProbabilityCalibration | str | Path], judges: Collection[str]
) -> tuple[ProbabilityCalibration, ...]:
    """Return calibrations, some of them read from files, each of a different judge of the panel."""
    if isinstance(given, str | Path | ProbabilityCalibration):
        raise ArgumentError(f"calibrations must be a list; got {type(given).__name__}. Write [calibration]")
    made = tuple(
        one if isinstance(one, ProbabilityCalibration) else ProbabilityCalibration.from_file(one)
        for one in given
    )
    ids = [one.judge for one in made]
    if wrong := [judge for judge in ids if judge not in judges or ids.count(judge) > 1]:
        told = "has two calibrations" if wrong[0] in judges else f"is not in the panel: {', '.join(judges)}"
        raise ArgumentError(f"calibrations: judge {wrong[0]!r} {told}")
    return made


def calibrated_shares(
    method: CalibrationMethod, parameters: Sequence[Sequence[float]], shares: Sequence[float]
) -> list[float]:
    """Return a function of each answer's probability, divided by the sum over answers."""
    made = [_mapped(method, own, p) for own, p in zip(parameters, shares, strict=True)]
    total = math.fsum(made)
    return [one / total for one in made] if total else list(shares)


def _mapped(method: CalibrationMethod, own: Sequence[float], given: float) -> float:
    p = min(max(given, SMALLEST), 1 - SMALLEST)
    if method == "temperature":
        return math.exp(math.log(p) / own[0])
    if method == "platt":
        # The logistic function, in a form that cannot overflow.
        return (1 + math.tanh((own[0] * math.log(p / (1 - p)) + own[1]) / 2)) / 2
    # Beyond the first and the last point, the function is constant.
    x, y = (given - 1, *own[::2], given + 1), (own[1], *own[1::2], own[-1])
    at = bisect_right(x, given)
    return y[at - 1] + (y[at] - y[at - 1]) * (given - x[at - 1]) / (x[at] - x[at - 1])


def _is_valid(method: CalibrationMethod, own: Sequence[float]) -> bool:
    x, y = list(own[::2]), own[1::2]
    if method == "isotonic":
        return len(x) == len(y) > 0 and x == sorted({*x}) and all(0 < one < 1 for one in y)
    return len(own) == 2 if method == "platt" else len(own) == 1 and own[0] > 0
