"""The cascade: judges that cost little grade first; what they are unsure of goes to a dearer panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autorubric.errors import ArgumentError
from autorubric.judges import JudgeLike


@dataclass(frozen=True, slots=True)
class EscalationConfig:
    """Where criteria go that the grader's own judges are unsure of.

    Attributes:
        judges: The panel that decides on them; what `CriterionGrader(judges=…)` takes.
        threshold: Confidence on [0, 1] below which a criterion goes there. One without a confidence, or
            without an answer, always goes.
        per_criterion: Thresholds of single criteria, by name.

    Raises:
        ArgumentError: There is no judge, or a threshold is not on [0, 1].
    """

    judges: Sequence[JudgeLike]
    threshold: float
    per_criterion: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.judges, str) or not isinstance(self.judges, Sequence) or not self.judges:
            raise ArgumentError(f"judges={self.judges!r}: give a list of at least one judge to escalate to")
        if not isinstance(self.per_criterion, Mapping):
            raise ArgumentError(f"per_criterion={self.per_criterion!r}: give thresholds by name of criterion")
        _check_threshold("threshold", self.threshold)
        for name, threshold in self.per_criterion.items():
            _check_threshold(f"per_criterion[{name!r}]", threshold)


def _check_threshold(name: str, threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise ArgumentError(f"{name} {threshold!r}: give a confidence on [0, 1]")
