"""Scales, which declare the possible answers, and agreement weights between their categories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from autorubric.errors import ArgumentError
from autorubric.support.frames import is_frame
from autorubric.support.names import fold_name

Codes: TypeAlias = npt.NDArray[np.int64]
"""Category codes: positions on a scale, starting from 0. -1 means missing."""

Array: TypeAlias = npt.NDArray[Any]
"""An array of real numbers, or of complex numbers if a metric is differentiated by a complex step."""

MISSING = -1

_BINARY_WORDS: Mapping[str, int] = {
    "MET": 1, "YES": 1, "TRUE": 1, "PASS": 1, "1": 1,
    "UNMET": 0, "NO": 0, "FALSE": 0, "FAIL": 0, "0": 0,
    "CANNOT_ASSESS": MISSING,
}  # fmt: skip


class ScaledCriterion(Protocol):
    @property
    def level(self) -> str: ...
    def answers(self) -> Iterable[Any]: ...
    def answer_at(self, value: float, /) -> Any: ...


def is_missing(label: object) -> bool:
    """Return whether a label is missing: None, NaN, pandas' NA or NaT, or a blank text."""
    if label is None or (isinstance(label, float) and math.isnan(label)):
        return True
    if isinstance(label, str):
        return not label or label.isspace()
    if isinstance(label, np.floating):
        return bool(np.isnan(label))
    return type(label).__name__ in ("NAType", "NaTType")


def _key(label: object) -> object:
    """Convert a numpy scalar to a Python object, so that `np.int64(1)` and `1` are equal dictionary keys."""
    return label.item() if isinstance(label, np.generic) else label


def _comparable(label: object) -> object:
    """Return a label as it is compared if no label equals it: numbers by value, texts after `fold_name`."""
    if not isinstance(label, str):
        return _key(label)
    try:
        number = float(label)
    except ValueError:
        return fold_name(label)
    return number if math.isfinite(number) else fold_name(label)


class _Categorical:
    """Categories in a declared order; a label counts as the only category that equals it after folding."""

    labels: tuple[Any, ...]
    na: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """Number of declared categories."""
        return len(self.labels)

    @property
    def positions(self) -> npt.NDArray[np.float64] | None:
        """Numeric value of each category, shape `(K,)`; None if the scale does not define distances."""
        return None

    @cached_property
    def _codes(self) -> dict[object, int]:
        return {_key(label): code for code, label in enumerate(self.labels)}

    @cached_property
    def _folded(self) -> dict[object, int]:
        """Codes by comparable label; missing for NA labels, and absent for labels that are not unique."""
        labels = [(_comparable(label), code) for code, label in enumerate(self.labels)]
        counts = Counter(key for key, _ in labels)
        found = dict.fromkeys(map(_comparable, self.na), MISSING)
        return found | {key: code for key, code in labels if counts[key] == 1}

    def code(self, label: object) -> int:
        """Return the position of the label on the scale, or -1 if it is missing."""
        if is_missing(label):
            return MISSING
        try:
            code = self._codes.get(_key(label))
            return self._folded[_comparable(label)] if code is None else code
        except (KeyError, TypeError):
            raise ArgumentError(
                f"label {label!r} is not on the scale {self}, whose labels are {list(self.labels)!r}"
            ) from None

    def encode(self, labels: Iterable[object]) -> Codes:
        """Return the position of each label on the scale, shape `(n,)`, with -1 for missing labels."""
        seen: dict[object, int] = {}
        codes = []
        for label in labels:
            key = (type(label), label) if isinstance(label, str | bool | int) else None
            code = seen.get(key) if key is not None else None
            if code is None:
                code = self.code(label)
                if key is not None:
                    seen[key] = code
            codes.append(code)
        return np.array(codes, dtype=np.int64)


def _distinct_labels(labels: Iterable[Any], what: str) -> tuple[Any, ...]:
    if not isinstance(labels, Iterable):
        hint = f"range({labels})" if isinstance(labels, int) else "['low', 'high']"
        raise ArgumentError(f"{what} needs a list of all categories, such as {hint}; got {labels!r}")
    declared = tuple(_key(label) for label in labels)
    if not declared:
        raise ArgumentError(f"{what} needs at least one label")
    if len(set(declared)) != len(declared) or any(is_missing(label) for label in declared):
        raise ArgumentError(f"the labels of {what} must be distinct and not missing; got {list(declared)!r}")
    return declared


@dataclass(frozen=True)
class Binary(_Categorical):
    """Scale with two categories, `UNMET` (0) and `MET` (1).

    Accepts bool, 0 and 1, and the words met, yes, true, pass and their opposites in any letter case.
    `CANNOT_ASSESS` counts as missing.
    """

    @property
    def labels(self) -> tuple[str, str]:  # type: ignore[override]
        """The labels `UNMET` and `MET`, in this order."""
        return ("UNMET", "MET")

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Numeric values of UNMET and MET: 0 and 1."""
        return np.array([0.0, 1.0])

    def code(self, label: object) -> int:
        """Return 0 for UNMET, 1 for MET, or -1 if the label is missing."""
        if is_missing(label):
            return MISSING
        plain = _key(label)
        if isinstance(plain, str) and fold_name(plain).upper() in _BINARY_WORDS:
            return _BINARY_WORDS[fold_name(plain).upper()]
        if isinstance(plain, bool | int | float) and plain in (0, 1):
            return int(plain)
        raise ArgumentError(
            f"label {label!r} is not on the scale Binary(); use True/False, 1/0 or 'MET'/'UNMET'"
        )

    @staticmethod
    def reads(labels: Iterable[object]) -> bool:
        """Return whether all labels are valid on a binary scale."""
        scale = Binary()
        try:
            return all(scale.code(label) is not None for label in labels)
        except ArgumentError:
            return False


@dataclass(frozen=True)
class Nominal(_Categorical):
    """Scale with unordered categories.

    Attributes:
        labels: All categories, including those that do not occur in the data.
        na: Labels that mean "not applicable" and count as missing.
    """

    labels: tuple[Any, ...]
    na: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __init__(self, labels: Iterable[Any], *, na: Iterable[Any] = ()) -> None:
        object.__setattr__(self, "labels", _distinct_labels(labels, "Nominal"))
        object.__setattr__(self, "na", tuple(_key(label) for label in na))


@dataclass(frozen=True)
class Ordinal(_Categorical):
    """Scale with ordered categories.

    Attributes:
        labels: All categories from lowest to highest, including those that do not occur in the data.
        values: Numeric value of each category; None uses 0, 1, 2, …
        na: Labels that mean "not applicable" and count as missing.
    """

    labels: tuple[Any, ...]
    values: tuple[float, ...] | None = None
    na: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __init__(
        self, labels: Iterable[Any], values: Iterable[float] | None = None, *, na: Iterable[Any] = ()
    ) -> None:
        object.__setattr__(self, "labels", _distinct_labels(labels, "Ordinal"))
        object.__setattr__(self, "na", tuple(_key(label) for label in na))
        numbers = None if values is None else tuple(float(value) for value in values)
        if numbers is not None and not (
            len(numbers) == len(self.labels) and all(map(math.isfinite, numbers))
        ):
            raise ArgumentError(
                f"Ordinal needs one finite value for each of its {len(self.labels)} labels; got the values "
                f"{list(numbers)!r}"
            )
        object.__setattr__(self, "values", numbers)

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Numeric values of the categories; their positions if no values are declared."""
        return np.arange(self.size, dtype=float) if self.values is None else np.array(self.values)


@dataclass(frozen=True)
class Interval:
    """Scale of numbers whose differences are meaningful.

    Attributes:
        low: Smallest possible number; None if there is no lower bound.
        high: Largest possible number; None if there is no upper bound.
    """

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ArgumentError(f"low must be less than high in Interval({self.low!r}, {self.high!r})")

    @property
    def span(self) -> float | None:
        """Distance between the bounds; None if either bound is missing."""
        return None if self.low is None or self.high is None else self.high - self.low

    def check(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values unchanged; raise an error if one is not on the scale."""
        below = values < (-math.inf if self.low is None else self.low)
        outside = values[below | (values > (math.inf if self.high is None else self.high))]
        if outside.size:
            raise ArgumentError(f"value {float(outside[0])!r} is not on the scale {self}")
        return values


CategoricalScale: TypeAlias = Binary | Nominal | Ordinal
Scale: TypeAlias = Binary | Nominal | Ordinal | Interval


def scale_of(criterion: ScaledCriterion) -> Scale:
    """Return the scale of a criterion's answers. NA options and CANNOT_ASSESS count as missing.

    Raises:
        ArgumentError: If the criterion is a ranking or free text, because such answers have no scale.
    """
    if criterion.level == "binary":
        return Binary()
    answers = [answer for answer in criterion.answers() if not answer.na]
    na = [*(answer.label for answer in criterion.answers() if answer.na), "CANNOT_ASSESS"]
    if criterion.level == "interval":
        return _interval_of(criterion)
    if criterion.level == "nominal":
        return Nominal((answer.label for answer in answers), na=na)
    if criterion.level == "ordinal":
        values = [answer.value for answer in answers]
        return Ordinal(
            (answer.label for answer in answers),
            None if any(value is None for value in values) else cast("list[float]", values),
            na=na,
        )
    raise ArgumentError(f"answers to criteria of level {criterion.level!r} have no scale")


def _interval_of(criterion: ScaledCriterion) -> Interval:
    """Return a scale from the smallest to the largest answer; unbounded unless both are numbers."""
    low, high = (criterion.answer_at(place).code for place in (0.0, 1.0))
    single = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    return Interval(low, high) if single else Interval()


def as_sequence(labels: Iterable[Any] | npt.NDArray[Any], what: str) -> Sequence[Any] | npt.NDArray[Any]:
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise ArgumentError(f"{what} must be a sequence of labels; got {labels!r}")
    if is_frame(labels):
        columns = list(getattr(labels, "columns", ()))
        raise ArgumentError(f"{what} must be a single column, not a DataFrame; its columns are {columns!r}")
    if isinstance(labels, np.ndarray):
        if labels.ndim != 1:
            raise ArgumentError(f"{what} must be one-dimensional; got shape {labels.shape}")
        if isinstance(labels, np.ma.MaskedArray):
            masks = np.ma.getmaskarray(labels).tolist()
            return [None if mask else label for label, mask in zip(labels.data.tolist(), masks, strict=True)]
        return labels
    return labels if isinstance(labels, list | tuple) else list(labels)


def infer_scale(*columns: Iterable[object]) -> CategoricalScale | None:
    """Infer the scale: binary, ordinal if all labels are numbers, or nominal; None without labels.

    A label that only one column has counts as the only label that equals it after folding, also as the number
    that it denotes.

    Raises:
        ArgumentError: If one column has texts that denote no number of another column, which has no texts.
    """
    try:
        held = [{_key(label) for label in column if not is_missing(label)} for column in columns]
    except TypeError as error:
        raise ArgumentError(f"labels must be hashable: {error}") from None
    seen = set().union(*held)
    if not seen:
        return None
    if Binary.reads(seen):
        return Binary()
    if any(isinstance(label, str) for label in seen):
        seen = _merge_spellings(held)
    if all(isinstance(label, int | float) for label in seen):
        ordered = sorted(cast("set[float]", seen))
        return Ordinal(ordered, values=ordered)
    try:
        return Nominal(sorted(cast("set[Any]", seen)))
    except TypeError:
        return Nominal(sorted(seen, key=lambda label: (type(label).__name__, str(label))))


def _merge_spellings(columns: Sequence[set[object]]) -> set[object]:
    """Return the distinct labels of columns, each in one spelling unless several columns share more."""
    shared = Counter(label for column in columns for label in column)
    numbers = [label for label in shared if isinstance(label, int | float)]
    read = _comparable if numbers or max(shared.values()) == 1 else lambda label: fold_name(str(label))
    spellings: dict[object, list[object]] = {}
    for label in sorted(shared, key=lambda one: (isinstance(one, str), -shared[one], str(one))):
        key = read(label)
        if numbers and isinstance(key, float):
            label = int(key) if key.is_integer() else key
        spellings.setdefault(key, []).append(label)
    kept = {label for same in spellings.values() for label in same if label is same[0] or shared[label] > 1}
    texts = [sorted(str(one) for one in column if isinstance(read(one), str)) for column in columns if column]
    if numbers and any(texts) and not all(texts):
        text = next(filter(None, texts))[0]
        raise ArgumentError(
            f"labels are texts such as {text!r} in one column and numbers such as {numbers[0]!r} in another, "
            "and never equal; convert one of the columns, or pass scale=Nominal(labels) with all labels"
        )
    return kept


Weights: TypeAlias = Literal["linear", "quadratic"] | Sequence[Sequence[float]] | Array | None


def weight_matrix(weights: Weights, scale: CategoricalScale | None, size: int) -> Array:
    """Return agreement weights `(K, K)`: those given, 1 - |v_i - v_j| / range, or its quadratic form."""
    if weights is None:
        return np.eye(size)
    if not isinstance(weights, str):
        return _check_weights(weights, size)
    if weights not in ("linear", "quadratic"):
        raise ArgumentError(f"weights must be 'linear', 'quadratic', a K × K matrix or None; got {weights!r}")
    if isinstance(scale, Nominal):
        raise ArgumentError(
            f"weights={weights!r} need ordered categories, but {scale} has no order; pass Ordinal(labels) or "
            "a K × K matrix"
        )
    positions = np.arange(size, dtype=float) if scale is None else scale.positions
    assert positions is not None
    span = float(np.ptp(positions)) if size else 0.0
    distance = np.abs(positions[:, None] - positions[None, :]) / (span or 1.0)
    return np.asarray(1.0 - (distance if weights == "linear" else distance**2))


def _check_weights(weights: Any, size: int) -> Array:
    matrix = np.asarray(weights, dtype=float)
    if matrix.shape != (size, size):
        raise ArgumentError(f"weights must be a K × K matrix with K = {size}; got shape {matrix.shape}")
    if not (np.all((matrix >= 0) & (matrix <= 1)) and np.all(np.diag(matrix) == 1)):
        raise ArgumentError("weights must be 1 on the diagonal and between 0 and 1 elsewhere")
    return matrix


def describe(weights: Weights, *, declared: bool = True) -> str:
    """Describe the weights, and categories that are not declared, for the `method` of an estimate."""
    words = [] if declared else ["categories seen"]
    if weights is not None:
        words.insert(0, f"{weights} weights" if isinstance(weights, str) else "given weights")
    return ", ".join(words)
