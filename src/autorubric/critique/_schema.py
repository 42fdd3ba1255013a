"""Schemas of critiques: the one that ships, or the caller's own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from autorubric._files import path_text, read_structured, shortened
from autorubric.errors import ArgumentError, ReplyError
from autorubric.llm import ReplySchema
from autorubric.values import Json

_PACKAGE: Final = "autorubric.critique"
_SHIPPED: Final = "critique_v1.schema.json"
_MOST_FAULTS: Final = 5


def load_critique_schema(path: str | Path | None = None) -> dict[str, Json]:
    """Load the JSON schema of critiques that ships (draft 2020-12, version `v1`), or the one in a file.

    Raises:
        FileError: If the file cannot be read, or holds no JSON.
    """
    if path is not None:
        return dict(_mapping(read_structured(path).data, str(path)))
    return dict(json.loads(files(_PACKAGE).joinpath(_SHIPPED).read_text(encoding="utf-8")))


class SchemaFaultError(ReplyError):
    """A reply is JSON, and no critique by its schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueSchema:
    """A schema of critiques, checked, and ready to check by.

    Attributes:
        schema: The schema.
        path: Where it was read from; None if it was given as data.
        validator: Checks a critique.
    """

    schema: Mapping[str, Json]
    path: str | None
    validator: Any

    @classmethod
    def of(cls, given: Mapping[str, Json] | str | Path | None) -> CritiqueSchema:
        """Return the schema for an argument; without one, the schema that ships.

        Raises:
            ArgumentError: If it is not a JSON schema, or refers to something outside itself.
            FileError: If its file cannot be read, or holds no JSON.
        """
        shipped = load_critique_schema()
        if given is None:
            return cls._checked(shipped, f"{_PACKAGE.replace('.', '/')}/{_SHIPPED}")
        if isinstance(given, str | Path):
            return cls._checked(load_critique_schema(given), str(given))
        schema = dict(_mapping(given, "schema"))
        same = schema == shipped
        return cls._checked(schema, f"{_PACKAGE.replace('.', '/')}/{_SHIPPED}" if same else None)

    @classmethod
    def _checked(cls, schema: Mapping[str, Json], path: str | None) -> CritiqueSchema:
        kind: Any = validators.validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
            # An empty registry: what a schema refers to elsewhere is never fetched.
            validator = kind(schema, registry=Registry())
            # What is referred to deep inside would be missed only once a critique came to it.
            resource = Resource.from_contents(schema, default_specification=DRAFT202012)
            resolver = Registry().with_resource("", resource).resolver()
            for reference in _references(schema):
                resolver.lookup(reference)
        except SchemaError as error:
            where = path_text(tuple(error.absolute_path)) or "the top"
            raise ArgumentError(f"schema is not a JSON schema: {where}: {error.message[:200]}") from None
        except Unresolvable as error:
            raise ArgumentError(
                f"schema refers to {error.ref!r}, which is not inside it; put it under $defs"
            ) from None
        return cls(schema=schema, path=path, validator=validator)

    @property
    def version(self) -> str | None:
        """The schema's `version`; None if it has none."""
        version = self.schema.get("version")
        return version if isinstance(version, str) else None

    @property
    def digest(self) -> str:
        """The SHA-256 of the schema as canonical JSON."""
        return digest_of(self.schema)

    @property
    def text(self) -> str:
        """The schema as shown in a prompt."""
        return json.dumps(self._bare, ensure_ascii=False)

    @property
    def on_the_wire(self) -> ReplySchema:
        """The schema as a model's provider takes it."""
        return ReplySchema(name="critique", schema=self._bare, strict=False)

    @property
    def _bare(self) -> dict[str, Json]:
        # Its identity is for files; a provider may refuse what it does not know.
        return {key: value for key, value in self.schema.items() if key not in ("$schema", "$id", "version")}

    def check(self, critique: Json) -> None:
        """Check a critique.

        Raises:
            SchemaFaultError: If it does not follow the schema; the first errors are named.
        """
        try:
            found = sorted(self.validator.iter_errors(critique), key=lambda fault: str(fault.absolute_path))
        except (Unresolvable, RecursionError, re.error) as error:
            raise SchemaFaultError(f"the schema cannot be followed: {error}") from None
        if found:
            told = [
                f"{path_text(tuple(fault.absolute_path)) or 'the critique'}: {fault.message[:300]}"
                for fault in found[:_MOST_FAULTS]
            ]
            more = f"; and {len(found) - _MOST_FAULTS} more" if len(found) > _MOST_FAULTS else ""
            raise SchemaFaultError("it does not follow the schema: " + "; ".join(told) + more)


def digest_of(content: Json) -> str:
    """Return the SHA-256 of JSON data in its canonical form, in hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _references(schema: Json) -> Iterator[str]:
    """Every reference in a schema; those under an `$id` of their own are left to whoever follows them."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = [part for part in schema.values() if not (isinstance(part, Mapping) and "$id" in part)]
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _mapping(given: Any, where: str) -> Mapping[str, Json]:
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{where}: {shortened(given)} is not a JSON schema; give a mapping, or its file")
    return given
