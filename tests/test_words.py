"""A spell-checker for user-facing texts: words that `docs/contributing/writing.md` lists are not used."""

from __future__ import annotations

import ast
import json
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
    "; give X": r"; give (a|an|the|it|one|at|its)\b",
    "left out": r"\b(left|leaves?|leaving) out\b",
    "according to": r"\baccording to\b",
    "or else": r"\bor else\b",
    "may not": r"\bmay not\b",
    "first cause": r"\bfirst cause\b",
    "on [0, 1]": r"\bon `?\[-?\d",
    "at the latest": r"\bat the latest\b",
    "for want of, owing to": r"\b(for want of|owing to)\b",
    "the worst first": r"\bthe (worst|best|oldest|newest|largest|lowest|highest) first\b",
    "look-up": r"\blook-ups?\b",
}
"""Pattern of each entry of the word list."""

_FOR_MODELS = (
    *("judges/prompts", "criteria/", "judges/critic", "apps/tool/", "apps/redteam/attacks", "judges/model"),
    "judges/lexical",
    *("templates/", "demo/"),
)
"""Modules whose texts are data or are sent to models, which a changed word would ask something else."""
_PAGES_LEFT_OUT = ("docs/contributing/writing.md", "docs/explanation/prompts.md", "docs/reference/cli.md")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|<!--.*?-->|^ *\w+: ", re.MULTILINE | re.DOTALL)
# The name of an attribute, which the help of a command lists among the keys of its output.
_KEYS = re.compile(r"\bfault(s|_count)\b")


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


def test_docstrings_avoid_the_words() -> None:
    """No docstring has a word of the list outside of code."""
    found = []
    for path in sorted((ROOT / "src/autorubric").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            text = _KEYS.sub("", _CODE.sub("", ast.get_docstring(node) or ""))
            found += [
                f"{path.name}:{getattr(node, 'lineno', 1)}: {word}"
                for word, at in WORDS.items()
                if re.search(at, text)
            ]
    assert found == []


def test_pages_of_the_report_and_notebooks_avoid_the_words() -> None:
    """Neither the scripts and templates of the report nor the prose of notebooks has a word of the list."""
    texts = {
        path.name: path.read_text(encoding="utf-8")
        for kind in ("*.js", "*.j2")
        for path in sorted((ROOT / "src/autorubric/reports/assets").glob(kind))
    }
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
        texts[path.name] = _CODE.sub("", prose)
    assert len(texts) > 20
    found = [
        f"{name}: {word}" for name, text in texts.items() for word, at in WORDS.items() if re.search(at, text)
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
