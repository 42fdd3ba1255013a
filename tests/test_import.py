"""What importing costs, and that the public names are all there."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import autorubric

PUBLIC_PACKAGES = (
    *("apps.drafts", "apps.redteam", "apps.strategy", "apps.tool", "criteria", "datasets", "grading"),
    *("integrations", "judges", "llm", "metrics", "reports", "rubric", "runs", "scoring"),
)
HEAVY = ("litellm", "numpy", "scipy", "sklearn", "pandas", "aiohttp", "pydantic")


def _in_a_process(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    ).stdout


def test_importing_loads_nothing_heavy_and_opens_no_socket() -> None:
    """A bare import loads none of the heavy packages and makes no socket."""
    program = """
import json, socket, sys
opened = []
class Watched(socket.socket):
    def __init__(self, *args, **kwargs):
        opened.append(args)
        super().__init__(*args, **kwargs)
socket.socket = Watched
import autorubric
print(json.dumps({"loaded": sorted(sys.modules), "opened": len(opened)}))
"""
    seen = json.loads(_in_a_process(program))
    assert not [name for name in HEAVY if name in seen["loaded"]]
    assert seen["opened"] == 0


def test_importing_is_quick() -> None:
    """A bare import takes less time than that of asyncio, of which it needs a third; others may interfere."""

    def seconds(module: str) -> float:
        program = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(_in_a_process(program))

    assert any(seconds("autorubric") < seconds("asyncio") for _ in range(20))


@pytest.mark.parametrize("package", ["", *PUBLIC_PACKAGES])
def test_every_name_of_a_package_is_there(package: str) -> None:
    """Each name in the stub of a package can be imported; another name is an error."""
    module = import_module(f"autorubric.{package}".rstrip("."))
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Rubrick'"):
        module.Rubrick  # noqa: B018


def test_few_names_are_at_the_top() -> None:
    """What grading and evaluation need, and what the first tutorials import; the rest is in packages."""
    assert len(autorubric.__all__) <= 95


def test_opening_a_run_loads_nothing_that_asks() -> None:
    """What a stored run is opened with loads nothing that asks, counts votes or prints."""
    program = "import autorubric, json, sys; autorubric.EvalResult; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(_in_a_process(program))
    unwanted = {
        *("yaml", "tqdm", "tomli_w", "autorubric.judges", "autorubric.llm"),
        *(f"autorubric.support.{name}" for name in ("blocks", "concurrency")),
        *(f"autorubric.runs.{name}" for name in ("runner", "store", "executor", "merge", "estimation")),
        *(f"autorubric.criteria.{name}" for name in ("ratings", "comparative", "checklist", "levels")),
    }
    assert not unwanted & set(loaded)


def test_going_on_with_a_run_loads_only_the_kinds_that_it_needs() -> None:
    """What a run is made with loads no kinds of criterion that it does not use, and no templates."""
    program = (
        "import autorubric, json, sys; autorubric.CriterionGrader, autorubric.evaluate_sync; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = json.loads(_in_a_process(program))
    unwanted = {
        *(f"autorubric.criteria.{name}" for name in ("ratings", "checklist", "narrative", "levels")),
        *(f"autorubric.judges.{name}" for name in ("critic", "evaluators", "critic_prompt")),
        *("autorubric.support.blocks", "autorubric.runs.merge", "autorubric.runs.estimation"),
    }
    assert not unwanted & set(loaded)


def test_going_on_with_a_finished_run_loads_nothing_that_grades(tmp_path: Path) -> None:
    """If nothing is left to do, the modules that plan and collect votes are not loaded."""
    program = f"""
import json, sys
from autorubric import Criterion, CriterionGrader, RubricDataset, evaluate_sync
dataset = RubricDataset(prompt="Why?", rubric=[Criterion(name="a", requirement="is short")])
dataset.add_item(submission="So.")
def judge(request):
    return "MET"
options = dict(experiments_dir={str(tmp_path)!r}, experiment_name="run", show_progress=False)
assert evaluate_sync(dataset, CriterionGrader(judges=[judge]), **options).total_items == 1
print(json.dumps(sorted(sys.modules)))
"""
    graded, again = (set(json.loads(_in_a_process(program))) for _ in range(2))
    unwanted = {"autorubric.grading.collect", "autorubric.grading.plan", "autorubric.judges.vote"}
    assert unwanted <= graded
    assert not (unwanted | {"autorubric.llm.budget"}) & again


def test_a_kind_that_is_not_loaded_keeps_its_tag() -> None:
    """A tag of the library's own is taken and found before its module was loaded."""
    program = """
import sys
from autorubric import ArgumentError, BaseCriterion, Rubric
from autorubric.criteria import register_kind
class Mine(BaseCriterion):
    pass
try:
    register_kind("likert")(Mine)
except ArgumentError as error:
    print(error)
print("autorubric.criteria.narrative" in sys.modules)
rubric = Rubric.from_dict([{"name": "a", "requirement": "Says why", "type": "narrative"}])
print(type(rubric[0]).__name__)
"""
    told, loaded, kind = _in_a_process(program).splitlines()
    assert told == "the tag 'likert' is already used by LikertCriterion; use another tag"
    assert (loaded, kind) == ("False", "NarrativeCriterion")


@pytest.mark.parametrize("module", PUBLIC_PACKAGES)
def test_public_modules_import_by_themselves(module: str) -> None:
    """Each public module can be the first that a process imports."""
    assert _in_a_process(f"import autorubric.{module}; print('ok')") == "ok\n"


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers find the marker beside the package."""
    assert (Path(autorubric.__file__).parent / "py.typed").exists()
