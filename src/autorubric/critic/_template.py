"""Prompt templates: `str.format` reduced to plain names, so that texts can be filled in whatever they hold.

Only the template is ever read for braces. What is filled in stands there as it is; no attribute, index,
conversion or format specification exists, so no template reaches into what it is given.
"""

from __future__ import annotations

import difflib
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autorubric.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Template:
    """A template as read.

    Attributes:
        pieces: Texts, each with the name of the variable that follows it; None where none does.
    """

    pieces: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str, known: Iterable[str]) -> Template:
        """The template that a text is.

        Args:
            text: Text with `{name}` for variables, and `{{` and `}}` for braces.
            known: Variables to name in errors.

        Raises:
            ArgumentError: A brace stands alone, or holds something else than a name.
        """
        if not isinstance(text, str):
            raise ArgumentError(
                f"prompt_template is {type(text).__name__}; give a text with {_listed(known)}"
            )
        try:
            found = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ArgumentError(f"prompt_template: {error}; {_rule(known)}") from None
        pieces = []
        for literal, name, specification, conversion in found:
            if name is not None and (not name.isidentifier() or specification or conversion):
                shown = name + (f"!{conversion}" if conversion else "")
                shown += f":{specification}" if specification else ""
                raise ArgumentError(f"prompt_template: {{{shown}}} is no variable; {_rule(known)}")
            pieces.append((literal, name))
        return cls(tuple(pieces))

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with every variable replaced by its value; None is empty.

        Raises:
            ArgumentError: A variable has no value; those that have are named, the nearest first.
        """
        parts = []
        for literal, name in self.pieces:
            parts.append(literal)
            if name is not None:
                if name not in values:
                    raise ArgumentError(
                        f"prompt_template: unknown variable {{{name}}}; {_near(name, values)}"
                    )
                parts.append(text_of(values[name]))
        return "".join(parts)


def text_of(value: Any) -> str:
    """A value as a template shows it: its `str`, and nothing for None."""
    return "" if value is None else str(value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def _rule(known: Iterable[str]) -> str:
    return (
        f"write {_listed(known)}, or a keyword argument of the call, each as a plain name in braces; for a "
        "brace itself write it twice"
    )


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=len(names), cutoff=0.6)
    return f"there are {_listed([*near, *(one for one in names if one not in near)])}"
