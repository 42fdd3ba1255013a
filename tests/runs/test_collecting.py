"""What a run does with the garbage collector."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from autorubric.errors import ItemFailedError
from autorubric.judges import JudgeRequest
from tests.runs.runs import CountingJudge, run


def test_garbage_is_collected_seldom_during_a_run_alone(tmp_path: Path) -> None:
    """However it ends; and what the program has set itself stays."""
    seen: list[tuple[int, int, int]] = []

    def judge(request: JudgeRequest) -> str:
        seen.append(gc.get_threshold())
        return "MET"

    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 11, 12)
        run(tmp_path / "a", judge)
        assert set(seen) == {(50_000, 11, 12)}
        assert gc.get_threshold() == (700, 11, 12)
        with pytest.raises(ItemFailedError):
            run(tmp_path / "b", CountingJudge(down={"i0", "i1", "i2", "i3"}), fail_fast=True)
        assert gc.get_threshold() == (700, 11, 12)
        for own in (0, 50_000):
            seen.clear()
            gc.set_threshold(own, 11, 12)
            run(tmp_path / str(own), judge)
            assert set(seen) == {(own, 11, 12)}
    finally:
        gc.set_threshold(*before)
