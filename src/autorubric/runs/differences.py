"""Digests of what votes depend on, and descriptions of what differs from a stored run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.conditions import check_name, code_digest, find_check
from autorubric.datasets.dataset import RubricDataset
from autorubric.grading.base import GraderDescription, prompts_of
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json
from autorubric.support.reading_errors import list_first, short_repr


def digest(content: Json) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the content's canonical JSON."""
    return _digest_of(_canonical_json(content))


def _canonical_json(content: Json) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _digest_of(text: str) -> str:
    return sha256(text.encode("ascii")).hexdigest()[:16]


class VoteDigests:
    """Digests of the dependencies of each vote of a run; digests shared by items are computed once."""

    def __init__(self, shared: Rubric | None, manifest: Mapping[str, Json]) -> None:
        self._shared = shared
        self.asking = mapping_in(manifest, "asking")
        self.shared_prompts = mapping_in(manifest, "shared_prompts")
        is_earlier = self.shared_prompts and manifest.get("digests", 1) != DIGESTS
        self.earlier = VoteDigests(shared, {"asking": self.asking}) if is_earlier else None
        self._criteria: dict[str, str] = {}
        self._ends: dict[tuple[str, str], str] = {}
        self._judges: dict[str, str] = {}

    def item(self, fingerprint: str, rubric: Rubric) -> ItemDigests:
        """Return the digests for an item with this fingerprint and rubric."""
        known = (self._criteria, self._ends) if rubric is self._shared else ({}, {})
        return ItemDigests(fingerprint, rubric, self, *known)

    def judge(self, judge_id: str) -> str:
        """Return the digest of the dependencies of a judge's votes, apart from item and criterion."""
        if judge_id not in self._judges:
            sampling = {k: v for k, v in mapping_in(self.asking, "sampling").items() if k != "samples"}
            own = mapping_in(self.asking, "judges").get(judge_id)
            rest = [self.asking.get("prompts"), self.asking.get("few_shot"), sampling]
            self._judges[judge_id] = digest([own, *rest])
        return self._judges[judge_id]


@dataclass(frozen=True, slots=True)
class ItemDigests:
    """Digests of the dependencies of each vote on one item."""

    fingerprint: str  # digest of the parts of the item that judges see
    rubric: Rubric
    _run: VoteDigests
    _criteria: dict[str, str]  # digests of criteria by name
    _ends: dict[tuple[str, str], str]  # JSON of the dependencies apart from the item, by criterion and judge

    def of(self, criterion: str, judge_id: str) -> str:
        """Return the digest for one criterion and judge."""
        # This runs for every vote, and all of the JSON but the fingerprint is equal for all items.
        end = self._ends.get((criterion, judge_id))
        if end is None:
            end = self._ends[criterion, judge_id] = self._end(self.rubric.by_name(criterion), judge_id)
        return _digest_of(f'["{self.fingerprint}",{end}')

    def fits(self, criterion: str, judge_id: str, stored: str) -> bool:
        """Return whether a stored digest matches the current item, criterion and judge."""
        is_known = (criterion, judge_id) in self._ends or criterion in self.rubric.names
        fits = is_known and self.of(criterion, judge_id) == stored
        if fits or not is_known or self._run.earlier is None:
            return fits
        return self._run.earlier.item(self.fingerprint, self.rubric).of(criterion, judge_id) == stored

    def _end(self, criterion: BaseCriterion, judge_id: str) -> str:
        """Return the JSON of the dependencies apart from the item, without its opening bracket."""
        parts: list[Json] = [self._criterion(criterion), self._run.judge(judge_id)]
        if criterion.check is not None:
            # None if the check is unknown.
            parts.append(mapping_in(self._run.asking, "checks").get(check_name(criterion.check)))
        else:
            size = self._run.shared_prompts.get(judge_id, 1)
            together = next(one for one in prompts_of(self.rubric, size) if criterion in one)
            parts += [sorted(map(self._criterion, together))] if len(together) > 1 else []
        return _canonical_json(parts)[1:]

    def _criterion(self, criterion: BaseCriterion) -> str:
        name = criterion.name or ""
        if name not in self._criteria:
            self._criteria[name] = digest([criterion.vote_fields(), self.rubric.guidelines])
        return self._criteria[name]


def content_fingerprint(dataset: RubricDataset, position: int, seen: str | None = None) -> str:
    """Return the digest of the parts of an item that its figures depend on, including its own rubric."""
    own = dataset.items[position].rubric
    seen = dataset.item_fingerprint(position) if seen is None else seen
    return digest([seen, own.snapshot()]) if own is not None else seen[:16]


def with_checks(described: GraderDescription, checks: Mapping[str, Any]) -> GraderDescription:
    """Return the description with the code digests of these checks, which are passed by name."""
    found = {name: code_digest(find_check(check)) for name, check in sorted(checks.items())}
    return replace(described, asking={**described.asking, "checks": found})


def basis_of(asking: Mapping[str, Json], deciding: Mapping[str, Json], shared: Rubric | None) -> str:
    """Return a digest of the settings that affect all items' figures: judges, policies, shared rubric."""
    rubric = shared.snapshot() if shared is not None else None
    return digest([dict(asking), dict(deciding), rubric])


def mapping_in(asking: Mapping[str, Json], key: str) -> Mapping[str, Any]:
    """Return the mapping stored under a key; empty if the key is missing or its value is not a mapping."""
    found = asking.get(key)
    return found if isinstance(found, Mapping) else {}


class ChangedDataset(NamedTuple):
    """A dataset that has changed."""

    old: RubricDataset
    new: RubricDataset
    # Whether the new dataset contains the unchanged item at any position, by position in the old one.
    kept: bytearray

    @property
    def shares_the_same(self) -> bool:
        """Whether the prompt and the reference that items share are unchanged."""
        old, new = self.old, self.new
        return (old.prompt, old.reference_submission) == (new.prompt, new.reference_submission)

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
    """Return descriptions of the changes that invalidate votes, one line each."""
    before = mapping_in(stored, "asking")
    after = mapping_in(now.entries(), "asking")
    return [
        *_entry_changes("judge", mapping_in(before, "judges"), mapping_in(after, "judges")),
        *_entry_changes("check", mapping_in(before, "checks"), mapping_in(after, "checks")),
        *_entry_changes("sampling", mapping_in(before, "sampling"), mapping_in(after, "sampling")),
        *(
            f"{part.replace('_', '-')} changed"
            for part in ("prompts", "few_shot")
            if before.get(part) != after.get(part)
        ),
        *(_item_differences(dataset) if dataset is not None else ()),
    ]


DIGESTS: Final = 2
"""Version of the digests of votes: those of version 1 depend only on one criterion of a shared prompt."""
_HARD: Final = {"votes": "hard", "thresholds": {}, "calibrations": []}
"""Settings that entries of hard votes omit."""


def deciding_differences(
    stored: Mapping[str, Json], now: GraderDescription, dataset: ChangedDataset | None
) -> list[str]:
    """Return a line for each change in weights, gates, groups and policies; see `asking_differences`."""
    before, after = (
        {**one, "aggregation": {**_HARD, **mapping_in(one, "aggregation")}}
        for one in (mapping_in(stored, "deciding"), mapping_in(now.entries(), "deciding"))
    )
    policy = _entry_changes("policy", before, after)
    return [*policy, *(_each_rubric(dataset, _scoring_differences) if dataset is not None else ())]


def _entry_changes(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            yield f"{kind} {key} was removed"
        elif key not in before:
            yield f"{kind} {key} was added"
        elif before[key] != after[key]:
            yield f"{kind} {key} changed{_inner(before[key], after[key])}"


def _inner(before: Json, after: Json) -> str:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return f": {short_repr(before)} → {short_repr(after)}"
    changed = [k for k in dict.fromkeys([*before, *after]) if before.get(k) != after.get(k)]
    return ": " + ", ".join(
        f"{k} {short_repr(before.get(k))} → {short_repr(after.get(k))}" for k in changed[:4]
    )


def _item_differences(dataset: ChangedDataset) -> list[str]:
    old, new, differences = dataset.old, dataset.new, []
    for before, item_id, after in dataset.places():
        if after is None:
            differences.append(f"item {item_id} was removed")
        elif old.item_fingerprint(before) != new.item_fingerprint(after):
            differences.append(f"item {item_id}: {_change_text(old, before, new, after)} changed")
    return [*differences, *_each_rubric(dataset, _requirement_differences)]


def places_of(dataset: RubricDataset) -> dict[str, int]:
    """Return the positions of a dataset's items by id."""
    return {item_id: position for position, item_id in enumerate(dataset.item_ids())}


def _change_text(old: RubricDataset, before: int, new: RubricDataset, after: int) -> str:
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
        was, now = before[name].vote_fields(), after[name].vote_fields()
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
            f"{name} {_value_text(was, name)} → {_value_text(criterion, name)}"
            for name in _SCORED
            if getattr(was, name) != getattr(criterion, name)
        ]
        if told:
            yield f"criterion {criterion.name}: {', '.join(told)}"
        levelled = was.model_copy(update={name: getattr(criterion, name) for name in _SCORED})
        if levelled != criterion and was.vote_fields() == criterion.vote_fields():
            yield f"criterion {criterion.name}: option values or aggregation changed"
    yield from _group_differences(old, new)


def _value_text(criterion: BaseCriterion, name: str) -> str:
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
        yield f"nesting changed: {list_first(moved, 3)} moved to another group"


def _homes(rubric: Rubric) -> dict[str, str]:
    """Return the group of each criterion and group."""
    return {member.name or "": group.name for group in rubric.root.groups for member in group.criteria}
