"""Criteria as other tools write them, in the words of the house.

Two shapes are read besides the house's own: the tables `[[criterion]]`, whose `type` is `binary`, `likert`
(with `points`) or `numeric` (with `min` and `max`), and lists of `{name, text, weight, choices}`. In both a
criterion without a weight weighs 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from autorubric._files import Faults, FilePath, shortened
from autorubric.values import Json

TABLES: Final = "criterion"
"""The key under which `[[criterion]]` tables stand."""

SETTINGS: Final = ("judge", "scoring")
"""Tables beside them that say who judges and how scores are combined; a rubric holds neither."""

_SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "binary": (),
    "likert": ("points",),
    "numeric": ("min", "max"),
}
_DEFAULT_WEIGHT: Final = 1.0


def in_house_words(
    given: Mapping[str, Json], tables: bool, faults: Faults, at: FilePath
) -> Mapping[str, Json]:
    """A criterion with the house's keys; one that has them already is given back as it is.

    Args:
        given: The criterion.
        tables: Whether it is a `[[criterion]]` table.
        faults: Gets what cannot be said in the house's words.
        at: Where it stands.
    """
    # A kind of the house, or of a user's own, may have parameters of these names.
    if not tables and ("type" in given or not {"text", "choices"} & set(given)):
        return given
    found = {"weight": _DEFAULT_WEIGHT, **given}
    if "text" in found:
        _renamed(found, "text", "requirement", faults, at)
    if "choices" in found:
        _renamed(found, "choices", "options", faults, at)
        found["options"] = _options(found["options"], faults, (*at, "choices"))
    shape = found.get("type")
    if tables and isinstance(shape, str) and shape in _SHAPES and not {"scale", "rating"} & set(found):
        found |= _scale(found, shape, faults, at)
    return found


def _renamed(found: dict[str, Any], key: str, own: str, faults: Faults, at: FilePath) -> None:
    if own in found:
        faults.add((*at, key), f"{key} and {own} are two names for one thing; give one of them")
    found[own] = found.pop(key)


def _options(given: Json, faults: Faults, at: FilePath) -> Json:
    """Choices with their values; those without are spread evenly from 0, the first, to 1, the last."""
    if isinstance(given, Mapping):
        return [{"label": str(label), "value": value} for label, value in given.items()]
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 2:
        message = (
            "choices are a list of at least two labels, the worst first, or a mapping of labels to values"
        )
        faults.add(at, f"{message}; got {shortened(given)}")
        return None
    if any(isinstance(one, Mapping) for one in given):
        return list(given)
    return [{"label": str(label), "value": place / (len(given) - 1)} for place, label in enumerate(given)]


def _scale(found: dict[str, Any], shape: str, faults: Faults, at: FilePath) -> dict[str, Any]:
    """What the type of a table comes to; its own keys are taken out of `found`."""
    del found["type"]
    own = {key: found.pop(key) for key in ("points", "min", "max") if key in found}
    wanted = _SHAPES[shape]
    for key in own:
        if key not in wanted:
            faults.add(
                (*at, key), f"a {shape} criterion has no {key!r}; it has {', '.join(wanted) or 'none'}"
            )
    for needed in wanted:
        if needed not in own:
            faults.add(at, f"a {shape} criterion needs {needed!r}, a number")
    if shape == "likert":
        return {"type": "likert", "rating": {"min_val": 1, "max_val": own.get("points", 2)}}
    if shape == "numeric":
        bounds = {"min_value": own.get("min", 0.0), "max_value": own.get("max", 1.0)}
        return {"type": "numerical_rating", **bounds}
    return {}
