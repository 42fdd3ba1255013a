"""What `.ci/run` makes of what a machine lacks."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.ci import skip_but_in_ci
from tests.pages import ROOT


@pytest.mark.parametrize(("setting", "outcome"), [("1", "failed"), ("", "skipped")])
def test_a_skip_is_a_fault_in_ci(monkeypatch: pytest.MonkeyPatch, setting: str, outcome: str) -> None:
    """Under `AUTORUBRIC_CI=1` a test that lacks something fails, and elsewhere it is left out."""
    monkeypatch.setenv("AUTORUBRIC_CI", setting)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match="no such tool") as raised:
        skip_but_in_ci("no such tool")
    assert raised.type is {"failed": pytest.fail.Exception, "skipped": pytest.skip.Exception}[outcome]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("setting", "found", "code", "told"),
    [
        ({}, False, 1, "AUTORUBRIC_WITHOUT_BROWSER=1"),
        ({"AUTORUBRIC_WITHOUT_BROWSER": "1"}, False, 0, "none is wanted"),
        ({}, True, 0, "required 1"),
    ],
)
def test_ci_wants_a_browser(
    tmp_path: Path, setting: dict[str, str], found: bool, code: int, told: str
) -> None:
    """Where no Chromium is to be had, CI fails unless it is told to do without."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    step = script[
        script.index("if command -v chromium > /dev/null; then\n") : script.index('step "README, second')
    ]
    if found:
        (tmp_path / "chromium").write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "chromium").chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-euo", "pipefail", "-c", f'top=.\n{step}\necho "required ${{AUTORUBRIC_REQUIRE_BROWSER:-}}"'],
        env={"PATH": str(tmp_path), **setting},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code and told in done.stdout + done.stderr


@pytest.mark.parametrize(("most", "code"), [(0.0, 1), (600.0, 0)])
def test_notebooks_have_their_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], most: float, code: int
) -> None:
    """The seconds of each notebook are told, and one that takes too long fails the run."""
    pytest.importorskip("ipykernel", reason="notebooks need the package ipykernel")
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [{**cell, "source": "1 + 1"}]}
    (tmp_path / "one.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert runpy.run_path(str(ROOT / ".ci" / "run_notebooks.py"))["main"](tmp_path, most) == code
    told = capsys.readouterr().out
    assert re.search(r"^one\.ipynb: [\d.]+ s, [\d.]+ s of the processor$", told, re.MULTILINE)
    assert ("one.ipynb takes more than 0 s" in told) == bool(code)


def test_notebooks_print_what_is_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another output than the stored one fails the run, and both are shown; lines with seconds may differ."""
    pytest.importorskip("ipykernel", reason="notebooks need the package ipykernel")
    stream = {"output_type": "stream", "name": "stdout"}
    for stored, code in (("2\n0.1 seconds\n", 0), ("3\n0.1 seconds\n", 1)):
        cell: dict[str, Any] = {
            "cell_type": "code",
            "metadata": {},
            "execution_count": None,
            "outputs": [{**stream, "text": stored}],
            "source": "print(1 + 1)\nprint('0.2 seconds')",
        }
        notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}
        (tmp_path / "one.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        assert runpy.run_path(str(ROOT / ".ci" / "run_notebooks.py"))["main"](tmp_path) == code
        assert ("has stored\n3" in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize(("bound", "code"), [("0.12", 1), ("0.22", 0), ("0.22.0", 0)])
def test_untrue_bounds_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bound: str, code: int
) -> None:
    """A bound below the lowest version that can be installed promises what nobody has tested."""
    project, lowest = tmp_path / "pyproject.toml", tmp_path / "lowest.txt"
    text = f'[project]\ndependencies = ["Typer>={bound},<1"]\noptional-dependencies.a = ["other>=1", "b"]\n'
    project.write_text(text, encoding="utf-8")
    lowest.write_text("typer==0.22.0\n    # via autorubric\nb==3\n", encoding="utf-8")
    assert runpy.run_path(str(ROOT / ".ci" / "lowest.py"))["main"](project, lowest) == code
    assert ("the lowest version that can be installed is 0.22.0" in capsys.readouterr().out) == bool(code)


def test_bounds_are_those_that_are_tested() -> None:
    """With an older version of these, commands fail, or end with 0 without having done anything."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(declared["dependencies"]), re.MULTILINE))
    for name, least in {"typer": (0, 22), "pydantic": (2, 12), "msgspec": (0, 22), "scipy": (1, 15)}.items():
        assert tuple(map(int, bounds[name].split("."))) >= least


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_have_a_plot(path: Path) -> None:
    """A notebook shows something, as it was last run."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [out.get("data", {}) for cell in cells for out in cell.get("outputs", ())]
    assert any("image/png" in data for data in shown)
