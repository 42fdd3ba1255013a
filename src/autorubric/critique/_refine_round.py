"""One draft through rounds of rewriting and critique, until it passes or another round would not help."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from autorubric._files import shortened
from autorubric.critic import Template
from autorubric.critique._critics import DraftCritic
from autorubric.critique._drafts import Draft
from autorubric.critique._evidence import data_of
from autorubric.critique._prompts import json_kind, rewrite_prompt
from autorubric.critique._provenance import Answered
from autorubric.critique._records import now, raw_text, scores_of
from autorubric.critique._teacher import Question, Teacher
from autorubric.errors import ReplyError
from autorubric.llm import parse_json
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
    """

    teacher: Teacher
    critic: DraftCritic
    template: Template
    max_rounds: int

    async def refine(self, draft: Draft, critique: Mapping[str, Json]) -> tuple[Outcome, dict[str, Json]]:
        """What became of a draft, and its record."""
        work = _Work(draft=draft, critique=critique, seen=[_canonical(draft.output)])
        work.levels.append(_level(critique))
        for _ in range(self.max_rounds):
            ended = await self._round(work)
            if ended is not None:
                return ended[0], work.record(draft, ended[1])
        return "undecided", work.record(draft, "max_rounds")

    async def _round(self, work: _Work) -> tuple[Outcome, str] | None:
        """One round; how the work ended and why, or None where it goes on."""
        rewritten = await self._rewritten(work)
        if rewritten.failure is not None:
            work.fail("rewrite", rewritten)
            return "errors", "error"
        work.draft = replace(work.draft, output=rewritten.answer, contract=None)
        again = _canonical(work.draft.output) in work.seen
        if again:
            work.note(rewritten, None)
            return "undecided", "oscillation"
        work.seen.append(_canonical(work.draft.output))
        judged = await self.critic.critique(work.draft)
        work.note(rewritten, judged)
        if judged.answer is None:
            work.fail("critique", judged)
            return "errors", "error"
        work.critique = judged.answer
        work.levels.append(_level(judged.answer))
        return _ending(judged.answer, work.levels)

    async def _rewritten(self, work: _Work) -> Answered[Json]:
        kind = json_kind(work.draft.output)
        draft, critique = work.draft, work.critique

        def read(text: str) -> Json:
            return _read(text, kind, as_text=isinstance(draft.output, str))

        return await self.teacher.ask(
            Question(
                prompt_of=lambda _: rewrite_prompt(self.template, draft, critique),
                output=draft.output_text,
                read=read,
                # Of a text that was cut, only a part could be written anew.
                may_cut=False,
            )
        )


@dataclass(slots=True, kw_only=True)
class _Work:
    """A draft under way.

    Attributes:
        draft: The draft as last written.
        critique: The last critique.
        seen: Every output so far, in a canonical form.
        levels: Mean score of every critique so far; None where it has no scores.
        history: What happened in each round.
        failure: What failed, where something did.
    """

    draft: Draft
    critique: Mapping[str, Json]
    seen: list[str]
    levels: list[float | None] = field(default_factory=list)
    history: list[dict[str, Json]] = field(default_factory=list)
    failure: dict[str, Json] | None = None

    def note(self, rewritten: Answered[Json], judged: Answered[dict[str, Json]] | None) -> None:
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

    def record(self, original: Draft, reason: str) -> dict[str, Json]:
        """The record of the draft, a draft itself: its output is the last that was written."""
        return {
            "id": original.id,
            "draft_id": original.id,
            "prompt": original.prompt,
            "output": self.draft.output,
            "contract": None if self.history else original.contract,
            "reason": reason,
            "rounds": len(self.history),
            "critique": dict(self.critique),
            "mean_scores": list(self.levels),
            "history": self.history,
            "error": self.failure,
            "created_at": now(),
            "draft_hash": original.digest,
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


def _level(critique: Mapping[str, Json]) -> float | None:
    scores = scores_of(critique)
    return fmean(scores.values()) if scores else None


def _canonical(output: Json) -> str:
    """An output in a form that is the same for the same output, however it is laid out."""
    if json_kind(output) is None:
        return "text:" + " ".join(str(output).split())
    return "json:" + json.dumps(data_of(output), sort_keys=True, ensure_ascii=True)


def _read(text: str, kind: type | None, *, as_text: bool) -> Json:
    """A rewritten output.

    Args:
        text: The reply as it came.
        kind: `dict` or `list` where the output was JSON.
        as_text: Whether the output is a text, JSON or not.

    Raises:
        ReplyError: It is empty, or no JSON of that kind.
    """
    if not text.strip():
        raise ReplyError("the rewritten output is empty; give the whole of it", reply=text)
    if kind is None:
        return text.strip()
    data = parse_json(text) if kind is dict else _read_list(text)
    return json.dumps(data, ensure_ascii=False) if as_text else data


def _read_list(text: str) -> Json:
    body = text.strip()
    if body.startswith("```"):
        body = body.strip("`").partition("\n")[2]
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"the rewritten output is no JSON: {error}", reply=text) from None
    if not isinstance(data, list):
        raise ReplyError(f"the output was a list, and {shortened(data)} is none; give a list", reply=text)
    return data
