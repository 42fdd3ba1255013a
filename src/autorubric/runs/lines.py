"""The lines of a run folder (votes, finished items), and the requests and replies of a vote."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic_core import CoreConfig, CoreSchema, SchemaSerializer
from pydantic_core.core_schema import (
    any_schema,
    dataclass_args_schema,
    dataclass_field,
    dataclass_schema,
    float_schema,
    nullable_schema,
    str_schema,
    with_default_schema,
)

from autorubric.criteria.values import VerdictCounts
from autorubric.errors import RunFormatError, TokenUsage
from autorubric.grading.base import key_of
from autorubric.runs.items import GradedItem
from autorubric.runs.manifest import PROMPTS, log_entries, read_manifest
from autorubric.runs.notices import warn_of_damage
from autorubric.scoring.votes import JudgeVote, VoteExchange
from autorubric.support.json_text import compact_json, read_compact
from autorubric.support.record_log import is_intact, line_offset, log_lines

# The beginning of a vote's line, which is enough to find its item.
_WHOSE: Final = re.compile(rb'\{"item":("(?:[^"\\]|\\.)*")')

ItemFields = dict[str, Any]
"""The fields of a `StoredItem` by name, which are faster to create than an object for each line."""


class StoredVote(NamedTuple):
    """A vote stored in a run folder."""

    item_id: str
    criterion: str
    digest: str  # of the dependencies of the vote
    vote: JudgeVote

    @property
    def key(self) -> tuple[str, str, str, int, tuple[str, ...]]:
        """Item, criterion, judge, sample and, for comparisons, the order of the candidates."""
        return (self.item_id, *key_of(self.criterion, self.vote))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem(GradedItem):
    """The result of a finished item as stored in a run folder. The page on formats shows the attributes.

    Attributes:
        basis: Digest of the judges, the shared rubric and the policies, on which the figures depend.
        dataset: Digest of the dataset.
        fingerprint: Digest of the parts of the item on which the figures depend.
        votes: Offsets of the item's votes in `votes.jsonl`.
    """

    basis: str = ""
    dataset: str = ""
    fingerprint: str = ""
    votes: tuple[int, ...] = ()

    def fields(self) -> ItemFields:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Seal(NamedTuple):
    """The state of the folder when a line of `items.jsonl` was written, used to verify offsets."""

    number: int  # preceding lines of items
    votes_size: int  # bytes of `votes.jsonl`
    votes_crc: int  # CRC-32 of `votes.jsonl`
    votes_open: int  # offset from which on there may be votes on unfinished items


def item_of_line(raw: bytes) -> tuple[ItemFields, Seal]:
    """Return the validated fields of the item in a line of `items.jsonl`, and the line's seal."""
    item: ItemFields = msgspec.structs.asdict(_read(_item_reader(), raw))
    del item["at"], item["crc"]
    seal = Seal._make(item.pop("seal"))
    if item["tokens"] is not None:
        item["tokens"] = msgspec.convert(item["tokens"], TokenUsage, from_attributes=True)
    if item["verdicts"] is not None:
        item["verdicts"] = msgspec.convert(item["verdicts"], VerdictCounts, from_attributes=True)
    return item, seal


def parse_vote(raw: bytes) -> StoredVote:
    """Return the vote in a line of `votes.jsonl`."""
    line = _read(_vote_reader(), raw)
    vote = msgspec.convert(line.vote, JudgeVote, from_attributes=True)
    return StoredVote(line.item, line.criterion, line.digest, vote)


def votes_changed(path: Path) -> RunFormatError:
    """Return the error for a vote that is no longer where the index of an opened run has it."""
    return RunFormatError(
        f"{path} has changed since the run was opened; open the run again with "
        "EvalResult.from_experiment, or resume it"
    )


def item_id_of_line(raw: bytes, *, is_intact: bool) -> str | None:
    """Return the id of the item that a line of `votes.jsonl` is about; None if the line is not a vote."""
    whose = _WHOSE.match(raw) if is_intact else None
    try:
        item_id: str = json.loads(whose[1]) if whose else parse_vote(raw).item_id
    except ValueError:
        return None
    return item_id


def line_of_vote(stored: StoredVote) -> bytes:
    """Return a vote as a line of `votes.jsonl`, without the line's seal and without default values."""
    item_id, criterion, digest, vote = stored
    return b'{"item":%b,"criterion":%b,"digest":%b,"vote":%b}' % (
        _name_json(item_id),
        _name_json(criterion),
        compact_json(digest),
        _to_json(vote),
    )


# Names of items and criteria repeat from vote to vote.
_name_json = lru_cache(maxsize=1024)(compact_json)


def line_of_item(item: StoredItem, seal: Seal) -> bytes:
    """Return an item as a line of `items.jsonl`, without offset and checksum and without default values."""
    return b'%b,"seal":[%d,%d,%d,%d]}' % (_to_json(item)[:-1], *seal)


@cache
def _writer_of(kind: type) -> SchemaSerializer:
    return SchemaSerializer(_instance_of(kind), _WRITING)


def _to_json(content: Any) -> bytes:
    writer = _writer_of(content.__class__)
    try:
        return writer.to_json(content, exclude_defaults=True, warnings=False)
    except ValueError:
        # Lone surrogates cannot be encoded in UTF-8.
        return compact_json(writer.to_python(content, mode="json", exclude_defaults=True, warnings=False))


@cache
def _vote_reader() -> msgspec.json.Decoder[Any]:
    """Create the reader of votes on first use, since opening a run does not read votes."""
    key = [(name, str) for name in ("item", "criterion", "digest")]
    declared: list[Any] = [*key, ("vote", _struct_of(JudgeVote)), *_SEALED]
    return msgspec.json.Decoder(msgspec.defstruct("VoteLine", declared, **_STRUCT))


@cache
def _item_reader() -> msgspec.json.Decoder[Any]:
    declared = [*_declared(StoredItem), ("seal", tuple[_Count, _Count, _Count, _Count]), *_SEALED]
    return msgspec.json.Decoder(msgspec.defstruct("ItemLine", declared, **_STRUCT))


def _read(reader: msgspec.json.Decoder[Any], raw: bytes) -> Any:
    """Return the validated content of a line."""
    try:
        return reader.decode(raw)
    except (ValueError, RecursionError):
        try:
            # Python's JSON parser accepts lone surrogates.
            content = json.loads(raw.decode("utf-8"))
        except RecursionError:
            raise ValueError("the line is nested too deeply") from None
        return msgspec.convert(content, reader.type)


def _struct_of(kind: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(kind.__name__, _declared(kind), **_STRUCT)


def _declared(kind: Any) -> list[tuple[Any, ...]]:
    """Return name, type and any default of each field of a dataclass, with bounded numbers."""
    hints = get_type_hints(kind)
    return [
        (one.name, _bounded(hints[one.name]), *(() if one.default is MISSING else (one.default,)))
        for one in fields(kind)
    ]


def _bounded(hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_bounded(one) for one in arguments)]  # noqa: UP007
    if origin is tuple:
        return tuple.__class_getitem__((_bounded(arguments[0]), ...))
    return _struct_of(hint) if is_dataclass(hint) else _BOUNDED.get(hint, hint)


def _schema_of(hint: Any) -> CoreSchema:
    """Return the schema of a field for writing."""
    kinds = {hint, *get_args(hint)}
    if found := [one for one in kinds if is_dataclass(one)]:
        return nullable_schema(_instance_of(found[0]))
    if any(isinstance(one, type) and issubclass(one, str) for one in kinds):
        return nullable_schema(str_schema())
    # As floats, whole numbers are written with a decimal point.
    return nullable_schema(float_schema()) if float in kinds else any_schema()


def _instance_of(kind: Any) -> CoreSchema:
    """Return the schema of a dataclass instance, with defaults, so that they can be omitted when writing."""
    hints, held = get_type_hints(kind), []
    for one in fields(kind):
        schema = _schema_of(hints[one.name])
        if one.default is not MISSING:
            schema = with_default_schema(schema, default=one.default)
        held.append(dataclass_field(one.name, schema))
    names = [one.name for one in fields(kind)]
    return dataclass_schema(kind, dataclass_args_schema(kind.__name__, held), names, slots=True)


# A judge's answer may contain NaN or infinity, which must be kept and not become null.
_WRITING: Final = CoreConfig(ser_json_inf_nan="constants")
# Integers are bounded so that offsets stay valid, and floats so that they are finite.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_MOST: Final = sys.float_info.max
_BOUNDED: Final[dict[Any, Any]] = {int: _Count, float: Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]}
_STRUCT: Final[dict[str, Any]] = {"kw_only": True, "forbid_unknown_fields": True, "gc": False}
# Fields that the log adds to a line; older lines have neither.
_SEALED: Final = (("at", _Count, 0), ("crc", str, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    """The exchange with a model that led to a vote."""

    criterion: str
    judge_id: str
    sample: int  # index of the sample, from 0
    # Names of the candidates in the order shown; None if the criterion is not a comparison.
    order: tuple[str, ...] | None
    exchanged: VoteExchange


def stored_exchanges(path: Path, item_id: str) -> list[StoredExchange]:
    """Return an item's stored exchanges in order of arrival; damaged or moved lines cause a warning."""
    written = log_entries(read_manifest(path))
    unsealed = written.unsealed.get(PROMPTS, 0)
    found: dict[int, StoredExchange] = {}
    # Most lines are about other items, and parsing them would take long.
    begins, damaged = b'{"item":' + compact_json(item_id), 0
    for _, offset, raw in log_lines(path / PROMPTS):
        at: int | None = offset
        if offset >= unsealed and not is_intact(raw, offset, written.mark):
            at = line_offset(raw, written.mark)
            damaged += raw.endswith(b"\n")
        if at is None or not raw.startswith(begins):
            continue
        try:
            found.setdefault(at, _exchange(read_compact(raw)))
        except (ValueError, KeyError, TypeError, RecursionError):
            damaged += 1
    if damaged:
        warn_of_damage([f"{PROMPTS} has {damaged:,} damaged or moved lines"])
    return [found[at] for at in sorted(found)]


def _exchange(line: Mapping[str, Any]) -> StoredExchange:
    order = line.get("order")
    return StoredExchange(
        criterion=line["criterion"],
        judge_id=line["judge_id"],
        sample=line["sample"],
        order=None if order is None else tuple(order),
        exchanged=VoteExchange(
            messages=tuple((one["role"], one["content"]) for one in line.get("messages", ())),
            replies=tuple(line.get("replies", ())),
            dropped_params=tuple(line.get("dropped_params", ())),
            shared_with=line.get("shared_with"),
        ),
    )
