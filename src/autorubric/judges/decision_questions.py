"""Questions to a decision model about a criterion, and the probabilities in its answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from autorubric.criteria.base import AnswerChoice, BaseCriterion, Shown
from autorubric.errors import ArgumentError, ReplyError
from autorubric.judges.answering import Submissions
from autorubric.judges.base import JudgeRequest
from autorubric.judges.model import material_of, show_request
from autorubric.judges.prompts import EXAMPLES_HEAD, MATERIAL_RULE, neutralise, render_examples, shared_of
from autorubric.llm.decision_wire import Contract
from autorubric.llm.transport import Message, ModelQuestion
from autorubric.scoring.probabilities import ABSTENTION, SUM_TOLERANCE
from autorubric.scoring.votes import Probabilities
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.objects import Json, is_number

MOST_LABELS: Final = 255
"""Maximum number of choices of a question in both contracts."""
MOST_LEVELS: Final = 10
"""Maximum number of levels of a score in both contracts."""

_UNKNOWN: Final = "Is it impossible to answer this from the material?\n{question}"
_UNKNOWN_MEANING: Final = "The question cannot be answered from the material."
_NOT_APPLICABLE: Final = "Does this not apply to the submission ({label})?\n{question}"
WORDING: Final = hashlib.sha256(
    "\0".join([MATERIAL_RULE, EXAMPLES_HEAD, _UNKNOWN, _UNKNOWN_MEANING, _NOT_APPLICABLE]).encode("utf-8")
).hexdigest()[:16]
"""Digest of the texts around criteria; stored votes depend on it."""


class Choice(NamedTuple):
    """One choice of a question."""

    label: str  # the answer's label
    text: str  # the answer as shown
    meaning: str = ""  # what it says about the submission; empty if the text says it


class DecisionQuestion(NamedTuple):
    """One question to a decision model."""

    type: Literal["predicate", "choice", "score"]
    instructions: str
    choices: tuple[Choice, ...]  # of a predicate, the negative and the positive answer
    part: str | None = None  # the part of the criterion; None for a criterion without parts
    extra: str | None = None  # label that the positive answer stands for, if this is a second question


def questions_on(criterion: BaseCriterion, shown: Shown) -> list[DecisionQuestion]:
    """Return the questions about a criterion, by level.

    A binary criterion is a predicate, a nominal one and a comparison a choice, an ordinal one and a range of
    whole numbers a score, and each part of a criterion is a separate question. Choices include
    `CANNOT_ASSESS`, unless the criterion has an option for it. For other questions, a predicate asks whether
    the criterion cannot be assessed and, for each NA option, whether it applies.

    Raises:
        ArgumentError: If a decision model cannot answer the criterion.
    """
    parts = criterion.part_fields
    if not parts:
        asked = [_question(criterion, criterion.question(), criterion.answer_choices(shown), shown)]
    else:
        asked = [
            _question(part, f"{criterion.question()}\n{_text(part)}", part.answer_choices(), shown, key)
            for key, part in parts.items()
        ]
    if asked[0].type == "choice":
        return asked
    not_applicable = [choice.answer.label or "" for choice in _abstaining(criterion)]
    return [*asked, *(_second(criterion, label) for label in not_applicable or [ABSTENTION])]


def _text(part: BaseCriterion) -> str:
    return f"{(part.name or '').rpartition('/')[2]}: {part.requirement or ''}"


def _abstaining(criterion: BaseCriterion) -> list[AnswerChoice]:
    return [choice for choice in criterion.answer_choices() if choice.answer.abstains]


def _second(criterion: BaseCriterion, label: str) -> DecisionQuestion:
    """Return the predicate about an abstention, whose mass comes off the other answers."""
    wording = _UNKNOWN if label == ABSTENTION else _NOT_APPLICABLE
    asked = neutralise_tokens(wording.format(label=label, question=criterion.question()))
    return DecisionQuestion("predicate", asked, (Choice("", "no"), Choice(label, "yes")), extra=label)


def _question(
    criterion: BaseCriterion,
    asked: str,
    choices: Sequence[AnswerChoice],
    shown: Shown,
    part: str | None = None,
) -> DecisionQuestion:
    level = criterion.level
    type_: Literal["predicate", "choice", "score"] = "score"
    if level == "binary":
        type_ = "predicate"
    elif level in ("nominal", "ranking"):
        type_, choices = "choice", Shown.arrange(choices, shown)
        if not any(choice.answer.abstains for choice in choices):
            unknown = AnswerChoice(criterion.read(ABSTENTION), ABSTENTION, _UNKNOWN_MEANING)
            choices = [*choices, unknown] if choices else choices
    else:
        choices = [choice for choice in choices if not choice.answer.abstains]
        if criterion.measures and level == "ordinal":
            choices = sorted(choices, key=lambda choice: choice.answer.value or 0.0)
    given = tuple(
        Choice(
            ABSTENTION if one.answer.cannot_assess else one.answer.label or "",
            neutralise_tokens(one.text),
            neutralise_tokens(one.meaning),
        )
        for one in choices
    )
    _demand_fit(criterion, type_, len({one.text for one in given}))
    return DecisionQuestion(type_, neutralise_tokens(asked), given, part)


def _demand_fit(criterion: BaseCriterion, type_: str, count: int) -> None:
    most = {"predicate": 2, "choice": MOST_LABELS, "score": MOST_LEVELS}[type_]
    if 2 <= count <= most:
        return
    problem = f"has {count} possible answers, but a {type_} question takes at most {most}"
    if count < 2:
        problem = {
            "text": "asks for a text, but a decision model only chooses among answers",
            "ranking": "ranks more than two candidates, but a decision model cannot rank",
            "interval": "has no list of answers: only whole numbers between two whole bounds can be asked",
        }.get(criterion.level, "has answers that cannot be listed")
    raise ArgumentError(
        f"criterion {criterion.name!r} {problem}. Use another judge for it, or a scale of 2 to {MOST_LEVELS} "
        "levels, options, or a comparison of mode 'best_of'"
    )


def write_questions(contract: Contract, text: str, questions: Mapping[str, DecisionQuestion]) -> str:
    """Return the JSON of a request: the shared text and the questions by id."""
    if contract == "systemone":
        body: Json = {"state": text, "questions": {key: _noul(one) for key, one in questions.items()}}
    else:
        body = {"input": text, "questions": [_openai(key, one) for key, one in questions.items()]}
    return json.dumps(body, ensure_ascii=False)


def _noul(question: DecisionQuestion) -> dict[str, Json]:
    asked: dict[str, Json] = {"type": question.type, "instructions": question.instructions}
    choices = question.choices
    if question.type == "predicate":
        negative, positive = choices
        criteria = {"true": positive.meaning, "false": negative.meaning} if positive.meaning else None
        return {**asked, "type": "noul", **({"criteria": criteria} if criteria else {})}
    if question.type == "choice":
        return {**asked, "criteria": {one.text: one.meaning or None for one in choices}}
    return {**asked, "criteria": [": ".join(filter(None, one[1:])) for one in choices]}


def _openai(key: str, question: DecisionQuestion) -> dict[str, Json]:
    asked: dict[str, Json] = {"type": question.type, "name": key, "instructions": question.instructions}
    if question.type == "predicate":
        negative, positive = question.choices
        if positive.meaning:
            asked["instructions"] += f"\nTrue: {positive.meaning}\nFalse: {negative.meaning}"
        return asked
    name, field = ("value", "choices") if question.type == "choice" else ("label", "levels")
    asked[field] = [
        {name: one.text} | ({"description": one.meaning} if one.meaning else {}) for one in question.choices
    ]
    return asked


def answers_by_id(answers: Json, asked: Sequence[str]) -> Mapping[str, Json]:
    """Return the answers by id of their question; OpenAI Decisions lists them in the questions' order."""
    if isinstance(answers, dict):
        return answers
    if not isinstance(answers, list):
        raise ReplyError("the reply has no answers")
    named = {one["name"]: one for one in answers if isinstance(one, dict) and one.get("name") in asked}
    if len(named) == len(answers):
        return named
    return dict(zip(asked, answers, strict=True)) if len(answers) == len(asked) else named


def read_distribution(question: DecisionQuestion, answer: Json) -> dict[str, float] | None:
    """Return the probabilities in an answer by label; None if the model refused.

    Raises:
        ReplyError: If the answer is missing or has another type, a label is unknown, or the probabilities are
            not in [0, 1] or do not sum to 1 (±0.02).
    """
    if not isinstance(answer, dict):
        raise ReplyError("the answer is missing")
    if answer.get("type") == "refusal":
        return None
    labels = [one.label for one in question.choices]
    if question.type == "predicate":
        positive = _probability(answer.get("noul", answer.get("probability")))
        return dict(zip(labels, (1.0 - positive, positive), strict=True))
    is_choice = question.type == "choice"
    keys = [one.text for one in question.choices] if is_choice else [str(n) for n in range(len(labels))]
    known = dict(zip(keys, labels, strict=True))
    found = dict.fromkeys(labels, 0.0)
    for key, share in _pairs(answer.get("probabilities")):
        if key not in known:
            raise ReplyError(f"probability of an unknown answer {key!r}; answers: {', '.join(known)}")
        found[known[key]] = _probability(share)
    total = math.fsum(found.values())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ReplyError(f"the probabilities must sum to 1 (±{SUM_TOLERANCE:g}); the sum is {total:g}")
    return found


def _pairs(given: Json) -> list[tuple[str, Json]]:
    if isinstance(given, dict):
        return list(given.items())
    if isinstance(given, list) and all(isinstance(one, dict) for one in given):
        pairs = [(one.get("value"), one.get("probability")) for one in given]
        # A boolean and a text of the same letters are different values.
        return [(f"boolean {key}" if isinstance(key, bool) else str(key), share) for key, share in pairs]
    raise ReplyError("the answer has no probabilities")


def _probability(given: Any) -> float:
    if not is_number(given) or not 0.0 <= given <= 1.0:
        raise ReplyError(f"a probability must be between 0 and 1; got {given!r}")
    return float(given)


Found = dict[str, dict[str, float] | None]
"""Distributions by id of their question; None if the model refused."""


class Asking:
    """The questions of one request to a server, and the answers read so far.

    Attributes:
        questions: The questions by id.
        found: The distributions that were read, by id.
    """

    def __init__(self, contract: Contract, requests: Sequence[JudgeRequest]) -> None:
        self._contract = contract
        self._requests = requests
        pairs = [
            (place, question)
            for place, request in enumerate(requests)
            for question in questions_on(request.criterion, show_request(request))
        ]
        self.questions = {f"q{number}": question for number, (_, question) in enumerate(pairs, start=1)}
        self._places = dict(zip(self.questions, (place for place, _ in pairs), strict=True))
        self.found: Found = {}

    @property
    def most_labels(self) -> int:
        """The largest number of choices or levels of a question."""
        return max(len(question.choices) for question in self.questions.values())

    def is_answered(self, place: int) -> bool:
        """Return whether all questions on a criterion were answered, or refused."""
        return all(key in self.found for key, own in self._places.items() if own == place)

    def question(self, submissions: Submissions) -> ModelQuestion[Found]:
        """Return the question to the model; after invalid answers, only their questions are asked again."""
        shown = show_request(self._requests[0])
        tag, prefix = shared_of(material_of(self._requests[0], submissions[0], shown))
        examples = [
            f"{neutralise(request.criterion.name or '')}: {block}\n\n"
            for request in self._requests
            for block in render_examples(request.examples, tag)
        ]
        text = f"{MATERIAL_RULE}\n\n{prefix}{''.join(examples)}".rstrip()
        tries = iter((True, False))

        def messages() -> tuple[Message, ...]:
            return (Message("user", write_questions(self._contract, text, self._unanswered())),)

        return ModelQuestion(
            messages(),
            self._read,
            sample=self._requests[0].sample,
            again=lambda: messages() if next(tries) else None,
        )

    def _unanswered(self) -> dict[str, DecisionQuestion]:
        return {key: one for key, one in self.questions.items() if key not in self.found}

    def _read(self, text: str) -> Found:
        missing = self._unanswered()
        answers = answers_by_id(json.loads(text), list(missing))
        problems = []
        for key, question in missing.items():
            try:
                self.found[key] = read_distribution(question, answers.get(key))
            except ReplyError as error:
                problems.append(f"{self._requests[self._places[key]].criterion.name}: {error}")
        if problems:
            raise ReplyError("; ".join(problems))
        return self.found

    def probabilities(self, place: int) -> Probabilities | None:
        """Return the probabilities of a criterion's answers; None if the model refused one of its questions.

        If the second questions about abstentions were answered with q₁, q₂, …, then P(abstention i) is qᵢ, or
        qᵢ / Σq if the sum exceeds 1, and the probability p of another answer becomes p · max(0, 1 - Σq). With
        parts, this applies to each part.
        """
        own = [(self.questions[key], self.found[key]) for key, at in self._places.items() if at == place]
        if any(given is None for _, given in own):
            return None
        second = {one.extra: given[one.extra] for one, given in own if one.extra and given}
        total = math.fsum(second.values())
        abstaining = {label: q / max(total, 1.0) for label, q in second.items()}
        found = {
            one.part: {label: p * max(0.0, 1.0 - total) for label, p in given.items()} | abstaining
            for one, given in own
            if not one.extra and given
        }
        return found[None] if None in found else {str(part): given for part, given in found.items()}
