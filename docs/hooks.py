"""What mkdocs does beyond its plugins: MathML formulas, notebooks as pages with a gallery, and llms.txt."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any, Final

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT: Final = Path(__file__).resolve().parents[1]
_NOTEBOOKS: Final = _ROOT / "notebooks"
_TITLE: Final = re.compile(r"# (.+)\n+((?:.+\n?)+)")


def on_config(config: MkDocsConfig) -> None:
    """Declare the blocks of formulas."""
    fences = {"name": "math", "class": "math", "format": show_formula}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [
        fences
    ]


def show_formula(source: str, *_: Any, **__: Any) -> str:
    """Return the HTML of a block ```` ```math ````.

    Raises:
        ValueError: The converter does not know a command, which it would show as it is.
    """
    shown = convert(source, display="block")
    if "\\" in shown:
        raise ValueError(f"unknown LaTeX command in the formula {source!r}")
    return f'<div class="math" style="overflow-x: auto">{shown}</div>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and the gallery."""
    cards = []
    for path in sorted(_NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        files.append(
            File.generated(config, f"notebooks/{path.stem}.md", content=_page(cells))
        )
        cards.append(_card(path.stem, cells))
    gallery = "\n".join(
        ["# Notebooks\n", '<div class="grid cards" markdown>\n', *cards, "</div>"]
    )
    files.append(File.generated(config, "notebooks/index.md", content=gallery))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt into the site; its links are absolute if the site's address is set."""
    text = (_ROOT / "llms.txt").read_text(encoding="utf-8")
    site = (config.site_url or "").rstrip("/")
    text = re.sub(
        r"\]\(docs/([^)#]+?)(?:/?index)?\.md(#[^)]*)?\)",
        lambda found: f"]({site}/{found[1]}/{found[2] or ''})",
        text,
    )
    (Path(config.site_dir) / "llms.txt").write_text(text, encoding="utf-8")


def _card(name: str, cells: list[dict[str, Any]]) -> str:
    found = _TITLE.match(_text(cells[0]["source"]) + "\n")
    assert found is not None, f"{name}.ipynb begins with a title and a paragraph"
    about = f"**[{found[1]}]({name}.md)**\n\n{found[2]}\n{next(iter(_pictures(cells)), '')}"
    return "-   " + textwrap.indent(about, "    ").lstrip() + "\n"


def _page(cells: list[dict[str, Any]]) -> str:
    parts = []
    for cell in cells:
        if cell["cell_type"] == "markdown":
            parts.append(_text(cell["source"]).replace("](../docs/", "](../"))
            continue
        parts.append(f"```python\n{_text(cell['source'])}\n```")
        for output in cell["outputs"]:
            parts.append(_output(output))
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return _picture(data)
    if "text/html" in data:
        return f'<div class="output">{_text(data["text/html"])}</div>'
    return f"```text\n{_text(output.get('text', data.get('text/plain', ''))).rstrip()}\n```"


def _pictures(cells: list[dict[str, Any]]) -> list[str]:
    outputs = [
        output.get("data", {}) for cell in cells for output in cell.get("outputs", [])
    ]
    return [_picture(data) for data in outputs if "image/png" in data]


def _picture(data: dict[str, Any]) -> str:
    return f"![{_text(data['text/plain'])}](data:image/png;base64,{_text(data['image/png']).strip()})"


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
