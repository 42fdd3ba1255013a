"""A judge that asks a decision model, which answers typed questions with probabilities and no reasons."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from autorubric.criteria.base import AS_DECLARED, AnswerChoice, BaseCriterion, Shown
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, BudgetError, JudgeError, ReplyError, RequestRefusedError
from autorubric.judges.answering import answer_settings, ask_model
from autorubric.judges.base import JudgeReply, JudgeRequest, Outcome, shared_error
from autorubric.judges.model import demand_text, least_left, material_of, model_reply, show_request
from autorubric.judges.prompts import EXAMPLES_HEAD, MATERIAL_RULE, ComposedPrompt, render_examples, shared_of
from autorubric.llm.client import LLMClient
from autorubric.llm.config import LLMConfig
from autorubric.llm.decision_wire import NAMES_LABELS, WIRES, Contract, limit_in, without_contradictions
from autorubric.llm.names import provider_of
from autorubric.llm.transport import Message, ModelQuestion, ReplySchema
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.probabilities import ABSTENTION, as_probability, sum_problem
from autorubric.scoring.votes import Probabilities, VoteExchange
from autorubric.support.chat_tokens import neutralise_tokens
from autorubric.support.objects import Json, is_number

_MOST: Final = {"predicate": 2, "choice": 255, "score": 10}  # answers to a question, in both contracts
_UNKNOWN: Final = "The question cannot be answered from the material."
_ABSTENTION: Final = AnswerChoice(ABSTENTION, ABSTENTION, _UNKNOWN, Answer(code=None, cannot_assess=True))
_IS_UNKNOWN: Final = "Is it impossible to answer this from the material?\n{question}"
_DOES_NOT_APPLY: Final = "Is this true of the submission: {label}?\n{question}"
_WORDING: Final = (MATERIAL_RULE, EXAMPLES_HEAD, _UNKNOWN, _IS_UNKNOWN, _DOES_NOT_APPLY)
_OF_TEXTS: Final = "temperature top_p max_tokens seed thinking fallbacks logprobs takes_images"


class DecisionQuestion(NamedTuple):
    type: str  # predicate, choice or score
    text: str
    choices: tuple[AnswerChoice, ...]  # the levels of a score, lowest first; the negative and positive answer
    part: str | None = None  # key of the part that it is about; None for the whole criterion
    is_second: bool = False  # whether the positive answer is an abstention


def questions_on(criterion: BaseCriterion, shown: Shown) -> list[DecisionQuestion]:
    """Return the questions about a criterion; raise `ArgumentError` if a decision model cannot answer it."""
    asked, choices = criterion.question(), criterion.answer_choices(shown)
    abstentions = [one for one in choices if one.answer.abstains]
    # A choice includes the abstention; after other questions, a second one asks about it.
    if criterion.level in ("nominal", "ranking"):
        known = [] if abstentions or not choices else [_ABSTENTION]
        return [_fit(criterion, "choice", asked, [*Shown.arrange(choices, shown), *known])]
    questions = []
    parts: list[tuple[str | None, BaseCriterion]] = [*criterion.part_fields.items()]
    told = {key: f"{(one.name or '').rpartition('/')[2]}: {one.requirement or ''}" for key, one in parts}
    for key, part in parts or [(None, criterion)]:
        text = f"{asked}\n{told[key]}" if key else asked
        levels = [one for one in part.answer_choices() if not one.answer.abstains]
        levels.sort(key=lambda one: one.answer.value or 0.0)
        kind = "predicate" if part.level == "binary" else "score"
        questions.append(_fit(part, kind, text, levels)._replace(part=key))
    for one in abstentions or [_ABSTENTION]:
        wording = _IS_UNKNOWN if one is _ABSTENTION else _DOES_NOT_APPLY
        whole = "\n".join([asked, *told.values()])
        text = neutralise_tokens(wording.format(label=one.label, question=whole))
        no = AnswerChoice("", "no", "", one.answer)
        questions.append(DecisionQuestion("predicate", text, (no, one._replace(meaning="")), is_second=True))
    return questions


def _fit(criterion: BaseCriterion, kind: str, text: str, choices: Sequence[AnswerChoice]) -> DecisionQuestion:
    shown = [(neutralise_tokens(one.text), neutralise_tokens(one.meaning)) for one in choices]
    if 2 <= (count := len(dict(shown))) <= _MOST[kind]:
        seen = [one._replace(text=x, meaning=y) for one, (x, y) in zip(choices, shown, strict=True)]
        return DecisionQuestion(kind, neutralise_tokens(text), tuple(seen))
    why = f"has {count} possible answers, but a {kind} question takes 2 to {_MOST[kind]}"
    if not count:
        why = {
            "text": "asks for a text, but a decision model only chooses among answers",
            "ranking": "ranks more than two candidates, but a decision model cannot rank",
            "interval": "has no list of answers; only whole numbers between two whole bounds can be asked",
        }.get(criterion.level, "has answers that cannot be listed")
    instead = "another judge for it, options, a scale of 2 to 10 levels, or a comparison of mode 'best_of'"
    raise ArgumentError(f"criterion {criterion.name!r} {why}. Use {instead}")


def _systemone(question: DecisionQuestion) -> dict[str, Json]:
    kind, text, choices, *_ = question
    criteria: Json = {one.text: one.meaning or None for one in choices}
    if kind == "score":
        criteria = [f"{one.text}: {one.meaning}" if one.meaning else one.text for one in choices]
    elif kind == "predicate":
        kind, criteria = "noul", {"true": choices[1].meaning, "false": choices[0].meaning}
    given = {"criteria": criteria} if kind != "noul" or choices[1].meaning else {}
    return {"type": kind, "instructions": text, **given}


def _openai(key: str, question: DecisionQuestion) -> dict[str, Json]:
    kind, text, choices, *_ = question
    if kind == "predicate":
        told = f"\nTrue: {choices[1].meaning}\nFalse: {choices[0].meaning}" if choices[1].meaning else ""
        return {"type": kind, "name": key, "instructions": text + told}
    name, field = ("value", "choices") if kind == "choice" else ("label", "levels")
    listed = [{name: one.text} | ({"description": one.meaning} if one.meaning else {}) for one in choices]
    return {"type": kind, "name": key, "instructions": text, field: listed}


def _by_id(answers: Json, asked: Sequence[str]) -> Mapping[str, Json]:
    """Return answers by id of their question; OpenAI Decisions lists them in the questions' order."""
    if isinstance(answers, dict):
        return answers
    known = [one for one in answers if isinstance(one, dict) and one.get("name") in asked]
    named = without_contradictions([(one["name"], one) for one in known])
    # Without names, or with names of a server's own, the order tells them apart if no name contradicts it.
    ordered = dict(zip(asked, answers, strict=False))
    is_in_order = len(answers) == len(asked) and all(ordered[key] is one for key, one in named.items())
    return ordered if is_in_order else named


def _read(question: DecisionQuestion, answer: Json) -> dict[str, float] | None:
    """Return the probabilities in an answer by label; None if the model refused."""
    if not isinstance(answer, dict) or answer.get("type", "") is None:
        raise ReplyError("the answer is missing, or there are several that contradict each other")
    if answer.get("type") == "refusal":
        return None
    given = answer.get("probabilities")
    keys = [one.text if question.type == "choice" else str(at) for at, one in enumerate(question.choices)]
    if question.type == "predicate":
        said = [("1", answer[name]) for name in ("noul", "probability") if name in answer]
        positive = without_contradictions(said).get("1")
        given = {"1": positive, "0": 1.0 - positive if is_number(positive) else None}
    elif isinstance(given, list) and all(isinstance(one, dict) for one in given):
        # A boolean and a text of the same letters are different values.
        pairs = [(one.get("value"), one.get("probability")) for one in given]
        if not all(isinstance(key, str | int | float) for key, _ in pairs):
            raise ReplyError("a probability has no value, or several that contradict each other")
        given = without_contradictions(
            [(f"boolean {key}" if isinstance(key, bool) else str(key), p) for key, p in pairs]
        )
    if not isinstance(given, dict):
        raise ReplyError("the answer has no probabilities")
    for key, share in given.items():
        if key not in keys:
            raise ReplyError(f"probability of an unknown answer {key!r}; answers: {', '.join(keys)}")
        if as_probability(share) is None:
            raise ReplyError(f"a probability must be between 0 and 1; got {share!r}")
    choices = zip(keys, question.choices, strict=True)
    found = {one.label: as_probability(given.get(key, 0.0)) or 0.0 for key, one in choices}
    if problem := sum_problem(found.values()):
        raise ReplyError(f"{problem}: {found}")
    return found


class Asking:
    """The questions of one request to a server, each with its criterion's place, and the answers by id."""

    def __init__(self, contract: Contract, requests: Sequence[JudgeRequest]) -> None:
        self._contract, self._requests = contract, requests
        listed = [questions_on(one.criterion, show_request(one)) for one in requests]
        pairs = [(place, question) for place, own in enumerate(listed) for question in own]
        self.asked = {f"q{number}": pair for number, pair in enumerate(pairs, start=1)}
        self.found: dict[str, dict[str, float] | None] = {}

    def question(self, submissions: Sequence[Submission]) -> ModelQuestion[Any]:
        """Return the question to the model; after invalid answers, only their questions are asked again."""
        first, tries = self._requests[0], iter((True, False))
        tag, prefix, _ = shared_of(material_of(first, submissions[0], show_request(first)))
        examples = [
            f"{neutralise_tokens(request.criterion.name or '')}: {block}\n\n"
            for request in self._requests
            for block in render_examples(request.examples, tag)
        ]
        text = f"{MATERIAL_RULE}\n\n{prefix}{''.join(examples)}".rstrip()

        def messages() -> tuple[Message, ...]:
            asked = self._missing()
            body: Json = {"input": text, "questions": [_openai(*pair) for pair in asked.items()]}
            if self._contract == "systemone":
                body = {"state": text, "questions": {key: _systemone(one) for key, one in asked.items()}}
            return (Message("user", json.dumps(body, ensure_ascii=False)),)

        def again() -> tuple[Message, ...] | None:
            return messages() if next(tries) else None

        return ModelQuestion(messages(), self._decode, None, first.sample, again)

    def _missing(self) -> dict[str, DecisionQuestion]:
        return {key: question for key, (_, question) in self.asked.items() if key not in self.found}

    def _decode(self, text: str) -> bool:
        missing, problems = self._missing(), []
        answers = _by_id(json.loads(text), list(missing))
        for key, question in missing.items():
            try:
                self.found[key] = _read(question, answers.get(key))
            except ReplyError as error:
                problems.append(f"{self._requests[self.asked[key][0]].criterion.name}: {error}")
        if problems:
            raise ReplyError("; ".join(problems))
        return True

    def reply(self, place: int, outcome: JudgeReply) -> JudgeReply | None:
        """Return the outcome with the probabilities of a criterion; None if an answer is missing."""
        own = [(key, question) for key, (at, question) in self.asked.items() if at == place]
        if any(key not in self.found for key, _ in own):
            return None
        return replace(outcome, probabilities=_combine([(one, self.found[key]) for key, one in own]))


def _combine(answers: Sequence[tuple[DecisionQuestion, dict[str, float] | None]]) -> Probabilities | None:
    """Return the probabilities of a criterion's answers; None if one of its questions was refused."""
    # P(abstention i) is qᵢ, or qᵢ / Σq if the sum exceeds 1; other answers share max(0, 1 - Σq), by part.
    known = [(one, given) for one, given in answers if given is not None]
    second = [(one.choices[1].label, given[one.choices[1].label]) for one, given in known if one.is_second]
    total = math.fsum(q for _, q in second)
    abstaining = {label: q / max(total, 1.0) for label, q in second}
    found: dict[Any, Any] = {
        one.part: {label: p * max(0.0, 1.0 - total) for label, p in given.items()} | abstaining
        for one, given in known
        if not one.is_second
    }
    return found.get(None, found) if len(known) == len(answers) else None


class DecisionModelJudge:
    """A decision model as a judge: it answers with probabilities, and gives no reasons.

    All criteria of an item are asked in as few requests as the server's limits allow, whatever the grader's
    `llm_calls`; a limit that the server names in an error is learned. Missing and invalid answers are
    requested again once. A refusal of a question is an abstention.

    Args:
        model: The model's name, or its config without parameters of text models, such as `temperature`.
        contract: `systemone` (`POST {api_base}/systemone`) or `openai` (`POST {api_base}/decisions`); by
            default that of the config, or `systemone`. Without `api_base`, litellm is used.
        judge_id: Name in votes and metrics; by default the name of the model.
        **settings: Parameters of `LLMConfig`, such as `api_base`, if `model` is a name.

    Raises:
        ArgumentError: If the contract is unknown, or a setting does not apply to decision models.
    """

    asks_whole_items: Final = True

    def __init__(
        self,
        model: LLMConfig | str,
        contract: Contract | None = None,
        *,
        judge_id: str | None = None,
        **settings: Any,
    ) -> None:
        config = model if isinstance(model, LLMConfig) else LLMConfig(model=model, **settings)
        transport = config.transport if contract is None and config.transport in WIRES else ""
        transport = transport or f"{contract or 'systemone'}_decisions"
        if transport not in WIRES:
            raise ArgumentError(f"contract must be systemone or openai; got {contract!r}")
        if unused := [name for name in _OF_TEXTS.split() if getattr(config, name) not in (None, ())]:
            raise ArgumentError(f"{config.model}: {', '.join(unused)} cannot be set for a decision model")
        self.client = LLMClient(config.model_copy(update={"transport": transport}))
        self.judge_id = judge_id or config.model
        self.contract: Any = transport.removesuffix("_decisions")
        self.backend = f"{self.contract} {provider_of(config.model, config.api_base)}"
        # litellm's limit, and that of OpenAI Decisions.
        self._most = {"answers": 255, "questions": 128 if config.api_base is None else 400}

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """A tuple with the config of the model."""
        return (self.client.config,)

    def describe(self) -> dict[str, Json]:
        """Return the model's config, without secrets, and a digest of the texts around criteria."""
        wording = hashlib.sha256("\0".join(_WORDING).encode("utf-8")).hexdigest()[:16]
        return {**answer_settings(self.client.config), "judge": "decision_model", "wording": wording}

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Raise an `ArgumentError` if the model cannot answer a criterion other than a comparison."""
        for criterion in (one for rubric in rubrics for one in rubric):
            if criterion.check is None and criterion.level != "ranking":
                questions_on(criterion, AS_DECLARED)

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> ComposedPrompt | None:
        """Return one request to the server with all questions on these criteria of an item."""
        question = Asking(self.contract, requests).question((requests[0].submission,))
        return ComposedPrompt(question.messages, ReplySchema(name="none", schema={}))

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's probabilities for one criterion; for the errors, see `Judge.ask`."""
        reply = (await self.ask_many([request]))[0]
        if isinstance(reply, JudgeReply):
            return reply
        raise reply

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Sequence[Outcome]:
        """Return the probabilities for criteria of an item; the first one of each request has its cost."""
        demand_text(self.judge_id, requests[0])
        errors = [self._why_unfit(one) for one in requests]
        fit = [one for one, error in zip(requests, errors, strict=True) if not error]
        groups = await asyncio.gather(*map(self._ask_together, self.split(fit)))
        replies = iter([reply for group in groups for reply in group])
        return [JudgeError(error) if error else next(replies) for error in errors]

    def split(self, requests: Sequence[JudgeRequest]) -> list[list[JudgeRequest]]:
        """Split criteria into requests to the server with at most as many questions as it takes."""
        groups: list[list[JudgeRequest]] = []
        room = 0
        for request in requests:
            count = len(questions_on(request.criterion, show_request(request)))
            if count > room:
                groups.append([])
                room = self._most["questions"]
            groups[-1].append(request)
            room -= count
        return groups

    def _why_unfit(self, request: JudgeRequest) -> str:
        """Return why the server cannot be asked about a criterion; empty if it can."""
        for what, size in _sizes(questions_on(request.criterion, show_request(request))).items():
            if size > self._most[what]:
                most = f"{self.backend} takes at most {self._most[what]}; use fewer options or another judge"
                return f"criterion {request.criterion.name!r} has {size} {what}, but {most}"
        return ""

    async def _ask_together(self, requests: Sequence[JudgeRequest]) -> Sequence[Outcome]:
        asking = Asking(self.contract, requests)
        submissions, compared = (requests[0].submission,), bool(show_request(requests[0]).names)
        failures: Sequence[Outcome] = [ReplyError("no answer")] * len(requests)
        left = least_left(requests)
        try:
            reply = await ask_model(self.client, asking.question, submissions, compared=compared, left=left)
        except BudgetError as error:
            return [error] * len(requests)
        except JudgeError as error:
            left = error.requests_left
            if left != 0 and self._learns_limit(error, asking):
                return await self.ask_many([replace(one, requests_left=left) for one in requests])
            failures = shared_error(error, len(requests))
            told: dict[str, Any] = {"usage": error.usage, "cost": error.cost, "model": error.selected_model}
            exchanged = VoteExchange(messages=error.messages, replies=error.replies, requests_left=left)
            first = JudgeReply(answer=None, exchanged=exchanged, **told)
        else:
            assert reply.exchange is not None
            if reply.answer is None:
                asking.found = dict.fromkeys(asking.asked)
            first = replace(model_reply(reply.exchange, Answer(code=None), reply.shown), answer=None)
        first = replace(first, probability_source="decision_model", probability_backend=self.backend)
        shared = VoteExchange(shared_with=requests[0].criterion.name)
        outcomes = [first, *[replace(first, usage=None, cost=None, exchanged=shared)] * (len(requests) - 1)]
        replies = [asking.reply(place, outcome) for place, outcome in enumerate(outcomes)]
        return [one or failure for one, failure in zip(replies, failures, strict=True)]

    def _learns_limit(self, error: JudgeError, asking: Asking) -> bool:
        """Remember the limit that an error names; return whether the request exceeded it."""
        limit = limit_in(str(error)) if type(error) is RequestRefusedError else None
        sizes = _sizes([question for _, question in asking.asked.values()])
        over = [what for what, size in sizes.items() if limit and size > limit]
        if limit and over:
            is_labels = over[0] == "answers" and (len(over) == 1 or NAMES_LABELS.search(str(error)))
            self._most["answers" if is_labels else "questions"] = limit
        return bool(over)

    async def aclose(self) -> None:
        """Close the model's connections; the next request reopens them."""
        await self.client.aclose()


def _sizes(questions: Sequence[DecisionQuestion]) -> dict[str, int]:
    """Return the largest number of answers to a question, and the number of questions."""
    return {"answers": max(len(one.choices) for one in questions), "questions": len(questions)}
