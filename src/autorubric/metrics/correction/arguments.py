"""Arguments that corrected metrics share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import read_rows
from autorubric.metrics.core.label_rows import NO_ANSWER
from autorubric.metrics.core.resampling import Resampling, check_choice, check_number
from autorubric.metrics.core.scales import Binary, Codes, as_sequence
from autorubric.support.frames import is_frame

CorrectionCi: TypeAlias = Literal["auto", "analytic", "percentile", "bootstrap-t"]
CorrectionMethod: TypeAlias = Literal["rogan-gladen", "ppi++"]
Sampled: TypeAlias = Literal["random", "chosen"]

PPI_LABELS = 50
"""Minimum number of labelled units for the normal interval of ppi++ to have sufficient coverage."""


class CorrectionArguments(TypedDict, total=False):
    """Keyword arguments of all corrected metrics.

    Attributes:
        ci: Method of the interval. `"auto"` and `"analytic"` use a closed form, `"percentile"` is a bootstrap
            that resamples test items and labelled items, `"bootstrap-t"` is the studentised bootstrap for
            ppi++, and None computes no interval.
        confidence_level: Confidence level of the interval, in (0, 1).
        n_resamples: Number of bootstrap resamples.
        rng: Seed or NumPy generator of the resampling.
        lam: λ of ppi++, in [0, 1]: 0 relies on the labels only, 1 is prediction-powered inference as first
            published, and None tunes λ to minimise the variance.
    """

    ci: CorrectionCi | None
    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator
    lam: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOptions(Resampling):
    """Validated interval arguments with the attributes of `CorrectionArguments`."""

    ci: CorrectionCi | None = "auto"
    lam: float | None = None

    def __post_init__(self) -> None:
        check_choice("ci", self.ci, CorrectionCi, or_none=True)
        if self.lam is not None:
            check_number("lam", self.lam, "[0, 1]", hint="or None to tune it")
        Resampling.__post_init__(self)  # super() does not work with slots=True


def check_method(method: str, sampled: str, options: CorrectionOptions) -> None:
    """Check the method and the kind of sampling, and that they can be combined."""
    check_choice("method", method, CorrectionMethod)
    check_choice("sampled", sampled, Sampled)
    if method == "ppi++" and sampled == "chosen":
        raise ArgumentError(
            "method='ppi++' cannot be combined with sampled='chosen': ppi++ treats the labelled items as a "
            "random sample of the items under test, so hand-picked items would bias the rate by an unknown "
            "amount; use method='rogan-gladen', which only requires items picked by their true label, or "
            "label a random sample"
        )
    if method == "rogan-gladen" and options.lam is not None:
        raise ArgumentError(f"lam applies only to method='ppi++'; got lam={options.lam!r}")
    if method == "rogan-gladen" and options.ci == "bootstrap-t":
        raise ArgumentError("ci='bootstrap-t' requires method='ppi++'; use 'analytic' or 'percentile'")


def labels_of(given: Iterable[Any], what: str) -> Any:
    """Return the labels as a 1-D sequence."""
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{what} must be a sequence of labels, one per item; got {type(given).__name__}")
    return as_sequence(given, what)


def binary_codes(column: Iterable[Any], what: str) -> Codes:
    """Encode binary verdicts as 0 and 1, and missing ones, including NA and CANNOT_ASSESS, as -1."""
    labels = labels_of(column, what)
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        levels, where = np.unique(labels, return_inverse=True)
        coded = Binary().encode([answer_or_none(level) for level in levels.tolist()])
        return coded[where.reshape(-1)] if len(labels) else np.zeros(0, np.int64)
    return Binary().encode([answer_or_none(label) for label in labels])


def answer_or_none(label: Any) -> Any:
    """Return the label, or None for NA, CANNOT_ASSESS and INVALID, which mean that there is no answer."""
    return None if isinstance(label, str) and label.strip().upper() in NO_ANSWER else label


class Annotators(NamedTuple):
    """The annotators and their annotations."""

    names: tuple[str, ...]  # column names of a DataFrame, otherwise `"0"`, `"1"`, …
    columns: tuple[list[Any], ...]  # one list of `n_items` annotations per annotator
    n_items: int


def read_annotators(humans: Any) -> Annotators:
    """Read the columns of an items × annotators table; None and NaN are missing."""
    rows = read_rows(humans, "humans", "(n_items, n_annotators)")
    listed = rows.tolist() if isinstance(rows, np.ndarray) else [list(row) for row in rows]
    n_annotators = len(listed[0]) if listed else 0
    if listed and n_annotators < 2:
        raise ArgumentError(
            f"humans must have at least two annotators, so that they can be compared; got {n_annotators}"
        )
    names = [str(name) for name in (humans.columns if is_frame(humans) else range(n_annotators))]
    if len(set(names)) != len(names):
        raise ArgumentError(f"the columns of humans must have unique names; got {names!r}")
    return Annotators(
        tuple(names), tuple([row[j] for row in listed] for j in range(n_annotators)), len(listed)
    )
