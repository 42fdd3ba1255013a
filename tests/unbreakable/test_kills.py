"""SIGKILL at random moments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kills", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_as_if_nothing_had_been(kills: int, tmp_path: Path) -> None:
    """Wherever a run is killed, no stored vote is lost or asked for again, and it ends as if it were not."""
    figures = tmp_path / "kills.json"
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", str(kills), "--json", str(figures)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["kills"] == kills
    assert found["faults"] == []
    assert {found[name] for name in ("lost", "asked_again", "doubled", "unequal", "leftovers")} == {0}
    assert found["votes"] > 0 < found["repeated"]
