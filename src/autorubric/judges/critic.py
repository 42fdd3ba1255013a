"""The critic: evaluates outputs on one criterion with one evaluator."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from autorubric.criteria.base import BaseCriterion, criterion_from_dict, criterion_to_dict, kind_of
from autorubric.criteria.conditions import is_registered
from autorubric.errors import ArgumentError, BudgetError, JudgeError, ReplyError
from autorubric.judges.base import JudgeReply, JudgeRequest, is_blank
from autorubric.judges.critic_prompt import (
    DEFAULT_TEMPLATE,
    OWN_VARIABLES,
    VARIABLES,
    EvaluatorCall,
    PromptTemplate,
    listed,
    variable_text,
)
from autorubric.judges.evaluators import (
    CriticQuestion,
    Evaluator,
    EvaluatorLike,
    case_in_panel,
    case_of,
    cases_of_batch,
    critic_question,
    evaluation_of,
    evaluator_of,
)
from autorubric.judges.model import demand_text
from autorubric.judges.prompts import ComposedPrompt
from autorubric.llm.config import LLMConfig
from autorubric.support.objects import Json
from autorubric.support.reading_errors import nearest_key, short_repr

_KEYS = ("evaluator", "criterion", "prompt_template", "reference")
_ALL_VARIABLES = (*VARIABLES, *OWN_VARIABLES)


@dataclass(frozen=True, slots=True)
class Critic:
    """A critic, which evaluates outputs on one criterion.

    A critic is also a judge: in a panel, it votes only on its own criterion. Synchronous calls close the
    connections they open; after asynchronous calls, call `aclose`, or use the critic in `async with`.

    Attributes:
        evaluator: A model name, an `LLMConfig` or `LLMClient`, an object with `forward(prompt)` or
            `aforward(prompt)`, or a sync or async function of the prompt. It receives a `Prompt` and returns
            JSON text, a dict, an instance of `prompt.format_override`, or an object whose `.text` is JSON
            text. A model whose reply cannot be read is asked again, at most twice. A `Judge` is also
            accepted; it uses its own prompt and ignores the template.
        criterion: The criterion to evaluate.
        prompt_template: Text with the variables `{criterion}`, `{output}` (or `{outputs}`), `{input}` (or
            `{inputs}`), `{reference}`, `{context}`, `{material}` (all of these inputs and the submission's
            thinking, delimited), `{instruction}` (the reply format), `{examples}` (a panel's few-shot
            examples, followed by a blank line), and the call's keyword arguments. Conversions and formats
            (`{score:.2f}`) work as in `str.format`. None becomes empty text; braces in values are plain text.
        reference: Default reference for every call. A blank reference is treated as None.

    Raises:
        ArgumentError: If the evaluator or the criterion is invalid, or braces in the template contain
            anything other than a variable.
    """

    evaluator: EvaluatorLike
    criterion: BaseCriterion
    prompt_template: str = DEFAULT_TEMPLATE
    reference: Any = None
    _evaluator: Evaluator = field(init=False, repr=False, compare=False)
    _template: PromptTemplate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.criterion, BaseCriterion):
            given = short_repr(self.criterion)
            raise ArgumentError(f"criterion must be an instance of BaseCriterion; got {given}")
        template = PromptTemplate.parse(self.prompt_template, _ALL_VARIABLES)
        object.__setattr__(self, "_template", template)
        object.__setattr__(self, "_evaluator", evaluator_of(self.evaluator))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the critic as its four arguments; an unpickled critic opens its own connections."""
        return type(self), (self.evaluator, self.criterion, self.prompt_template, self.reference)

    def __call__(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """Return the evaluation of one output; see `forward`."""
        return self.forward(output, input, reference, context, **kwargs)

    def forward(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """Evaluate one output and return an instance of `criterion.evaluation_schema`.

        This method can be called inside a running event loop.

        Args:
            output: The output to evaluate: text, other data, `{"thinking", "output"}` or a conversation; for
                a comparison, a mapping of names to texts.
            input: The prompt that the output responds to.
            reference: The reference to compare with; defaults to the critic's reference.
            context: Additional information for the evaluator.
            **kwargs: Further template variables.

        Raises:
            ReplyError: If the reply cannot be read, or the evaluator reports that it cannot judge.
            JudgeError: If the evaluator could not answer.
            ArgumentError: If the template has an unknown variable, a variable cannot be formatted, the
                criterion needs a reference but none is given, or there is nothing to compare.
        """
        question = self._question(output, input, reference, context, kwargs)
        return self._evaluations(self._evaluator.ask_now(question))[0]

    async def aforward(
        self, output: Any, input: Any = None, reference: Any = None, context: Any = None, **kwargs: Any
    ) -> Any:
        """Asynchronous version of `forward`; a synchronous evaluator runs in a thread."""
        question = self._question(output, input, reference, context, kwargs)
        return self._evaluations(await self._evaluator.ask(question))[0]

    def batch_forward(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any] | None = None,
        reference: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluate several outputs in one request and return a `criterion.batch_evaluation_schema`.

        Args:
            outputs: The outputs to evaluate, at least one; evaluations are returned in the same order.
            inputs: The prompts that the outputs respond to, one per output; None for no prompts.
            reference: The reference to compare all outputs with; defaults to the critic's reference.
            context: Additional information for the evaluator.
            **kwargs: Further template variables.

        Raises:
            ReplyError: If there is not exactly one readable evaluation per output.
            JudgeError: If the evaluator could not answer.
            ArgumentError: If the numbers of outputs and inputs differ, or for the reasons given in `forward`.
        """
        question = self._question(outputs, inputs, reference, context, kwargs, batch=True)
        return self._batch(self._evaluations(self._evaluator.ask_now(question)))

    async def batch_aforward(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any] | None = None,
        reference: Any = None,
        context: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Asynchronous version of `batch_forward`."""
        question = self._question(outputs, inputs, reference, context, kwargs, batch=True)
        return self._batch(self._evaluations(await self._evaluator.ask(question)))

    @property
    def judge_id(self) -> str:
        """The critic's name in votes: `<evaluator>/<criterion>`, such as `gpt-6-luna/helpfulness`.

        The first part is the name of the model, judge, function or class; the second is omitted if the
        criterion has no name. Adding a critic to a panel does not change the ids of other judges.
        """
        name = self.criterion.name
        return self._evaluator.name if name is None else f"{self._evaluator.name}/{name}"

    def describe(self) -> dict[str, Json]:
        """Return everything that affects the votes: evaluator, criterion, template and reference."""
        own = {"critic": self.criterion.vote_fields(), "prompt_template": self.prompt_template}
        return {**self._evaluator.describe(), **own, "reference": variable_text(self.reference)}

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the critic's vote on its own criterion, or a reply with `asked=False` for other criteria.

        The request's query, reference submission, guidelines and examples become the template's input,
        reference, context and examples. The system prompt is used only if the evaluator is a model.

        Raises:
            JudgeError: If the evaluator could not answer, the request has a different criterion with the same
                name, there is no text to judge, or the template cannot be filled in.
        """
        if not self._is_asked_for(request.criterion):
            return JudgeReply(answer=None, asked=False)
        if self._evaluator.reads_prompt:
            demand_text(self.judge_id, request)
        try:
            question = self._panel_question(request)
        except ArgumentError as error:
            raise JudgeError(f"judge {self.judge_id!r}: {error}") from error
        try:
            return (await self._evaluator.ask(question))[0]
        except (JudgeError, BudgetError):
            raise
        # Evaluators may be user code, so any exception counts as a failure of this judge.
        except Exception as error:
            raise JudgeError(f"judge {self.judge_id!r} raised {type(error).__name__}: {error}") from error

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the evaluator calls; empty if it calls none."""
        return self._evaluator.models

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> ComposedPrompt | None:
        """Return the prompt for a panel's request, or None if no model is called for its criterion.

        Raises:
            ArgumentError: If the template cannot be filled in.
        """
        if not self.models or not self._is_asked_for(requests[0].criterion):
            return None
        return self._evaluator.prompt_for(self._panel_question(requests[0]))

    def _panel_question(self, request: JudgeRequest) -> CriticQuestion:
        reference = self.reference if request.reference_submission is None else request.reference_submission
        call = EvaluatorCall(reference=reference, context=request.guidelines, request=request)
        return critic_question(self.criterion, self._template, [case_in_panel(request)], call)

    def takes_reference_for(self, criterion: BaseCriterion) -> bool:
        """Return whether the criterion is the critic's own and needs the reference in the panel's request."""
        return self._is_own(criterion) and is_blank(self.reference)

    def check_panel_settings(self, judge_id: str, *, few_shot: Collection[str]) -> None:
        """Check that panels provide all template variables; warn if few-shot examples will not be shown.

        Raises:
            ArgumentError: If panels do not provide a variable, or a format is not suitable for text.
        """
        unknown = [name for name in self._template.names if name not in _ALL_VARIABLES]
        if unknown:
            raise ArgumentError(
                f"judge {judge_id!r}: prompt_template uses {listed(unknown)}, not provided by a panel; "
                f"write the text itself into the template. Available: {listed(_ALL_VARIABLES)}"
            )
        own = {} if is_blank(self.reference) else {"reference": self.reference}
        try:
            self._template.fill({**dict.fromkeys(_ALL_VARIABLES, "text"), **own})
        except ArgumentError as error:
            raise ArgumentError(f"judge {judge_id!r}: {error}; in a panel, every variable is text") from None
        name = self.criterion.name
        if not self._evaluator.reads_prompt or "examples" in self._template.names:
            return
        if name in few_shot or (name is None and few_shot):
            advice = "few-shot examples are not shown; add {examples} to its prompt_template"
            warnings.warn(f"judge {judge_id!r}: {advice}", stacklevel=4)

    async def aclose(self) -> None:
        """Close the evaluator's connections; the next call reopens them."""
        await self._evaluator.aclose()

    async def __aenter__(self) -> Self:
        """Return the critic."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the critic."""
        await self.aclose()

    def _is_asked_for(self, criterion: BaseCriterion) -> bool:
        own = self._is_own(criterion)
        if not own and criterion.name is not None and criterion.name == self.criterion.name:
            what = f"a critic of a different criterion with the same name {criterion.name!r}"
            advice = "create the critic with the rubric's criterion"
            raise JudgeError(f"judge {self.judge_id!r} is {what}; {advice}")
        return own

    def _is_own(self, criterion: BaseCriterion) -> bool:
        own, other = self.criterion.vote_fields(), criterion.vote_fields()
        if self.criterion.name is None:
            own, other = {**own, "name": None}, {**other, "name": None}
        return type(criterion) is type(self.criterion) and own == other

    def to_dict(self) -> dict[str, Json]:
        """Return the critic as JSON data that `from_dict` can read.

        An `LLMConfig` is written without `api_key`, `extra_headers` and any `extra_params` that contain
        secrets; set them again after reading.

        Raises:
            ArgumentError: If the evaluator is neither a model name nor an `LLMConfig`, or a value cannot be
                converted to JSON.
        """
        evaluator, criterion, reference = self.evaluator, self.criterion, self.reference
        if not isinstance(evaluator, str | LLMConfig):
            what = f"the evaluator {short_repr(evaluator)} cannot be converted to JSON"
            raise ArgumentError(f"{what}; use a model name or an LLMConfig")
        data = criterion_to_dict(criterion)
        if kind_of(data.get("type")) is not type(criterion):
            kind = type(criterion).__name__
            raise ArgumentError(f"{kind} has no type tag; decorate it with @register_kind")
        if criterion.check is not None and not is_registered(criterion.check):
            raise ArgumentError(f"the check of {criterion.name!r} has no name; name it with register_check")
        try:
            if json.loads(json.dumps(reference, allow_nan=False)) != reference:
                raise ValueError("its value would change; use strings, numbers, lists and mappings")
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentError(f"the reference cannot be converted to JSON: {error}") from None
        # `LLMConfig.to_dict` has digests in place of secrets, which a config does not accept.
        model = evaluator if isinstance(evaluator, str) else evaluator.model_dump(mode="json")
        own = {"prompt_template": self.prompt_template, "reference": reference}
        return {"evaluator": model, "criterion": data, **own}

    @classmethod
    def from_dict(cls, given: Mapping[str, Json]) -> Self:
        """Create a critic from the data returned by `to_dict`.

        Raises:
            ArgumentError: If keys are unknown or missing, or values are invalid.
        """
        for key in given:
            if key not in _KEYS:
                raise ArgumentError(f"unknown key {key!r} in a critic; {nearest_key(str(key), _KEYS)}")
        missing = [key for key in ("evaluator", "criterion") if key not in given]
        if missing:
            raise ArgumentError(f"a critic must have {' and '.join(missing)}")
        evaluator, criterion = given["evaluator"], given["criterion"]
        if not (isinstance(evaluator, str | Mapping) and isinstance(criterion, Mapping)):
            wanted = "evaluator must be a model name or a mapping, and criterion must be a mapping"
            raise ArgumentError(wanted)
        try:
            model = evaluator if isinstance(evaluator, str) else LLMConfig.model_validate(dict(evaluator))
            arguments = {**given, "evaluator": model, "criterion": criterion_from_dict(criterion)}
        except ValidationError as error:
            raise ArgumentError(str(error)) from None
        return cls(**arguments)

    def _question(
        self, output: Any, input: Any, reference: Any, context: Any, further: Any, *, batch: bool = False
    ) -> CriticQuestion:
        taken = sorted({"criterion", "outputs", "inputs", "output", "input"} & set(further))
        if taken:
            raise ArgumentError(f"the critic sets {', '.join(taken)} itself; choose other argument names")
        reference = self.reference if is_blank(reference) else reference
        call = EvaluatorCall(reference=reference, context=context, further=further, batch=batch)
        if batch:
            cases = cases_of_batch(self.criterion, output, input)
        else:
            cases = [case_of(self.criterion, output, input)]
        return critic_question(self.criterion, self._template, cases, call)

    def _batch(self, evaluations: Sequence[BaseModel]) -> BaseModel:
        return self.criterion.batch_evaluation_schema.model_validate({"evaluations": evaluations})

    def _evaluations(self, replies: Sequence[JudgeReply]) -> list[BaseModel]:
        if any(reply.truncated for reply in replies):
            cut = "the output was too long for the model and was truncated as configured"
            warnings.warn(f"critic {self.judge_id!r}: {cut}", stacklevel=3)
        return [self._read(reply) for reply in replies]

    def _read(self, reply: JudgeReply) -> BaseModel:
        try:
            if not reply.asked:
                raise ReplyError(f"judge {self.judge_id!r} did not vote on {self.criterion.name!r}")
            return evaluation_of(self.criterion, reply.answer)
        except ReplyError as error:
            error.usage, error.cost = reply.usage, reply.cost
            if reply.exchanged is not None:
                error.messages, error.replies = reply.exchanged.messages, reply.exchanged.replies
            raise
