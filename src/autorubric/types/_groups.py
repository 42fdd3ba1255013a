"""Groups of criteria: the inner nodes of a rubric's tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation

from autorubric.criteria import BaseCriterion, criterion_from_dict


def _member(given: Any) -> Any:
    if isinstance(given, Mapping):
        try:
            return RubricGroup(**given) if is_group(given) else criterion_from_dict(given)
        except RecursionError:
            raise ValueError("groups are nested too deeply; make the tree flatter") from None
    if not isinstance(given, (BaseCriterion, RubricGroup)):
        raise ValueError(f"{given!r} is neither a criterion nor a group")
    return given


def _some(members: tuple[Any, ...]) -> tuple[Any, ...]:
    if not members:
        raise ValueError("the group is empty; add at least one criterion")
    return members


class RubricGroup(BaseModel):
    """A named group of criteria and nested groups that contributes to the score with a single weight.

    A group's score is normalized to [0, 1] like a rubric's score and contributes to the parent group's score
    like a criterion's value.

    Attributes:
        name: Name of the group, unique among the rubric's groups and criteria; empty for the root.
        criteria: At least one criterion or group; mappings are parsed as in a rubric file.
        weight: Weight in the parent group's score, at least 0 (only criteria can be penalties). The root's
            weight has no effect.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    criteria: Annotated[
        tuple[Annotated[BaseCriterion | RubricGroup, SkipValidation, BeforeValidator(_member)], ...],
        AfterValidator(_some),
    ]
    weight: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 10.0

    def __init__(
        self,
        name: str,
        criteria: Iterable[BaseCriterion | RubricGroup | Mapping[str, Any]],
        weight: float = 10.0,
        **unknown: Any,
    ) -> None:
        super().__init__(name=name, criteria=criteria, weight=weight, **unknown)

    @property
    def leaves(self) -> tuple[BaseCriterion, ...]:
        """The criteria in the group and its nested groups, depth first."""
        return tuple(one for one in _walk(self) if not isinstance(one, RubricGroup))

    @property
    def groups(self) -> tuple[RubricGroup, ...]:
        """The group itself and all nested groups, parents first."""
        return tuple(one for one in _walk(self) if isinstance(one, RubricGroup))


def _walk(group: RubricGroup) -> Iterator[BaseCriterion | RubricGroup]:
    ahead: list[BaseCriterion | RubricGroup] = [group]
    while ahead:
        yield (one := ahead.pop())
        if isinstance(one, RubricGroup):
            ahead.extend(reversed(one.criteria))


def is_group(given: Mapping[str, Any]) -> bool:
    """Return whether a mapping in a rubric file is a group rather than a criterion."""
    return "criteria" in given and "type" not in given
