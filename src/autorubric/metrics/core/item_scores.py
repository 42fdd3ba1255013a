"""Scores of an item from its truth, the panel and each judge, and the runs that metrics accept."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer, VerdictCounts
from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.policies import CannotAssessConfig, RubricGroup
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.score import Entry, apply_conditions, entry_of, entry_with, score_tree
from autorubric.scoring.votes import Decision
from autorubric.support.objects import Json

RaterKind: TypeAlias = Literal["judge", "panel", "human", "truth"]
Rater: TypeAlias = tuple[RaterKind, str]
"""Kind and name. The kind is needed because a judge may be named `panel`."""

PANEL: Rater = ("panel", "panel")
TRUTH: Rater = ("truth", "truth")

_SKIP = CannotAssessConfig()


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item with its labels and reports."""

    root: RubricGroup
    truth: Mapping[str, Answer | None]  # ground-truth labels by criterion name
    reports: Mapping[str, EnsembleCriterionReport]


@dataclass(slots=True)
class SharedScores:
    """Scores that were computed for earlier items, for items with the same criteria, labels and entries."""

    labelled: dict[tuple[Any, ...], tuple[tuple[str, ...], float | None]] = field(default_factory=dict)
    entries: dict[tuple[tuple[str, ...], int], tuple[_RatedEntry, ...]] = field(default_factory=dict)
    known: dict[_RatedEntry, _RatedEntry] = field(default_factory=dict)  # equal entries as one object
    scores: dict[tuple[Any, ...], float | None] = field(default_factory=dict)
    # Objects whose ids are in keys; other objects could reuse the ids if they were deleted.
    owners: list[Any] = field(default_factory=list)

    def truth(self, item: ScoredItem) -> tuple[tuple[str, ...], float | None]:
        """Return the criteria that count in the scores, and the score of the truth."""
        key = (id(item.root), *item.truth, *map(id, item.truth.values()))
        if key not in self.labelled:
            answers = {name: answer for name, answer in item.truth.items() if answer is not None}
            labelled = _labelled_criteria(item.root.leaves, answers)
            self.owners.append((item.root, dict(item.truth)))
            score = _truth_score(item.root, labelled, answers) if labelled else None
            self.labelled[key] = tuple(c.name or "" for c in labelled), score
        return self.labelled[key]

    def by_rater(
        self, item: ScoredItem, names: tuple[str, ...], judges: tuple[str, ...]
    ) -> Iterator[float | None]:
        """Yield the scores of the judges and of the panel."""
        found = [self._entries(judges, item.reports.get(name)) for name in names]
        for entries in zip(*found, strict=True):
            key = (id(item.root), names, *map(id, entries))
            if key not in self.scores:
                own = {name: entry for name, (entry, _) in zip(names, entries, strict=True)}
                is_judged = any(judged for _, judged in entries)
                self.scores[key] = score_tree(item.root, own).score if is_judged else None
            yield self.scores[key]

    def _entries(
        self, judges: tuple[str, ...], report: EnsembleCriterionReport | None
    ) -> tuple[_RatedEntry, ...]:
        """Return the entries of the judges and of the panel on a criterion."""
        key = (judges, id(report))
        if key not in self.entries:
            own = report.judge_decisions if report else {}
            rated = [(_judge_entry(judge, report), own.get(judge)) for judge in judges]
            rated.append((_panel_entry(report), report.decision if report else None))
            judged = [(one, _is_judged(one, decision)) for one, decision in rated]
            self.entries[key] = tuple(self.known.setdefault(one, one) for one in judged)
            self.owners.append(report)
        return self.entries[key]


_RatedEntry: TypeAlias = tuple[Entry, bool]
"""Entry of a criterion in a score, and whether it comes from a vote and not just from unreadable replies."""


def item_scores(item: ScoredItem, shared: SharedScores | None = None) -> dict[Rater, float | None]:
    """Compute the normalised scores of the truth, the panel and each judge.

    All scores use the criteria that have a label and whose dependencies all have labels. A criterion labelled
    NA or CANNOT_ASSESS does not count in the score of the truth. A score is None if there is nothing to
    score, for example if a judge gave no answer. The result is empty without labels.
    """
    shared = shared or SharedScores()
    names, truth = shared.truth(item)
    if not names:
        return {}
    reports = [item.reports.get(name) for name in names]
    judges = tuple(dict.fromkeys(judge for report in reports if report for judge in report.judge_decisions))
    raters: list[Rater] = [("judge", judge) for judge in judges]
    return {TRUTH: truth, **dict(zip((*raters, PANEL), shared.by_rater(item, names, judges), strict=True))}


def _labelled_criteria(
    criteria: Sequence[BaseCriterion], answers: Mapping[str, Answer]
) -> list[BaseCriterion]:
    """Return the criteria that have a label, and whose dependencies all have labels."""
    conditions = {c.name or "": c.when.criterion for c in criteria if c.when is not None}

    def has_ground(name: str) -> bool:
        passed: set[str] = set()
        while name in answers and name in conditions and name not in passed:
            passed.add(name)
            name = conditions[name]
        return name in answers

    return [c for c in criteria if has_ground(c.name or "")]


def _truth_score(
    root: RubricGroup, labelled: list[BaseCriterion], answers: Mapping[str, Answer]
) -> float | None:
    decisions = {
        name: Decision(status="abstained" if answers[name].abstains else "answered", answer=answers[name])
        for name in (c.name or "" for c in labelled)
    }
    applied = apply_conditions(labelled, decisions, _SKIP)
    return score_tree(root, {c.name or "": entry_of(c, applied[c.name or ""], _SKIP) for c in labelled}).score


def _is_judged(entry: Entry, decision: Decision | None) -> bool:
    """Return whether a value in the score comes from a vote and not from unreadable replies."""
    return (
        entry.value is not None
        and decision is not None
        and decision.status in ("answered", "abstained")
        and not decision.assumed
    )


def _panel_entry(report: EnsembleCriterionReport | None) -> Entry:
    return Entry.of(report.score_value, report.decision, report.score_share) if report else Entry(None, None)


def _judge_entry(judge: str, report: EnsembleCriterionReport | None) -> Entry:
    """Return a judge's entry in its own score; without a decision, the panel's entry without a value."""
    own = report.judge_decisions.get(judge) if report else None
    if report is None or own is None:
        return _panel_entry(report)._replace(value=None)
    # Reports that were made by hand, or stored by older versions, have no value of an abstention.
    return _panel_entry(report) if own == report.decision else entry_with(own, report.abstention_value)


def regroup(root: RubricGroup, criteria: Mapping[str, BaseCriterion]) -> RubricGroup:
    """Return the tree with leaves of these names replaced; criteria with new names are added to the root."""
    leaves = {leaf.name or "": leaf for leaf in root.leaves}
    if all(leaves.get(name) is criterion for name, criterion in criteria.items()):
        return root
    placed = _replace_leaves(root, criteria)
    homeless = [criterion for name, criterion in criteria.items() if name not in leaves]
    return RubricGroup(root.name, (*placed.criteria, *homeless))


def _replace_leaves(group: RubricGroup, criteria: Mapping[str, BaseCriterion]) -> RubricGroup:
    members = [
        _replace_leaves(one, criteria) if isinstance(one, RubricGroup) else criteria.get(one.name or "", one)
        for one in group.criteria
    ]
    return RubricGroup(group.name, tuple(members), group.weight)


class IdentifiedItem(Protocol):
    """An item with an optional id and a submission."""

    @property
    def id(self) -> str | None: ...  # id of the item; None if its position serves as the id
    @property
    def submission(self) -> Json: ...


class SupportsGradedItem(Protocol):
    """The grading result of an item."""

    @property
    def item_idx(self) -> int: ...  # position of the item in the graded dataset
    @property
    def item(self) -> IdentifiedItem: ...
    @property
    def report(self) -> EnsembleEvaluationReport | None: ...  # None if grading raised an error


@runtime_checkable
class SupportsGradedRun(Protocol):
    """A run with one result per item."""

    @property
    def item_results(self) -> Sequence[SupportsGradedItem]: ...


@dataclass(frozen=True, slots=True)
class GradedItems:
    """Results in memory as a run; a run folder rebuilds its results on each access."""

    item_results: Sequence[SupportsGradedItem] = ()


@runtime_checkable
class LabelledDataset(Protocol):
    """A dataset with rubrics and labels."""

    @property
    def items(self) -> Sequence[Any]: ...
    def item_id(self, i: int, /) -> str: ...
    def get_item_rubric(self, i: int, /) -> Rubric: ...
    def item_truth(self, i: int, /) -> Mapping[str, Json] | None: ...  # labels by criterion name
    # by rater and criterion name
    def item_ratings(self, i: int, /) -> Mapping[str, Mapping[str, Json]]: ...


def pair_items(own: LabelledDataset, theirs: LabelledDataset) -> dict[str, str]:
    """Return, by the id of each item, the id of the same item in another dataset, or an unknown id.

    Items are the same if their ids are equal. Items without ids are paired by position if prompts (of
    conversations, the turns before the first reply) are equal and, if prompts repeat, references and the
    number of items or texts, with a warning if these are not unique and texts differ. Texts in another order
    are paired by text. Otherwise prompt, prompt and reference, prompt and text, or text must match.

    Raises:
        ArgumentError: If items without ids can be paired neither by position nor by prompt or text.
    """
    read = getattr(own, "item_ids", None) or (lambda: map(own.item_id, range(len(own.items))))
    same = {item: item for item in read()}
    if own is theirs or not any(map(str.isdecimal, same)):
        return same
    mine, others = _texts(own), _texts(theirs)
    both = [(mine[item], others[item]) for item in mine.keys() & others.keys()]
    rows = [(one, other) for one, other in both if not (one[0] and other[0])]
    known = {submission for *_, submission in mine.values()}
    moved = sum(one[-1] != other[-1] and other[-1] in known for one, other in rows)
    # Of texts that repeat, such as short answers, few differ, and most change without a change of order.
    n_shared = len(known.intersection(other[-1] for _, other in rows)) if moved else 0
    is_same = all(one[2] == other[2] for one, other in rows) and 2 * max(moved, n_shared) <= len(rows)
    if len({one[2] for one in mine.values()}) < len(mine):  # references may be given on one side only
        is_same &= all(None in (one[1], other[1]) or one[1] == other[1] for one, other in rows)
        is_same &= len(mine) == len(others) or all(one[3] == other[3] for one, other in rows)
    if is_same:
        times = Counter(key for one in mine.values() for key in (one[2], one[1:3]))
        keys = [one[2] if None in (one[1], other[1]) else one[1:3] for one, other in rows]
        if n_by_row := sum(
            (key == "null" or times[key] > 1) and one[3] != other[3]
            for key, (one, other) in zip(keys, rows, strict=True)
        ):
            warnings.warn(
                f"items without ids whose prompts are missing or repeat are matched by row, and {n_by_row} "
                f"of {len(rows)} have new texts; set ids in both datasets if the order may differ, for "
                "example with --id COLUMN",
                stacklevel=3,
            )
        return same
    least_texts = min(len(mine), len(others))
    for start, end, least in ((2, 3, 1), (1, 3, 1), (2, 4, 1), (3, 4, least_texts)):
        by_text, names = ({one[start:end]: item for item, one in held.items()} for held in (mine, others))
        is_known = len(by_text.keys() & names.keys()) >= least
        if len(by_text) == len(mine) and len(names) == len(others) and is_known:
            return {item: names.get(text, f"\0{text}") for text, item in by_text.items()}
    prompts, also = ({one[2] for one in held.values()} for held in (mine, others))
    repeat = "texts repeat or differ" if prompts == {"null"} else "prompts repeat"
    differ = f"the order, number, prompts or references differ, and {repeat}"
    raise ArgumentError(
        f"items have no ids, {differ if prompts & also else 'no prompt is in both datasets'}, so that they "
        "cannot be paired; set ids in both datasets, for example with --id COLUMN"
    )


def _texts(dataset: LabelledDataset) -> dict[str, tuple[bool, str | None, str, str]]:
    """Return whether each item has an id, its reference, prompt or turns before the first reply, and text."""
    found = {}
    for at, item in enumerate(dataset.items):
        prompt, submission = getattr(item, "prompt", None), item.submission
        if prompt is None and isinstance(submission, list):
            prompt = list(takewhile(lambda turn: turn.get("role") != "assistant", submission))
        prompt = " ".join(prompt.split()) if isinstance(prompt, str) else prompt
        texts = getattr(item, "reference_submission", None), json.dumps(prompt), json.dumps(submission)
        found[dataset.item_id(at)] = item.id is not None, *texts
    return found


def with_truth_rule(dataset: LabelledDataset, rule: TruthRule | None) -> LabelledDataset:
    """Return the dataset with a truth rule for combining labels; unchanged if `rule` is None."""
    if rule is None:
        return dataset
    if not hasattr(dataset, "with_truth"):
        raise ArgumentError(
            f"truth={rule!r} needs a RubricDataset; {type(dataset).__name__} has no with_truth method"
        )
    ruled: LabelledDataset = dataset.with_truth(rule)
    return ruled


@runtime_checkable
class OwnedRun(SupportsGradedRun, Protocol):
    """A run with a reference to the dataset that it graded."""

    @property
    def dataset(self) -> LabelledDataset: ...


@runtime_checkable
class CountedRun(OwnedRun, Protocol):
    """A run with counts of its verdicts, which may be a shard."""

    @property
    def verdicts(self) -> VerdictCounts: ...
    @property
    def is_shard(self) -> bool: ...


@runtime_checkable
class FingerprintedRun(OwnedRun, Protocol):
    """A run that records the settings, other than items and rubric, on which its decisions depend."""

    @property
    def fingerprint(self) -> Mapping[str, Json]: ...  # judges, prompts, sampling, examples, aggregation
