"""Votes on a part of a transcript: stored with what was shown, counted, and on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from autorubric import CriterionGrader, DataItem, EvalResult, RubricDataset
from autorubric.llm import LLMConfig
from tests.runs.runs import run, small_rubric
from tests.servers.fixtures import OpenAIServer

TOO_LONG = {
    "do": "status",
    "status": 400,
    "code": "context_length_exceeded",
    "message": "This model's maximum context length is 10 tokens.",
}
TURNS = [{"role": "user", "content": f"Question {number}. " + "word " * 30} for number in range(30)]


def _in_part(server: OpenAIServer, folder: Path) -> EvalResult:
    server.script({"do": "answer", "payload": {"reason": "none", "verdict": "UNMET"}}, repeat="last")
    server.script(TOO_LONG, contains="Question 15.", repeat="last")
    config = LLMConfig(
        model="openai/m", api_base=server.api_base, transport="openai_compatible", truncate="middle"
    )
    items = [DataItem(id="long", submission=TURNS), DataItem(id="short", submission=TURNS[:1])]
    dataset = RubricDataset(name="turns", rubric=small_rubric(), items=items)
    return run(folder, None, dataset, grader=CriterionGrader(judges=[config]))


def test_a_vote_says_which_turns_were_shown(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """The part is stored with the votes on the text that was too long, and only there."""
    found = _in_part(openai_server, tmp_path)
    shown = r"turns 1-\d+, \d+-30 of 30"
    for result in (found, EvalResult.from_experiment(tmp_path / "run")):
        long, short = [one.report for one in result.item_results]
        assert long is not None and short is not None
        parts = [vote.shown for one in long.report for vote in one.votes]
        assert len(parts) == 2 and all(re.fullmatch(shown, part or "") for part in parts)
        assert [(vote.truncated, vote.shown) for one in short.report for vote in one.votes] == [
            (False, None)
        ] * 2
    votes = [json.loads(line) for line in (tmp_path / "run" / "votes.jsonl").read_text("utf-8").splitlines()]
    keys: dict[str, set[Any]] = {}
    for line in votes:
        keys.setdefault(line["item"], set()).update(line["vote"])
    assert {"truncated", "shown"} <= keys["long"]
    assert not {"truncated", "shown"} & keys["short"]


def test_verdicts_that_may_rely_on_what_was_omitted_are_counted(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The run, its stored form and its page say how many verdicts are on a part, and how many are UNMET."""
    told = (
        "2 verdicts are on a part of a submission that was too long for the model; 2 of them are UNMET "
        "and may rely on what was omitted"
    )
    found = _in_part(openai_server, tmp_path)
    assert told in found.notices
    assert told in EvalResult.from_experiment(tmp_path / "run").notices
    page = tmp_path / "page.html"
    found.to_html(page)
    text = page.read_text("utf-8")
    assert told in text
    assert re.search(r"turns 1-\d+, \d+-30 of 30", text)


def test_runs_without_long_texts_say_nothing_of_parts(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Nothing is stored or reported where every text was shown whole."""
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, transport="openai_compatible")
    result = run(tmp_path, None, grader=CriterionGrader(judges=[config]))
    assert not any("part" in notice for notice in result.notices)
    for file in ("votes.jsonl", "items.jsonl"):
        assert not re.search(r'"(shown|in_part)"', (tmp_path / "run" / file).read_text("utf-8"))
