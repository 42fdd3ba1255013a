"""What the page of an item shows: texts, answers, votes with their reasons, labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from autorubric.report._encode import Strings, answer_words, number
from autorubric.report._view import ReadRun, ReportedItem
from autorubric.types import Decision, EnsembleCriterionReport, JudgeVote
from autorubric.values import Submission

CHUNK: Final = 200
"""Items whose details stand in one piece, which the page reads when one of them is opened."""

MOST_CHARS_OF_ALL_TEXTS: Final = 48_000_000
"""Characters of submissions, prompts and references in one file; with more, all are cut at a lower length."""

MOST_CHARS_OF_A_REASON: Final = 8_000


@dataclass
class Cutter:
    """Cuts texts at a length and counts how often it had to.

    Attributes:
        most: Characters that are kept of a submission, prompt or reference; 0 leaves them out.
        n_cut: Texts that were cut or left out.
    """

    most: int
    n_cut: int = 0

    def text(self, text: str) -> list[Any]:
        """What is kept of a text, and its length where that is less than all."""
        return self._kept(text, self.most)

    def reason(self, text: str) -> str:
        """A reason or an error, cut where it is far longer than anyone reads."""
        if len(text) <= MOST_CHARS_OF_A_REASON:
            return text
        self.n_cut += 1
        return f"{text[:MOST_CHARS_OF_A_REASON]} … [cut; {len(text):,} characters]"

    def _kept(self, text: str, most: int) -> list[Any]:
        if len(text) <= most:
            return [text, 0]
        self.n_cut += 1
        return [text[:most], len(text)]


def cutter_for(run: ReadRun, max_chars: int, *, most_of_all: int = MOST_CHARS_OF_ALL_TEXTS) -> Cutter:
    """A cutter at `max_chars`, or at less where all texts together would be too long for a page."""
    lengths = [
        len(text) for at in range(len(run.item_results)) for _, text in _texts(run, run.item_results[at])
    ]
    most = max_chars
    while most and sum(min(length, most) for length in lengths) > most_of_all:
        most //= 2
    return Cutter(most)


def detail_chunks(
    run: ReadRun, criteria_of: Sequence[dict[str, int]], judges: Sequence[str], cutter: Cutter
) -> Iterator[dict[str, Any]]:
    """The details of all items in pieces of `CHUNK`, each with the texts that it names by their place.

    Args:
        run: The run.
        criteria_of: For each item the place of its criteria by name.
        judges: Ids of the judges, in order.
        cutter: Cuts long texts.
    """
    judge_places = {judge: at for at, judge in enumerate(judges)}
    for first in range(0, len(run.item_results), CHUNK):
        strings = Strings()
        items = [
            _item(run, run.item_results[at], criteria_of[at], judge_places, strings, cutter)
            for at in range(first, min(first + CHUNK, len(run.item_results)))
        ]
        yield {"strings": strings.texts, "items": items}


def _texts(run: ReadRun, result: ReportedItem) -> list[tuple[str, str]]:
    """The texts of an item, each with what it is."""
    at = result.item_idx
    submission = Submission.parse(result.item.submission)
    given: list[tuple[str, str | None]] = [("Query", run.dataset.get_item_prompt(at))]
    if submission.thinking is not None:
        given.append(("Thinking", submission.thinking))
    if submission.candidates:
        given += [(f"Candidate {name}", text) for name, text in submission.candidates.items()]
    else:
        given.append(("Submission", submission.text))
    given.append(("Reference", run.dataset.get_item_reference_submission(at)))
    return [(what, text) for what, text in given if text is not None]


def _item(
    run: ReadRun,
    result: ReportedItem,
    places: dict[str, int],
    judges: dict[str, int],
    strings: Strings,
    cutter: Cutter,
) -> dict[str, Any]:
    texts = []
    for what, text in _texts(run, result):
        kept, length = cutter.text(text)
        texts.append([what, strings.place(kept), length])
    found: dict[str, Any] = {"texts": texts}
    item: Any = result.item
    for key, words in (("about", getattr(item, "description", "")), ("meta", _metadata(item, cutter))):
        if words:
            found[key] = strings.place(words)
    report = result.report
    error = result.error or (report.error if report is not None else None)
    if error:
        found["error"] = strings.place(cutter.reason(error))
    if report is None:
        return found
    truth = run.dataset.item_truth(result.item_idx) or {}
    ratings = run.dataset.item_ratings(result.item_idx)
    reasons = getattr(item, "reasons", {})
    said = _Said(judges, strings, cutter)
    found["criteria"] = [
        said.criterion(one, places.get(one.name, -1), truth.get(one.name), reasons.get(one.name), ratings)
        for one in report.report
    ]
    if report.length_penalty:
        found["penalty"] = number(report.length_penalty)
    if report.raw_score is not None:
        found["raw"] = number(report.raw_score)
    groups = {name: number(score) for name, score in report.node_scores.items() if name}
    if groups:
        found["groups"] = groups
    if len(report.judge_scores) > 1:
        found["scores"] = [
            [judges.get(judge, -1), number(score)] for judge, score in report.judge_scores.items()
        ]
    return found


def _metadata(item: Any, cutter: Cutter) -> str:
    metadata = getattr(item, "metadata", None)
    return cutter.reason(json.dumps(metadata, ensure_ascii=False)) if metadata else ""


@dataclass
class _Said:
    """Writes what was said of one item's criteria."""

    judges: dict[str, int]
    strings: Strings
    cutter: Cutter

    def criterion(
        self,
        report: EnsembleCriterionReport,
        place: int,
        truth: Any,
        truth_reason: str | None,
        ratings: Any,
    ) -> dict[str, Any]:
        """One criterion's decision, votes and labels; what is empty is left out."""
        decision = report.decision
        samples = len(report.votes) > len({vote.judge_id for vote in report.votes})
        told: dict[str, Any] = {
            "at": place,
            "name": self._place(report.name) if place < 0 else -1,
            "status": report.status if report.status != "answered" else None,
            "answer": self._place(_decided(decision)),
            "value": number(report.score_value),
            "agreement": number(report.agreement),
            "error": self._text(report.error),
            "truth": self._place(answer_words(truth)),
            "why": self._text(truth_reason),
            "confidence": number(report.confidence),
            "marks": [
                word
                for word, so in (
                    ("tie", decision.tie),
                    ("unreadable replies alone", decision.assumed),
                    ("swayed by unreadable replies", decision.swayed),
                    ("escalated", report.escalated),
                )
                if so
            ],
            "ratings": [
                [self._place(str(rater)), self._place(answer_words(labels[report.name]))]
                for rater, labels in ratings.items()
                if labels.get(report.name) is not None
            ],
            "judges": [
                [self.judges.get(judge, -1), made.status, self._place(_decided(made))]
                for judge, made in report.judge_decisions.items()
            ]
            if samples
            else [],
            "votes": [self._vote(vote) for vote in report.votes],
        }
        return {key: value for key, value in told.items() if value not in (None, -1, []) or key == "at"}

    def _vote(self, vote: JudgeVote) -> dict[str, Any]:
        answer = vote.selected_label or (str(vote.verdict) if vote.verdict else answer_words(vote.answer))
        told: dict[str, Any] = {
            "j": self.judges.get(vote.judge_id, -1),
            "s": vote.sample or None,
            "st": vote.status if vote.status != "answered" else None,
            "a": self._place(answer),
            "v": number(vote.value),
            "r": self._text(vote.reason),
            "e": self._text(vote.error),
            "c": number(vote.confidence),
            "o": self._place(" → ".join(vote.order)) if vote.order else -1,
            "m": self._place(vote.model),
            "x": 1 if vote.truncated else None,
            "k": 1 if vote.skipped else None,
        }
        return {key: value for key, value in told.items() if value not in (None, -1) or key == "j"}

    def _place(self, text: str | None) -> int:
        return self.strings.place(text)

    def _text(self, text: str | None) -> int:
        return self.strings.place(self.cutter.reason(text)) if text else -1


def _decided(decision: Decision) -> str | None:
    answer = decision.answer
    if answer is None:
        return None
    if answer.label is not None:
        return answer.label
    return "CANNOT_ASSESS" if answer.cannot_assess else answer_words(answer.code)
