"""The registry of criterion kinds, by the `type` tag used in files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeVar

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.support.extensions import KINDS_GROUP, extension_names, load_extension
from autorubric.support.objects import Json

KindT = TypeVar("KindT", bound=type[BaseCriterion])


_OWN: Final[Mapping[str, str]] = {
    "analytic_rubric": "levels",
    "checklist": "checklist",
    "comparative": "comparative",
    "holistic_rubric": "levels",
    "likert": "ratings",
    "narrative": "narrative",
    "numerical_rating": "ratings",
    "pass_fail": "ratings",
}
"""The modules that register the built-in kinds, except the plain one, by tag."""

_kinds: dict[str | None, type[BaseCriterion]] = {}


def register_kind(tag: str | None) -> Callable[[KindT], KindT]:
    """Return a class decorator that registers a criterion class under a `type` tag.

    The tag None is reserved for the plain criterion, whose `type` is omitted in files.

    Raises:
        ArgumentError: If the class is not a subclass of `BaseCriterion`, or another class uses the tag.
    """

    def register(kind: KindT) -> KindT:
        if not (isinstance(kind, type) and issubclass(kind, BaseCriterion)):
            raise ArgumentError(f"register_kind({tag!r}) requires a subclass of BaseCriterion; got {kind!r}")
        _load_own(tag)
        taken = _kinds.get(tag)
        # Running a notebook cell again redefines the same class, which is allowed.
        if taken and (taken.__module__, taken.__qualname__) != (kind.__module__, kind.__qualname__):
            raise ArgumentError(f"the tag {tag!r} is already used by {taken.__qualname__}; use another tag")
        kind.kind = tag
        _kinds[tag] = kind
        return kind

    return register


def registered_kinds() -> dict[str, type[BaseCriterion]]:
    """Return all criterion classes by tag: built-in classes first, then registered and installed ones."""
    for tag in _OWN:
        _load_own(tag)
    for tag in extension_names(KINDS_GROUP):
        kind_of(tag)
    others = {tag: kind for tag, kind in _kinds.items() if tag is not None}
    return {tag: _kinds[tag] for tag in _OWN} | others


def criterion_to_dict(criterion: BaseCriterion) -> dict[str, Json]:
    """Return a criterion as written in a rubric file, with its `type` tag and without default values."""
    own, known = type(criterion), _kinds.get(criterion.kind)
    if known is None or (known.__module__, known.__qualname__) != (own.__module__, own.__qualname__):
        raise ArgumentError(
            f"{own.__qualname__} has no type tag, so {criterion.name or 'it'!r} cannot be "
            "written to a file; decorate the class with @register_kind('…')"
        )
    fields = criterion.model_dump(mode="json", exclude_defaults=True)
    return {**fields, "weight": criterion.weight}


def criterion_from_dict(given: Mapping[str, Json]) -> BaseCriterion:
    """Create a criterion from a mapping returned by `criterion_to_dict`."""
    return kind_of(given.get("type")).model_validate({k: v for k, v in given.items() if k != "type"})


def kind_of(tag: Json) -> type[BaseCriterion]:
    """Return the class registered under a `type` tag; None is the tag of the plain criterion."""
    if isinstance(tag, str) and tag not in _kinds:
        _load_own(tag)
    if isinstance(tag, str) and tag not in _kinds:
        _load_installed(tag)
    if (tag is None or isinstance(tag, str)) and tag in _kinds:
        return _kinds[tag]
    known = registered_kinds()
    near = difflib.get_close_matches(str(tag), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(known) or 'none'}."
    raise ArgumentError(
        f"unknown kind of criterion {tag!r}; {hint} Register your own kinds with @register_kind"
    )


def _load_own(tag: str | None) -> None:
    """Import the module that registers the built-in kind with this tag, if any."""
    if tag is not None and tag in _OWN:
        import_module(f"autorubric.criteria.{_OWN[tag]}")


def _load_installed(tag: str) -> None:
    """Register the kind that an installed package provides under this tag, if any."""
    if kind := load_extension(KINDS_GROUP, tag):
        register_kind(tag)(kind)
