"""How a pass is asked for: limits, rehearsals, schemas and templates, and what cannot work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    LexicalJudge,
    LLMConfig,
    generate_critiques,
    load_critique_prompt_template,
    load_critique_schema,
)
from autorubric.apps.drafts import TeacherPrompt, generate_critiques_async, refine
from autorubric.apps.drafts.teacher import model_config
from autorubric.errors import ArgumentError, FileError
from tests.drafts.teachers import draft, good, read_lines, scored, write_lines


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """Three drafts."""
    return write_lines(tmp_path / "drafts.jsonl", [draft(number) for number in range(3)])


def _records(folder: Path) -> dict[str, Any]:
    return {record["id"]: record for record in read_lines(folder / "critiques_v1.jsonl")}


async def _async_teacher(prompt: TeacherPrompt) -> str:
    await asyncio.sleep(0.001)
    return good(prompt)


def test_limit_takes_the_first_drafts(drafts: Path, tmp_path: Path) -> None:
    """With a limit, so many of the file's first drafts are critiqued."""
    stats = generate_critiques(drafts, tmp_path, good, limit=2)
    assert (stats["total"], set(_records(tmp_path))) == (2, {"draft_0", "draft_1"})
    assert generate_critiques(drafts, tmp_path / "none", good, limit=0)["critique_parse_rate"] is None


def test_a_rehearsal_asks_nobody_and_writes_nothing(drafts: Path, tmp_path: Path) -> None:
    """A dry run says how many drafts there are and how long their prompts."""

    def teacher(prompt: TeacherPrompt) -> str:
        raise AssertionError("asked")

    out = tmp_path / "out"
    stats = generate_critiques(drafts, out, teacher, dry_run=True)
    assert (stats["dry_run"], stats["total"], stats["pending"], stats["processed"]) == (True, 3, 3, 0)
    assert stats["prompt_characters"] > 3 * 1000
    assert not out.exists()


def test_own_schema_and_template(drafts: Path, tmp_path: Path) -> None:
    """A schema and a template of the caller's own are used; figures are of what such critiques have."""
    schema = {"type": "object", "required": ["verdict"], "properties": {"verdict": {"enum": ["yes", "no"]}}}
    seen: list[str] = []

    def teacher(prompt: TeacherPrompt) -> str:
        seen.append(prompt.content)
        return '{"verdict": "yes", "scores": {"taste": 7}}'

    stats = generate_critiques(drafts, tmp_path, teacher, schema=schema, template="Judge {id}: {output} {{}}")
    assert stats["verdict_distribution"]["yes"] == 3
    assert stats["avg_scores"] == {"taste": 7.0}
    assert seen[0].startswith("Judge draft_0: <submission-") and seen[0].endswith("{}")
    path = tmp_path / "template.txt"
    path.write_text("Look: {material}", encoding="utf-8")
    generate_critiques(drafts, tmp_path / "file", teacher, schema=schema, template=path)
    assert seen[-1].startswith("Look: <query-")


def test_prompts_about_drafts_hold_no_chat_tokens(tmp_path: Path) -> None:
    """Neither a draft's texts nor its id carry special tokens of a chat template into the prompt."""
    token, path, seen = "<|im_start|>", tmp_path / "drafts.jsonl", []
    draft = {"id": f"d{token}", "prompt": f"q{token}", "output": f"o{token}", "contract": f"c{token}"}
    path.write_text(json.dumps(draft), encoding="utf-8")

    def teacher(prompt: TeacherPrompt) -> Any:
        seen.append(prompt.content)
        return good(prompt)

    generate_critiques(path, tmp_path / "out", teacher)
    assert seen and token not in "".join(seen)
    assert all(f"{part}‹|im_start|>" in seen[0] for part in ("d", "q", "o", "c"))


def test_schema_and_template_as_the_loaders_give_them(drafts: Path, tmp_path: Path) -> None:
    """The loaders' results are what is used without them."""
    schema, template = load_critique_schema(), load_critique_prompt_template()
    generate_critiques(drafts, tmp_path, good, {}, schema, template, 50, False)
    manifest = json.loads((tmp_path / "critiques_v1_manifest.json").read_text(encoding="utf-8"))
    assert manifest["critique_schema"]["path"].endswith("critique_v1.schema.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"template": "Look at {outptu}"}, "unknown variable"),
        ({"template": "Look."}, "must contain {output} or {material}"),
        ({"schema": {"type": "nothing"}}, "invalid JSON schema"),
        ({"limit": -1}, "limit"),
        ({"schema": {}, "rubric": "r.yaml"}, "schema cannot be combined with a rubric"),
        ({"threshold": 0.5}, "threshold"),
        ({"config": ["models"]}, "config"),
        ({"teacher": 7}, "teacher must be a model name.*; got 7"),
        ({"teacher": LexicalJudge()}, "does not write critiques"),
        ({"teacher": "openai/m", "config": {"generation": {"temprature": 1}}}, "temperature"),
        ({"teacher": "openai/m", "config": {"generation": {"model": "openai/x"}}}, "must not set 'model'"),
        ({"template": 5}, "template must be a template text or a Path to it; got 5"),
        ({"rubric": [1]}, "rubric must be a Rubric or the path"),
    ],
)
def test_arguments_that_cannot_work(
    arguments: dict[str, Any], message: str, drafts: Path, tmp_path: Path
) -> None:
    """Faulty arguments are told before anything is asked or written."""
    with pytest.raises(ArgumentError, match=message):
        generate_critiques(drafts, tmp_path / "out", **{"teacher": good, **arguments})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": {}, "rubric": "r.yaml"}, "schema cannot be combined with a rubric"),
        ({"config": ["models"]}, "config must be a mapping"),
        ({"limit": True}, "limit must be a non-negative integer"),
        ({"max_rounds": 0}, "max_rounds must be a positive integer; got 0"),
        ({"min_risk": "none"}, "min_risk must be low, medium or high; got 'none'"),
    ],
)
def test_arguments_that_a_refinement_refuses(
    arguments: dict[str, Any], message: str, drafts: Path, tmp_path: Path
) -> None:
    """A refinement refuses what the critique pass refuses, and what its own options do not allow."""
    critiques = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    with pytest.raises(ArgumentError, match=message):
        refine(critiques, drafts, tmp_path / "out", good, **arguments)
    assert not (tmp_path / "out").exists()


def test_missing_drafts_are_a_file_error(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(FileError, match=r"none\.jsonl"):
        generate_critiques(tmp_path / "none.jsonl", tmp_path, good)


def test_settings_of_a_model_by_name_are_those_of_the_config(drafts: Path, tmp_path: Path) -> None:
    """What the manifest says of a model's settings is what it is asked with."""
    config = {"models": ["openai/a", "openai/b"], "generation": {"temperature": 0.25, "max_tokens": 10}}
    made = model_config("openai/a", config)
    assert made == LLMConfig(model="openai/a", temperature=0.25, max_tokens=10, fallbacks=("openai/b",))


def test_it_is_safe_inside_a_running_loop(drafts: Path, tmp_path: Path) -> None:
    """The blocking call may stand in a coroutine; the twin is awaited."""

    async def both() -> tuple[dict[str, Any], dict[str, Any]]:
        blocking = generate_critiques(drafts, tmp_path / "a", good)
        return blocking, await generate_critiques_async(drafts, tmp_path / "b", _async_teacher)

    one, other = asyncio.run(both())
    assert one["records"] == other["records"] == 3


def test_a_bounded_number_of_drafts_is_under_way(tmp_path: Path) -> None:
    """An async teacher is asked about many at a time, within the window; a sync one in turn, in order."""
    drafts = write_lines(tmp_path / "drafts.jsonl", [draft(number) for number in range(100)])
    running = most = 0

    async def teacher(prompt: TeacherPrompt) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        return good(prompt)

    generate_critiques(drafts, tmp_path / "a", teacher)
    assert 1 < most <= 32
    generate_critiques(drafts, tmp_path / "b", good)
    ids = [record["id"] for record in read_lines(tmp_path / "b" / "critiques_v1.jsonl")]
    assert ids == [f"draft_{number}" for number in range(100)]


@pytest.mark.parametrize("name", ["critiques_v1.jsonl", "critiques_v1_stats.json"])
def test_drafts_are_no_file_that_is_written(name: str, tmp_path: Path) -> None:
    """Drafts that the pass would move away or write over are refused, and stay as they are."""
    drafts = write_lines(tmp_path / name, [draft(0)])
    before = drafts.read_bytes()
    with pytest.raises(ArgumentError, match="would be overwritten"):
        generate_critiques(tmp_path / "x" / ".." / name, tmp_path, good)
    assert drafts.read_bytes() == before


def test_refinement_reads_no_file_that_it_writes(tmp_path: Path) -> None:
    """The drafts of another round may be what the first left, and then go to another folder."""
    critiques = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    drafts = write_lines(tmp_path / "undecided_v1.jsonl", [draft(0, output="text")])
    teacher = {"rewrite": "new", "critique": json.dumps(scored(5, "pass"))}
    with pytest.raises(ArgumentError, match="contains the drafts"):
        refine(critiques, drafts, tmp_path, lambda prompt: teacher[prompt.task])
    assert refine(critiques, drafts, tmp_path / "2", lambda prompt: teacher[prompt.task])["refined"] == 1


@pytest.mark.parametrize("place", ["out", "out/critiques_v1_stats.json"])
def test_a_folder_that_cannot_be_written_is_a_file_error(place: str, drafts: Path, tmp_path: Path) -> None:
    """A file where the folder is to be, or a folder where a file is, is told by its path."""
    blocked = tmp_path / place
    if place == "out":
        blocked.write_text("x", encoding="utf-8")
    else:
        blocked.mkdir(parents=True)
    with pytest.raises(FileError, match="cannot be written") as caught:
        generate_critiques(drafts, tmp_path / "out", good)
    assert caught.value.source == str(blocked)


def test_odd_ids_and_line_ends(tmp_path: Path) -> None:
    """Any text is an id; whatever a reader takes for the end of a line, each record stands on one."""
    ids = [
        "日本\n語",
        "a\u2028b",
        "c\u2029d",
        "e\x85f",
        "e\u0301",
        "\u00e9",
        "x" * 100_000,
        "nul\x00",
        "' OR 1=1 --",
    ]
    rows = [json.dumps({"id": one, "output": "x"}, ensure_ascii=False) for one in ids]
    path = tmp_path / "drafts.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())
    assert generate_critiques(path, tmp_path, good)["id_mismatches"] == 0
    assert generate_critiques(path, tmp_path, good, resume=True)["processed"] == 0
    text = (tmp_path / "critiques_v1.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["id"] for line in text.splitlines()] == ids
