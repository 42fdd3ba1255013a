"""Every loader on spoilt contents: a value or a typed error, soon and in little memory."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.fuzz.loaders import Loader, loaders
from tests.fuzz.mutations import contents

LOADERS = loaders()
_LONGEST = 60.0
_MOST_GROWTH = 300 * 1024
_FOUND = Path(__file__).parent / "found"


@pytest.mark.parametrize("name", LOADERS)
def test_the_seeds_are_valid(name: str, tmp_path: Path) -> None:
    """Fuzzing begins from contents that the loader reads."""
    assert all(LOADERS[name](seed, tmp_path) for seed in LOADERS[name].seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_spoilt_contents_end_in_a_value_or_a_typed_error(name: str) -> None:
    """No content brings another error, takes seconds, or fills the memory."""
    loader = LOADERS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with TemporaryDirectory() as folder:

        @settings(max_examples=50, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
        @given(st.one_of([contents(name, seed) for seed in loader.seeds]))
        def holds(content: bytes) -> None:
            _ends_soon(loader, content, Path(folder))

        holds()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # macOS counts bytes.
    assert grown < _MOST_GROWTH * (1024 if sys.platform == "darwin" else 1)


def _ends_soon(loader: Loader, content: bytes, folder: Path) -> None:
    began = time.process_time()
    loader(content, folder)
    assert time.process_time() - began < _LONGEST


@pytest.mark.parametrize(
    "path", sorted(_FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_what_fuzzing_found_stays_mended(path: Path, tmp_path: Path) -> None:
    """Contents that once brought an error of another kind are read, or refused with a typed one."""
    loader = LOADERS[path.parent.name.replace("--", ":")]
    _ends_soon(loader, path.read_bytes(), tmp_path)
