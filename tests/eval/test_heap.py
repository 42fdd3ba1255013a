"""What a run does with the garbage collector."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from autorubric.errors import ItemFailedError
from autorubric.judges import JudgeRequest
from tests.eval.runs import CountingJudge, run


def test_the_heap_is_set_aside_during_a_run_alone(tmp_path: Path) -> None:
    """However it ends; and what the program set aside itself stays where it is."""
    seen: list[int] = []

    def judge(request: JudgeRequest) -> str:
        seen.append(gc.get_freeze_count())
        return "MET"

    assert gc.get_freeze_count() == 0
    run(tmp_path / "a", judge)
    assert seen and min(seen) > 0
    assert gc.get_freeze_count() == 0
    with pytest.raises(ItemFailedError):
        run(tmp_path / "b", CountingJudge(down={"i0", "i1", "i2", "i3"}), fail_fast=True)
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        run(tmp_path / "c", judge)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
