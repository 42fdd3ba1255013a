"""One draft through rounds of rewriting and critique, until it passes or another round would not help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple

from autorubric.critic import Template
from autorubric.critique._critics import DraftCritic
from autorubric.critique._drafts import Draft
from autorubric.critique._prompts import rewrite_prompt
from autorubric.critique._provenance import Answered
from autorubric.critique._records import now, raw_text, scores_of
from autorubric.critique._rewritten import Rewritten, Validate, canonical, read_rewritten
from autorubric.critique._teacher import Question, Teacher
from autorubric.values import Json

Outcome = Literal["refined", "rejected", "undecided", "errors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refiner:
    """Refines drafts.

    Attributes:
        teacher: Who rewrites.
        critic: Who judges what was rewritten.
        template: The template of rewrite prompts.
        max_rounds: How often a draft is rewritten at most.
        validate: Checks what was rewritten, and gives its contract; None checks that no key is lost.
    """

    teacher: Teacher
    critic: DraftCritic
    template: Template
    max_rounds: int
    validate: Validate | None = None

    async def refine(self, draft: Draft, critique: Mapping[str, Json]) -> tuple[Outcome, dict[str, Json]]:
        """What became of a draft, and its record."""
        work = _Work(original=draft, draft=draft, seen=[canonical(draft.output)])
        work.judge(critique)
        for _ in range(self.max_rounds):
            ended = await self._round(work)
            if ended is not None:
                return ended[0], work.record(*ended)
        return "undecided", work.record("undecided", "max_rounds")

    async def _round(self, work: _Work) -> tuple[Outcome, str] | None:
        """One round; how the work ended and why, or None where it goes on."""
        rewritten = await self._rewritten(work)
        if rewritten.answer is None:
            work.fail("rewrite", rewritten)
            return "errors", "error"
        output, contract = rewritten.answer
        work.draft = replace(work.draft, output=output, contract=contract)
        if canonical(output) in work.seen:
            work.note(rewritten, None)
            return "undecided", "oscillation"
        work.seen.append(canonical(output))
        judged = await self.critic.critique(work.draft)
        work.note(rewritten, judged)
        if judged.answer is None:
            work.fail("critique", judged)
            return "errors", "error"
        work.judge(judged.answer)
        return _ending(judged.answer, work.levels)

    async def _rewritten(self, work: _Work) -> Answered[Rewritten]:
        draft, critique = work.draft, work.judged[-1].critique
        return await self.teacher.ask(
            Question(
                prompt_of=lambda _: rewrite_prompt(self.template, draft, critique),
                output=draft.output_text,
                # By what was drafted, not by what was made of it: its form is what is to be kept.
                read=lambda text: read_rewritten(text, work.original.output, self.validate),
                # Of a text that was cut, only a part could be written anew.
                may_cut=False,
            )
        )


class _Judged(NamedTuple):
    """A text with its critique: that of the draft itself in round 0, then that of each round."""

    round: int
    draft: Draft
    critique: Mapping[str, Json]

    @property
    def level(self) -> float | None:
        """The mean score; None where there are no scores."""
        scores = scores_of(self.critique)
        return fmean(scores.values()) if scores else None

    @property
    def rank(self) -> tuple[bool, float, int]:
        """The greater, the better; of equal ones the later follows more of what was asked for."""
        level = self.level
        return level is not None, level or 0.0, self.round


@dataclass(slots=True, kw_only=True)
class _Work:
    """A draft under way.

    Attributes:
        original: The draft as it was given.
        draft: The draft as last written.
        seen: Every output so far, in a canonical form.
        judged: Every text so far that has a critique, from the draft itself on.
        history: What happened in each round.
        failure: What failed, where something did.
    """

    original: Draft
    draft: Draft
    seen: list[str]
    judged: list[_Judged] = field(default_factory=list)
    history: list[dict[str, Json]] = field(default_factory=list)
    failure: dict[str, Json] | None = None

    @property
    def levels(self) -> list[float | None]:
        """The mean score of every critique so far; None where it has no scores."""
        return [one.level for one in self.judged]

    def judge(self, critique: Mapping[str, Json]) -> None:
        """Notes the critique of the draft as last written."""
        self.judged.append(_Judged(len(self.history), self.draft, critique))

    def note(self, rewritten: Answered[Rewritten], judged: Answered[dict[str, Json]] | None) -> None:
        """Notes a round."""
        self.history.append(
            {
                "round": len(self.history) + 1,
                "output": self.draft.output,
                "critique": None if judged is None else judged.answer,
                "teacher": {
                    "rewrite": rewritten.provenance.to_dict(),
                    "critique": None if judged is None else judged.provenance.to_dict(),
                },
            }
        )

    def fail(self, stage: str, answered: Answered[Any]) -> None:
        """Notes what failed."""
        assert answered.failure is not None
        self.failure = {
            "stage": stage,
            "code": answered.failure.code,
            "message": answered.failure.message,
            "raw_text": raw_text(answered.text),
            "teacher": answered.provenance.to_dict(),
        }

    def record(self, outcome: Outcome, reason: str) -> dict[str, Json]:
        """The record of the draft, a draft itself.

        Its output is the last that was written, with its critique where it has one; where nothing is decided,
        the one with the best mean score, which may be the draft's own.
        """
        kept = _Judged(len(self.history), self.draft, self.judged[-1].critique)
        if outcome == "undecided":
            kept = max(self.judged, key=lambda one: one.rank)
        return {
            "id": self.original.id,
            "draft_id": self.original.id,
            "prompt": self.original.prompt,
            "output": kept.draft.output,
            "contract": kept.draft.contract,
            "reason": reason,
            "rounds": len(self.history),
            "output_round": kept.round,
            "critique": dict(kept.critique),
            "mean_scores": self.levels,
            "history": self.history,
            "error": self.failure,
            "created_at": now(),
            "draft_hash": self.original.digest,
        }


def _ending(critique: Mapping[str, Json], levels: list[float | None]) -> tuple[Outcome, str] | None:
    """How a critique ends the work; None where it goes on."""
    match critique.get("verdict"):
        case "pass":
            return "refined", "pass"
        case "reject":
            return "rejected", "reject"
    before, after = levels[-2], levels[-1]
    if before is not None and after is not None and after <= before:
        return "undecided", "no_gain"
    return None
