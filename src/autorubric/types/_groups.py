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
            raise ValueError("groups nest too deep; make the tree flatter") from None
    if not isinstance(given, (BaseCriterion, RubricGroup)):
        raise ValueError(f"{given!r} is not a criterion and no group")
    return given


def _some(members: tuple[Any, ...]) -> tuple[Any, ...]:
    if not members:
        raise ValueError("the group is empty; give at least one criterion")
    return members


class RubricGroup(BaseModel):
    """Criteria and groups under one name, which count together with one weight.

    Its score is normalised as that of a rubric: it lies on [0, 1] and enters the score of the group around
    it as the value of a criterion would.

    Attributes:
        name: Its name; unique among all groups and criteria of a rubric. That of a rubric's root is empty.
        criteria: Criteria and groups, at least one; mappings are read as in a rubric file.
        weight: Its share of the score around it, not negative: penalties are for criteria. That of a
            rubric's root says nothing.
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
        """The criteria in it and below, depth first."""
        return tuple(one for one in _walk(self) if not isinstance(one, RubricGroup))

    @property
    def groups(self) -> tuple[RubricGroup, ...]:
        """The group itself and those below it, each before what it holds."""
        return tuple(one for one in _walk(self) if isinstance(one, RubricGroup))


def _walk(group: RubricGroup) -> Iterator[BaseCriterion | RubricGroup]:
    ahead: list[BaseCriterion | RubricGroup] = [group]
    while ahead:
        yield (one := ahead.pop())
        if isinstance(one, RubricGroup):
            ahead.extend(reversed(one.criteria))


def is_group(given: Mapping[str, Any]) -> bool:
    """Whether a mapping in a rubric file is a group and no criterion."""
    return "criteria" in given and "type" not in given
