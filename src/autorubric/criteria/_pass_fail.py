"""Criteria with two outcomes, pass and fail."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final, Literal

from autorubric.criteria._base import BaseCriterion, Shown
from autorubric.criteria._fields import BoolField, EvalField, TextField
from autorubric.criteria._registry import register_kind
from autorubric.values import Json, Level

PassFailMode = Literal["absolute", "target", "exemplar"]

_AGAINST: Final[Mapping[PassFailMode, str]] = {
    "absolute": "",
    "target": "The reference is the target: the submission passes if it does what the reference does. ",
    "exemplar": "The reference is an example that passes: what is as good passes too, however different. ",
}


@register_kind("pass_fail")
class PassFailCriterion(BaseCriterion):
    """A judgment with two outcomes, pass (1) and fail (0).

    Attributes:
        passing_criteria: Conditions for a pass.
        mode: Whether the text is judged without a reference, against a reference as the target, or with a
            reference as an example of a pass.
    """

    level: ClassVar[Level] = "binary"

    passing_criteria: str | None = None
    mode: PassFailMode = "absolute"

    @cached_property
    def eval_fields(self) -> dict[str, EvalField]:
        """The fields `passed` and `reason`."""
        return {
            "passed": BoolField(description="whether it passes"),
            "reason": TextField(description="the evidence, in a sentence or two"),
        }

    @property
    def needs_reference(self) -> bool:
        """Whether the mode requires a reference."""
        return self.mode != "absolute"

    def _label(self, code: Json) -> str:
        return "passed" if code else "failed"

    def render(self, shown: Shown | None = None) -> str:
        """Return the name, the requirement, and the conditions for a pass."""
        head = super().render(shown)
        return f"{head}\nPasses if: {self.passing_criteria}" if self.passing_criteria else head

    def instruction(self) -> str:
        """Return a line that explains the expected answer and the role of the reference."""
        return _AGAINST[self.mode] + super().instruction()
