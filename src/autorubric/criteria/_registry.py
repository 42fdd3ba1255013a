"""Kinds of criterion by the `type` tag that names them in files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, TypeVar

from autorubric.criteria._base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.values import Json

KindT = TypeVar("KindT", bound=type[BaseCriterion])

KINDS_GROUP = "autorubric.kinds"
"""The entry points by which an installed package declares kinds of criterion, each under its `type` tag."""

_OWN: Final = (
    "analytic_rubric",
    "checklist",
    "comparative",
    "holistic_rubric",
    "likert",
    "narrative",
    "numerical_rating",
    "pass_fail",
)
"""Tags of the library's own kinds beside the plain one; each is the name of the module that registers it."""

_kinds: dict[str | None, type[BaseCriterion]] = {}


def register_kind(tag: str | None) -> Callable[[KindT], KindT]:
    """Return a class decorator that registers a kind of criterion under the `type` tag.

    The tag None is that of the plain criterion, which files may omit.

    Raises:
        ArgumentError: If the class is not a `BaseCriterion`, or another class has the tag.
    """

    def register(kind: KindT) -> KindT:
        if not (isinstance(kind, type) and issubclass(kind, BaseCriterion)):
            raise ArgumentError(f"register_kind({tag!r}): {kind!r} is not a subclass of BaseCriterion")
        _load_own(tag)
        taken = _kinds.get(tag)
        # A notebook cell that runs again defines the same class anew; that is no clash.
        if taken and (taken.__module__, taken.__qualname__) != (kind.__module__, kind.__qualname__):
            raise ArgumentError(f"the type {tag!r} belongs to {taken.__qualname__}; choose another tag")
        kind.kind = tag
        _kinds[tag] = kind
        return kind

    return register


def registered_kinds() -> dict[str, type[BaseCriterion]]:
    """Return kinds by tag: the built-in ones, then the others in the order of registration."""
    for tag in _OWN:
        _load_own(tag)
    others = {tag: kind for tag, kind in _kinds.items() if tag is not None}
    return {tag: _kinds[tag] for tag in _OWN} | others


def criterion_to_dict(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a criterion as a rubric file holds it: with `type` unless it is plain, without default values.

    Raises:
        ArgumentError: If its class is not registered, so that it could not be read back.
    """
    own, known = type(criterion), _kinds.get(criterion.kind)
    if known is None or (known.__module__, known.__qualname__) != (own.__module__, own.__qualname__):
        raise ArgumentError(
            f"{own.__qualname__} has no type tag, so {criterion.name or 'it'!r} cannot be "
            "written and read back; put @register_kind('…') above the class"
        )
    fields = criterion.model_dump(mode="json", exclude_defaults=True)
    return {**fields, "weight": criterion.weight}


def criterion_from_dict(given: Mapping[str, Json]) -> BaseCriterion:
    """Read a criterion that `criterion_to_dict` wrote.

    Raises:
        pydantic.ValidationError: If fields are invalid.
        ArgumentError: If no kind of that `type` is registered.
    """
    return kind_of(given.get("type")).model_validate({k: v for k, v in given.items() if k != "type"})


def kind_of(tag: Json) -> type[BaseCriterion]:
    """Return the class of a `type` tag; the plain criterion for None.

    Raises:
        ArgumentError: If no kind of that tag is registered; the message suggests the nearest one.
    """
    if isinstance(tag, str) and tag not in _kinds:
        _load_own(tag)
    if isinstance(tag, str) and tag not in _kinds:
        _load_installed(tag)
    if (tag is None or isinstance(tag, str)) and tag in _kinds:
        return _kinds[tag]
    known = registered_kinds()
    near = difflib.get_close_matches(str(tag), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"registered: {', '.join(known) or 'none'};"
    raise ArgumentError(
        f"no kind of criterion {tag!r}; {hint} Register your own kind with @register_kind first"
    )


def _load_own(tag: str | None) -> None:
    """Load the built-in kind of this tag, if any; its module registers it."""
    if tag in _OWN:
        import_module(f"autorubric.criteria._{tag}")


def _load_installed(tag: str) -> None:
    """Register the kind that an installed package declares under the tag, if any."""
    for found in entry_points(group=KINDS_GROUP, name=tag):
        register_kind(tag)(found.load())
