"""JSON schemas of critiques: the built-in schema and custom schemas."""

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
    """Load the built-in critique JSON schema (draft 2020-12, version `v1`), or a schema from a file.

    Raises:
        FileError: If the file cannot be read or is not valid JSON.
    """
    if path is not None:
        return dict(_mapping(read_structured(path).data, str(path)))
    return dict(json.loads(files(_PACKAGE).joinpath(_SHIPPED).read_text(encoding="utf-8")))


class SchemaFaultError(ReplyError):
    """Raised if a reply is JSON but does not follow the schema of critiques."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueSchema:
    """A checked schema with its validator.

    Attributes:
        schema: The JSON schema.
        path: Path of the schema file; None if the schema was passed as data.
        validator: The validator for critiques.
    """

    schema: Mapping[str, Json]
    path: str | None
    validator: Any

    @classmethod
    def of(cls, given: Mapping[str, Json] | str | Path | None) -> CritiqueSchema:
        """Create the schema from data or a file; None selects the built-in schema.

        Raises:
            ArgumentError: If the value is not a JSON schema or has external references.
            FileError: If the file cannot be read or is not valid JSON.
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
            # With an empty registry, external references are never fetched.
            validator = kind(schema, registry=Registry())
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
        return cls(schema=schema, path=path, validator=validator)

    @property
    def version(self) -> str | None:
        """Return the `version` of the schema; None if it is not set."""
        version = self.schema.get("version")
        return version if isinstance(version, str) else None

    @property
    def digest(self) -> str:
        """Return the SHA-256 digest of the schema as canonical JSON."""
        return digest_of(self.schema)

    @property
    def text(self) -> str:
        """Return the schema as JSON text for a prompt."""
        return json.dumps(self._bare, ensure_ascii=False)

    @property
    def on_the_wire(self) -> ReplySchema:
        """Return the schema in the form that is sent to the model's provider."""
        return ReplySchema(name="critique", schema=self._bare, strict=False)

    @property
    def _bare(self) -> dict[str, Json]:
        # Identifying keys are omitted, because a provider may reject unknown keys.
        return {key: value for key, value in self.schema.items() if key not in ("$schema", "$id", "version")}

    def check(self, critique: Json) -> None:
        """Check that a critique follows the schema.

        Raises:
            SchemaFaultError: If the critique does not follow the schema. The message lists the first errors.
        """
        try:
            found = sorted(self.validator.iter_errors(critique), key=lambda fault: str(fault.absolute_path))
        except (Unresolvable, RecursionError, re.error) as error:
            raise SchemaFaultError(f"the schema cannot be applied: {error}") from None
        if found:
            told = [
                f"{path_text(tuple(fault.absolute_path)) or 'the critique'}: {fault.message[:300]}"
                for fault in found[:_MOST_FAULTS]
            ]
            more = f"; and {len(found) - _MOST_FAULTS} more" if len(found) > _MOST_FAULTS else ""
            raise SchemaFaultError("it does not follow the schema: " + "; ".join(told) + more)


def digest_of(content: Json) -> str:
    """Return the SHA-256 digest of JSON data in canonical form, as a hexadecimal string."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _references(schema: Json) -> Iterator[str]:
    """Yield every reference in a schema, except references in subschemas with a separate `$id`."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = [part for part in schema.values() if not (isinstance(part, Mapping) and "$id" in part)]
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _mapping(given: Any, where: str) -> Mapping[str, Json]:
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{where}: a JSON schema must be a mapping or a path; got {shortened(given)}")
    return given
