"""PDF files as submissions."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from autorubric.errors import ArgumentError, FileError, MissingDependencyError
from autorubric.support.images import image_part

_LONGEST_SIDE = 2000
"""Maximum side of a page's image in pixels; models scale larger images down."""


def pdf_submission(path: str | Path, as_: Literal["text", "images"] = "text") -> str | list[dict[str, Any]]:
    """Return a PDF file as a submission: its text, or one image per page at up to 144 dots per inch.

    In the text, a mark stands for each page without text, such as a scanned one.

    Raises:
        ArgumentError: If `as_` is neither `text` nor `images`.
        FileError: If the file cannot be read, or has no text to extract.
        MissingDependencyError: If the extra `pdf` of this package is not installed.
    """
    if as_ not in ("text", "images"):
        raise ArgumentError(f"as_ must be 'text' or 'images'; got {as_!r}")
    try:
        library = import_module("pypdf" if as_ == "text" else "pypdfium2")
        data = Path(path).read_bytes()
        if as_ == "images":
            return [image_part(_png_of(page)) for page in library.PdfDocument(data)]
        texts = [page.extract_text() for page in library.PdfReader(io.BytesIO(data)).pages]
    except ImportError as error:
        raise MissingDependencyError(f"{error}; install autorubric[pdf] to read PDF files") from None
    # The libraries raise errors of many kinds for damaged and encrypted files.
    except Exception as error:
        raise FileError.whole(path, f"the PDF cannot be read: {error}") from error
    if not any(text.strip() for text in texts):
        raise FileError.whole(path, "the PDF has no text to extract; use as_='images'")
    # What a scanned page shows must not count as absent.
    marks = (f"[page {number} has no text to extract]" for number in range(1, len(texts) + 1))
    return "\n\n".join(text if text.strip() else mark for text, mark in zip(texts, marks, strict=True))


def _png_of(page: Any) -> bytes:
    png = io.BytesIO()
    page.render(scale=min(2.0, _LONGEST_SIDE / max(page.get_size()))).to_pil().save(png, "PNG")
    return png.getvalue()
