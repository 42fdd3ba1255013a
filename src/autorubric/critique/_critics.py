"""Critics, which write critiques of drafts based on a schema or the criteria of a rubric."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from autorubric._files import shortened
from autorubric.critic import Template
from autorubric.critique._drafts import Draft
from autorubric.critique._prompts import critique_prompt, critique_template, template_text
from autorubric.critique._provenance import Answered
from autorubric.critique._records import graded_score, is_strict_json, scores_of
from autorubric.critique._rubric_critic import rubric_critic
from autorubric.critique._schema import CritiqueSchema, SchemaFaultError, digest_of
from autorubric.critique._teacher import Question, Teacher, teacher_of
from autorubric.errors import ArgumentError, ReplyError
from autorubric.llm import LLMConfig, parse_json
from autorubric.rubric import Rubric
from autorubric.values import Json


class DraftCritic(Protocol):
    """The interface of objects that critique drafts and return failures as part of the answer.

    Attributes:
        parallel: Maximum number of drafts to critique concurrently; None if not set.
        models: The models that the critic calls, without their fallbacks.
    """

    @property
    def parallel(self) -> int | None: ...

    @property
    def models(self) -> tuple[LLMConfig, ...]: ...

    def describe(self) -> dict[str, Json]: ...

    def prompt_length(self, draft: Draft) -> int | None: ...

    def level(self, critique: Mapping[str, Json]) -> float | None: ...

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCritic:
    """A critic that asks a teacher for a critique that follows a schema.

    Attributes:
        teacher: The teacher that writes the critiques.
        schema: The schema of the critiques.
        template: The template of the prompt.
    """

    teacher: Teacher
    schema: CritiqueSchema
    template: Template

    @property
    def parallel(self) -> int | None:
        """Return the teacher's maximum number of concurrent drafts; None if not set."""
        return self.teacher.parallel

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """Return the models that the teacher calls."""
        return self.teacher.models

    def describe(self) -> dict[str, Json]:
        """Return the settings that critiques depend on, as JSON-compatible data."""
        return {
            "teacher": self.teacher.describe(),
            "template_hash": digest_of(template_text(self.template)),
            "rubric_hash": None,
            "threshold": None,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """Return the length of the prompt for a draft in characters."""
        return len(critique_prompt(self.template, self.schema, draft).content)

    def level(self, critique: Mapping[str, Json]) -> float | None:
        """Return the mean score of a critique; None if there are no scores or a rubric was used."""
        scores = scores_of(critique)
        return fmean(scores.values()) if scores and graded_score(critique) is None else None

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]:
        """Ask the teacher for the critique of a draft; `begun` is not used, as there is only one question.

        Raises:
            BudgetError: If the budget does not allow the request.
        """
        return await self.teacher.ask(
            Question(
                prompt_of=lambda output: critique_prompt(self.template, self.schema, draft, output=output),
                output=draft.output_text,
                read=self._read,
                schema=self.schema.on_the_wire,
            )
        )

    def _read(self, text: str) -> dict[str, Json]:
        try:
            critique: dict[str, Json] = parse_json(text)
        except ReplyError as error:
            # JSON that is not an object was parsed but is not a critique.
            if is_strict_json(text):
                raise SchemaFaultError(str(error), reply=text) from None
            raise
        written = critique.get("id")
        if isinstance(written, int) and not isinstance(written, bool):
            # A number and its text are the same id, but a schema may only accept one of them.
            with suppress(SchemaFaultError):
                self.schema.check(critique)
                return critique
            critique = {**critique, "id": str(written)}
        self.schema.check(critique)
        return critique

    async def aclose(self) -> None:
        """Release the resources of the teacher."""
        await self.teacher.aclose()


def critic_of(
    teacher: Any,
    *,
    config: Mapping[str, Json] | None,
    schema: CritiqueSchema,
    template: str | Path | None,
    rubric: Rubric | str | Path | None,
    threshold: float | None,
) -> DraftCritic:
    """Create the critic: a teacher with a schema and a template, or a rubric with the teacher as judge.

    Raises:
        ArgumentError: If the arguments cannot be combined.
        FileError: If a file cannot be read.
    """
    if rubric is None:
        if threshold is not None:
            raise ArgumentError("threshold requires a rubric; pass rubric as well, or omit threshold")
        return SchemaCritic(
            teacher=teacher_of(teacher, config), schema=schema, template=critique_template(template)
        )
    if template is not None:
        raise ArgumentError("template cannot be combined with a rubric, which has its own prompts; omit one")
    if not isinstance(rubric, Rubric | str | Path):
        raise ArgumentError(f"rubric must be a Rubric or the path of a rubric file; got {shortened(rubric)}")
    if not isinstance(rubric, Rubric):
        rubric = Rubric.from_file(rubric)
    return rubric_critic(rubric, teacher, threshold=threshold, config=config)
