"""The cascade: cheap judges grade first; a more expensive panel decides what they are unsure of."""

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
    """Where criteria go that the grader's own judges are unsure of.

    Attributes:
        judges: The panel that decides on them; what `CriterionGrader(judges=…)` takes.
        threshold: Confidence on [0, 1] below which a criterion goes there. One without a confidence, or
            without an answer, always goes.
        per_criterion: Thresholds of single criteria, by name; all of them names in the rubrics graded by.

    Raises:
        ArgumentError: If there is no judge, or a threshold is not on [0, 1].
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


def check_per_criterion(per_criterion: Mapping[str, float], rubrics: Iterable[Rubric]) -> None:
    """Check that every criterion with a threshold of its own is there.

    Args:
        per_criterion: The thresholds, by name.
        rubrics: The rubrics; read only until all names are found.

    Raises:
        ArgumentError: If no rubric has a criterion of that name.
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
        f"per_criterion: no criterion is called {', '.join(map(repr, unknown))}; "
        f"there are {', '.join(map(repr, list(known)[:_MOST_TOLD]))}{more}"
    )


def _check_threshold(name: str, threshold: object) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise ArgumentError(f"{name} {threshold!r}: give a confidence on [0, 1]")
