"""Rounds of rewriting and critiquing one draft, until it passes or another round would not help."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from autorubric.apps.drafts.critics import DraftCritic
from autorubric.apps.drafts.drafts import Draft, data_of, now, raw_text
from autorubric.apps.drafts.provenance import Answered, SchemaFaultError, is_json
from autorubric.apps.drafts.teacher import Teacher, TeacherQuestion, json_kind, rewrite_prompt
from autorubric.errors import ArgumentError, BudgetError, FileError, ReplyError
from autorubric.judges.critic_prompt import PromptTemplate
from autorubric.llm.reply_json import parse_json_list, parse_reply_json, without_reasoning
from autorubric.support.objects import Json
from autorubric.support.read import parse_structured
from autorubric.support.reading_errors import short_repr

Validate = Callable[[Json], Json]

_LONGEST_FAULT = 1000


class RewriteReply(NamedTuple):
    """A rewritten output and the result of an automatic check; None if there was no check."""

    output: Json
    contract: Json


def read_rewritten(text: str, before: Json, validate: Validate | None) -> RewriteReply:
    """Parse and check the rewritten output in a reply."""
    output = _read_output(text, before)
    if validate is None:
        old, new = data_of(before), data_of(output)
        lost = (
            [key for key in old if key not in new] if isinstance(old, dict) and isinstance(new, dict) else []
        )
        if lost:
            named = ", ".join(repr(key) for key in lost[:10])
            raise SchemaFaultError(
                f"the rewritten output lacks {named}; keep every top-level key", reply=None
            )
        return RewriteReply(output, None)
    try:
        contract = validate(output)
    except BudgetError:
        raise
    # The function is user code: any other exception means that the output is not acceptable.
    except Exception as error:
        message = f"{type(error).__name__}: {error}"[:_LONGEST_FAULT]
        raise SchemaFaultError(f"the rewritten output failed its check: {message}", reply=text) from error
    if not is_json(contract):
        raise ArgumentError(
            "validate must return JSON data or None, and raise an exception if the output is not acceptable; "
            f"it returned {short_repr(contract)}"
        )
    return RewriteReply(output, contract)


def canonical(output: Json) -> str:
    """Return a canonical form of an output that does not depend on whitespace or the order of keys."""
    if json_kind(output) is None:
        return "text:" + " ".join(str(output).split())
    return "json:" + json.dumps(data_of(output), sort_keys=True, ensure_ascii=True)


def _read_output(text: str, before: Json) -> Json:
    kind = json_kind(before)
    body = without_reasoning(text, "rewritten output")
    if not body:
        raise ReplyError("the rewritten output is empty; return the complete output", reply=text)
    if kind is None:
        return body
    if kind is dict:
        data = parse_reply_json(text, may_differ=True)
    elif kind is list:
        data = parse_json_list(text)
    else:
        try:
            data = parse_structured(body, "json").data
        except FileError:
            data = None
        if json_kind(data) is not kind:
            asked = "true or false" if kind is bool else "a number"
            raise ReplyError(f"the reply is {short_repr(body)}; reply with {asked} only", reply=text)
    return json.dumps(data, ensure_ascii=False) if isinstance(before, str) else data


RewriteOutcome = Literal["refined", "rejected", "undecided", "errors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refiner:
    """The procedure that refines single drafts."""

    teacher: Teacher  # rewrites drafts
    critic: DraftCritic
    template: PromptTemplate  # of rewrite prompts
    max_rounds: int
    validate: Validate | None = None  # checks a rewritten output; None to check its keys

    async def refine(
        self, draft: Draft, critique: Mapping[str, Json], begun: dict[str, Json]
    ) -> tuple[RewriteOutcome, dict[str, Json]]:
        """Refine a draft and return its outcome with its record; answers are kept in `begun`."""
        rounds = begun.setdefault("rounds", [])
        work = _DraftInProgress(original=draft, given=critique, rounds=rounds, level=self.critic.level)
        while not work.is_judged or len(work.rounds) < self.max_rounds:
            ended = await self._round(work)
            if ended is not None:
                return ended[0], work.record(*ended)
        return "undecided", work.record("undecided", "max_rounds")

    async def _round(self, work: _DraftInProgress) -> tuple[RewriteOutcome, str] | None:
        """Run one round and return the outcome with its reason, or None if the refinement continues."""
        if work.is_judged:
            rewritten = await self._rewrite(work)
            if rewritten.answer is None:
                work.fail("rewrite", rewritten)
                return "errors", "error"
            came_before = canonical(rewritten.answer.output) in work.seen
            work.write(rewritten.answer, rewritten.provenance.to_dict())
            if came_before:
                return "undecided", "oscillation"
        judged = await self.critic.critique(work.draft, work.rounds[-1]["begun"])
        work.judge(judged)
        if judged.answer is None:
            work.fail("critique", judged)
            return "errors", "error"
        return _outcome_of(judged.answer, work.levels)

    async def _rewrite(self, work: _DraftInProgress) -> Answered[RewriteReply]:
        draft, critique = work.draft, work.judged[-1].critique
        return await self.teacher.ask(
            TeacherQuestion(
                prompt_of=lambda _: rewrite_prompt(self.template, draft, critique),
                output=draft.output_text,
                # The form of the original draft must be kept, not that of the last rewrite.
                read=lambda text: read_rewritten(text, work.original.output, self.validate),
                # Only a part of a truncated text could be rewritten.
                may_cut=False,
            )
        )


class _Version(NamedTuple):
    """A text with its critique: the draft itself in round 0, then the result of each round."""

    round: int
    draft: Draft
    critique: Mapping[str, Json]
    level: float | None

    @property
    def rank(self) -> tuple[bool, float, int]:
        """A sort key that is higher for better texts; of texts with equal scores, the first is best."""
        if self.level is None:
            # Later texts follow more instructions.
            return False, 0.0, self.round
        return True, self.level, -self.round


@dataclass(slots=True, kw_only=True)
class _DraftInProgress:
    """A draft in progress."""

    original: Draft
    given: Mapping[str, Json]  # critique of the original draft
    rounds: list[dict[str, Any]]  # the draft and the critique of each round, as JSON-compatible data
    level: Callable[[Mapping[str, Json]], float | None]  # the score of a critique
    failure: dict[str, Json] | None = None  # the error that ended the refinement

    @property
    def draft(self) -> Draft:
        """The latest version of the draft."""
        return self._draft_of(self.rounds[-1]) if self.rounds else self.original

    @property
    def is_judged(self) -> bool:
        """Whether the latest version of the draft has been critiqued."""
        return not self.rounds or self.rounds[-1]["critique"] is not None

    @property
    def seen(self) -> list[str]:
        """Every output so far, in canonical form."""
        return [canonical(self.original.output), *(canonical(one["output"]) for one in self.rounds)]

    @property
    def judged(self) -> list[_Version]:
        """Every version that has a critique, starting with the original draft."""
        found = [_Version(0, self.original, self.given, self.level(self.given))]
        for number, one in enumerate(self.rounds, start=1):
            critique = one["critique"]
            if critique is not None:
                found.append(_Version(number, self._draft_of(one), critique, self.level(critique)))
        return found

    @property
    def levels(self) -> list[float | None]:
        return [one.level for one in self.judged]

    def write(self, rewritten: RewriteReply, provenance: dict[str, Json]) -> None:
        teacher = {"rewrite": provenance, "critique": None}
        self.rounds.append({**rewritten._asdict(), "critique": None, "teacher": teacher, "begun": {}})

    def judge(self, judged: Answered[dict[str, Json]]) -> None:
        self.rounds[-1]["critique"] = judged.answer
        self.rounds[-1]["teacher"]["critique"] = judged.provenance.to_dict()

    def fail(self, stage: str, answered: Answered[Any]) -> None:
        assert answered.failure is not None
        self.failure = {
            "stage": stage,
            "code": answered.failure.code,
            "message": answered.failure.message,
            "raw_text": raw_text(answered.text),
            "teacher": answered.provenance.to_dict(),
        }

    def record(self, outcome: RewriteOutcome, reason: str) -> dict[str, Json]:
        """Return the record of the refinement, which is itself a draft."""
        judged = self.judged
        kept = judged[-1]._replace(round=len(self.rounds), draft=self.draft)
        if outcome == "undecided":
            # The best version may be the original draft.
            kept = max(judged, key=lambda one: one.rank)
        return {
            "id": self.original.written_id,
            "draft_id": self.original.written_id,
            "prompt": self.original.prompt,
            "output": kept.draft.output,
            "contract": kept.draft.contract,
            "reason": reason,
            "rounds": len(self.rounds),
            "output_round": kept.round,
            "critique": dict(kept.critique),
            "mean_scores": [one.level for one in judged],
            "history": [
                {"round": number, **{name: one[name] for name in ("output", "critique", "teacher")}}
                for number, one in enumerate(self.rounds, start=1)
            ],
            "error": self.failure,
            "created_at": now(),
            "draft_hash": self.original.digest,
        }

    def _draft_of(self, one: Mapping[str, Any]) -> Draft:
        return replace(self.original, output=one["output"], contract=one["contract"])


def _outcome_of(
    critique: Mapping[str, Json], levels: list[float | None]
) -> tuple[RewriteOutcome, str] | None:
    """Return the outcome and the reason if a critique ends the refinement; None if it continues."""
    match critique.get("verdict"):
        case "pass":
            return "refined", "pass"
        case "reject":
            return "rejected", "reject"
    before, after = levels[-2], levels[-1]
    if before is not None and after is not None and after <= before:
        return "undecided", "no_gain"
    return None
