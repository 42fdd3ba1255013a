"""The critic: one criterion put to one evaluator, which gives the evaluation itself."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from pydantic import BaseModel

from autorubric._files import shortened
from autorubric.criteria import BaseCriterion, Shown, object_schema
from autorubric.critic._evaluators import Asking, Evaluator, EvaluatorLike, evaluator_of
from autorubric.critic._prompt import DEFAULT_TEMPLATE, OWN_VARIABLES, VARIABLES, Case, Prompt, variables
from autorubric.critic._reading import evaluation_of, read_batch, read_single
from autorubric.critic._template import Template, text_of
from autorubric.critic._written import read_arguments, written
from autorubric.errors import ArgumentError, JudgeError, ReplyError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.llm import ReplySchema
from autorubric.values import Json, Submission


@dataclass(frozen=True, slots=True)
class Critic:
    """Evaluates outputs by one criterion, and gives the evaluation itself.

    A critic is a judge too: in a panel it votes on its own criterion and on no other.

    Attributes:
        evaluator: Who answers: a model's name, an `LLMConfig` (or an `LLMClient`), an object with
            `forward(prompt)` or `aforward(prompt)`, or a sync or async function of the prompt; it gets a
            `Prompt` and gives JSON text, a dict, an instance of `prompt.format_override`, or an object with
            such a text as `.text`. A model whose reply cannot be read is asked again, twice at most. A
            `Judge` will do as well; it asks in its own words, so that the template does not reach it.
        criterion: What is evaluated.
        prompt_template: Text with the variables `{criterion}`, `{output}` (or `{outputs}`), `{input}` (or
            `{inputs}`), `{reference}`, `{context}`, `{material}` (all of these that are given, delimited),
            `{instruction}` (how to answer), and keyword arguments of the call. None is empty, and braces
            within values mean nothing.
        reference: The reference of every call that gives none.

    Raises:
        ArgumentError: The evaluator or the criterion is none, or the template has something else than plain
            variables in braces.
    """

    evaluator: EvaluatorLike
    criterion: BaseCriterion
    prompt_template: str = DEFAULT_TEMPLATE
    reference: Any = None
    _asker: Evaluator = field(init=False, repr=False, compare=False)
    _template: Template = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.criterion, BaseCriterion):
            raise ArgumentError(f"criterion is {shortened(self.criterion)}; give a criterion")
        template = Template.parse(self.prompt_template, (*VARIABLES, *OWN_VARIABLES))
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "_asker", evaluator_of(self.evaluator))

    def __reduce__(self) -> tuple[Any, ...]:
        """The four arguments: connections are opened anew by whoever unpickles it."""
        return type(self), (self.evaluator, self.criterion, self.prompt_template, self.reference)

    def __call__(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """The evaluation of one output; see `forward`."""
        return self.forward(output, input, reference, context, **kwargs)

    def forward(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """The evaluation of one output, an instance of `criterion.evaluation_schema`.

        Safe inside a running event loop.

        Args:
            output: What is evaluated; for a comparison a mapping of names to texts.
            input: What it answers.
            reference: What it is compared with, as the criterion says; by default the critic's own.
            context: What else is to be known.
            **kwargs: Further template variables.

        Raises:
            ReplyError: The reply cannot be read, or the evaluator says that it cannot judge.
            JudgeError: The evaluator could not answer.
            ArgumentError: The template has another variable, or the criterion needs a reference.
        """
        asking = self._asking([output], [input], reference, context, kwargs, batch=False)
        return self._evaluation(self._asker.ask_now(asking)[0])

    async def aforward(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """What `forward` gives, without blocking; a sync evaluator runs in a thread."""
        asking = self._asking([output], [input], reference, context, kwargs, batch=False)
        return self._evaluation((await self._asker.ask(asking))[0])

    def batch_forward(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any] | None = None,
        reference: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """The evaluations of several outputs from one request, an instance of
        `criterion.batch_evaluation_schema`; `.evaluations` are in the order of the outputs.

        Args:
            outputs: What is evaluated; at least one.
            inputs: What each of them answers, None where nothing.
            reference: What all of them are compared with; by default the critic's own.
            context: What else is to be known.
            **kwargs: Further template variables.

        Raises:
            ReplyError: There is not one evaluation for each output, or one cannot be read.
            JudgeError: The evaluator could not answer.
            ArgumentError: Outputs and inputs do not match, or as in `forward`.
        """  # fmt: skip
        asking = self._asking(outputs, inputs, reference, context, kwargs, batch=True)
        return self._evaluations(self._asker.ask_now(asking))

    async def batch_aforward(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any] | None = None,
        reference: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """What `batch_forward` gives, without blocking."""
        asking = self._asking(outputs, inputs, reference, context, kwargs, batch=True)
        return self._evaluations(await self._asker.ask(asking))

    @property
    def judge_id(self) -> str:
        """The evaluator's name: the model's, the judge's, the function's or the class's."""
        return self._asker.name

    def describe(self) -> dict[str, Json]:
        """What its votes depend on: the evaluator, the criterion, the template and the reference."""
        own = {"critic": self.criterion.asked(), "prompt_template": self.prompt_template}
        return {**self._asker.describe(), **own, "reference": text_of(self.reference)}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """The critic's vote in a panel, on its own criterion; `asked` is False for any other.

        The request's query, reference submission and guidelines are the template's input, reference and
        context. The template is the whole prompt: few-shot examples do not reach it.

        Raises:
            JudgeError: The evaluator could not answer, or the criterion of that name is another one.
        """
        if not self._is_asked_for(request.criterion):
            return JudgeReply(answer=None, asked=False)
        rng = random.Random(request.seed) if request.shuffle else None
        shown = request.criterion.show(request.submission, rng)
        case = Case(
            output=request.submission.text,
            input=request.query,
            submission=request.submission,
            criterion=request.criterion,
            shown=replace(shown, names=request.order) if request.order else shown,
        )
        asking = self._question(
            [case], request.reference_submission, request.guidelines, {}, batch=False, request=request
        )
        try:
            reply = (await self._asker.ask(asking))[0]
        except JudgeError:
            raise
        # An evaluator is its author's code, not ours: whatever it raises is that judge's failure.
        except Exception as error:
            raise JudgeError(f"judge {self.judge_id!r} raised {type(error).__name__}: {error}") from error
        return reply

    def _is_asked_for(self, criterion: BaseCriterion) -> bool:
        own, other = self.criterion.asked(), criterion.asked()
        if self.criterion.name is None:
            own, other = {**own, "name": None}, {**other, "name": None}
        same = type(criterion) is type(self.criterion) and own == other
        if not same and criterion.name is not None and criterion.name == self.criterion.name:
            raise JudgeError(
                f"judge {self.judge_id!r} is a critic of another criterion that is called {criterion.name!r} "
                "too; make the critic with the rubric's own"
            )
        return same

    def to_dict(self) -> dict[str, Json]:
        """The critic as JSON data, without keys and other secrets.

        Raises:
            ArgumentError: The evaluator is no model's name or `LLMConfig`, or something else has no place in
                JSON.
        """
        return written(self.evaluator, self.criterion, self.prompt_template, self.reference)

    @classmethod
    def from_dict(cls, given: Mapping[str, Json]) -> Self:
        """The critic that `to_dict` wrote.

        Raises:
            ArgumentError: Keys are unknown or missing, or what they hold is wrong.
        """
        return cls(**read_arguments(given))

    def _asking(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any] | None,
        reference: Any,
        context: Any,
        kwargs: Mapping[str, Any],
        *,
        batch: bool,
    ) -> Asking:
        if isinstance(outputs, str | Mapping) or not isinstance(outputs, Sequence) or not outputs:
            raise ArgumentError(f"outputs is {shortened(outputs)}; give a list of at least one output")
        given = [None] * len(outputs) if inputs is None else inputs
        if isinstance(given, str) or len(given) != len(outputs):
            raise ArgumentError(
                f"there are {len(outputs)} outputs and {len(given)} inputs; give one for each"
            )
        taken = sorted({"criterion", "outputs", "inputs", "output", "input"} & set(kwargs))
        if taken:
            raise ArgumentError(f"{', '.join(taken)}: the critic fills in this variable; choose another name")
        cases = [self._case(output, one) for output, one in zip(outputs, given, strict=True)]
        return self._question(cases, reference, context, kwargs, batch=batch)

    def _case(self, output: Any, given: Any) -> Case:
        compares = self.criterion.level == "ranking" and isinstance(output, Mapping)
        submission = Submission.parse(output) if compares else Submission(text=text_of(output))
        criterion = self.criterion.facing(submission) if compares else self.criterion
        misfit = criterion.misfit(submission) if compares else None
        if misfit is not None:
            raise ArgumentError(misfit)
        shown = criterion.show(submission, None) if compares else Shown()
        return Case(output=output, input=given, submission=submission, criterion=criterion, shown=shown)

    def _question(
        self,
        cases: Sequence[Case],
        reference: Any,
        context: Any,
        kwargs: Mapping[str, Any],
        *,
        batch: bool,
        request: JudgeRequest | None = None,
    ) -> Asking:
        reference = self.reference if reference is None else reference
        if self.criterion.needs_reference and reference is None:
            raise ArgumentError(
                f"{self.criterion.name or 'the criterion'} is judged against a reference; give reference="
            )
        given = {"reference": reference, "context": context}
        values = variables(cases, given, kwargs, batch=batch, may_abstain=request is not None)
        own = self.criterion.batch_evaluation_schema if batch else self.criterion.evaluation_schema
        read = partial(read_batch, cases) if batch else partial(read_single, cases[0])
        requests = (request,) if request else tuple(_request(one, reference, context) for one in cases)
        return Asking(
            prompt=Prompt(role="user", content=self._template.fill(values), format_override=own),
            schema=_wire_schema(self.criterion, batch=batch, may_abstain=request is not None),
            read=read,
            requests=requests,
            sample=request.sample if request else 0,
        )

    def _evaluation(self, reply: JudgeReply) -> BaseModel:
        try:
            if not reply.asked:
                raise ReplyError(f"judge {self.judge_id!r} has nothing on {self.criterion.name!r}")
            return evaluation_of(self.criterion, reply.answer)
        except ReplyError as error:
            error.usage, error.cost = reply.usage, reply.cost
            if reply.exchanged is not None:
                error.messages, error.replies = reply.exchanged.messages, reply.exchanged.replies
            raise

    def _evaluations(self, replies: Sequence[JudgeReply]) -> BaseModel:
        evaluations = [self._evaluation(reply) for reply in replies]
        return self.criterion.batch_evaluation_schema.model_validate({"evaluations": evaluations})


def _request(case: Case, reference: Any, context: Any) -> JudgeRequest:
    return JudgeRequest(
        criterion=case.criterion,
        submission=case.submission,
        query=None if case.input is None else text_of(case.input),
        reference_submission=None if reference is None else text_of(reference),
        guidelines=None if context is None else text_of(context),
        shuffle=False,
        order=case.shown.names,
    )


def _wire_schema(criterion: BaseCriterion, *, batch: bool, may_abstain: bool) -> ReplySchema:
    schema = criterion.wire_schema
    if not may_abstain:
        fields = {k: v for k, v in schema["properties"].items() if k != "cannot_assess"}
        schema = object_schema(fields)
    if not batch:
        return ReplySchema(name="evaluation", schema=schema, strict=criterion.strict)
    several = object_schema({"evaluations": {"type": "array", "items": schema}})
    return ReplySchema(name="evaluations", schema=several, strict=criterion.strict)
