"""Descriptions of the differences between a stored run and the current one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from autorubric.criteria import BaseCriterion
from autorubric.dataset import RubricDataset
from autorubric.eval._fingerprint import mapping_in
from autorubric.reporting import GraderDescription
from autorubric.rubric import Rubric
from autorubric.values import Json


class ChangedDataset(NamedTuple):
    """A dataset that has changed.

    Attributes:
        old: The earlier dataset.
        new: The current dataset.
        kept: Whether the new dataset contains the unchanged item at any position, by position in the old one.
    """

    old: RubricDataset
    new: RubricDataset
    kept: bytearray

    @property
    def shares_the_same(self) -> bool:
        """Whether the prompt and the reference that items share are unchanged."""
        old, new = self.old, self.new
        return (old.prompt, old.reference_submission) == (new.prompt, new.reference_submission)

    def gone(self) -> list[str]:
        """Return the ids of old items that were changed or removed."""
        return [self.old.item_id(position) for position, kept in enumerate(self.kept) if not kept]

    def places(self) -> Iterator[tuple[int, str, int | None]]:
        """Yield the old position, id and new position of each old item that may have changed."""
        alike = self.shares_the_same and (self.old.rubric is None) == (self.new.rubric is None)
        if alike and all(self.kept):
            return
        found = places_of(self.new)
        for before, item_id in enumerate(self.old.item_ids()):
            if not (alike and self.kept[before]):
                yield before, item_id, found.get(item_id)


def asking_differences(
    stored: Mapping[str, Json], now: GraderDescription, dataset: ChangedDataset | None
) -> list[str]:
    """Return descriptions of the changes that invalidate votes, one line each.

    Args:
        stored: The manifest of the stored run.
        now: The description of the current grader.
        dataset: The old and the new dataset; None if they are equal.
    """
    before = mapping_in(stored, "asking")
    # Converted to JSON and back like the stored manifest, which has lists instead of tuples.
    after = json.loads(json.dumps(now.asking))
    return [
        *_changed_entries("judge", mapping_in(before, "judges"), mapping_in(after, "judges")),
        *_changed_entries("check", mapping_in(before, "checks"), mapping_in(after, "checks")),
        *_changed_entries("sampling", mapping_in(before, "sampling"), mapping_in(after, "sampling")),
        *(
            f"{part.replace('_', '-')} changed"
            for part in ("prompts", "few_shot")
            if before.get(part) != after.get(part)
        ),
        *(_item_differences(dataset) if dataset is not None else ()),
    ]


def deciding_differences(
    stored: Mapping[str, Json], now: GraderDescription, dataset: ChangedDataset | None
) -> list[str]:
    """Return descriptions of the changes in weights, gates, groups and policies, one line each.

    For the arguments, see `asking_differences`.
    """
    after = json.loads(json.dumps(now.deciding))
    policy = _changed_entries("policy", mapping_in(stored, "deciding"), after)
    return [*policy, *(_each_rubric(dataset, _scoring_differences) if dataset is not None else ())]


def _changed_entries(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            yield f"{kind} {key} was removed"
        elif key not in before:
            yield f"{kind} {key} was added"
        elif before[key] != after[key]:
            yield f"{kind} {key} changed{_inner(before[key], after[key])}"


def _inner(before: Json, after: Json) -> str:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return f": {before!r} → {after!r}"
    changed = [k for k in dict.fromkeys([*before, *after]) if before.get(k) != after.get(k)]
    return ": " + ", ".join(f"{k} {before.get(k)!r} → {after.get(k)!r}" for k in changed[:4])


def _item_differences(dataset: ChangedDataset) -> list[str]:
    old, new, differences = dataset.old, dataset.new, []
    for before, item_id, after in dataset.places():
        if after is None:
            differences.append(f"item {item_id} was removed")
        elif old.item_fingerprint(before) != new.item_fingerprint(after):
            differences.append(f"item {item_id}: {_changed_text(old, before, new, after)} changed")
    return [*differences, *_each_rubric(dataset, _requirement_differences)]


def places_of(dataset: RubricDataset) -> dict[str, int]:
    """Return the positions of a dataset's items by id."""
    return {item_id: position for position, item_id in enumerate(dataset.item_ids())}


def _changed_text(old: RubricDataset, before: int, new: RubricDataset, after: int) -> str:
    pairs = {
        "submission": (old.items[before].submission, new.items[after].submission),
        "prompt": (old.get_item_prompt(before), new.get_item_prompt(after)),
        "reference": (old.get_item_reference_submission(before), new.get_item_reference_submission(after)),
    }
    return " and ".join(name for name, (was, is_) in pairs.items() if was != is_) or "text"


def _each_rubric(dataset: ChangedDataset, compare: Any) -> list[str]:
    """Return the differences between the rubrics of items in both datasets, comparing shared ones once."""
    old, new = dataset.old, dataset.new
    found: dict[str, None] = {}
    if old.rubric is not None and new.rubric is not None and old.rubric != new.rubric:
        # The shared rubric is unused if all items have their own.
        used = any(item.rubric is None for item in new)
        found.update(dict.fromkeys(compare(old.rubric, new.rubric) if used else ()))
    for before, _, after in dataset.places():
        if after is None:
            continue
        was, now = old.items[before].rubric, new.items[after].rubric
        if was is not None or now is not None:
            pair = (was or old.get_item_rubric(before), now or new.get_item_rubric(after))
            found.update(dict.fromkeys(compare(*pair)))
    return list(found)


def _requirement_differences(old: Rubric, new: Rubric) -> Iterator[str]:
    before, after = {c.name: c for c in old}, {c.name: c for c in new}
    if old.guidelines != new.guidelines:
        yield "rubric: guidelines changed"
    for name in dict.fromkeys([*before, *after]):
        if name not in after or name not in before:
            yield f"criterion {name} was {'removed' if name not in after else 'added'}"
            continue
        was, now = before[name].asked(), after[name].asked()
        changed = [field for field in dict.fromkeys([*was, *now]) if was.get(field) != now.get(field)]
        if changed:
            yield f"criterion {name}: {', '.join(changed)} changed"


_SCORED = ("weight", "gate", "bonus", "when")


def _scoring_differences(old: Rubric, new: Rubric) -> Iterator[str]:
    before = {c.name: c for c in old}
    for criterion in new:
        was = before.get(criterion.name)
        if was is None or was == criterion:
            continue
        told = [
            f"{name} {_told(was, name)} → {_told(criterion, name)}"
            for name in _SCORED
            if getattr(was, name) != getattr(criterion, name)
        ]
        if told:
            yield f"criterion {criterion.name}: {', '.join(told)}"
        levelled = was.model_copy(update={name: getattr(criterion, name) for name in _SCORED})
        if levelled != criterion and was.asked() == criterion.asked():
            yield f"criterion {criterion.name}: option values or aggregation changed"
    yield from _group_differences(old, new)


def _told(criterion: BaseCriterion, name: str) -> str:
    value = criterion.model_dump(mode="json", include={name})[name]
    return f"{value:g}" if name == "weight" else repr(value)


def _group_differences(old: Rubric, new: Rubric) -> Iterator[str]:
    before, after = ({group.name: group for group in rubric.root.groups} for rubric in (old, new))
    for name in dict.fromkeys([*before, *after]):
        if name not in after or name not in before:
            yield f"group {name} was {'removed' if name not in after else 'added'}"
        elif before[name].weight != after[name].weight:
            yield f"group {name}: weight {before[name].weight:g} → {after[name].weight:g}"
    homes, now = _homes(old), _homes(new)
    moved = [name for name in homes if name in now and now[name] != homes[name]]
    if moved:
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        yield f"nesting changed: {', '.join(moved[:3])}{more} moved to another group"


def _homes(rubric: Rubric) -> dict[str, str]:
    """Return the group of each criterion and group."""
    return {member.name or "": group.name for group in rubric.root.groups for member in group.criteria}
