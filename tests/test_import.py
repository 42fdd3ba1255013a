"""What importing costs, and that the public names are all there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
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


def test_the_names_that_type_checkers_see_are_those_that_load() -> None:
    """The type-checking imports and the lazy table list the same names from the same modules."""
    tree = ast.parse(Path(autorubric.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.asname: (node.module or "").removeprefix("autorubric.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("autorubric.")
        for alias in node.names
    }
    assert seen == autorubric._HOMES


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Asking the package for a name that it does not have fails as for any module."""
    with pytest.raises(AttributeError, match="no attribute 'Rubrick'"):
        autorubric.Rubrick  # noqa: B018


def test_opening_a_run_loads_nothing_that_asks() -> None:
    """What a stored run is opened with loads no judges, no models and no parser of YAML."""
    program = "import autorubric, json, sys; autorubric.EvalResult; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(_in_a_process(program))
    asking = ("graders", "critic", "judges", "prompts", "llm")
    late = ("_merge", "_shard", "_fill", "_estimate", "_planned")
    unwanted = {"yaml", "tqdm", *(f"autorubric.{name}" for name in asking)}
    assert not {*unwanted, *(f"autorubric.eval.{name}" for name in late)} & set(loaded)


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
