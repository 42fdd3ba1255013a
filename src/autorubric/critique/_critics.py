"""From a draft to its critique: by a schema, or by the criteria of a rubric."""

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
    """Makes critiques of drafts; failures are answers too.

    Attributes:
        parallel: Maximum number of drafts at a time; None if not set.
        models: The models that it asks, without those that they fall back on.
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
    """Asks a teacher for a critique that follows a schema.

    Attributes:
        teacher: The teacher that answers.
        schema: The schema of the critique.
        template: The prompt's template.
    """

    teacher: Teacher
    schema: CritiqueSchema
    template: Template

    @property
    def parallel(self) -> int | None:
        """As the teacher."""
        return self.teacher.parallel

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The teacher's."""
        return self.teacher.models

    def describe(self) -> dict[str, Json]:
        """Return what critiques depend on."""
        return {
            "teacher": self.teacher.describe(),
            "template_hash": digest_of(template_text(self.template)),
            "rubric_hash": None,
            "threshold": None,
        }

    def prompt_length(self, draft: Draft) -> int | None:
        """Characters of the prompt."""
        return len(critique_prompt(self.template, self.schema, draft).content)

    def level(self, critique: Mapping[str, Json]) -> float | None:
        """Return the mean score; None without scores, or in a critique by a rubric."""
        scores = scores_of(critique)
        return fmean(scores.values()) if scores and graded_score(critique) is None else None

    async def critique(self, draft: Draft, begun: dict[str, Json]) -> Answered[dict[str, Json]]:
        """Return the critique of a draft; one question, of which nothing can have begun.

        Raises:
            BudgetError: If there is no room to ask it.
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
            # What is JSON, and yet no object, was read: it is no critique.
            if is_strict_json(text):
                raise SchemaFaultError(str(error), reply=text) from None
            raise
        written = critique.get("id")
        if isinstance(written, int) and not isinstance(written, bool):
            # A number and its text are the same id; a schema takes one of them.
            with suppress(SchemaFaultError):
                self.schema.check(critique)
                return critique
            critique = {**critique, "id": str(written)}
        self.schema.check(critique)
        return critique

    async def aclose(self) -> None:
        """Close the teacher."""
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
    """Return the critic: a teacher with schema and template, or a rubric with the teacher as judge.

    Raises:
        ArgumentError: If the arguments cannot work together.
        FileError: If a file cannot be read.
    """
    if rubric is None:
        if threshold is not None:
            raise ArgumentError("threshold says when a rubric's verdict is pass; give a rubric with it")
        return SchemaCritic(
            teacher=teacher_of(teacher, config), schema=schema, template=critique_template(template)
        )
    if template is not None:
        raise ArgumentError("a rubric has its own prompts; leave out template, or the rubric")
    if not isinstance(rubric, Rubric | str | Path):
        raise ArgumentError(f"rubric is {shortened(rubric)}; give a Rubric, or its file")
    if not isinstance(rubric, Rubric):
        rubric = Rubric.from_file(rubric)
    return rubric_critic(rubric, teacher, threshold=threshold, config=config)
