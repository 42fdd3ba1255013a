"""Conversion of criteria written for other tools to the library's own format.

Two other formats are supported: `[[criterion]]` tables, whose `type` is `binary`, `likert` (with `points`)
or `numeric` (with `min` and `max`), and lists of `{name, text, weight, choices}`. In both formats the weight
defaults to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from autorubric._files import Faults, FilePath, shortened
from autorubric.values import Json

TABLES: Final = "criterion"
"""The key of `[[criterion]]` tables."""

SETTINGS: Final = ("judge", "scoring")
"""Tables in the same file that configure judges and scoring; a rubric does not store them."""

_SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "binary": (),
    "likert": ("points",),
    "numeric": ("min", "max"),
}
_DEFAULT_WEIGHT: Final = 1.0


def in_house_words(
    given: Mapping[str, Json], tables: bool, faults: Faults, at: FilePath
) -> Mapping[str, Json]:
    """Convert a criterion to the library's own keys; one that already uses them is returned unchanged.

    Args:
        given: The criterion as a mapping.
        tables: Whether it comes from a `[[criterion]]` table.
        faults: Collects conversion errors.
        at: Path of the criterion in the file.
    """
    # Built-in and user-defined kinds may have parameters with these names.
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
        faults.add((*at, key), f"{key} and {own} are synonyms; use only one of them")
    found[own] = found.pop(key)


def _options(given: Json, faults: Faults, at: FilePath) -> Json:
    """Convert choices to options; labels without values are spaced evenly from 0 (first) to 1 (last)."""
    if isinstance(given, Mapping):
        return [{"label": str(label), "value": value} for label, value in given.items()]
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 2:
        message = "choices must be a list of at least two labels, from worst to best, or map labels to values"
        faults.add(at, f"{message}; got {shortened(given)}")
        return None
    if any(isinstance(one, Mapping) for one in given):
        return list(given)
    return [{"label": str(label), "value": place / (len(given) - 1)} for place, label in enumerate(given)]


def _scale(found: dict[str, Any], shape: str, faults: Faults, at: FilePath) -> dict[str, Any]:
    """Convert the type of a table to the library's fields, and remove the table's own keys from `found`."""
    del found["type"]
    own = {key: found.pop(key) for key in ("points", "min", "max") if key in found}
    wanted = _SHAPES[shape]
    for key in own:
        if key not in wanted:
            faults.add((*at, key), f"unknown key {key!r} for {shape}. Keys: {', '.join(wanted) or 'none'}")
    for needed in wanted:
        if needed not in own:
            faults.add(at, f"a {shape} criterion requires a number {needed!r}")
    if shape == "likert":
        return {"type": "likert", "rating": {"min_val": 1, "max_val": own.get("points", 2)}}
    if shape == "numeric":
        bounds = {"min_value": own.get("min", 0.0), "max_value": own.get("max", 1.0)}
        return {"type": "numerical_rating", **bounds}
    return {}
