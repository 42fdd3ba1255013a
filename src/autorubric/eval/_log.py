"""A file of a run folder that lines are appended to."""

from __future__ import annotations

from os import SEEK_END
from pathlib import Path
from zlib import crc32


class AppendLog:
    """Appends lines to a file, and knows its size and, where it is wanted, its CRC-32.

    Nothing is held back in buffers of the system's: a write that fails is not tried again at the close.

    Args:
        path: The file; made where it is not there.
        summed: Whether the CRC-32 is kept.

    Attributes:
        size: Bytes of the file, those included that wait to be written.
        crc: Their CRC-32; 0 where it is not kept.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, *, summed: bool) -> None:
        self._path = path
        self._file = path.open("ab+", buffering=0)
        self._waiting: list[bytes] = []
        self._summed = summed
        self.size = self._file.seek(0, SEEK_END)
        self.crc = crc_of(path, self.size) or 0 if summed else 0
        self._file.seek(max(self.size - 1, 0))
        if self._file.read(1) not in (b"", b"\n"):
            # A torn last line is ended, not removed.
            self.append(b"\n")

    def append(self, line: bytes) -> int:
        """Appends a line, to be written by `flush`; where it will stand."""
        self._waiting.append(line)
        start = self.size
        self.size = start + len(line)
        if self._summed:
            self.crc = crc32(line, self.crc)
        return start

    def flush(self) -> None:
        """Writes the lines that wait.

        Raises:
            OSError: They cannot be written; what did not fit is dropped.
        """
        if not self._waiting:
            return
        waiting = memoryview(b"".join(self._waiting))
        try:
            while waiting:
                waiting = waiting[self._file.write(waiting) :]
        except OSError as error:
            self._waiting.clear()
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        # Only now: an interrupt in between must not lose them.
        self._waiting.clear()

    def close(self) -> None:
        """Closes the file.

        Raises:
            OSError: The system says only now that what was written does not fit.
        """
        self._file.close()


def crc_of(path: Path, size: int) -> int | None:
    """CRC-32 of the first bytes of a file; None where it has not so many, or there is none."""
    crc, left = 0, size
    if not left:
        return crc
    try:
        with path.open("rb") as file:
            while left and (chunk := file.read(min(left, 1 << 20))):
                crc, left = crc32(chunk, crc), left - len(chunk)
    except FileNotFoundError:
        return None
    return None if left else crc
