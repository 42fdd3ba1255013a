"""The lines of a run folder: a vote, and a finished item with the seal on what came before it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from math import isfinite
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from autorubric.eval._items import GradedItem
from autorubric.types import JudgeVote
from autorubric.values import Json, TokenUsage, VoteStatus

_LARGEST: Final = 2**62

ItemFields = dict[str, Any]
"""The fields of a `StoredItem` by name: what is read of many lines is not worth an object each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVote:
    """A vote as the run folder holds it.

    Attributes:
        item_id: The item.
        criterion: Name of the criterion.
        digest: What the vote depended on.
        vote: The vote.
    """

    item_id: str
    criterion: str
    digest: str
    vote: JudgeVote

    @property
    def key(self) -> tuple[str, str, str, int, tuple[str, ...]]:
        """Item, criterion, judge, sample and, for what compares, the order shown."""
        vote = self.vote
        return (self.item_id, self.criterion, vote.judge_id, vote.sample, vote.order or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem(GradedItem):
    """A finished item as the run folder holds it: what is asked of a run without its votes.

    Attributes:
        basis: What its figures depend on beside the item: judges, the shared rubric, policies; a digest.
        dataset: The dataset it stands in, as a digest.
        fingerprint: What its figures depend on of the item itself, as a digest.
        votes: Offsets of the lines in `votes.jsonl` that hold its votes.
    """

    basis: str = ""
    dataset: str = ""
    fingerprint: str = ""
    votes: tuple[int, ...] = ()

    def fields(self) -> ItemFields:
        """Its fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def to_dict(self) -> dict[str, Json]:
        """The item as a line of `items.jsonl` holds it; what is as by default is left out."""
        found = {name: value for name, value in self.fields().items() if value != _ITEM_DEFAULTS.get(name)}
        if self.tokens is not None:
            found["tokens"] = self.tokens.to_dict()
        return found


class Seal(NamedTuple):
    """What a line of `items.jsonl` says of the folder when it was written; a reader can trust offsets by it.

    Attributes:
        number: How many lines of items came before.
        votes_size: Bytes of `votes.jsonl`.
        votes_crc: Their CRC-32.
        votes_open: Offset from which on there may be votes of items that are not finished.
    """

    number: int
    votes_size: int
    votes_crc: int
    votes_open: int


def item_of_line(raw: bytes) -> tuple[ItemFields, Seal]:
    """The fields of the item that a line of `items.jsonl` holds, checked, and the line's seal.

    Raises:
        ValueError, KeyError or TypeError: It is none.
    """
    found = _mapping(raw)
    seal = Seal(*found.pop("seal"))
    shape = (tuple(found), tuple(map(type, found.values())))
    if shape not in _FITTING_SHAPES:
        _demand_types(found, _ITEM_TYPES)
        # Lines of one run have a few shapes; each is looked at once.
        _FITTING_SHAPES.add(shape)
    item: ItemFields = {**_ITEM_DEFAULTS, **found}
    _demand_finite(item["score"], item["duration_seconds"], item["length_penalty"], item["cost"])
    item["votes"] = votes = tuple(item["votes"])
    _demand_counts((*seal, *votes, item["position"], item["votes_cast"], item["calls_saved"]))
    if "item_id" not in item:
        raise KeyError("item_id")
    if item["tokens"] is not None:
        item["tokens"] = _usage(item["tokens"])
    return item, seal


def parse_vote(raw: bytes) -> StoredVote:
    """The vote of a line of `votes.jsonl`.

    Raises:
        ValueError, KeyError or TypeError: It is none.
    """
    line = _mapping(raw)
    _demand_types(line, _LINE_TYPES)
    given = line["vote"]
    _demand_types(given, _VOTE_TYPES)
    _demand_finite(*map(given.get, _VOTE_NUMBERS))
    _demand_counts((given.get("sample", 0),))
    if given["status"] not in _STATUSES:
        raise ValueError(f"{given['status']!r} is no status of a vote")
    if not all(isinstance(name, str) for name in given.get("order") or ()):
        raise TypeError("a name in the order is no text")
    if given.get("token_usage") is not None:
        _usage(given["token_usage"])
    return StoredVote(
        item_id=line["item"],
        criterion=line["criterion"],
        digest=line["digest"],
        vote=JudgeVote.from_dict(given),
    )


def _mapping(raw: bytes) -> dict[str, Any]:
    try:
        # Decoded first: `json` would guess the encoding of each line.
        found = json.loads(raw.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(found, dict):
        raise TypeError(f"{type(found).__name__} is no mapping")
    return found


def _demand_types(given: Mapping[str, Any], types: Mapping[str, frozenset[type]]) -> None:
    for name, value in given.items():
        if type(value) not in types[name] and object not in types[name]:
            raise TypeError(f"{name} is {type(value).__name__}")


def _demand_counts(given: Collection[Any]) -> None:
    """Whole numbers from 0 that can be offsets in a file."""
    if given and (set(map(type, given)) != {int} or min(given) < 0 or max(given) > _LARGEST):
        raise ValueError("a number is no offset or count")


def _demand_finite(*given: float | None) -> None:
    """Numbers that arithmetic stands: Python reads NaN in JSON, and integers that no float can hold."""
    try:
        for number in given:
            if number is not None and not isfinite(number):
                raise ValueError("a number is not finite")
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _usage(given: Mapping[str, Any]) -> TokenUsage:
    _demand_counts(given.values())
    return TokenUsage(**given)


def _types_of(kind: type) -> dict[str, frozenset[type]]:
    """The types that the fields of a dataclass have in JSON; `object` for those that hold any."""
    return {name: _json_types(hint) for name, hint in get_type_hints(kind).items()}


def _json_types(hint: Any) -> frozenset[type]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return frozenset().union(*(_json_types(one) for one in get_args(hint)))
    if hint is Any:
        return frozenset({object})
    if origin is Literal:
        return frozenset({str})
    if origin is tuple:
        return frozenset({list})
    if hint is float:
        return frozenset({float, int})
    if hint is TokenUsage:
        return frozenset({dict})
    return frozenset({str}) if issubclass(hint, str) else frozenset({hint})


_ITEM_TYPES: Final = _types_of(StoredItem)
_VOTE_TYPES: Final = _types_of(JudgeVote)
_LINE_TYPES: Final = dict.fromkeys(("item", "criterion", "digest"), frozenset({str})) | {
    "vote": frozenset({dict})
}
_VOTE_NUMBERS: Final = [name for name, types in _VOTE_TYPES.items() if float in types]
_STATUSES: Final = frozenset(get_args(VoteStatus))
_ITEM_DEFAULTS: Final = {one.name: one.default for one in fields(StoredItem) if one.default is not MISSING}
_FITTING_SHAPES: Final[set[tuple[tuple[str, ...], tuple[type, ...]]]] = set()
