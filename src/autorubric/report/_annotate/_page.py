"""The labelling page as one file with its data, styles and script, and a policy that blocks the rest."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from autorubric._files import write_text_atomic
from autorubric.errors import ArgumentError
from autorubric.report._annotate._content import ItemsToLabel, content_of


def write_annotation_page(
    dataset: ItemsToLabel, path: str | Path, *, seed: int = 0, title: str | None = None
) -> None:
    """Write the page from `annotation_page` to a file.

    Raises:
        ArgumentError: If the dataset has no items, or an item has no rubric.
        FileError: If the file cannot be written.
    """
    write_text_atomic(path, annotation_page(dataset, seed=seed, title=title))


def annotation_page(dataset: ItemsToLabel, *, seed: int = 0, title: str | None = None) -> str:
    """Return a self-contained HTML page for labelling a dataset's items.

    Each rater enters an id and sees the items in a rater-specific random order; letters are assigned to
    compared candidates in the same way. The page does not show answers from judges or other raters. The
    browser stores the progress. Labels can be saved as JSON lines at any time; the page can resume from such
    a file, and `merge_labels` reads it. If an item's metadata has the key `disputed`, as set by
    `disputed_items`, the page asks only about those criteria.

    Args:
        dataset: The items and their rubrics.
        seed: Random seed for the orders, combined with the rater's id.
        title: Page heading; defaults to the dataset's name.

    Raises:
        ArgumentError: If the dataset has no items, or an item has no rubric.
    """
    if not dataset.items:
        raise ArgumentError("the dataset has no items to label")
    heading = title or dataset.name or "Items to label"
    content = content_of(dataset, heading, seed)
    styles, program = _asset("page.css"), _asset("page.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_asset("page.html")).render(
        title=heading,
        policy=(
            f"default-src 'none'; script-src {_hash(program)}; style-src {_hash(styles)}; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        ),
        styles=Markup(styles),
        program=Markup(program),
        content=Markup(_embedded(content)),
    )


def _asset(name: str) -> str:
    text = files("autorubric.report._annotate").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _embedded(content: object) -> str:
    """Return JSON that is safe inside a script element: ASCII without markup characters."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
