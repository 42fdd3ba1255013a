"""The library says what it has to say through `logging`, and is silent until somebody listens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "autorubric"

_UNSCORED = """
from autorubric import CriterionGrader, Rubric
from autorubric.rewards import as_reward

def broken(request):
    raise RuntimeError("the judge is gone")

reward = as_reward(Rubric([{"requirement": "The reply is short."}]), CriterionGrader(judges=[broken]))
assert reward(["q"], ["a"]) == [None]
"""


def _ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=120, check=True
    )


def test_silent_by_default() -> None:
    """Without a handler of the application's, a warning goes nowhere."""
    ended = _ended(_UNSCORED)
    assert (ended.stdout, ended.stderr) == ("", "")


def test_heard_where_an_application_listens() -> None:
    """With logging configured the warning arrives, under the library's name."""
    ended = _ended("import logging; logging.basicConfig(level='INFO')\n" + _UNSCORED)
    assert "WARNING:autorubric.integrations.rewards:a completion received no reward" in ended.stderr


def test_importing_changes_nothing_of_logging() -> None:
    """Every public name loads without a line logged, a level set, or a handler at the root."""
    ended = _ended(
        "import logging\n"
        "heard = []\n"
        "class Ear(logging.Handler):\n"
        "    def emit(self, record):\n"
        "        heard.append(record.name)\n"
        "root = logging.getLogger(); root.addHandler(Ear()); root.setLevel(0)\n"
        "import autorubric\n"
        "for name in autorubric.__all__:\n"
        "    getattr(autorubric, name)\n"
        "own = logging.getLogger('autorubric')\n"
        "print([name for name in heard if name.startswith('autorubric')], len(root.handlers), own.level,\n"
        "      [type(handler).__name__ for handler in own.handlers], own.propagate)"
    )
    assert ended.stdout == "[] 1 0 ['NullHandler'] True\n"


def test_loggers_come_from_one_place() -> None:
    """A logger of the library's made elsewhere would not be silent where nothing else was loaded."""
    sources = [path for path in SOURCES.rglob("*.py") if path.name != "_logs.py"]
    elsewhere = [path.name for path in sources if "getLogger(__name__)" in path.read_text(encoding="utf-8")]
    assert sources and not elsewhere
