"""Digests of the dependencies of votes and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from autorubric.criteria import BaseCriterion, check_name, code_digest, find_check
from autorubric.dataset import RubricDataset
from autorubric.reporting import GraderDescription
from autorubric.rubric import Rubric
from autorubric.values import Json


def digest(content: Json) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the content's canonical JSON."""
    return _digest_of(json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")))


def _digest_of(text: str) -> str:
    return sha256(text.encode("ascii")).hexdigest()[:16]


class VoteDigests:
    """Digests of the dependencies of each vote of a run; digests shared by items are computed once.

    Args:
        shared: The rubric that items share.
        asking: The grader's settings that affect votes.
    """

    def __init__(self, shared: Rubric | None, asking: Mapping[str, Json]) -> None:
        self._shared = shared
        self._asking = asking
        self._criteria: dict[str, str] = {}
        self._judges: dict[str, str] = {}

    def item(self, fingerprint: str, rubric: Rubric) -> ItemDigests:
        """Return the digests for an item with this fingerprint and rubric."""
        return ItemDigests(fingerprint, rubric, self, self._criteria if rubric is self._shared else {})

    def judge(self, judge_id: str) -> str:
        """Return the digest of the dependencies of a judge's votes, apart from item and criterion."""
        if judge_id not in self._judges:
            sampling = {k: v for k, v in mapping_in(self._asking, "sampling").items() if k != "samples"}
            own = mapping_in(self._asking, "judges").get(judge_id)
            rest = [self._asking.get("prompts"), self._asking.get("few_shot"), sampling]
            self._judges[judge_id] = digest([own, *rest])
        return self._judges[judge_id]

    def check(self, name: str) -> Json:
        """Return the digest of a check's code; None if the check is unknown."""
        return mapping_in(self._asking, "checks").get(name)


@dataclass(frozen=True, slots=True)
class ItemDigests:
    """Digests of the dependencies of each vote on one item.

    Attributes:
        fingerprint: Digest of the parts of the item that judges see.
        rubric: The item's rubric.
    """

    fingerprint: str
    rubric: Rubric
    _run: VoteDigests
    _criteria: dict[str, str]

    def of(self, criterion: BaseCriterion, judge_id: str) -> str:
        """Return the digest for one criterion and judge."""
        own, judge = self._criterion(criterion), self._run.judge(judge_id)
        if criterion.check is not None:
            return digest([self.fingerprint, own, judge, self._run.check(check_name(criterion.check))])
        # The same JSON, built faster, since this runs for every vote and digests need no escaping.
        return _digest_of(f'["{self.fingerprint}","{own}","{judge}"]')

    def fits(self, criterion: str, judge_id: str, stored: str) -> bool:
        """Return whether a stored digest matches the current item, criterion and judge."""
        names = self.rubric.names
        return criterion in names and self.of(self.rubric.by_name(criterion), judge_id) == stored

    def _criterion(self, criterion: BaseCriterion) -> str:
        name = criterion.name or ""
        if name not in self._criteria:
            self._criteria[name] = digest([criterion.asked(), self.rubric.guidelines])
        return self._criteria[name]


def content_fingerprint(dataset: RubricDataset, position: int, seen: str | None = None) -> str:
    """Return the digest of the parts of an item that its figures depend on, including its own rubric.

    Args:
        dataset: The dataset.
        position: The item's position in the dataset.
        seen: The item's fingerprint in the dataset, if known.
    """
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
