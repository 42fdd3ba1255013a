"""The cascade: cheap judges grade first; a second panel decides on criteria that they are unsure of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from autorubric.errors import ArgumentError
from autorubric.judges import JudgeLike
from autorubric.rubric import Rubric

_MOST_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class EscalationConfig:
    """A second panel for criteria on which the grader's own judges are unsure.

    Attributes:
        judges: The second panel, in any form that `CriterionGrader(judges=…)` accepts.
        threshold: Confidence in [0, 1] below which a criterion is escalated. Criteria that have no confidence
            or no answer are always escalated.
        per_criterion: Thresholds for individual criteria, by name; each name must be in a rubric.

    Raises:
        ArgumentError: If there are no judges, or a threshold is not between 0 and 1.
    """

    judges: Sequence[JudgeLike]
    threshold: float
    per_criterion: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.judges, str) or not isinstance(self.judges, Sequence) or not self.judges:
            raise ArgumentError(f"judges must be a non-empty list; got {self.judges!r}")
        if not isinstance(self.per_criterion, Mapping):
            raise ArgumentError(f"per_criterion must map names to thresholds; got {self.per_criterion!r}")
        _check_threshold("threshold", self.threshold)
        for name, threshold in self.per_criterion.items():
            _check_threshold(f"per_criterion[{name!r}]", threshold)


def check_per_criterion(per_criterion: Mapping[str, float], rubrics: Iterable[Rubric]) -> None:
    """Check that every criterion with its own threshold is in a rubric.

    Args:
        per_criterion: The thresholds by criterion name.
        rubrics: The rubrics, iterated only until all names are found.

    Raises:
        ArgumentError: If a name is not in any rubric.
    """
    unknown, known = dict.fromkeys(per_criterion), dict[str, None]()
    remaining = iter(rubrics)
    while unknown and (rubric := next(remaining, None)) is not None:
        for name in rubric.names:
            known[name] = None
            unknown.pop(name, None)
    if not unknown:
        return
    more = f" and {len(known) - _MOST_TOLD} more" if len(known) > _MOST_TOLD else ""
    raise ArgumentError(
        f"per_criterion: unknown criterion {', '.join(map(repr, unknown))}; "
        f"available: {', '.join(map(repr, list(known)[:_MOST_TOLD]))}{more}"
    )


def _check_threshold(name: str, threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise ArgumentError(f"{name} must be a number between 0 and 1; got {threshold!r}")
