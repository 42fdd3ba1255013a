"""PDF files as submissions, by their text or by images of their pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from autorubric.criteria import Submission
from autorubric.datasets import pdf_submission
from autorubric.errors import ArgumentError, FileError, MissingDependencyError


def pdf(*texts: str, size: str = "200 100") -> bytes:
    """The bytes of a PDF file with one page per text."""
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(len(texts)))
    font = "<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>"]
    for n, text in enumerate(texts):
        page = f"/Type /Page /Parent 2 0 R /MediaBox [0 0 {size}] /Resources {font} /Contents {4 + 2 * n} 0 R"
        drawn = f"BT /F 18 Tf 20 40 Td ({text}) Tj ET"
        objects += [f"<< {page} >>", f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"]
    body, offsets = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n".encode("ascii")
    entries = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    count, start = len(objects) + 1, len(body)
    table = f"xref\n0 {count}\n0000000000 65535 f \n{entries}trailer\n<< /Size {count} /Root 1 0 R >>\n"
    return body + f"{table}startxref\n{start}\n%%EOF\n".encode("ascii")


def test_the_text_of_all_pages(tmp_path: Path) -> None:
    """Pages are separated by a blank line."""
    pytest.importorskip("pypdf")
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf("First page", "Second page"))
    assert pdf_submission(file) == "First page\n\nSecond page"


def test_an_image_of_each_page(tmp_path: Path) -> None:
    """A page of 200 points is an image of 400 pixels, and no page is larger than 2,000."""
    pytest.importorskip("pypdfium2")
    image: Any = pytest.importorskip("PIL.Image")
    file = tmp_path / "a.pdf"
    for size, pixels in (("200 100", (400, 200)), ("14000 7000", (2000, 1000))):
        file.write_bytes(pdf("First page", "Second page", size=size))
        images = Submission.parse(pdf_submission(str(file), "images")).images
        assert len(images) == 2
        assert images[0].sha256 != images[1].sha256
        (tmp_path / "page.png").write_bytes(images[0].data or b"")
        with image.open(tmp_path / "page.png") as shown:
            assert (shown.format, shown.size) == ("PNG", pixels)


@pytest.mark.parametrize("as_", ["text", "images"])
def test_files_that_cannot_be_read(tmp_path: Path, as_: Any) -> None:
    """Missing and damaged files are errors of the file."""
    pytest.importorskip("pypdf")
    pytest.importorskip("pypdfium2")
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.4\n" + b"x" * 100)
    for name in ("missing.pdf", "damaged.pdf"):
        with pytest.raises(FileError, match=rf"{name}: 1 error(?s:.)*the PDF cannot be read"):
            pdf_submission(tmp_path / name, as_)


def test_a_scan_has_no_text(tmp_path: Path) -> None:
    """A PDF without text is an error that says how to pass it, not an empty submission."""
    pytest.importorskip("pypdf")
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    with pytest.raises(FileError, match="no text to extract; use as_='images'"):
        pdf_submission(tmp_path / "scan.pdf")


def test_pages_without_text_are_marked(tmp_path: Path) -> None:
    """A judge must not take what a scanned page shows for absent."""
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf("First page", "", "Third page"))
    assert pdf_submission(tmp_path / "a.pdf") == "\n\n".join(
        ["First page", "[page 2 has no text to extract]", "Third page"]
    )


@pytest.mark.parametrize(("as_", "module"), [("text", "pypdf"), ("images", "pypdfium2")])
def test_the_libraries_are_an_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_: Any, module: str
) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"install autorubric\[pdf\] to read PDF files"):
        pdf_submission(tmp_path / "a.pdf", as_)


def test_other_forms_are_refused() -> None:
    """The error names the two forms."""
    with pytest.raises(ArgumentError, match="as_ must be 'text' or 'images'; got 'html'"):
        pdf_submission("a.pdf", "html")  # type: ignore[arg-type]
