"""Candidates are texts: whatever they say, nothing of it is run."""

from __future__ import annotations

from pathlib import Path

from tests.watched import events

PROGRAM = r"""
from autorubric import Criterion, CriterionGrader, QualitativeCriteria, QuantitativeCriteria
from autorubric import Rubric, Strategy
from autorubric.apps.strategy import RubricThreshold

CANDIDATES = [
    "```python\nopen('ran', 'w').write('x')\n```",
    "__import__('os').system('touch ran')",
    "raise SystemExit(3)",
]
passes = QualitativeCriteria("It is good.", lambda request: "yes", 2, extract="code")
rubric = Rubric([Criterion(name="good", requirement="It is good.")])
threshold = RubricThreshold(rubric, CriterionGrader(judges=[lambda request: "MET"]), 0.5)
cost = QuantitativeCriteria("How long?", lambda request: len(request.submission.text) % 10, extract="code")

def generate(prompt):
    yield from CANDIDATES

async def verify(candidate, context):
    return await passes.verify(candidate, context) and await threshold.verify(candidate, context)

def call():
    return Strategy(verify, cost).run_sync(generate, "Write code.", reevaluate=2)

result = watched(call)
found = [result.winner in CANDIDATES, len(result.candidates), [str(one) for one in result.errors]]
"""


def test_code_candidates_are_never_run(tmp_path: Path) -> None:
    """Made, verified, costed and judged again: nothing is compiled, written or started."""
    given = events(PROGRAM, tmp_path)
    assert given["found"] == [True, 3, []]
    assert [one for one in given["seen"] if one[0] != "code"] == []
    for _, _, source in (one for one in given["seen"] if one[0] == "code"):
        assert not any(part in source for part in ("'ran'", "touch ran", "SystemExit(3)"))
    assert list(tmp_path.iterdir()) == []


def test_the_watch_sees_what_runs(tmp_path: Path) -> None:
    """Code that is executed, files that are written and processes that are started are seen."""
    program = """
import subprocess

def call():
    exec("open('ran', 'w').close()")
    subprocess.run([sys.executable, "-c", ""])

watched(call)
found = None
"""
    kinds = {one[0] for one in events(program, tmp_path)["seen"]}
    assert kinds == {"code", "file", "process"}
