"""A command line to call, and small files for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from autorubric.cli.app import app

RUBRIC = """\
criteria:
  - name: capital
    requirement: The text names Paris as the capital of France.
    weight: 4
  - name: rude
    requirement: The text insults the reader.
    weight: -2
  - name: form
    requirement: "The form of the text: short is a word, long is a sentence."
    weight: 2
    scale_type: ordinal
    options:
      - {label: short, value: 0.0}
      - {label: long, value: 1.0}
"""
TEXTS = {
    "a": "Paris is the capital of France.",
    "b": "The capital of France is Lyon, you fool.",
    "c": "Paris.",
    "d": "France has a capital, and it is Paris.",
}
LABELS = {
    "a": {"capital": "MET", "rude": "UNMET", "form": "long"},
    "b": {"capital": "UNMET", "rude": "MET", "form": "long"},
    "c": {"capital": "UNMET", "rude": "UNMET", "form": "short"},
    "d": {"capital": "MET", "rude": "UNMET", "form": "long"},
}


@dataclass(frozen=True)
class Ran:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on stdout."""
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


Cli = Callable[..., Ran]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls the command line, in a folder of its own and 100 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("AUTORUBRIC_MODEL", raising=False)

    def call(*arguments: str, given: str | bytes | None = None) -> Ran:
        done = CliRunner().invoke(app, list(arguments), input=given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture
def rubric(tmp_path: Path) -> str:
    """A rubric file in the folder of `cli`."""
    (tmp_path / "rubric.yaml").write_text(RUBRIC, encoding="utf-8")
    return "rubric.yaml"


@pytest.fixture
def dataset(tmp_path: Path, rubric: str) -> str:
    """A labelled dataset file in the folder of `cli`."""
    items = [{"id": name, "submission": TEXTS[name], "ground_truth": LABELS[name]} for name in TEXTS]
    content = {"name": "capitals", "rubric": rubric, "items": items}
    (tmp_path / "texts.json").write_text(json.dumps(content), encoding="utf-8")
    return "texts.json"


def write_votes(path: Path, votes: dict[tuple[str, str], dict[str, Any]], reason: str = "") -> None:
    """Writes recorded votes: labels by (rater, item) and criterion."""
    lines = ["item_id,criterion,rater,rater_type,value,reason"]
    for (rater, item), labels in votes.items():
        lines += [f'{item},{criterion},{rater},llm,{value},"{reason}"' for criterion, value in labels.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def votes(tmp_path: Path) -> str:
    """Recorded votes in the folder of `cli`: `right` gives the labels, `wrong` turns `capital` round."""
    turned = {"MET": "UNMET", "UNMET": "MET"}
    found = {("right", item): labels for item, labels in LABELS.items()}
    found |= {
        ("wrong", item): {**labels, "capital": turned[labels["capital"]]} for item, labels in LABELS.items()
    }
    write_votes(tmp_path / "votes.csv", found)
    return "votes.csv"
