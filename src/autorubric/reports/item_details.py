"""Content of the page of an item: texts, answers, votes with their reasons, and labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, Submission
from autorubric.reports.items import CellColumns, votes_by_cell
from autorubric.reports.read_run import ReportedItem, VotedRun
from autorubric.reports.templates import StringTable, answer_words, number, script_json
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.votes import Decision, JudgeVote, probabilities_text
from autorubric.support.objects import Json

CHUNK: Final = 200
"""Number of items per chunk of details; the page parses a chunk when one of its items is opened."""

MOST_CHARS_OF_ALL_TEXTS: Final = 48_000_000
"""Maximum total characters of submissions, prompts and references; above it, texts are truncated further."""

MOST_CHARS_OF_A_REASON: Final = 8_000


@dataclass
class Truncation:
    """Truncates texts and counts how many it truncated."""

    most: int  # Number of characters to keep of a submission, prompt or reference; 0 omits them.
    n_cut: int = 0

    def text(self, text: str) -> tuple[str, int]:
        """Return the kept part of a text, and the full length if the text was truncated (0 otherwise)."""
        if len(text) <= self.most:
            return text, 0
        self.n_cut += 1
        return text[: self.most], len(text)

    def reason(self, text: str) -> str:
        """Return a reason or an error, truncated if it is extremely long."""
        if len(text) <= MOST_CHARS_OF_A_REASON:
            return text
        self.n_cut += 1
        return f"{text[:MOST_CHARS_OF_A_REASON]} … [truncated; {len(text):,} characters]"


def truncation_for(
    run: VotedRun, max_chars: int, *, most_of_all: int = MOST_CHARS_OF_ALL_TEXTS
) -> Truncation:
    """Return a truncation at `max_chars`, or lower if all texts together are too long for a page."""
    lengths = [len(text) for at, item in run.graded() for _, text in _texts(run, at, item)]
    most = max_chars
    while most and sum(min(length, most) for length in lengths) > most_of_all:
        most //= 2
    return Truncation(most)


class DetailWriter:
    """Writes the details of items as JSON while the items are read, in chunks of `CHUNK`."""

    def __init__(self, run: VotedRun, cells: CellColumns, max_chars: int) -> None:
        self.truncation = truncation_for(run, max_chars)
        self.chunks: list[str] = []  # Each includes the strings it refers to.
        self._run = run
        self._cells = cells
        self._spans = cells.spans(run.table.n_items).tolist()
        self._votes = votes_by_cell(run)
        self._judges = {judge: at for at, judge in enumerate(run.table.judges)}
        self._places: dict[tuple[int, ...], dict[str, int]] = {}
        self._items: list[dict[str, Any]] = []
        self._strings = StringTable()
        self._image_chars = 0

    def add(self, result: ReportedItem) -> None:
        """Add an item's texts, and the decisions, votes and labels on its criteria."""
        self._items.append(self._item(result))
        if len(self._items) == CHUNK:
            self.end_chunk()

    def end_chunk(self) -> None:
        """Write the items added since the last chunk, if any."""
        if self._items:
            self.chunks.append(script_json({"strings": self._strings.texts, "items": self._items}))
        self._items, self._strings = [], StringTable()

    def _places_on(self, position: int) -> dict[str, int]:
        """Return the places in the table of an item's criteria, by name."""
        rubric = tuple(self._cells.criterion[slice(*self._spans[position : position + 2])].tolist())
        if rubric not in self._places:
            # Parts come after their criterion, whose name a part may share.
            self._places[rubric] = {self._run.table.criteria[at].name: at for at in reversed(rubric)}
        return self._places[rubric]

    def _item(self, result: ReportedItem) -> dict[str, Any]:
        texts = []
        for what, text in _texts(self._run, result.item_idx, result.item):
            kept, length = self.truncation.text(text)
            texts.append([what, self._strings.index_of(kept), length])
        found: dict[str, Any] = {"texts": texts}
        prompt = self._run.dataset.item_prompt(result.item_idx)
        for image in Submission.parse(result.item.submission).with_prompt(prompt)[0].images:
            self._image_chars += len(image.url)
            shown = image.url if self._image_chars <= MOST_CHARS_OF_ALL_TEXTS else f"sha256:{image.sha256}"
            found.setdefault("images", []).append([image.label, self._strings.index_of(shown)])
        item: Any = result.item
        if description := getattr(item, "description", ""):
            found["about"] = self._strings.index_of(description)
        if metadata := getattr(item, "metadata", None):
            found["meta"] = self._text(json.dumps(metadata, ensure_ascii=False))
        report = result.report
        error = result.error or (report.error if report is not None else None)
        if error:
            found["error"] = self._text(error)
        if report is None:
            return found
        labels = _ItemLabels(
            result.item_idx * max(len(self._run.table.criteria), 1),
            Submission.parse(item.submission),
            self._run.dataset.item_truth(result.item_idx) or {},
            getattr(item, "reasons", {}),
            self._run.dataset.item_ratings(result.item_idx),
        )
        places = self._places_on(result.item_idx)
        found["criteria"] = [self._criterion(one, places.get(one.name, -1), labels) for one in report.report]
        if report.length_penalty:
            found["penalty"] = number(report.length_penalty)
        if report.raw_score is not None:
            found["raw"] = number(report.raw_score)
        groups = {name: number(score) for name, score in report.node_scores.items() if name}
        if groups:
            found["groups"] = groups
        if len(report.judge_scores) > 1:
            found["scores"] = [
                [self._judges.get(judge, -1), number(score)] for judge, score in report.judge_scores.items()
            ]
        return found

    def _criterion(self, report: EnsembleCriterionReport, place: int, labels: _ItemLabels) -> dict[str, Any]:
        """Return one criterion's decision, votes and labels, without empty fields."""
        bound = report.criterion.bind(labels.submission) if place >= 0 else None
        words = self._votes.get(labels.first_key + place, []) if bound else []
        if len(words) != len(report.votes):  # Other criteria share the cell.
            words = [(None, False)] * len(report.votes)
        content: dict[str, Any] = {
            "name": self._index(report.name) if place < 0 else -1,
            "status": report.status if report.status != "answered" else None,
            "answer": self._index(_decision_words(report.decision)),
            "value": number(report.score_value),
            "agreement": number(report.agreement),
            "error": self._text(report.error),
            "truth": self._index(_label_words(bound, labels.truth.get(report.name))),
            "why": self._text(labels.reasons.get(report.name)),
            "confidence": number(report.confidence),
        }
        content = {"at": place, **{key: one for key, one in content.items() if one is not None and one != -1}}
        decision = report.decision
        marks = {
            "tie": decision.tie,
            "only unreadable replies": decision.assumed,
            "swayed by unreadable replies": decision.swayed,
            "escalated": report.escalated,
        }
        if any(marks.values()):
            content["marks"] = [word for word, so in marks.items() if so]
        if report.decision.probabilities is not None:
            content["probabilities"] = self._index(probabilities_text(report.decision.probabilities))
        if labels.ratings and (ratings := self._ratings(report.name, bound, labels.ratings)):
            content["ratings"] = ratings
        if len(report.votes) > len({vote.judge_id for vote in report.votes}) and report.judge_decisions:
            content["judges"] = [
                [self._judges.get(judge, -1), made.status, self._index(_decision_words(made))]
                for judge, made in report.judge_decisions.items()
            ]
        is_ranking = report.criterion.level == "ranking"
        if report.votes:
            content["votes"] = [
                self._vote(vote, answer if is_ranking else None, is_wrong)
                for vote, (answer, is_wrong) in zip(report.votes, words, strict=True)
            ]
        return content

    def _ratings(
        self, name: str, bound: BaseCriterion | None, ratings: Mapping[str, Mapping[str, Json]]
    ) -> list[list[int]]:
        return [
            [self._index(str(rater)), self._index(_label_words(bound, rated[name]))]
            for rater, rated in ratings.items()
            if rated.get(name) is not None
        ]

    def _vote(self, vote: JudgeVote, answer: str | None, is_wrong: bool) -> dict[str, Any]:
        """Return the fields of a vote that are set; this runs for every vote."""
        answer = answer or vote.selected_label or (str(vote.verdict) if vote.verdict else None)
        answer = answer or answer_words(vote.answer)
        content: dict[str, Any] = {"j": self._judges.get(vote.judge_id, -1)}
        if vote.sample:
            content["s"] = vote.sample
        if vote.status != "answered":
            content["st"] = vote.status
        if answer is not None:
            content["a"] = self._index(answer)
        if (value := number(vote.value)) is not None:
            content["v"] = value
        if reason := vote.reason_shown:
            content["r"] = self._text(reason)
        if vote.error:
            content["e"] = self._text(vote.error)
        if (confidence := number(vote.confidence)) is not None:
            content["c"] = confidence
        if told := vote.probabilities_shown:
            content["p"] = self._index(told)
        if vote.order:
            content["o"] = self._index(" → ".join(vote.order))
        if vote.model is not None:
            content["m"] = self._index(vote.model)
        if vote.shown is not None:
            content["h"] = self._index(vote.shown)
        for key, so in (("x", vote.truncated), ("k", vote.skipped), ("w", is_wrong)):
            if so:
                content[key] = 1
        return content

    def _index(self, text: str | None) -> int:
        return self._strings.index_of(text)

    def _text(self, text: str | None) -> int:
        return self._strings.index_of(self.truncation.reason(text)) if text else -1


def _texts(run: VotedRun, at: int, item: Any) -> list[tuple[str, str]]:
    """Return the texts of an item, each with its type."""
    submission = Submission.parse(item.submission)
    texts: list[tuple[str, str | None]] = [("Query", run.dataset.get_item_prompt(at))]
    if submission.thinking is not None:
        texts.append(("Thinking", submission.thinking))
    if submission.candidates:
        texts += [(f"Candidate {name}", text) for name, text in submission.candidates.items()]
    else:
        texts.append(("Submission", submission.text))
    texts.append(("Reference", run.dataset.get_item_reference_submission(at)))
    return [(what, text) for what, text in texts if text is not None]


@dataclass(frozen=True)
class _ItemLabels:
    """The labels of one item, their reasons, and people's ratings, to compare answers with."""

    first_key: int  # Number of the item's first cell; see `VotesTable.cell_keys`.
    submission: Submission
    truth: Mapping[str, Json]
    reasons: Mapping[str, str]
    ratings: Mapping[str, Mapping[str, Json]]


def _decision_words(decision: Decision) -> str | None:
    return None if decision.answer is None else _words(decision.answer)


def _label_words(criterion: BaseCriterion | None, label: Json) -> str | None:
    """Return a label in its parsed form, independent of its spelling in the file."""
    answer = criterion.parse_truth(label) if criterion is not None else None
    return answer_words(label) if answer is None else _words(answer)


def _words(answer: Answer) -> str | None:
    # A number is shown as in votes, without digits that come from computing it.
    if answer.label is not None and answer.label != str(answer.code):
        return answer.label
    return "CANNOT_ASSESS" if answer.cannot_assess else answer_words(answer.code)
