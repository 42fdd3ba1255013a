"""The scripts in `examples/` run offline and print a result that makes sense."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from autorubric.cli.app import app
from tests.warm import run_program

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("0*.py"))
PRINTED = {
    "01_grade_one_text.py": "score 1.00",
    "02_csv_to_scores.py": "graded 12 replies, mean score 0.53",
    "03_measure_the_judge.py": "polite     n=12  accuracy 1.00  kappa 1.00",
    "04_correct_a_rate.py": "corrected: 0.50, 95% interval 0.32 to 0.68",
    "05_panel.py": "the panel does not beat its best member, words",
    "06_gate.py": "mean score 0.53, threshold 0.4; 0% of the verdicts missing",
    "07_from_promptfoo.py": "Where is my order?  score 1.00 on ['next_step', 'polite']",
    "08_best_of_three.py": "winner: Thank you! Please send the item back",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs(name: str, folder: Path, tmp_path: Path) -> None:
    """In a folder of its own, twice: the second time it resumes what is there."""
    program = f"import runpy, sys; sys.argv = [{name!r}]; runpy.run_path({name!r}, run_name='__main__')"
    for _ in range(2):
        done = run_program(program, cwd=folder, env={}, logs=tmp_path, timeout=120)
        assert done.returncode == 0, done.stderr
        assert PRINTED[name] in done.stdout


def test_examples_are_short_and_listed() -> None:
    """Eight scripts of at most 60 lines, each with a docstring, each in the README."""
    listed = re.findall(r"`(0\w+\.py)` \|", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert listed == SCRIPTS == sorted(PRINTED)
    for name in SCRIPTS:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60
        assert text.startswith('"""')


def test_the_command_of_the_workflow_is_valid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the offline judge in place of the model, it grades the examples' data and exits by the gate."""
    monkeypatch.chdir(folder)
    workflow = yaml.safe_load((folder / "gate-workflow.yml").read_text(encoding="utf-8"))
    (command,) = (
        step["run"] for step in workflow["jobs"]["gate"]["steps"] if "autorubric eval" in step.get("run", "")
    )
    words = command.replace("gpt-6-luna", "lexical").replace("--max-cost 1", "").split()
    assert words[0] == "autorubric"
    assert CliRunner().invoke(app, words[1:]).exit_code in (0, 1)
