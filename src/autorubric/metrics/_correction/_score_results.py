"""What `corrected_score` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from autorubric.metrics._correction._arguments import CorrectionMethod
from autorubric.metrics._estimate import Estimate, Reason

CorrectedOn: TypeAlias = Literal["criteria", "items"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedCriterion:
    """One criterion's mean value, corrected.

    Attributes:
        value: Mean value on [0, 1]; of a binary criterion the pass rate.
        raw: The judges' own mean value.
        distribution: Corrected shares of its answers by label; None for ppi++ and where refused.
        lam: λ of ppi++; else None.
        n: Items judged.
        n_calibration: Items judged and labelled.
        reason: Why there is no corrected value.
    """

    value: Estimate
    raw: Estimate
    distribution: Mapping[str, float] | None
    lam: float | None
    n: int
    n_calibration: int
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedScore:
    """The mean score of a run, corrected.

    Attributes:
        score: The corrected mean of normalised scores before clamping and length penalty; on items, after
            clamping.
        raw: The same mean by the judges' decisions.
        labelled_only: The same mean of the labels alone, where every criterion has some.
        per_criterion: The criteria; empty for `on="items"`.
        method: Method of the correction.
        on: What was corrected.
        n_items: Items judged.
        n_labelled: Those of them that have labels.
        n_clamped: Items whose weighted sum leaves [0, 1]: with any, the mean score after clamping is another.
        n_incomplete: Items judged on some criteria only: their own scores have smaller denominators, which a
            sum over criteria does not follow.
        bends: What makes the score another thing than a weighted sum: groups, gates, conditions. This and the
            two counts above are of criteria, and say nothing on items.
        reason: Why there is no corrected score.
    """

    score: Estimate
    raw: Estimate
    labelled_only: Estimate
    per_criterion: Mapping[str, CorrectedCriterion]
    method: CorrectionMethod
    on: CorrectedOn
    n_items: int
    n_labelled: int
    n_clamped: int = 0
    n_incomplete: int = 0
    bends: tuple[str, ...] = ()
    reason: Reason | None

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON can carry them; never NaN."""
        return {**asdict(self), "bends": list(self.bends)}
