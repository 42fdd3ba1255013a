"""What importing costs, and that the public names are all there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

import pytest

import autorubric

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


@pytest.mark.parametrize("name", autorubric.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Each name of `__all__` can be imported and is the one of its home module."""
    assert getattr(autorubric, name) is not None
    assert name in dir(autorubric)


@pytest.mark.parametrize(
    "package",
    [
        *("", ".aggregation", ".criteria", ".critic", ".dataset", ".eval", ".graders", ".judges", ".llm"),
        *(".reporting", ".types"),
    ],
)
def test_the_names_that_type_checkers_see_are_those_that_load(package: str) -> None:
    """The type-checking imports of a package and its table list the same names, each from where it is."""
    module = import_module(f"autorubric{package}")
    homes = {name: home for home, names in module._HOMES.items() for name in names}
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: resolve_name(f".{home}", module.__name__) for name, home in homes.items()}
    assert set(homes) <= set(module.__all__)
    for name, home in seen.items():
        assert getattr(module, name) is getattr(import_module(str(home)), name)
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Rubrick'"):
        module.Rubrick  # noqa: B018


def test_opening_a_run_loads_nothing_that_asks() -> None:
    """What a stored run is opened with loads nothing that asks, counts votes or prints."""
    program = "import autorubric, json, sys; autorubric.EvalResult; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(_in_a_process(program))
    unwanted = {
        *("yaml", "tqdm", "tomli_w", "autorubric._blocks", "autorubric._sync"),
        *(f"autorubric.{name}" for name in ("graders", "critic", "judges", "prompts", "llm", "scoring")),
        *(f"autorubric.eval.{name}" for name in ("_runner", "_store", "_executor", "_merge", "_planned")),
        *(f"autorubric.criteria.{name}" for name in ("_likert", "_comparative", "_checklist")),
        *("autorubric.aggregation._methods", "autorubric.reporting._report", "autorubric.types._reports"),
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
        *(f"autorubric.criteria.{name}" for name in ("_likert", "_checklist", "_narrative")),
        *(f"autorubric.critic.{name}" for name in ("_critic", "_evaluators", "_template")),
        *("autorubric._blocks", "autorubric.eval._merge", "autorubric.eval._planned"),
    }
    assert not unwanted & set(loaded)


def test_going_on_with_a_finished_run_loads_nothing_that_grades(tmp_path: Path) -> None:
    """Where nothing is left to do, what plans, asks, combines and keeps budgets is not loaded."""
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
    unwanted = {
        *(f"autorubric.graders.{name}" for name in ("_casting", "_judging", "_planning", "_stages")),
        *("autorubric.critic._cast", "autorubric.aggregation._decide", "autorubric.reporting._report"),
        *("autorubric.scoring", "autorubric.types._votes"),
    }
    assert unwanted <= graded
    assert not (unwanted | {"autorubric.llm._spending"}) & again


def test_a_kind_that_is_not_loaded_keeps_its_tag() -> None:
    """A tag of the library's own is taken and found before its module was loaded."""
    program = """
import sys
from autorubric import ArgumentError, BaseCriterion, Rubric, register_kind
class Mine(BaseCriterion):
    pass
try:
    register_kind("likert")(Mine)
except ArgumentError as error:
    print(error)
print("autorubric.criteria._narrative" in sys.modules)
rubric = Rubric.from_dict([{"name": "a", "requirement": "Says why", "type": "narrative"}])
print(type(rubric[0]).__name__)
"""
    told, loaded, kind = _in_a_process(program).splitlines()
    assert told == "the tag 'likert' is already used by LikertCriterion; use another tag"
    assert (loaded, kind) == ("False", "NarrativeCriterion")


PUBLIC_MODULES = (
    "rubric",
    "types",
    "dataset",
    "eval",
    "llm",
    "prompts",
    "rate_limit",
    "graders",
    "metrics",
    "metrics.distribution",
)


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_modules_import_by_themselves(module: str) -> None:
    """Each public module can be the first that a process imports."""
    assert _in_a_process(f"import autorubric.{module}; print('ok')") == "ok\n"


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers find the marker beside the package."""
    assert (Path(autorubric.__file__).parent / "py.typed").exists()


def test_every_name_of_the_metrics_is_there_too() -> None:
    """What `autorubric.metrics` has can be imported from the package as well, and is the same object."""
    from autorubric import metrics

    assert set(metrics.__all__) <= set(dir(autorubric))
    assert set(metrics.__all__) <= set(autorubric.__all__)
    assert [name for name in metrics.__all__ if getattr(autorubric, name) is not getattr(metrics, name)] == []
