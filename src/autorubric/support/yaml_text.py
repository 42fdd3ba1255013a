"""YAML 1.2: only `true` and `false` are booleans, while dates and `Yes` stay text."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

from autorubric.support.objects import Json
from autorubric.support.reading_errors import MAX_DEPTH, FilePath, SyntaxFault

_PREFIX: Final = "tag:yaml.org,2002:"
_SCALARS: Final = (
    ("null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), list("-+0123456789")),
    (
        "float",
        re.compile(
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
        ),
        list("-+0123456789."),
    ),
)
_SPECIAL: Final = re.compile(r"[\r\t\x85\u2028\u2029\ufeff]")
# Aliases repeat content. Without aliases, a text never has more nodes than characters.
_SPARE_NODES: Final = 100_000


class _Loader(yaml.SafeLoader):
    # A separate table, since the base class has the rules of YAML 1.1.
    yaml_implicit_resolvers = {}  # noqa: RUF012
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise SyntaxFault(f"the data is nested deeper than {MAX_DEPTH} levels", line)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in _SCALARS:
    _whole = re.compile(rf"(?:{_pattern.pattern})\Z")
    _Loader.add_implicit_resolver(_PREFIX + _tag, _whole, _first)
    # On top of the older rules, so that a text that either version reads as something else is quoted.
    _Dumper.add_implicit_resolver(_PREFIX + _tag, _whole, _first)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") else None
    # Only double quotes bring these back as they were.
    if _SPECIAL.search(text):
        style = '"'
    return dumper.represent_scalar(f"{_PREFIX}str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(data: Json) -> str:
    """Return the data as YAML in block style, without aliases and with keys in their original order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def parse_yaml(text: str) -> tuple[Json, yaml.Node | None]:
    """Return the data and the root node of a YAML text; both are None if the text is empty."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SyntaxFault(f"invalid YAML: {error.problem}", mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"invalid YAML: the character {chr(error.character)!r} is not allowed"
        raise SyntaxFault(message, line) from None
    if root is None:
        return None, None
    return _Converter(len(text) + _SPARE_NODES).convert(root, ()), root


class _Converter:
    """Converts nodes to data and counts them, since aliases can make a small text huge."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def convert(self, node: yaml.Node, path: FilePath) -> Json:
        self._budget -= 1
        if self._budget < 0:
            message = "the aliases expand to too much data; write out the repeated parts"
            raise SyntaxFault(message, _line(node))
        if len(path) > MAX_DEPTH:
            raise SyntaxFault(f"the data is nested deeper than {MAX_DEPTH} levels", _line(node))
        if isinstance(node, yaml.MappingNode):
            self._check_tag(node, "map")
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, "seq")
            return [self.convert(child, (*path, index)) for index, child in enumerate(node.value)]
        return _scalar(node, path)

    def _check_tag(self, node: yaml.Node, name: str) -> None:
        if node.tag != _PREFIX + name:
            raise SyntaxFault(f"the tag {node.tag!r} is not supported; remove it", _line(node))

    def _mapping(self, node: yaml.MappingNode, path: FilePath) -> dict[str, Json]:
        found: dict[str, Json] = {}
        lines: dict[str, int] = {}
        for key_node, child in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise SyntaxFault("a key must be a string, not a list or a mapping", _line(key_node), path)
            key = key_node.value
            if key == "<<" and key_node.style is None:
                raise SyntaxFault("merge keys (<<) are not supported; repeat the keys", _line(key_node), path)
            if key in found:
                message = f"the key {key!r} is repeated; it first occurs on line {lines[key]}; remove one"
                raise SyntaxFault(message, _line(key_node), path)
            lines[key] = _line(key_node)
            found[key] = self.convert(child, (*path, key))
        return found


def _scalar(node: yaml.Node, path: FilePath) -> Json:
    text, tag = node.value, node.tag.removeprefix(_PREFIX)
    try:
        match tag:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            case "float":
                number = float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
                # Infinities and NaN stay text, which is rejected where a number is required, together with
                # the other errors of the file.
                return number if math.isfinite(number) else text
            case _:
                raise SyntaxFault(f"the tag {node.tag!r} is not supported; remove it", _line(node), path)
    except ValueError:
        raise SyntaxFault(f"{text[:40]!r} is not a valid {tag}", _line(node), path) from None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def node_line(root: yaml.Node, path: FilePath) -> int:
    """Return the line of the node at `path`, or of its nearest ancestor."""
    node, line = root, _line(root)
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                return line
            line, node = _line(pair[0]), pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = _line(node)
        else:
            return line
    return line
