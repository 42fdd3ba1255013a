"""Questions to a decision model about criteria, and the probabilities in its answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from autorubric.criteria.base import AnswerChoice, BaseCriterion, Shown
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, ReplyError
from autorubric.judges.base import JudgeRequest
from autorubric.judges.model import material_of, show_request
from autorubric.judges.prompts import EXAMPLES_HEAD, MATERIAL_RULE, neutralise, render_examples, shared_of
from autorubric.llm.decision_wire import Contract
from autorubric.llm.transport import Message, ModelQuestion
from autorubric.scoring.probabilities import ABSTENTION, SUM_TOLERANCE
from autorubric.scoring.votes import Probabilities
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.objects import Json, is_number

_MOST: Final = {"predicate": 2, "choice": 255, "score": 10}
"""Maximum number of answers to a question of each type, in both contracts."""
_UNKNOWN: Final = "The question cannot be answered from the material."
_ABSTENTION: Final = AnswerChoice(
    Answer(code=None, label=ABSTENTION, cannot_assess=True), ABSTENTION, _UNKNOWN
)
_IS_UNKNOWN: Final = "Is it impossible to answer this from the material?\n{question}"
_DOES_NOT_APPLY: Final = "Is this true of the submission: {label}?\n{question}"
_WORDING: Final = (MATERIAL_RULE, EXAMPLES_HEAD, _UNKNOWN, _IS_UNKNOWN, _DOES_NOT_APPLY)
WORDING: Final = hashlib.sha256("\0".join(_WORDING).encode("utf-8")).hexdigest()[:16]
"""Digest of the texts around criteria; stored votes depend on it."""


class DecisionQuestion(NamedTuple):
    """One question to a decision model."""

    type: str  # predicate, choice or score
    instructions: str
    choices: tuple[AnswerChoice, ...]  # the levels of a score, lowest first; the negative and positive answer
    part: str | None = None  # key of the part that it is about; None for the whole criterion
    is_second: bool = False  # whether the positive answer is an abstention

    @property
    def labels(self) -> list[str]:
        """The labels of the answers."""
        return [ABSTENTION if one.answer.cannot_assess else str(one.answer.label) for one in self.choices]


def questions_on(criterion: BaseCriterion, shown: Shown) -> list[DecisionQuestion]:
    """Return the questions about a criterion, by level.

    A binary criterion is a predicate, a nominal one or a comparison a choice, and an ordinal one or a range of
    whole numbers a score. Each part of a criterion is a separate question. A choice includes `CANNOT_ASSESS`,
    unless the criterion has an NA option. Otherwise, a second predicate asks about it or the NA option.

    Raises:
        ArgumentError: If a decision model cannot answer the criterion.
    """
    asked, choices = criterion.question(), criterion.answer_choices(shown)
    questions = [
        _question(part, f"{asked}\n{(part.name or '').rpartition('/')[2]}: {part.requirement}", key)
        for key, part in criterion.part_fields.items()
    ] or [_question(criterion, asked, None, shown)]
    if questions[0].type != "choice":
        for one in [one for one in choices if one.answer.abstains] or [_ABSTENTION]:
            wording = _IS_UNKNOWN if one is _ABSTENTION else _DOES_NOT_APPLY
            text = neutralise_tokens(wording.format(label=one.text, question=asked))
            pair = (AnswerChoice(Answer(code=None, label=""), "no"), one._replace(meaning=""))
            questions.append(DecisionQuestion("predicate", text, pair, is_second=True))
    return questions


def _question(
    criterion: BaseCriterion, asked: str, part: str | None, shown: Shown | None = None
) -> DecisionQuestion:
    kind = {"binary": "predicate", "nominal": "choice", "ranking": "choice"}.get(criterion.level, "score")
    choices = criterion.answer_choices(shown)
    if kind == "choice" and choices:
        is_na = any(one.answer.abstains for one in choices)
        choices = (*Shown.arrange(choices, shown), *(() if is_na else (_ABSTENTION,)))
    elif kind == "score":
        scored = [one for one in choices if not one.answer.abstains]
        choices = tuple(sorted(scored, key=lambda one: one.answer.value or 0.0))
    texts = [(neutralise_tokens(one.text), neutralise_tokens(one.meaning)) for one in choices]
    count, most = len(dict(texts)), _MOST[kind]
    if not 2 <= count <= most:
        why = {
            "text": "asks for a text, but a decision model only chooses among answers",
            "ranking": "ranks more than two candidates, but a decision model cannot rank",
            "interval": "has no list of answers; only whole numbers between two whole bounds can be asked",
        }.get(criterion.level, "has answers that cannot be listed")
        why = (
            f"has {count} possible answers, but a {kind} question takes at most {most}" if count > 1 else why
        )
        raise ArgumentError(
            f"criterion {criterion.name!r} {why}. Use another judge for it, options, a scale of 2 to 10 levels, "
            "or a comparison of mode 'best_of'"
        )
    seen = tuple(AnswerChoice(one.answer, *text) for one, text in zip(choices, texts, strict=True))
    return DecisionQuestion(kind, neutralise_tokens(asked), seen, part)


def _write(contract: Contract, text: str, questions: dict[str, DecisionQuestion]) -> str:
    """Return the JSON of a request: the shared text and the questions by id."""
    if contract == "systemone":
        body: Json = {"state": text, "questions": {key: _systemone(one) for key, one in questions.items()}}
    else:
        body = {"input": text, "questions": [_openai(key, one) for key, one in questions.items()]}
    return json.dumps(body, ensure_ascii=False)


def _systemone(question: DecisionQuestion) -> dict[str, Json]:
    kind, asked, choices, *_ = question
    criteria: Json = {one.text: one.meaning or None for one in choices}
    if kind == "score":
        criteria = [": ".join(filter(None, one[1:])) for one in choices]
    elif kind == "predicate":
        kind, criteria = "noul", {"true": choices[1].meaning, "false": choices[0].meaning}
    given = {"criteria": criteria} if kind != "noul" or choices[1].meaning else {}
    return {"type": kind, "instructions": asked, **given}


def _openai(key: str, question: DecisionQuestion) -> dict[str, Json]:
    kind, asked, choices, *_ = question
    if kind == "predicate":
        if choices[1].meaning:
            asked += f"\nTrue: {choices[1].meaning}\nFalse: {choices[0].meaning}"
        return {"type": kind, "name": key, "instructions": asked}
    name, field = ("value", "choices") if kind == "choice" else ("label", "levels")
    told = [{name: one.text} | ({"description": one.meaning} if one.meaning else {}) for one in choices]
    return {"type": kind, "name": key, "instructions": asked, field: told}


def _by_id(answers: Json, asked: Sequence[str]) -> dict[str, Json]:
    """Return answers by id of their question; OpenAI Decisions lists them in the questions' order."""
    if isinstance(answers, dict):
        return answers
    named = {one["name"]: one for one in answers if isinstance(one, dict) and one.get("name") in asked}
    is_in_order = len(answers) == len(asked) and len(named) < len(asked)
    return dict(zip(asked, answers, strict=True)) if is_in_order else named


def _read(question: DecisionQuestion, answer: Json) -> dict[str, float] | None:
    """Return the probabilities in an answer by label; None if the model refused."""
    if not isinstance(answer, dict):
        raise ReplyError("the answer is missing")
    if answer.get("type") == "refusal":
        return None
    labels, given = question.labels, answer.get("probabilities")
    if question.type == "predicate":
        positive = _probability(answer.get("noul", answer.get("probability")))
        return dict(zip(labels, (1.0 - positive, positive), strict=True))
    if isinstance(given, list) and all(isinstance(one, dict) for one in given):
        # A boolean and a text of the same letters are different values.
        keys = [one.get("value") for one in given]
        keys = [f"boolean {key}" if isinstance(key, bool) else str(key) for key in keys]
        given = dict(zip(keys, (one.get("probability") for one in given), strict=True))
    if not isinstance(given, dict):
        raise ReplyError("the answer has no probabilities")
    texts = [one.text for one in question.choices]
    known = dict(
        zip(texts if question.type == "choice" else map(str, range(len(texts))), labels, strict=True)
    )
    if unknown := [key for key in given if key not in known]:
        raise ReplyError(f"probability of an unknown answer {unknown[0]!r}; answers: {', '.join(known)}")
    found = dict.fromkeys(labels, 0.0) | {known[key]: _probability(share) for key, share in given.items()}
    total = math.fsum(found.values())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ReplyError(f"the probabilities must sum to 1 (±{SUM_TOLERANCE:g}); the sum is {total:g}")
    return found


def _probability(given: Any) -> float:
    if not is_number(given) or not 0.0 <= given <= 1.0:
        raise ReplyError(f"a probability must be between 0 and 1; got {given!r}")
    return float(given)


class Asking:
    """The questions of one request to a server, and the answers read so far.

    Attributes:
        questions: The questions by id.
        found: The distributions that were read, by id; None for a refusal.
    """

    def __init__(self, contract: Contract, requests: Sequence[JudgeRequest]) -> None:
        self._contract = contract
        self._requests = requests
        listed = [questions_on(one.criterion, show_request(one)) for one in requests]
        pairs = [(place, question) for place, own in enumerate(listed) for question in own]
        self.questions = {f"q{number}": question for number, (_, question) in enumerate(pairs, start=1)}
        self._places = dict(zip(self.questions, (place for place, _ in pairs), strict=True))
        self.found: dict[str, dict[str, float] | None] = {}

    def question(self, submissions: Sequence[Submission]) -> ModelQuestion[Any]:
        """Return the question to the model; after invalid answers, only their questions are asked again."""
        first = self._requests[0]
        tag, prefix = shared_of(material_of(first, submissions[0], show_request(first)))
        examples = [
            f"{neutralise(request.criterion.name or '')}: {block}\n\n"
            for request in self._requests
            for block in render_examples(request.examples, tag)
        ]
        text = f"{MATERIAL_RULE}\n\n{prefix}{''.join(examples)}".rstrip()
        tries = iter((True, False))

        def messages() -> tuple[Message, ...]:
            return (Message("user", _write(self._contract, text, self._open())),)

        def again() -> tuple[Message, ...] | None:
            return messages() if next(tries) else None

        return ModelQuestion(messages(), self._decode, None, first.sample, again)

    def _open(self) -> dict[str, DecisionQuestion]:
        return {key: one for key, one in self.questions.items() if key not in self.found}

    def _decode(self, text: str) -> bool:
        missing, problems = self._open(), []
        answers = _by_id(json.loads(text), list(missing))
        for key, question in missing.items():
            try:
                self.found[key] = _read(question, answers.get(key))
            except ReplyError as error:
                problems.append(f"{self._requests[self._places[key]].criterion.name}: {error}")
        if problems:
            raise ReplyError("; ".join(problems))
        return True

    def is_answered(self, place: int) -> bool:
        """Return whether all questions on a criterion were answered or refused."""
        return all(key in self.found for key, own in self._places.items() if own == place)

    def probabilities(self, place: int) -> Probabilities | None:
        """Return the probabilities of a criterion's answers; None if one of its questions was refused.

        If the second questions about abstentions were answered with q₁, q₂, …, then P(abstention i) is qᵢ, or
        qᵢ / Σq if the sum exceeds 1, and the probability p of another answer becomes p · max(0, 1 - Σq). With
        parts, this applies to each part.
        """
        own = [(self.questions[key], self.found[key]) for key, at in self._places.items() if at == place]
        if any(given is None for _, given in own):
            return None
        second = {one.labels[1]: given[one.labels[1]] for one, given in own if one.is_second and given}
        total = math.fsum(second.values())
        abstaining = {label: q / max(total, 1.0) for label, q in second.items()}
        found = {
            one.part: {label: p * max(0.0, 1.0 - total) for label, p in given.items()} | abstaining
            for one, given in own
            if given and not one.is_second
        }
        return found[None] if None in found else {str(part): given for part, given in found.items()}
