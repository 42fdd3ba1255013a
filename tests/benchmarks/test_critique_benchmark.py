"""The benchmark of critique passes runs, on inputs too small to time."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.critique.__main__ import measure


@pytest.mark.slow
def test_a_pass_is_measured_fresh_and_resumed(tmp_path: Path) -> None:
    """Each pass has its time and its memory, in a process of its own; memory hardly grows with the drafts."""
    fresh = measure(50, tmp_path, resume=False)
    again = measure(50, tmp_path, resume=True)
    assert fresh["seconds"] > 0 and fresh["file_mb"] == again["file_mb"] > 0
    (tmp_path / "more").mkdir()
    more = measure(1000, tmp_path / "more", resume=False)
    assert more["traced_mb"] < fresh["traced_mb"] + 2
