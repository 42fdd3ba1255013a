"""Progress on stderr: there on a terminal, absent elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _program(folder: Path, **options: object) -> str:
    return textwrap.dedent(
        f"""
        from autorubric import CriterionGrader, evaluate_sync
        from tests.runs.runs import TEXTS, CountingJudge, small_dataset
        evaluate_sync(small_dataset(*TEXTS), CriterionGrader(judges=[CountingJudge(down={{"i3"}})]),
                      experiment_name="run", experiments_dir={str(folder)!r}, **{options!r})
        """
    )


def _on_a_terminal(program: str) -> str:
    """What the program writes to a terminal that is its stderr."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stderr=slave, stdout=subprocess.DEVNULL
    )
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 4096):
            seen += chunk
    except OSError:
        pass
    finally:
        os.close(master)
    assert process.wait(timeout=300) == 0
    return seen.decode("utf-8", "replace")


def test_a_terminal_shows_items_score_cost_failures_and_rate(tmp_path: Path) -> None:
    """The bar counts items and tells the mean score so far, the cost, failures and rate."""
    shown = _on_a_terminal(_program(tmp_path))
    assert "4/4" in shown
    assert "score 0.667, $0.0600, 1 failed" in shown
    assert "item/s" in shown
    assert "vote" not in shown


def test_the_detailed_style_counts_votes_as_well(tmp_path: Path) -> None:
    """Beside the items there is a count of votes."""
    shown = _on_a_terminal(_program(tmp_path, progress_style="detailed"))
    assert "votes" in shown


@pytest.mark.parametrize("wanted", [True, False])
def test_a_pipe_and_whoever_does_not_want_it_get_none(tmp_path: Path, wanted: bool) -> None:
    """Where stderr is no terminal nothing is written, and neither on a terminal if not wanted."""
    program = _program(tmp_path, show_progress=wanted)
    if not wanted:
        assert _on_a_terminal(program) == ""
        return
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=300, check=True
    )
    assert ended.stderr == b""


def test_unknown_costs_are_not_shown_and_lost_verdicts_are(tmp_path: Path) -> None:
    """Where no price is known the bar shows no cost; verdicts that were lost are counted."""
    judge = "lambda request: 'MET' if request.item_id != 'i3' else 1 / 0"
    program = _program(tmp_path).replace('CountingJudge(down={"i3"})', judge)
    shown = _on_a_terminal(program)
    assert "1 failed, 2 lost" in shown
    assert "$" not in shown
