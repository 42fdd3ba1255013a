"""The public names have the types that users are told, under mypy and under pyright."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import autorubric
from tests.ci import skip_but_in_ci

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "tests" / "typing" / "api.py"


def _checked(*command: str, seconds: float) -> str:
    """What a type checker says of the file, where it is not content."""
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=seconds, check=False
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def test_every_public_name_is_used() -> None:
    """The file names everything that `autorubric.__all__` has."""
    tree = ast.parse(API.read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ar"
    }
    assert used >= set(autorubric.__all__)


@pytest.mark.slow
def test_under_mypy() -> None:
    """In strict mode, as the project itself is checked."""
    assert _checked(sys.executable, "-m", "mypy", str(API), seconds=900) == ""


@pytest.mark.slow
def test_under_pyright() -> None:
    """With its standard rules; skipped, but in CI, where pyright is not there or cannot start."""
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
    if pyright is None:
        skip_but_in_ci("pyright is not installed")
    if told := _checked(pyright, "--version", seconds=300):
        skip_but_in_ci(f"pyright cannot start: {told[-300:]}")
    assert _checked(pyright, "--pythonpath", sys.executable, seconds=900) == ""
