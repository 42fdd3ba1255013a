"""What is named stays inside the workspace."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from autorubric.apps.tool import CritiqueRequest
from autorubric.apps.tool.workspace import Workspace
from autorubric.errors import ArgumentError
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
    assert workspace.confine(location) == location


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
    assert workspace.confine(location) == OUTSIDE


def test_nothing_stays_nothing(workspace: Workspace) -> None:
    """An issue without a location has none."""
    assert workspace.confine(None) is None


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
        assert "is outside the workspace" in str(answer.error)


def test_no_folder_is_no_workspace(tmp_path: Path) -> None:
    """A file, what is not there and what is not a path are refused."""
    (tmp_path / "a").write_text("", encoding="utf-8")
    for given in (str(tmp_path / "a"), str(tmp_path / "b"), "\0"):
        with pytest.raises(ArgumentError, match="is not an existing folder"):
            Workspace.at(given)


LEADING_OUT = [
    "/etc/passwd",
    "../secret.txt",
    "src/../../secret.txt",
    "~/.ssh/id_rsa",
    "$HOME/.ssh/id_rsa",
    "${HOME}/.ssh/id_rsa",
    "$env:TEMP\\x.txt",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "%2fetc%2fpasswd",
    "%252fetc%252fpasswd",
    "..%2f..%2fsecret",
    "file:///%65tc/passwd",
    "\\/etc\\/passwd",
    "\\u002fetc\\u002fpasswd",
    "\\n/etc/passwd",
    "up/secret.txt",
    "&#46;&#46;/secret.txt",
    "..&#47;..&#x2F;secret",
    "..&#x0000000000002f;secret",
    "..&sol;secret.txt",
    "&period;&period;&sol;secret.txt",
    "&amp;#46;&amp;#46;/secret.txt",
    "&#x2f;etc&#x2f;passwd",
    "file&colon;///etc/passwd",
    "..%26sol;secret.txt",
    "．．／secret.txt",
    "／etc／passwd",
    "～／.ssh/id_rsa",
    "..\u2215..\u2044secret",
    "\u2024\u2024/secret.txt",
    "\u2025/secret.txt",
    "..\\uff0fsecret",
    "..%uff0fsecret",
    "Ｃ：＼Windows＼win.ini",
    "＼＼server＼share",
]


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of POSIX")
@pytest.mark.parametrize("path", LEADING_OUT)
@pytest.mark.parametrize("before", [*" “‘«→&+—*?!=:(,;[{|<>'\"`…\t\n", "a, ", "x=", "见 "])
def test_a_path_is_found_wherever_it_stands(workspace: Workspace, before: str, path: str) -> None:
    """Whatever stands before a path, and however it is escaped, it is told, and a location with it is cut."""
    assert workspace.paths_outside(f"See{before}{path}")
    assert workspace.confine(f"line 3{before}{path}") == OUTSIDE


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of POSIX")
@hypothesis.given(st.text(max_size=20), st.sampled_from(" \n\"'`“«→—…!?=:,;(|<>"), st.text(max_size=20))
@hypothesis.example("A:", "\n", "")
@hypothesis.example("$NAME", "\n", "")
def test_no_surroundings_hide_a_path(before: str, mark: str, after: str) -> None:
    """A path behind a mark is found in any text."""
    found = Workspace.at("/usr").paths_outside(f"{before}{mark}/etc/shadow {after}")
    assert any(path.endswith("/etc/shadow") for path in found)


@pytest.mark.parametrize(
    "glued", [")/etc/passwd", "}/etc/passwd", "@/etc/passwd", "见/etc/passwd", " -I/etc/x"]
)
def test_a_folder_of_the_system_is_found_behind_anything(workspace: Workspace, glued: str) -> None:
    """What may be the end of something else counts where it begins as a path of the system does."""
    assert workspace.paths_outside(f"x{glued}")


@pytest.mark.parametrize(
    "harmless",
    [
        "and/or", "1/2", "a / b", "(a+b)/c", "</div>", "</root>", "<br/>", "// comment", "/* comment */",
        "N/A", "https://host/etc/passwd", "http://h:80/a/b?x=/etc/x#y", "postgres://u:p@h/db",
        "//cdn.example.com/a/b.js", "text/html", "2024/01/02", "git@github.com:o/r.git",
        "#/definitions/Foo", "import '@/components/Button'",
        "/\\d+/g", "/^foo$/i", "s/a/b/", "`${base}/users/list`", "{id}/posts/x", "src/**/test/foo/*.py",
        "第３章／说明.md", "和／或", "１／２", "和／或／和", "&lt;/p&gt;", "&nbsp;/&nbsp;",
        "A &amp; B/a&period;md", "½", "R&D/x.py", "&#47", "&#x110000;/x", "&#55296;x",
        "HEAD~/x", '{"a": "one\\nsrc/a.py"}', "文档/报告/a.md", "$PWD/src/a.py", "src/../src/a.py",
    ],
)  # fmt: skip
def test_what_is_no_path_outside_is_not_told(workspace: Workspace, harmless: str) -> None:
    """Addresses, fractions, elements, comments, globs, expressions and paths inside are none."""
    assert workspace.paths_outside(f"x = {harmless} ") == []


@pytest.mark.parametrize("location", ["第３章／说明.md：３", "src／a.py:3", "Tom &amp; Jerry/a&period;md"])
def test_a_location_inside_stays_as_it_is_written(workspace: Workspace, location: str) -> None:
    """Full-width forms and character references of a path inside are left as they are."""
    assert workspace.confine(location) == location


def test_a_path_inside_is_not_told(tmp_path: Path) -> None:
    """A whole path of the workspace is inside, also with spaces in the root; its neighbour is not."""
    root = tmp_path / "my work"
    root.mkdir()
    workspace = Workspace.at(str(root))
    inside = f"{workspace.root}/src/a.py:3"
    assert workspace.paths_outside(f"see “{inside}”, file://{workspace.root}/b.py") == []
    assert workspace.confine(inside) == inside
    assert workspace.paths_outside(f"{workspace.root}/../x") and workspace.paths_outside(
        f"{workspace.root}er/x"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of POSIX")
def test_a_path_behind_many_others_is_told(workspace: Workspace) -> None:
    """However many paths a content names, all that lead out count; the critic hears of 20."""
    inside = " ".join(f"src/{number}.py" for number in range(5_000))
    assert workspace.paths_outside(f"{inside} ../secret.txt") == ["../secret.txt"]
    critic = Critical()
    content = " ".join(f"/etc/{number}" for number in range(300))
    ask({**REQUEST, "content": content, "workspace_root": str(workspace.root)}, critic)
    assert '"/etc/19", and 280 more.' in critic.prompts[0] and '"/etc/20"' not in critic.prompts[0]


PIECES = [
    "a@", ":1", "/a", "../", "a/", "-", "~/", "+/", "$A/", "%2f", "%252f", "\\", "\\n/", "</a", "a://",
    "&#4", "&#0", "&a", "&amp;", "&#46;&#47;", "．／", "\u0301\u0327",
    "//a.b", "a:\\", "${", "up/x ", "src/a/../", "https://", "file:", "见/a", "\\\\ab\\",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_the_search_for_paths_is_linear(workspace: Workspace, piece: str) -> None:
    """No content and no location takes long: four times the text takes no ten times as long, or little."""
    seconds = []
    for size in (128_000, 512_000):
        started = time.process_time()
        workspace.paths_outside((piece * size)[:size])
        seconds.append(time.process_time() - started)
    workspace.confine((piece * 500)[:499] + "x")
    assert seconds[1] < 10 * seconds[0] + 5


@pytest.mark.slow
def test_many_paths_are_looked_up_quickly(workspace: Workspace) -> None:
    """As many paths as a content can name, each another one, take seconds at most."""
    for form in ("/etc/{}", "src/{}", "{}/x", "up/{}", "{}/../../b"):
        content = " ".join(form.format(number) for number in range(60_000))[:512_000]
        started = time.process_time()
        workspace.paths_outside(content)
        assert time.process_time() - started < 60


def test_a_rubric_file_lies_below_the_root_of_the_caller(tmp_path: Path) -> None:
    """Whatever a request says, and in whatever form, no rubric outside of `rubric_root` is read."""
    root = tmp_path / "root"
    root.mkdir()
    for path in (root / "in.yaml", tmp_path / "out.yaml"):
        path.write_text("- {name: wit, requirement: It is funny.}\n", encoding="utf-8")
    (root / "link.yaml").symlink_to(tmp_path / "out.yaml")
    log = tmp_path / "audit.jsonl"
    outside: list[dict[str, Any]] = [
        {"criteria": [str(tmp_path / "out.yaml")]},
        {"criteria": "../out.yaml"},
        {"criteria": [" ../out.yaml\t"]},
        {"criteria": ["link.yaml"]},
        {"criteria": ["out.yaml"], "workspace_root": str(tmp_path)},
    ]
    for change in outside:
        asked = {"content": "x", "dry_run": True, **change}
        for request in (asked, {"tool": "critique_evaluate", "arguments": asked}, CritiqueRequest(**asked)):
            answer = ask(request, Critical(), rubric_root=root, audit_path=log)
            assert "is outside the workspace" in str(answer.error), change
    assert len(log.read_text(encoding="utf-8").splitlines()) == 3 * len(outside)
    for name in ("in.yaml", str(root / "in.yaml")):
        inside = {"content": "x", "criteria": [name], "dry_run": True}
        assert ask(inside, Critical(), rubric_root=root).criteria == ("wit",)
    inside = {"content": "x", "criteria": ["in.yaml"], "dry_run": True, "workspace_root": str(root)}
    assert ask(inside, Critical(), rubric_root=str(tmp_path)).criteria == ("wit",)
    assert "rubric_root: " in str(ask(inside, Critical(), rubric_root=tmp_path / "none").error)
