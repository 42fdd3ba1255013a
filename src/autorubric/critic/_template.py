"""Prompt templates: `str.format` reduced to plain names, so that texts can be filled in whatever they hold.

Only the template is ever read for braces. What is filled in stands there as it is. A name may have a
conversion and a format specification, as with `str.format`; no attribute and no index exists, nor a field
inside a specification, so no template reaches into what it is given.
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
        name: Its name.
        conversion: `r`, `s` or `a`; None for none.
        specification: How the value is formatted; as a rule empty.
    """

    name: str
    conversion: str | None = None
    specification: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is a name, with a known conversion and a specification without a field in it."""
        converts = self.conversion is None or self.conversion in _CONVERSIONS
        return self.name.isidentifier() and converts and not set("{}") & set(self.specification)

    def show(self, value: Any) -> str:
        """Return the value as `str.format` shows it; None is an empty text unless it is converted.

        Raises:
            ArgumentError: If the specification is none for such a value.
        """
        if self.conversion is not None:
            value = _CONVERSIONS[self.conversion](value)
        elif value is None:
            value = ""
        try:
            return format(value, self.specification)
        except (ValueError, TypeError, OverflowError) as error:
            raise ArgumentError(
                f"prompt_template: {self} cannot show {shortened(value)}: {error}; give another value of "
                f"{self.name}, or change the format"
            ) from None

    def __str__(self) -> str:
        conversion = "" if self.conversion is None else f"!{self.conversion}"
        return f"{{{self.name}{conversion}{self.specification and ':' + self.specification}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A template as read.

    Attributes:
        pieces: Texts, each with the variable that follows it; None if none does.
    """

    pieces: tuple[tuple[str, Variable | None], ...]

    @classmethod
    def parse(cls, text: str, known: Iterable[str]) -> Template:
        """Return the template that a text is.

        Args:
            text: Text with `{name}` for variables, and `{{` and `}}` for braces.
            known: Variables to name in errors.

        Raises:
            ArgumentError: If a brace stands alone, or holds something else than a variable.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"prompt_template is {type(text).__name__}; give a text with {listed(known)}")
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
        """The variables' names, each once, in the order of the template."""
        return tuple(dict.fromkeys(variable.name for _, variable in self.pieces if variable is not None))

    def fill(self, values: Mapping[str, Any], *, composed: Container[str] = ()) -> str:
        """Return the text with every variable replaced by its value.

        Args:
            values: The values by name.
            composed: Variables that the library composes. Values of all others are neutralised: what looks
                like a delimiter or a chat-template token in them is made harmless.

        Raises:
            ArgumentError: If a variable has no value (those that have are named, the nearest first), or its
                value cannot be shown as it says.
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
    """Return a value as a text: its `str`, or an empty text for None."""
    return "" if value is None else str(value)


def listed(names: Iterable[str]) -> str:
    """Return names as variables, one after the other."""
    return ", ".join(f"{{{name}}}" for name in names)


def _rule(known: Iterable[str]) -> str:
    return (
        f"write {listed(known)}, or a keyword argument of the call, each as a plain name in braces, with a "
        "conversion (!r) or a format (:.2f) where you like; for a brace itself write it twice"
    )


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=len(names), cutoff=0.6)
    return f"there are {listed([*near, *(one for one in names if one not in near)])}"
