"""Coverage-guided fuzzing of every loader, by hand.

    pip install atheris
    python -m tests.fuzz.atheris_loaders FOLDER -max_total_time=600 -rss_limit_mb=2048 -timeout=10

FOLDER gets the corpus, which begins with the valid contents, and `found/<loader>/<error>-<place>` for each
kind of error that no loader may raise; fuzzing goes on after one. Put these under `tests/fuzz/found/`; the
suite reads them from there on. What takes too long or too much memory ends the run as a `timeout-…` or
`oom-…`, whose first byte is the loader (`--list` shows the numbers).
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["autorubric"]):
    from tests.fuzz.loaders import Loader, loaders

_LOADERS = list(loaders().values())
_SHARED = Path("/dev/shm")
_FOLDER = Path(tempfile.mkdtemp(prefix="autorubric-fuzz-", dir=_SHARED if _SHARED.is_dir() else None))
_FOUND = Path("found")


def one(data: bytes) -> None:
    """Reads one input."""
    if not data:
        return
    loader = _LOADERS[data[0] % len(_LOADERS)]
    try:
        loader(data[1:], _FOLDER)
    except Exception as error:
        _keep(loader, data[1:], error)


def _keep(loader: Loader, content: bytes, error: Exception) -> None:
    """Writes the first content that brings an error at a place in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if "autorubric" in frame.filename or frame is frames[0]][-1]
    name = f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
    path = _FOUND / loader.name.replace(":", "--") / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{loader.name}: {type(error).__name__}: {str(error)[:200]!r} at {last.filename}:{last.lineno}")


def main() -> None:
    """Writes the first corpus and fuzzes until libFuzzer's options end it."""
    if sys.argv[1:] == ["--list"]:
        for number, loader in enumerate(_LOADERS):
            print(number, loader.name)
        return
    folder = Path(sys.argv[1]).resolve()
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, loader in enumerate(_LOADERS):
        for place, seed in enumerate(loader.seeds):
            (corpus / f"seed-{number}-{place}").write_bytes(bytes([number]) + seed)
    os.chdir(folder)
    atheris.Setup([sys.argv[0], str(corpus), *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
