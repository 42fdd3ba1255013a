"""Images as content parts of the chat format."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from autorubric.errors import ArgumentError, FileError
from autorubric.support.reading_errors import short_repr

LARGEST_IMAGE: Final = 20 << 20
"""Maximum size of an image in bytes."""

_ADDRESS: Final = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)
_DATA: Final = re.compile(r"data:[\w.+/-]*;base64,", re.IGNORECASE)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_KINDS: Final = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8[79]a)|(?P<webp>RIFF.{4}WEBP)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image in a submission or prompt.

    Attributes:
        label: Name by which the text refers to the image, such as `image 1`.
        url: A data URL that contains the image, or an address that only the provider opens.
        sha256: SHA-256 of the image in hexadecimal; None for an address without a digest.
    """

    label: str
    url: str
    sha256: str | None = None

    @property
    def data(self) -> bytes | None:
        """The bytes of the image; None for an address."""
        return None if _ADDRESS.match(self.url) else base64.b64decode(self.url.partition(",")[2])


def image_part(image: str | Path | bytes, *, sha256: str | None = None) -> dict[str, Any]:
    """Return an image as a content part of the chat format, for submissions and prompts.

    Args:
        image: Path or bytes of a PNG, JPEG, GIF or WebP image of at most 20 MB, which becomes a data URL, or
            an `http` or `https` address, which only the provider opens.
        sha256: SHA-256 of the image in hexadecimal. Votes on an address depend on it instead of the address.

    Raises:
        ArgumentError: If it is not such an image, or has another SHA-256.
        FileError: If the file cannot be read.
    """
    url = image
    if isinstance(image, bytes):
        url = _data_url(image)
    elif isinstance(image, Path) or not _ADDRESS.fullmatch(image):
        try:
            if (path := Path(image)).exists() and not path.is_file():
                # A pipe would be waited for, and a device could fill the memory.
                raise OSError("the path is a folder, a pipe or a device, not a regular file")
            with path.open("rb") as file:
                url = _data_url(file.read(LARGEST_IMAGE + 1))
        except (OSError, ValueError) as error:
            raise FileError.whole(image, f"no image: {error}") from None
    found = read_image({"url": url, "sha256": sha256}, "image", "")
    return {"type": "image_url", "image_url": {"url": found.url, **({"sha256": sha256} if sha256 else {})}}


def read_image(given: Any, at: str, label: str) -> Image:
    """Return the image in the `image_url` of a content part; `ArgumentError` with the place if invalid."""
    fields: Mapping[Any, Any] = given if isinstance(given, Mapping) else {"url": given}
    url, sha256 = fields.get("url"), fields.get("sha256")
    if not isinstance(url, str) or not set(fields) <= {"url", "sha256", "detail"}:
        raise ArgumentError(f"{at} must be {{'url': a string}}; got {short_repr(given)}")
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        wanted = "64 hexadecimal digits in lower case"
        raise ArgumentError(f"{at}: sha256 must be {wanted}; got {short_repr(sha256)}")
    if _ADDRESS.fullmatch(url):
        return Image(label=label, url=url, sha256=sha256)
    if not _DATA.match(url):
        shown = f"a data URL with Base64 or an http(s) address; got {short_repr(url)}"
        raise ArgumentError(f"{at} must be {shown}. For a file, use image_part(path)")
    try:
        media_type, found = _type_and_sha256(url)
    except ValueError as error:
        raise ArgumentError(f"{at}: {error}") from None
    if sha256 not in (None, found):
        raise ArgumentError(f"{at}: the SHA-256 of the image is {found}; got {sha256}")
    return Image(label=label, url=f"data:{media_type};base64,{url.partition(',')[2]}", sha256=found)


# An item is parsed several times, and decoding a large image takes milliseconds.
@lru_cache(maxsize=16)
def _type_and_sha256(url: str) -> tuple[str, str]:
    data = base64.b64decode(url.partition(",")[2], validate=True)
    return _media_type(data), hashlib.sha256(data).hexdigest()


def _data_url(data: bytes) -> str:
    return f"data:{_media_type(data)};base64,{base64.b64encode(data).decode('ascii')}"


def _media_type(data: bytes) -> str:
    if len(data) > LARGEST_IMAGE:
        raise ArgumentError(f"the image has more than {LARGEST_IMAGE:,} bytes; make it smaller")
    kind = _KINDS.match(data)
    if kind is None:
        raise ArgumentError("not a PNG, JPEG, GIF or WebP image; convert it to one of these formats")
    return f"image/{kind.lastgroup}"
