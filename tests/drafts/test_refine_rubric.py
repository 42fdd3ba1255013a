"""Refinement by a rubric: its weights and penalties say what is better, and what is urgent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, JudgeRequest, Rubric, generate_critiques
from autorubric.apps.drafts import TeacherPrompt, refine
from tests.drafts.teachers import draft, read_lines, scored, write_lines

RUBRIC = Rubric(
    [
        Criterion(name="capital", requirement="The text names Paris.", weight=3),
        Criterion(name="polite", requirement="The text greets the reader.", weight=1),
        Criterion(name="rude", requirement="The text insults the reader.", weight=-2),
    ]
)
WORDS = {"capital": "Paris", "polite": "Hello", "rude": "fool"}


class Writer:
    """Judges by the words that matter, and rewrites a text into the next of a chain.

    Attributes:
        texts: What becomes of a text.
        rewritten: The drafts that were rewritten, in order.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.rewritten: list[str] = []

    def __call__(self, asked: Any) -> str:
        if isinstance(asked, JudgeRequest):
            text = asked.submission.text or ""
            return "MET" if WORDS[asked.criterion.name or ""] in text else "UNMET"
        assert isinstance(asked, TeacherPrompt)
        self.rewritten.append(asked.draft_id)
        return next(after for before, after in self.texts.items() if f"\n{before}\n" in asked.content)


Refined = Callable[..., tuple[dict[str, Any], dict[str, dict[str, Any]], Writer]]


@pytest.fixture
def refined(tmp_path: Path) -> Refined:
    """Critiques and refines texts by the rubric; the statistics, the records by id, and the writer."""

    def call(given: list[str], chain: Mapping[str, str], **options: Any) -> Any:
        rows = [draft(number, output=text) for number, text in enumerate(given)]
        drafts = write_lines(tmp_path / "drafts.jsonl", rows)
        writer = Writer(chain)
        generate_critiques(drafts, tmp_path, writer, rubric=RUBRIC)
        stats = refine(tmp_path / "critiques_v1.jsonl", drafts, tmp_path, writer, rubric=RUBRIC, **options)
        names = ("refined", "rejected", "undecided", "errors")
        records = [record for name in names for record in read_lines(tmp_path / f"{name}_v1.jsonl")]
        return stats, {record["id"]: record for record in records}, writer

    return call


def test_an_insult_taken_out_is_a_gain(refined: Refined) -> None:
    """A penalty that is no longer met raises the rubric's score: the work goes on, and ends in a pass."""
    chain = {"Hello, fool!": "Hello!", "Hello!": "Hello! Paris it is."}
    stats, records, _ = refined(["Hello, fool!"], chain)
    assert stats["reason_counts"] == {"pass": 1}
    assert records["draft_0"]["mean_scores"] == [0.0, 0.25, 1.0]
    assert stats["mean_gain"] == 1.0


def test_the_best_text_is_the_one_with_the_best_score(refined: Refined) -> None:
    """Where nothing is decided the insult is not kept, though a text with it meets more criteria."""
    stats, records, _ = refined(["Hello, fool!"], {"Hello, fool!": "Hello!"}, max_rounds=1)
    assert stats["reason_counts"] == {"max_rounds": 1}
    assert (records["draft_0"]["output"], records["draft_0"]["output_round"]) == ("Hello!", 1)


def test_an_insult_put_in_is_no_gain(refined: Refined) -> None:
    """A rewriting that meets a penalty beside ends the work, and the draft stays as it was."""
    stats, records, _ = refined(["Hello!"], {"Hello!": "Hello, fool!"})
    assert stats["reason_counts"] == {"no_gain": 1}
    assert (records["draft_0"]["output"], records["draft_0"]["output_round"]) == ("Hello!", 0)


def test_weights_count(refined: Refined) -> None:
    """A criterion of weight 3 in the place of one of weight 1 is a gain, though as many are met."""
    chain = {"Hello!": "Paris.", "Paris.": "Paris. Hello!"}
    _, records, _ = refined(["Hello!"], chain, threshold=0.9)
    assert records["draft_0"]["mean_scores"] == [0.25, 0.75, 1.0]


def test_the_lowest_score_of_the_rubric_comes_first(refined: Refined) -> None:
    """Of equally severe issues the worse text comes first: a penalty that is met is no high value."""
    texts = ["Paris, fool!", "Hello!", "Paris, Hello, fool!", "Hello, fool!"]
    chain = dict.fromkeys(texts, "Paris. Hello!")
    _, records, writer = refined(texts, chain, threshold=0.9)
    assert [records[f"draft_{n}"]["mean_scores"][0] for n in range(4)] == [0.25, 0.25, 0.5, 0.0]
    assert writer.rewritten == ["draft_3", "draft_0", "draft_1", "draft_2"]


def test_scores_of_another_kind_are_no_measure(tmp_path: Path) -> None:
    """Marks from 1 to 5 of a first critique are not compared with a rubric's score, nor the other way."""
    drafts = write_lines(tmp_path / "drafts.jsonl", [draft(0, output="Hello, fool!")])
    marked = write_lines(tmp_path / "marked.jsonl", [{"id": "draft_0", "critique": scored(3)}])
    writer = Writer({"Hello, fool!": "Hello!", "Hello!": "Hello! Paris it is."})
    stats = refine(marked, drafts, tmp_path, writer, rubric=RUBRIC)
    (record,) = read_lines(tmp_path / "refined_v1.jsonl")
    assert (record["mean_scores"], stats["mean_gain"]) == ([None, 0.25, 1.0], 0.75)
    generate_critiques(drafts, tmp_path, writer, rubric=RUBRIC)

    def marking(prompt: TeacherPrompt) -> Any:
        return writer(prompt) if prompt.task == "rewrite" else scored(2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refine(tmp_path / "critiques_v1.jsonl", drafts, tmp_path, marking, max_rounds=1)
    (record,) = read_lines(tmp_path / "undecided_v1.jsonl")
    assert (record["mean_scores"], record["output"]) == ([None, 2.0], "Hello!")
