"""JSON schemas of critiques, and the provenance of the replies that are validated with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from autorubric.apps.drafts.conformance import Check, conformance_check
from autorubric.errors import (
    ArgumentError,
    JudgeError,
    ProviderError,
    ProviderTimeoutError,
    ReplyError,
    TokenUsage,
)
from autorubric.llm.transport import ReplySchema
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.objects import Json
from autorubric.support.read import read_structured
from autorubric.support.reading_errors import path_text, short_repr

_SHIPPED: Final = "critique_v1.schema.json"
# Records and manifests contain this name, so it stays when the file moves.
_SHIPPED_PATH: Final = f"autorubric/critique/{_SHIPPED}"
_MOST_FAULTS: Final = 5


def load_critique_schema(path: str | Path | None = None) -> dict[str, Json]:
    """Load the built-in critique JSON schema (draft 2020-12, version `v1`), or a schema from a file.

    Raises:
        FileError: If the file cannot be read or is not valid JSON.
    """
    if path is not None:
        return dict(_as_mapping(read_structured(path).data, str(path)))
    return dict(json.loads(files(__package__).joinpath(_SHIPPED).read_text(encoding="utf-8")))


class SchemaFaultError(ReplyError):
    """Raised if a reply is JSON but does not follow the schema of critiques."""


@dataclass(frozen=True, kw_only=True)
class CritiqueSchema:
    """A checked JSON schema with its validator."""

    schema: Mapping[str, Json]
    path: str | None  # of the schema file; None if the schema was passed as data
    validator: Any
    conforms: Check | None  # a fast check that is true only if the validator finds nothing

    @classmethod
    def of(cls, given: Mapping[str, Json] | str | Path | None) -> CritiqueSchema:
        """Create the schema from data or a file; None selects the built-in schema."""
        shipped = load_critique_schema()
        if isinstance(given, str | Path):
            schema: Mapping[str, Json] = load_critique_schema(given)
            path: str | None = str(given)
        else:
            schema = shipped if given is None else dict(_as_mapping(given, "schema"))
            path = _SHIPPED_PATH if schema == shipped else None
        validator = _validator_of(schema)
        conforms = conformance_check(schema) if type(validator) is Draft202012Validator else None
        return cls(schema=schema, path=path, validator=validator, conforms=conforms)

    @property
    def version(self) -> str | None:
        version = self.schema.get("version")
        return version if isinstance(version, str) else None

    @cached_property
    def digest(self) -> str:
        return json_digest(self.schema)

    @cached_property
    def text(self) -> str:
        return json.dumps(self._bare, ensure_ascii=False)

    @cached_property
    def shown_text(self) -> str:
        """The text as it is shown in a prompt."""
        return neutralise_tokens(self.text)

    @cached_property
    def on_the_wire(self) -> ReplySchema:
        """The schema in the form that is sent to the model's provider."""
        return ReplySchema(name="critique", schema=self._bare, strict=False)

    @property
    def _bare(self) -> dict[str, Json]:
        # Identifying keys are omitted, because a provider may reject unknown keys.
        return {key: value for key, value in self.schema.items() if key not in ("$schema", "$id", "version")}

    def check(self, critique: Json) -> None:
        """Raise `SchemaFaultError` if a critique does not follow the schema."""
        if self.conforms is not None and self.conforms(critique):
            return
        try:
            found = sorted(self.validator.iter_errors(critique), key=lambda fault: str(fault.absolute_path))
        except (Unresolvable, RecursionError, re.error) as error:
            raise SchemaFaultError(f"the schema cannot be applied: {error}") from None
        if found:
            messages = [
                f"{path_text(tuple(fault.absolute_path)) or 'the critique'}: {fault.message[:300]}"
                for fault in found[:_MOST_FAULTS]
            ]
            more = f"; and {len(found) - _MOST_FAULTS} more" if len(found) > _MOST_FAULTS else ""
            raise SchemaFaultError("it does not follow the schema: " + "; ".join(messages) + more)


def _validator_of(schema: Mapping[str, Json]) -> Any:
    kind: Any = validators.validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        # Otherwise an unresolvable nested reference would only be detected by some critiques.
        resource = Resource.from_contents(schema, default_specification=DRAFT202012)
        resolver = Registry().with_resource("", resource).resolver()
        for reference in _references(schema):
            resolver.lookup(reference)
    except SchemaError as error:
        where = path_text(tuple(error.absolute_path)) or "the top"
        raise ArgumentError(f"invalid JSON schema: {where}: {error.message[:200]}") from None
    except Unresolvable as error:
        raise ArgumentError(
            f"schema has an external reference {error.ref!r}; move the definition to $defs"
        ) from None
    # With an empty registry, external references are never fetched.
    return kind(schema, registry=Registry())


def json_digest(content: Json) -> str:
    """Return the SHA-256 digest of JSON data in canonical form, as a hexadecimal string."""
    return hashlib.sha256(_CANONICAL(content).encode("ascii")).hexdigest()


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def _references(schema: Json) -> Iterator[str]:
    """Yield every reference in a schema, except references in subschemas with a separate `$id`."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = [part for part in schema.values() if not (isinstance(part, Mapping) and "$id" in part)]
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _as_mapping(given: Any, where: str) -> Mapping[str, Json]:
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{where}: a JSON schema must be a mapping or a path; got {short_repr(given)}")
    return given


T = TypeVar("T")

ErrorCode = Literal["JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "TIMEOUT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherReply:
    """A reply with metadata, which a teacher function can return instead of a string.

    Attributes:
        text: Text of the reply.
        provider: The provider that served the reply.
        selected_model: The model that answered.
        attempted_models: The models that were called, in order.
        request_id: The id that the provider assigned to the request.
        usage: Token counts, such as `{"total_tokens": 450}`.
        cost: Cost in US dollars; None if unknown.
        latency_s: Latency in seconds; None to use the measured time.

    Raises:
        ArgumentError: If a field has the wrong type or cannot be written as JSON.
    """

    text: str
    provider: str | None = None
    selected_model: str | None = None
    attempted_models: tuple[str, ...] = ()
    request_id: str | None = None
    usage: Mapping[str, Json] | None = None
    cost: float | None = None
    latency_s: float | None = None

    def __post_init__(self) -> None:
        # Checked here, so that an error is raised in the caller's code and not when the record is written.
        for name in ("text", "provider", "selected_model", "request_id"):
            given = getattr(self, name)
            if not isinstance(given, str) and (name == "text" or given is not None):
                raise ArgumentError(f"TeacherReply: {name} must be a string; got {short_repr(given)}")
        models = self.attempted_models
        if isinstance(models, str) or not all(isinstance(one, str) for one in models or ()):
            raise ArgumentError(f"TeacherReply: attempted_models must be strings; got {short_repr(models)}")
        for name in ("cost", "latency_s"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and isfinite(given)):
                raise ArgumentError(f"TeacherReply: {name} must be a finite number; got {short_repr(given)}")
        if self.usage is not None and not (isinstance(self.usage, Mapping) and is_json(dict(self.usage))):
            raise ArgumentError(f"TeacherReply: usage must be a JSON mapping; got {short_repr(self.usage)}")


def is_json(given: object) -> bool:
    """Return whether a value can be written as JSON."""
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin and the cost of a reply."""

    provider: str | None = None  # that served the reply; None if unknown
    asked_model: str | None = None
    selected_model: str | None = None  # that answered, as named by its provider; None if no model answered
    attempted_models: tuple[str, ...] = ()  # in order
    request_id: str | None = None  # the provider's id of the last request
    latency_s: float = 0.0  # from the first request to the last reply
    usage: Mapping[str, Json] | None = None  # token counts of all attempts
    cost: float | None = None  # of all attempts, in US dollars; None if unknown
    cached: bool = False
    truncated: bool = False  # whether the output was truncated to fit the model's context

    def to_dict(self) -> dict[str, Json]:
        return {
            "provider": self.provider,
            "selected_model": self.selected_model,
            "attempted_models": list(self.attempted_models),
            "request_id": self.request_id,
            "timing": {"latency_s": self.latency_s},
            "usage": None if self.usage is None else dict(self.usage),
            "asked_model": self.asked_model,
            "cost": self.cost,
            "cached": self.cached,
            "truncated": self.truncated,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherFailure:
    """The reason why there is no answer."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[T]):
    """The result of asking a teacher."""

    answer: T | None  # None if asking failed
    text: str | None  # the last reply, unparsed; None if there was no reply
    provenance: Provenance
    failure: TeacherFailure | None = None  # None if there is an answer


def failure_result(error: Exception, asked: Provenance) -> Answered[Any]:
    """Return the result for an error, with the usage and the last reply before it."""
    text = None
    if isinstance(error, JudgeError):
        text = error.reply if isinstance(error, ReplyError) else None
        if text is None and error.replies:
            text = error.replies[-1]
        asked = replace(
            asked,
            selected_model=error.selected_model,
            attempted_models=error.attempted or asked.attempted_models,
            request_id=error.request_id,
            usage=usage_dict(error.usage),
            cost=error.cost,
        )
    return Answered(answer=None, text=text, provenance=asked, failure=error_record(error))


def error_record(error: Exception) -> TeacherFailure:
    """Return the failure code and message for an error."""
    code: ErrorCode = "PROVIDER_ERROR"
    message = str(error)
    match error:
        case SchemaFaultError():
            code = "SCHEMA_ERROR"
        case ReplyError():
            code = "JSON_PARSE_ERROR"
        case ProviderTimeoutError():
            code = "TIMEOUT"
        case TimeoutError():
            code, message = "TIMEOUT", message or "the request timed out"
        case ProviderError():
            message = f"{type(error).__name__}: {error}"
        case JudgeError():
            pass
        case _:
            message = f"the teacher raised {type(error).__name__}: {error}"
    return TeacherFailure(code=code, message=message)


def usage_dict(usage: TokenUsage | None) -> dict[str, Json] | None:
    """Return token counts in the form used in records; None if no usage was reported."""
    return None if usage is None else dict(usage.to_dict())
