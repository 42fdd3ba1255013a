"""A spell-checker for user-facing texts: words that `docs/contributing/writing.md` lists are not used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.pages import ROOT

WORDS = {
    "fault": r"\bfault(s|y)?\b(?!')",
    "anew": r"\banew\b",
    "mend": r"\bmend(s|ed|ing)?\b",
    "told": r"\b(is|are|was|were|been) told\b",
    "stands in, stands at": r"\bstands? (in|at) (for|the|its|a)\b",
    "is no X": r"'(?: is|\} is) no [a-z]|\} is no (?!longer|more)[a-z]",
    "come to": r"\bcomes? to (a|an|the) (sum|score|total)\b",
    "whoever": r"\bwhoever\b",
    "lean": r"\bleans? (on|to|towards)\b|\bleanings?\b",
    "gone on with, goes on": r"\b(gone|goes) on with\b",
    "likewise": r"\blikewise\b",
    "else than": r"\belse than\b",
    "of its own, of your own": r"\bof (its|their|your) own(?=[.,;:)]| (can|has|or|whose)\b)",
    "by itself": r"\bby itself\b",
    "beside": r"\bbeside\b",
    "beforehand": r"\bbeforehand\b",
    "Mind": r"^Mind$",
    "is right to 0.783 of 1": r"\bis right to\b",
}
"""Pattern of each entry of the word list."""

_FOR_MODELS = (
    *("prompts/", "criteria/", "critic/", "tool/", "redteam/_attacks", "judges/_model", "judges/_lexical"),
    *("templates/", "demo/"),
)
"""Modules whose texts are data or are sent to models, which a changed word would ask something else."""
_PAGES_LEFT_OUT = ("docs/contributing/writing.md", "docs/explanation/prompts.md", "docs/reference/cli.md")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that users can see: what is no docstring, name or key."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inside:
            yield node.lineno, node.value


def test_the_list_is_short_and_is_the_page() -> None:
    """The page and this file have the same entries, fewer than 60."""
    page = (ROOT / "docs/contributing/writing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| .+? \|$", page.split("## Words")[1], re.MULTILINE)
    assert [row for row in rows if row not in ("Avoid", "---") and not set(row) <= {"-"}] == list(WORDS)
    assert len(WORDS) < 60


def test_messages_avoid_the_words() -> None:
    """No message of the library has a word of the list."""
    found = []
    root = ROOT / "src/autorubric"
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(_FOR_MODELS):
            continue
        for line, text in _strings(path):
            # A text of one word is a name or a key.
            if " " in text.strip():
                found += [
                    f"{name}:{line}: {word}: {text}" for word, at in WORDS.items() if re.search(at, text)
                ]
    assert found == []


def test_pages_avoid_the_words() -> None:
    """No page has a word of the list outside of code."""
    found = []
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        name = path.relative_to(ROOT).as_posix()
        if name in _PAGES_LEFT_OUT:
            continue
        prose = _CODE.sub("", path.read_text(encoding="utf-8"))
        found += [f"{name}: {word}: …{m[0]}…" for word, at in WORDS.items() for m in re.finditer(at, prose)]
    assert found == []
