"""What is named stays inside the workspace."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from autorubric.errors import ArgumentError
from autorubric.tool import Workspace
from tests.tool.replies import ISSUE, REPLY, REQUEST, Critical, ask

OUTSIDE = "outside workspace_root"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A folder with a file, and links that lead out of it."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("", encoding="utf-8")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path)
    (root / "inner").symlink_to(root / "src")
    return Workspace.at(str(root))


@pytest.mark.parametrize(
    "location",
    [
        "line 45-52",
        "src/a.py:3",
        "src/a.py#L3-L9",
        "src/a.py (line 3)",
        "inner/a.py:1",
        "src/../src/a.py",
        "not/there.py:9",
        "function foo/bar",
        "see https://example.com/etc/passwd",
        "a: b, c = d",
        "…",
    ],
)
def test_what_is_inside_stays(workspace: Workspace, location: str) -> None:
    """Lines, files of the workspace, there or not, and addresses of the web are left as they are."""
    assert workspace.confined(location) == location


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of POSIX")
@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "/etc/passwd:3",
        "line 3 of /etc/passwd",
        "at:/etc/passwd",
        "path=/etc/passwd",
        "(/etc/passwd)",
        "../secret.txt",
        "src/../../secret.txt:1",
        "..\\secret.txt",
        "~/.ssh/id_rsa",
        "~root/x",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "FILE://localhost/etc/passwd",
        "file:///%65tc/passwd",
        "vscode://file/etc/passwd",
        "C:\\Windows\\win.ini",
        "\\\\server\\share",
        "link.txt",
        "link.txt:3",
        "up/secret.txt",
        "inner/../../secret.txt",
        "src/a.py and ../secret.txt",
        "a\0b",
    ],
)
def test_what_leads_out_is_cut(workspace: Workspace, location: str) -> None:
    """A location with any path that leads out, also by a link, is cut."""
    assert workspace.confined(location) == OUTSIDE


def test_nothing_stays_nothing(workspace: Workspace) -> None:
    """An issue without a location has none."""
    assert workspace.confined(None) is None


def test_issues_of_an_answer_are_confined(workspace: Workspace) -> None:
    """Issues that point outside are kept, without where they point; with no workspace all stay."""
    issues = [{**ISSUE, "location": place} for place in ("src/a.py:1", "/etc/passwd:1", "")]
    request = {**REQUEST, "workspace_root": str(workspace.root)}
    answer = ask(request, {**REPLY, "issues": issues})
    assert [one.location for one in answer.issues] == ["src/a.py:1", OUTSIDE, None]
    free = ask(REQUEST, {**REPLY, "issues": issues})
    assert [one.location for one in free.issues] == ["src/a.py:1", "/etc/passwd:1", None]


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of POSIX")
def test_the_critic_hears_of_paths_that_lead_out(workspace: Workspace) -> None:
    """Paths that the content names outside the workspace are told to the critic, each once."""
    critic = Critical()
    content = "open('/etc/passwd'); open('/etc/passwd'); open('src/a.py'); open('../secret.txt')"
    ask({**REQUEST, "content": content, "workspace_root": str(workspace.root)}, critic)
    assert 'paths outside the workspace: "/etc/passwd", "../secret.txt".' in critic.prompts[0]
    ask({**REQUEST, "content": content}, critic)
    assert "outside the workspace:" not in critic.prompts[1]


def test_a_rubric_file_is_confined_too(workspace: Workspace) -> None:
    """With a workspace, a rubric file outside of it is not read."""
    outside = workspace.root.parent / "rubric.yaml"
    outside.write_text("- requirement: It is short.\n", encoding="utf-8")
    for named in (str(outside), "../rubric.yaml", "up/rubric.yaml"):
        answer = ask({**REQUEST, "criteria": [named], "workspace_root": str(workspace.root)}, Critical())
        assert "lies outside the workspace" in str(answer.error)


def test_no_folder_is_no_workspace(tmp_path: Path) -> None:
    """A file, what is not there and what is no path are refused."""
    (tmp_path / "a").write_text("", encoding="utf-8")
    for given in (str(tmp_path / "a"), str(tmp_path / "b"), "\0"):
        with pytest.raises(ArgumentError, match="is no folder"):
            Workspace.at(given)


@pytest.mark.parametrize("piece", ["a@", ":1", "/a", "../", "a/", "-", "~/"])
def test_the_search_for_paths_is_linear(workspace: Workspace, piece: str) -> None:
    """No content and no location takes long to look through."""
    started = time.perf_counter()
    workspace.named_outside((piece * 512_000)[:512_000])
    workspace.confined((piece * 500)[:499] + "x")
    assert time.perf_counter() - started < 3
