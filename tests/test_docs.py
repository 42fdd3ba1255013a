"""Every Python and shell example in the README and the documentation runs, offline."""

from __future__ import annotations

import os
import pkgutil
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

import autorubric
from autorubric import Rubric, metrics
from tests.cli.test_help import COMMANDS
from tests.entry_points import write_entry_points
from tests.page_files import MADE_BEFORE
from tests.pages import ROOT, SHELLS, WIDTH, examples, outputs, program, shows, with_outputs
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import scored
from tests.warm import run_program

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_WITH_EXAMPLES = [page for page in PAGES if program(page)]
_KINDS = [page for page in PAGES if page.parent.name == "kinds" and page.name != "index.md"]
_SLOW = {
    f"docs/how-to/{name}.md"
    for name in ("running-on-a-cluster", "figures-for-a-paper", "report", "judge-report", "what-a-run-costs")
}
"""Pages that start a cluster, draw figures, write many reports or load litellm."""
_NOT_RUN = 20
"""Shell examples that say why they are not run: most install, two simulate, six need a server or key."""
_CRITIQUES = ({"correctness": 9, "security": 8}, {"style": 7, "security": 8})
"""What the server says to the critiques of `critique-tool.md`, one after the other."""
_COMMAND = re.compile(r"^(\$ )?(autorubric|git|pip|pytest|python|bash|#!/bin/bash)\b", re.MULTILINE)
_ASSERT = re.compile(r"^ *assert ", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_ENTRY = re.compile(r"^::: (autorubric[\w.]*)$", re.MULTILINE)
_METRIC = re.compile(r"^::: autorubric\.metrics\.(\w+)$", re.MULTILINE)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (_name(page) in _SLOW)) for page in _WITH_EXAMPLES],
    ids=_name,
)
def test_examples_run(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, openai_server: OpenAIServer
) -> None:
    """The examples of a page run one after the other, and what is below them is what they print."""
    openai_server.script(*({"do": "answer", "payload": scored(**one)} for one in _CRITIQUES))
    declared = write_entry_points(tmp_path_factory.mktemp("declared"))
    path = os.pathsep.join(filter(None, [str(declared), os.environ.get("PYTHONPATH"), str(ROOT)]))
    ended = run_program(
        program(page, MADE_BEFORE.get(_name(page), "")),
        cwd=tmp_path,
        env={"PYTHONPATH": path, "COLUMNS": "86", "AUTORUBRIC_DOCS_SERVER": openai_server.api_base},
        logs=tmp_path_factory.mktemp("logs"),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    printed = outputs(ended.stdout)
    if os.environ.get("AUTORUBRIC_UPDATE_GOLDEN"):
        page.write_text(with_outputs(page, printed), encoding="utf-8")
        return
    for index, one in enumerate(examples(page)):
        is_shown = index in printed and (one.output is not None or one.language == "python")
        if is_shown and (one.output or printed[index]):
            assert shows(one.output or "", printed[index]), f"{one.text}\nprints:\n{printed[index]}"


@pytest.mark.parametrize("page", _KINDS, ids=_name)
def test_a_kind_is_the_same_in_both_tabs(page: Path, tmp_path: Path) -> None:
    """The rubric of the Python tab is that of the YAML tab."""
    of_python, of_yaml = [one for one in examples(page) if one.language != "math"][:2]
    script, file = tmp_path / "rubric.py", tmp_path / "rubric.yaml"
    script.write_text(of_python.text, encoding="utf-8")
    file.write_text(of_yaml.text, encoding="utf-8")
    assert of_yaml.text.startswith(f"# {page.stem}.yaml\n")
    assert Rubric.from_file(file).to_dict() == runpy.run_path(str(script))["rubric"].to_dict()


def test_what_is_not_run_says_why() -> None:
    """Few shell examples are not run, each with a reason above it; Python is always run."""
    left_out = [(_name(page), one) for page in PAGES for one in examples(page) if one.why_not_run]
    assert len(left_out) == _NOT_RUN
    assert {one.language for _, one in left_out} <= set(SHELLS)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_stand_in_fences_of_a_shell(page: Path) -> None:
    """No command hides in a block that is taken for plain text, and so for none to run."""
    for one in examples(page):
        assert one.language not in ("", "sh", "shell") and (
            one.language != "text" or not _COMMAND.search(one.text)
        ), f"commands in ```{one.language}: {one.text}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_code_can_be_copied_as_it_is(page: Path) -> None:
    """Code fits a narrow page, and checks of our own are not in it: only tests assert."""
    for one in examples(page):
        widest = max(map(len, one.text.splitlines()), default=0)
        # Lines of data and formulas cannot be broken.
        assert one.language in ("text", "math", "json") or widest <= WIDTH, one.text
        is_test = "def test_" in one.text
        assert one.language != "python" or is_test or not _ASSERT.search(one.text), one.text


def test_what_is_made_before_is_for_a_page() -> None:
    """No page that is gone has its files made."""
    assert set(MADE_BEFORE) <= {_name(page) for page in _WITH_EXAMPLES}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links of a page name files that are there."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("overview", ["llms.txt", "docs/index.md"])
def test_overviews_name_every_task(overview: str) -> None:
    """Who begins at an overview, a person or an agent, finds every page of how to do something."""
    path = ROOT / overview
    named = {(path.parent / link).resolve() for link in _LINK.findall(path.read_text(encoding="utf-8"))}
    assert set((ROOT / "docs" / "how-to").glob("*.md")) <= named
    assert all(page.exists() for page in named)


@pytest.mark.parametrize("page", ["llms.txt", "docs/agents/SKILL.md"])
def test_agents_are_told_of_commands_that_there_are(page: str) -> None:
    """Every command that coding agents are told of is one."""
    told = set(re.findall(r"`autorubric ([a-z][a-z-]*)", (ROOT / page).read_text(encoding="utf-8")))
    assert told <= {command.split()[0] for command in COMMANDS if command}


def _api_pages() -> str:
    pages = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_reference_lists_the_metrics() -> None:
    """The API pages list every public name of `autorubric.metrics` once, and no other name of it."""
    assert sorted(_METRIC.findall(_api_pages())) == sorted([*metrics.__all__, "sample_size"])


def test_reference_lists_every_public_name() -> None:
    """The API pages list every name that `autorubric` exports once, and only names that exist."""
    entries = _ENTRY.findall(_api_pages())
    assert len(entries) == len(set(entries))
    listed = {entry.rpartition(".")[2] for entry in entries} | set(vars(autorubric.errors))
    assert set(autorubric.__all__) <= listed
    for entry in entries:
        assert pkgutil.resolve_name(entry) is not None


def test_the_picture_of_a_terminal() -> None:
    """It shows the command that stands above it in the README, as the script draws it, and loads nothing."""
    made = runpy.run_path(str(ROOT / ".ci" / "pictures.py"))
    command = made["COMMAND"]
    drawn = (made["ASSETS"] / "terminal.svg").read_text(encoding="utf-8")
    again = made["draw_terminal"](command, "\x1b[1mItems\x1b[0m\nlate-18  0.000\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"```console\n$ {command}\n```" in readme and "docs/assets/terminal.svg" in readme
    for svg in (drawn, again):
        told = "".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ")
        assert command in told and "Items" in told and "late-18" in told
        assert not re.search(r"@font-face|url\((?!#)|href|<script", svg)
