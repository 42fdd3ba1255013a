"""What a vote depends on, as a digest; and what has changed between a stored run and this one, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autorubric.criteria import BaseCriterion, check_name, code_digest, find_check
from autorubric.dataset import RubricDataset
from autorubric.graders import GraderDescription
from autorubric.rubric import Rubric
from autorubric.values import Json


def digest(content: Json) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


@dataclass
class VoteDigests:
    """Digests of what each vote of a run depends on; computed once for each part.

    Attributes:
        dataset: The dataset.
        asking: What the grader's votes depend on.
    """

    dataset: RubricDataset
    asking: Mapping[str, Json]
    _criteria: dict[tuple[int, str], str] = field(default_factory=dict)
    _judges: dict[str, str] = field(default_factory=dict)
    _items: dict[int, str] = field(default_factory=dict)

    def of(self, position: int, criterion: BaseCriterion, judge_id: str) -> str:
        """The digest for one item, criterion and judge."""
        if position not in self._items:
            self._items[position] = self.dataset.item_fingerprint(position)
        parts: list[Json] = [
            self._items[position],
            self._criterion(position, criterion),
            self._judge(judge_id),
        ]
        if criterion.check is not None:
            parts.append(_mapping(self.asking, "checks").get(check_name(criterion.check)))
        return digest(parts)

    def fits(self, position: int, criterion: str, judge_id: str, stored: str) -> bool:
        """Whether a stored digest is that of this item, criterion and judge as they are now."""
        rubric = self.dataset.get_item_rubric(position)
        return criterion in rubric.names and self.of(position, rubric.by_name(criterion), judge_id) == stored

    def _criterion(self, position: int, criterion: BaseCriterion) -> str:
        rubric = self.dataset.get_item_rubric(position)
        key = (id(rubric), criterion.name or "")
        if key not in self._criteria:
            self._criteria[key] = digest([criterion.asked(), rubric.guidelines])
        return self._criteria[key]

    def _judge(self, judge_id: str) -> str:
        if judge_id not in self._judges:
            sampling = {k: v for k, v in _mapping(self.asking, "sampling").items() if k != "samples"}
            own = _mapping(self.asking, "judges").get(judge_id)
            rest = [self.asking.get("prompts"), self.asking.get("few_shot"), sampling]
            self._judges[judge_id] = digest([own, *rest])
        return self._judges[judge_id]


def with_checks(described: GraderDescription, dataset: RubricDataset) -> GraderDescription:
    """The description with a digest of the code of each check that the dataset's rubrics name."""
    rubrics = {id(rubric): rubric for rubric in map(dataset.get_item_rubric, range(len(dataset.items)))}
    checks = {
        check_name(criterion.check): code_digest(find_check(criterion.check))
        for rubric in rubrics.values()
        for criterion in rubric
        if criterion.check is not None
    }
    return replace(described, asking={**described.asking, "checks": checks})


def _mapping(asking: Mapping[str, Json], key: str) -> Mapping[str, Any]:
    found = asking.get(key)
    return found if isinstance(found, Mapping) else {}


def asking_differences(
    stored: Mapping[str, Json], now: GraderDescription, old: RubricDataset, new: RubricDataset
) -> list[str]:
    """What votes depend on and has changed, one line each."""
    before = _mapping(stored, "asking")
    # Through JSON, as the stored side went: tuples and lists are the same there.
    after = json.loads(json.dumps(now.asking))
    return [
        *_changed_entries("judge", _mapping(before, "judges"), _mapping(after, "judges")),
        *_changed_entries("check", _mapping(before, "checks"), _mapping(after, "checks")),
        *_changed_entries("sampling", _mapping(before, "sampling"), _mapping(after, "sampling")),
        *(
            f"{part.replace('_', '-')} changed"
            for part in ("prompts", "few_shot")
            if before.get(part) != after.get(part)
        ),
        *_item_differences(old, new),
    ]


def deciding_differences(
    stored: Mapping[str, Json], now: GraderDescription, old: RubricDataset, new: RubricDataset
) -> list[str]:
    """What is done with votes and has changed, one line each: weights, gates, groups, policies."""
    after = json.loads(json.dumps(now.deciding))
    policy = _changed_entries("policy", _mapping(stored, "deciding"), after)
    return [*policy, *_each_rubric(old, new, _scoring_differences)]


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


def _item_differences(old: RubricDataset, new: RubricDataset) -> list[str]:
    places = {new.item_id(position): position for position in range(len(new.items))}
    differences = []
    for position in range(len(old.items)):
        item_id = old.item_id(position)
        if item_id not in places:
            differences.append(f"item {item_id} was removed")
        elif old.item_fingerprint(position) != new.item_fingerprint(places[item_id]):
            differences.append(
                f"item {item_id}: {_changed_text(old, position, new, places[item_id])} changed"
            )
    return [*differences, *_each_rubric(old, new, _requirement_differences)]


def _changed_text(old: RubricDataset, before: int, new: RubricDataset, after: int) -> str:
    pairs = {
        "submission": (old.items[before].submission, new.items[after].submission),
        "prompt": (old.get_item_prompt(before), new.get_item_prompt(after)),
        "reference": (
            old.get_item_reference_submission(before),
            new.get_item_reference_submission(after),
        ),
    }
    return " and ".join(name for name, (was, is_) in pairs.items() if was != is_) or "text"


def _each_rubric(old: RubricDataset, new: RubricDataset, compare: Any) -> list[str]:
    """Differences between the rubrics of items in both, each pair of rubrics compared once."""
    places = {new.item_id(position): position for position in range(len(new.items))}
    seen: set[tuple[int, int]] = set()
    found: dict[str, None] = {}
    for position in range(len(old.items)):
        if old.item_id(position) not in places:
            continue
        pair = (old.get_item_rubric(position), new.get_item_rubric(places[old.item_id(position)]))
        if (id(pair[0]), id(pair[1])) not in seen:
            seen.add((id(pair[0]), id(pair[1])))
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
    """The group in which each criterion and group stands."""
    return {member.name or "": group.name for group in rubric.root.groups for member in group.criteria}
