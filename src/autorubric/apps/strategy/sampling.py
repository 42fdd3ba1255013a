"""The base class of sampled criteria, the record of an evaluation, and the code that is judged."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeAlias, TypeVar

from autorubric.apps.strategy.result import Hint, current_trace
from autorubric.criteria.base import BaseCriterion, Shown
from autorubric.criteria.ratings import NumericalRatingCriterion, PassFailCriterion
from autorubric.criteria.values import Answer, Submission
from autorubric.errors import ArgumentError, ReplyError, TokenUsage
from autorubric.grading.collect import request_votes
from autorubric.grading.grader import warn_of_equal_samples
from autorubric.grading.plan import JudgeCall, derive_seed
from autorubric.judges.base import JudgeRequest
from autorubric.judges.panel import JudgeLike, JudgeSpec, PanelMember, panel_members
from autorubric.llm.reply_json import parse_reply
from autorubric.scoring.report_builder import spend
from autorubric.scoring.votes import JudgeVote
from autorubric.support.concurrency import sync_method
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

T = TypeVar("T", bool, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEvaluation(Generic[T]):
    """The evaluation of one candidate on one criterion, based on several samples.

    Attributes:
        expression: The expression of the criterion.
        value: Whether the candidate passes, or its aggregated score. If `fallback_used` is set, this is a
            substitute: False, or the midpoint of the range.
        samples: Each sample's answer, in order; None if the sample failed, could not be parsed, was outside
            the range, or abstained.
        votes: The votes, in the same order as `samples`, with reasons, models, token counts and latencies.
        fallback_used: Whether there were too few valid samples.
        needed: Number of samples that had to pass; None for a numeric criterion.
    """

    expression: str
    value: T
    samples: tuple[T | None, ...]
    votes: tuple[JudgeVote, ...]
    fallback_used: bool
    needed: int | None = None

    @property
    def valid(self) -> tuple[T, ...]:
        """Return the answers of the valid samples, in order."""
        return tuple(one for one in self.samples if one is not None)

    @property
    def distribution(self) -> dict[T, int]:
        """Return the number of valid samples per answer, sorted by answer."""
        return dict(sorted(Counter(self.valid).items()))

    @property
    def errors(self) -> tuple[str | None, ...]:
        """Return one error message per sample, with None for samples that have no error."""
        return tuple(vote.error for vote in self.votes)

    @property
    def usage(self) -> TokenUsage | None:
        """Return the samples' total token usage, or None if no usage was reported."""
        return spend(self.votes)[0]

    @property
    def cost(self) -> float | None:
        """Return the samples' total known cost in US dollars, or None if no cost is known."""
        return spend(self.votes)[1]

    def to_dict(self) -> dict[str, Json]:
        """Return the evaluation as JSON-compatible data."""
        return {
            "expression": self.expression,
            "value": self.value,
            "samples": list(self.samples),
            "fallback_used": self.fallback_used,
            "needed": self.needed,
            "votes": [vote.to_dict() for vote in self.votes],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return a hint if the candidate failed; empty for numeric criteria or too few valid samples."""
        if self.needed is None or self.value or self.fallback_used:
            return ()
        written = (vote.reason for vote, one in zip(self.votes, self.samples, strict=True) if one is not None)
        hint = Hint(
            candidate=candidate,
            criterion=self.expression,
            passed=sum(1 for one in self.samples if one),
            samples=len(self.samples),
            needed=self.needed,
            reasons=tuple(reason for reason in written if reason) if reasons else (),
        )
        return (hint,)


_FENCE: Final = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_SAME_LANGUAGE: Final[Mapping[str, str]] = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "ts": "typescript",
    "yml": "yaml",
    "c++": "cpp",
    "sh": "bash",
}


def extract_code(text: str, language: str | None = None) -> str:
    """Return the content of the first fenced code block, or the whole text if there is no block.

    An unclosed block extends to the end of the text. Nothing is executed.

    Args:
        text: The model's response.
        language: Language of the block to return, such as `"python"`. If there is no such block, the first
            block without a language is returned or, failing that, the whole text. None accepts any language.
    """
    blocks = _blocks(text)
    if language is None:
        return next((code for _, code in blocks), text)
    wanted, unnamed = _canonical(language), None
    for found, code in blocks:
        if found == wanted:
            return code
        if not found and unnamed is None:
            unnamed = code
    return text if unnamed is None else unnamed


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the code of each fenced block."""
    # Other characters that `splitlines` treats as line ends, such as form feeds, may occur in a line.
    lines = iter(_LINE_END.split(text))
    for line in lines:
        opened = _FENCE.fullmatch(line)
        # A line with more backticks after the fence is inline code.
        if opened is None or (opened[2][0] == "`" and "`" in opened[3]):
            continue
        indent, fence, info = len(opened[1]), opened[2], opened[3]
        code = []
        for inner in lines:
            if _closes(inner, fence, indent):
                break
            # The indentation of the block is stripped, for example inside a list.
            code.append(inner[min(indent, _blanks(inner)) :])
        words = info.split()
        yield _canonical(words[0]) if words else "", "\n".join(code)


def _closes(line: str, fence: str, indent: int) -> bool:
    mark = line.strip()
    # A fence that is indented further, for example in a docstring, is part of the code.
    near = _blanks(line) <= indent + 3
    return near and len(mark) >= len(fence) and not mark.strip(fence[0])


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _canonical(language: str) -> str:
    name = language.strip("{}.").casefold()
    return _SAME_LANGUAGE.get(name, name)


Extract: TypeAlias = Literal["code"] | Callable[[str], str] | None
"""Part of a candidate to judge: its first code block, the result of a function, or the whole candidate."""


class _ReadsStrings(BaseCriterion):
    """A criterion that also reads a string returned by a function, like the reply of a model."""

    takes_bare: ClassVar[bool] = True

    def read(self, reply: Any, shown: Shown | None = None) -> Answer:
        if isinstance(reply, str):
            with suppress(ReplyError):
                reply = parse_reply(reply, bare=True).payload
        return super().read(reply, shown)


class _Gate(_ReadsStrings, PassFailCriterion):
    pass


class _Rating(_ReadsStrings, NumericalRatingCriterion):
    pass


@lru_cache(maxsize=256)
def gate(expression: str) -> BaseCriterion:
    """Create a pass/fail criterion."""
    return _Gate(requirement=expression)


@lru_cache(maxsize=256)
def rating(expression: str, low: float, high: float) -> BaseCriterion:
    """Create a criterion that rates text on a numeric range."""
    return _Rating(requirement=expression, min_value=low, max_value=high)


class SampledCriteria(ABC, Generic[T]):
    """Base class of criteria that sample a judge on whether, or how well, a text meets an expression."""

    def __init__(
        self,
        expression: str,
        llm: JudgeLike,
        num_samples: int,
        min_samples_for_aggregation: int,
        extract: Extract,
    ) -> None:
        if not isinstance(expression, str) or not expression.strip():
            raise ArgumentError(f"expression must be a non-empty string; got {short_repr(expression)}")
        if extract is not None and extract != "code" and not callable(extract):
            raise ArgumentError(
                f"extract must be None, 'code' or a function of a string; got {short_repr(extract)}"
            )
        check_count("num_samples", num_samples)
        check_count("min_samples_for_aggregation", min_samples_for_aggregation, most=num_samples)
        self.expression = expression
        self.llm = llm
        self.num_samples = num_samples
        self.min_samples_for_aggregation = min_samples_for_aggregation
        self.extract = extract
        self._member: tuple[JudgeLike, PanelMember] | None = None
        warn_of_equal_samples([self._panel_member()], stacklevel=4)

    @abstractmethod
    def _criterion(self) -> BaseCriterion:
        """Return the criterion to put to the judge."""

    @abstractmethod
    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[T]:
        """Aggregate the votes."""

    async def evaluate(self, candidate: Any, context: Any = None) -> SampledEvaluation[T]:
        """Sample the judge on a candidate and return the full evaluation."""
        trace = current_trace()
        place = trace.reserve()
        evaluation = self._decide(await self._votes(candidate, context, fresh=trace.fresh))
        trace.enter(place, evaluation)
        return evaluation

    evaluate_sync = sync_method(evaluate)
    """Call `evaluate` from synchronous code, even inside a running event loop."""

    async def _votes(self, candidate: Any, context: Any, *, fresh: int) -> tuple[JudgeVote, ...]:
        """Return the votes of all samples; fresh votes use the sample indices after the regular votes."""
        member, criterion, submission = self._panel_member(), self._criterion(), self._submission(candidate)
        first, count = (self.num_samples, fresh) if fresh else (0, self.num_samples)
        calls = [
            JudgeCall.of(
                member,
                JudgeRequest(
                    criterion=criterion,
                    submission=submission,
                    query=context_text(context),
                    sample=sample,
                    seed=derive_seed(submission.text or "", self.expression, member.judge_id, sample),
                ),
            )
            for sample in range(first, first + count)
        ]
        votes = await request_votes(calls, per_request=1, listener=None, raises=False)
        return tuple(votes[call.key] for call in calls)

    def _enough(self, valid: int, asked: int) -> bool:
        return valid >= min(self.min_samples_for_aggregation, asked)

    def _submission(self, candidate: Any) -> Submission:
        submission = submission_of(candidate)
        if self.extract is None or submission.text is None:
            return submission
        take = extract_code if self.extract == "code" else self.extract
        taken = take(submission.text)
        if not isinstance(taken, str):
            raise ArgumentError(f"extract must return a string; it returned {short_repr(taken)}")
        return replace(submission, text=taken)

    def _panel_member(self) -> PanelMember:
        if self._member is None or self._member[0] is not self.llm:
            value = self.llm if isinstance(self.llm, JudgeSpec) else JudgeSpec(self.llm)
            if value.samples != 1:
                raise ArgumentError(
                    f"llm must not set samples={value.samples}; pass num_samples={value.samples}"
                )
            (member,) = panel_members([replace(value, samples=self.num_samples)])
            self._member = (self.llm, member)
        return self._member[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copying and pickling, without the connections."""
        return {**self.__dict__, "_member": None}

    async def aclose(self) -> None:
        """Close the judge's connections; the next request opens new connections."""
        await self._panel_member().aclose()

    async def __aenter__(self) -> Self:
        """Return this object."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the judge's connections."""
        await self.aclose()


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> None:
    """Check that a value is a valid count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {value!r}")
    if most is not None and value > most:
        raise ArgumentError(f"{name}={value} must not exceed num_samples={most}")


def submission_of(candidate: Any) -> Submission:
    """Convert a candidate to a submission; data other than `{"thinking", "output"}` is written as JSON."""
    if candidate is None or isinstance(candidate, bytes | bytearray | memoryview):
        raise ArgumentError(
            f"candidate must be a string or JSON-compatible data; got {short_repr(candidate)}"
        )
    if isinstance(candidate, str | Submission) or _has_output(candidate):
        return Submission.parse(candidate)
    return Submission(text=_json(candidate) or str(candidate))


def _has_output(candidate: Any) -> bool:
    """Return whether a candidate is an output with optional thinking and not other data with such a key."""
    if not isinstance(candidate, Mapping) or not set(candidate) <= {"thinking", "output"}:
        return False
    return isinstance(candidate.get("output"), str) and isinstance(candidate.get("thinking"), str | None)


def context_text(context: Any) -> str | None:
    """Return the text that a judge sees of a context: strings, and data as JSON; None for other objects."""
    return context if isinstance(context, str) or context is None else _json(context)


def _json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        return None
