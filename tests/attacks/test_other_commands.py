"""Commands that critique show hostile texts without steering the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.hostile import RAW, TEXTS
from tests.cli.conftest import Cli
from tests.drafts.teachers import critique, draft, write_lines
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import ISSUE, REPLY

NAMES = ("nul", "right to left", "html", "escapes", "hyperlink", "line breaks", "markup")


@pytest.mark.parametrize("name", NAMES)
def test_critique_and_refine(
    name: str, tmp_path: Path, cli: Cli, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids, outputs, issues and errors of drafts stay text, in output that succeeds and that fails."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    text = TEXTS[name]
    reply = critique(verdict="revise", rewrite_instructions=[text])
    openai_server.script({"do": "answer", "payload": reply}, {"do": "answer", "content": text}, repeat="last")
    rows: list[dict[str, Any] | str] = [
        draft(0, id=f"a {text}", output=text),
        draft(1, prompt=text),
        f'{{"id": "{name}',
    ]
    write_lines(tmp_path / "drafts.jsonl", rows)
    judge = ("--judge", "openai/m", "--api-base", openai_server.api_base)
    done = cli("critique", "drafts.jsonl", "--out-dir", "out", *judge)
    assert not RAW.search(done.out + done.err)
    done = cli("refine", "out/critiques_v1.jsonl", "--drafts", "drafts.jsonl", "--out-dir", "out", *judge)
    assert not RAW.search(done.out + done.err)


@pytest.mark.parametrize("name", NAMES)
def test_critique_text(
    name: str, tmp_path: Path, cli: Cli, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issues, suggestions and the summary of a critic stay text."""
    monkeypatch.delenv("AUTORUBRIC_PROVIDERS", raising=False)
    text = TEXTS[name]
    issue = {**ISSUE, "description": text, "suggestion": text, "location": text}
    reply = {**REPLY, "issues": [issue], "summary": text, "suggestions": [text]}
    openai_server.script({"do": "answer", "payload": reply}, repeat="last")
    model = {"model": "hosted_vllm/m", "api_base": openai_server.api_base, "max_retries": 0}
    (tmp_path / "p.json").write_text(json.dumps({"providers": {"gpt4": model}}), encoding="utf-8")
    (tmp_path / "text.md").write_text(f"# A guide {text}\n", encoding="utf-8")
    done = cli("critique-text", "text.md", "--criteria", "correctness,completeness", "--config", "p.json")
    assert done.code == 0, done.err
    assert not RAW.search(done.out + done.err)
