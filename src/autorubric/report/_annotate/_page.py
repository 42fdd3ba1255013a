"""The page as one file: data, styles and program, and a policy that lets in nothing else."""

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
    """Writes the page of `annotation_page` as one file.

    Raises:
        ArgumentError: The dataset has no items, or an item has no rubric.
        FileError: The file cannot be written.
    """
    write_text_atomic(path, annotation_page(dataset, seed=seed, title=title))


def annotation_page(dataset: ItemsToLabel, *, seed: int = 0, title: str | None = None) -> str:
    """An HTML page on which people label a dataset's items, as one text that needs no other file.

    Each rater gives an id, and sees the items in an order of their own and, of compared candidates, letters
    in an order of their own; nothing that judges or other raters said is in the page. Progress is kept
    by the browser; labels are saved as JSON lines at any time, from which the page goes on and which
    `merge_labels` reads.

    Items whose metadata has `disputed`, as `disputed_items` makes them, are asked for those criteria alone.

    Args:
        dataset: The items with their rubric.
        seed: Decides, with the rater's id, the orders.
        title: Heading of the page; the dataset's name by default.

    Raises:
        ArgumentError: The dataset has no items, or an item has no rubric.
    """
    if not dataset.items:
        raise ArgumentError("the dataset has no items; add some before people label them")
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
    """JSON that nothing in it can end: ASCII without the characters of markup."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
