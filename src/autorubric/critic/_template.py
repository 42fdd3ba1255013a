"""Prompt templates: a subset of `str.format` with plain names, so that any text can be filled in.

Braces have a meaning in the template only, not in the values. A name may have a conversion and a format
specification, as in `str.format`. Attributes, indices and nested fields are not supported, so a template
cannot access parts of a value.
"""

from __future__ import annotations

import difflib
import string
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from autorubric._files import shortened
from autorubric.errors import ArgumentError
from autorubric.prompts import neutralise

_CONVERSIONS: Final[Mapping[str, Callable[[Any], str]]] = {"r": repr, "s": str, "a": ascii}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable in a template.

    Attributes:
        name: Name of the variable.
        conversion: `r`, `s` or `a`; None for no conversion.
        specification: Format specification; usually empty.
    """

    name: str
    conversion: str | None = None
    specification: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the name is valid, the conversion is known, and the specification has no nested fields."""
        converts = self.conversion is None or self.conversion in _CONVERSIONS
        return self.name.isidentifier() and converts and not set("{}") & set(self.specification)

    def show(self, value: Any) -> str:
        """Format the value as `str.format` does; None becomes empty text unless it is converted.

        Raises:
            ArgumentError: If the specification does not suit the value.
        """
        if self.conversion is not None:
            value = _CONVERSIONS[self.conversion](value)
        elif value is None:
            value = ""
        try:
            return format(value, self.specification)
        except (ValueError, TypeError, OverflowError) as error:
            raise ArgumentError(
                f"prompt_template: {self} cannot format {shortened(value)}: {error}; pass another value for "
                f"{self.name}, or change the format"
            ) from None

    def __str__(self) -> str:
        conversion = "" if self.conversion is None else f"!{self.conversion}"
        return f"{{{self.name}{conversion}{self.specification and ':' + self.specification}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template.

    Attributes:
        pieces: Pairs of a literal text and the variable that follows it; None if no variable follows.
    """

    pieces: tuple[tuple[str, Variable | None], ...]

    @classmethod
    def parse(cls, text: str, known: Iterable[str]) -> Template:
        """Parse a template.

        Args:
            text: Text with `{name}` for variables, and `{{` and `}}` for literal braces.
            known: Variable names to list in error messages.

        Raises:
            ArgumentError: If a brace is unmatched, or braces contain anything other than a variable.
        """
        if not isinstance(text, str):
            raise ArgumentError(
                f"prompt_template must be text with {listed(known)}; got {type(text).__name__}"
            )
        try:
            found = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ArgumentError(f"prompt_template: {error}; {_rule(known)}") from None
        pieces: list[tuple[str, Variable | None]] = []
        for literal, name, specification, conversion in found:
            variable = None
            if name is not None:
                variable = Variable(name=name, conversion=conversion, specification=specification or "")
                if not variable.is_plain:
                    raise ArgumentError(f"prompt_template: {variable} is not a variable; {_rule(known)}")
            pieces.append((literal, variable))
        return cls(tuple(pieces))

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct variable names, in template order."""
        return tuple(dict.fromkeys(variable.name for _, variable in self.pieces if variable is not None))

    def fill(self, values: Mapping[str, Any], *, composed: Container[str] = ()) -> str:
        """Return the template's text with every variable replaced by its value.

        Args:
            values: Values by variable name.
            composed: Names of variables whose values the library composes. In all other values, anything that
                looks like a delimiter or a chat-template token is made harmless.

        Raises:
            ArgumentError: If a variable has no value (the error lists the known ones, closest match first),
                or a value cannot be formatted.
        """
        parts = []
        for literal, variable in self.pieces:
            parts.append(literal)
            if variable is not None:
                if variable.name not in values:
                    raise ArgumentError(
                        f"prompt_template: unknown variable {{{variable.name}}}; "
                        f"{_near(variable.name, values)}"
                    )
                shown = variable.show(values[variable.name])
                parts.append(shown if variable.name in composed else neutralise(shown))
        return "".join(parts)


def text_of(value: Any) -> str:
    """Convert a value to text; None becomes an empty string."""
    return "" if value is None else str(value)


def listed(names: Iterable[str]) -> str:
    """Return the names as variables in braces, separated by commas."""
    return ", ".join(f"{{{name}}}" for name in names)


def _rule(known: Iterable[str]) -> str:
    return (
        f"use {listed(known)}, or a keyword argument of the call, each as a plain name in braces, optionally "
        "with a conversion (!r) or a format (:.2f); write a literal brace twice"
    )


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=len(names), cutoff=0.6)
    return f"available: {listed([*near, *(one for one in names if one not in near)])}"
