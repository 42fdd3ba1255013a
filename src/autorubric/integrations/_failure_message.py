"""Failure messages for low scores, limited in length and without terminal control characters."""

from __future__ import annotations

from typing import Final

from autorubric._blocks import printable
from autorubric.types import EnsembleCriterionReport, EvaluationReport, JudgeVote

_LONGEST: Final = 6000
_VOTES: Final = 7
_REASON: Final = 240
_NAME: Final = 80
_TEXT: Final = 400


def failure_message(report: EvaluationReport, min_score: float, text: str) -> str:
    """Describe a low score: list criteria with votes and reasons, starting with the largest losses.

    Args:
        report: The report on the text, which must have a score.
        min_score: The lowest passing score.
        text: The graded text.
    """
    judges = dict.fromkeys(vote.judge_id for one in report.report for vote in one.votes)
    score, least = _two_apart(report.score or 0.0, min_score)
    lines = [f"score {score} is below the minimum of {least}; judged by {_list(list(judges))}"]
    if report.length_penalty:
        lines.append(f"the score includes a length penalty of {report.length_penalty:.3f}")
    ordered = sorted(report.report, key=_lost, reverse=True)
    for place, criterion in enumerate(ordered):
        if sum(map(len, lines)) > _LONGEST:
            lines.append(f"  … and {len(ordered) - place} more criteria with no greater effect on the score")
            break
        lines += _criterion_lines(criterion)
    lines.append(f"text: {shown(text, _TEXT)}")
    return "\n".join(lines)


def shown(text: str, most: int) -> str:
    """Return the text on one line, truncated to `most` characters, with control characters escaped."""
    line = " ".join(text[: 4 * most].split())
    safe = printable(line)
    return safe if len(safe) <= most and len(text) <= 4 * most else f"{safe[: most - 1]}…"


def _two_apart(score: float, least: float) -> tuple[str, str]:
    """Format two numbers with at least three decimals, and with as many as are needed to tell them apart."""
    for digits in range(3, 17):
        if f"{score:.{digits}f}" != f"{least:.{digits}f}":
            break
    return f"{score:.{digits}f}", f"{least:.{digits}f}"


def _lost(criterion: EnsembleCriterionReport) -> float:
    """Return the amount by which the criterion lowers the weighted sum."""
    weight = criterion.criterion.weight
    if criterion.score_value is None:
        return 0.0
    return weight * (1.0 - criterion.score_value) if weight > 0 else -weight * criterion.score_value


def _criterion_lines(criterion: EnsembleCriterionReport) -> list[str]:
    answer = criterion.decision.answer
    label = answer.label if answer else None
    # The answer of a panel that abstained is empty.
    said = label or (criterion.status if criterion.final_answer is None else criterion.final_answer)
    weight = f"weight {criterion.criterion.weight:g}"
    head = f"  {_answer(said)}  {shown(criterion.name, _NAME)} ({weight}): "
    lines = [head + shown(criterion.criterion.requirement or "", _REASON)]
    lines += [f"      {_vote(vote)}" for vote in criterion.votes[:_VOTES]]
    if len(criterion.votes) > _VOTES:
        lines.append(f"      … and {len(criterion.votes) - _VOTES} more votes")
    return lines


def _vote(vote: JudgeVote) -> str:
    who = shown(vote.judge_id, _NAME)
    if vote.status in ("failed", "not_asked"):
        return f"{who}: {vote.status}" + (f" – {shown(vote.error, _REASON)}" if vote.error else "")
    said = f"{who}: {_answer(vote.answer if vote.answer is not None else vote.status)}"
    return f"{said} – {shown(vote.reason, _REASON)}" if vote.reason else said


def _answer(answer: object) -> str:
    return shown(str(answer), _NAME)


def _list(judges: list[str]) -> str:
    named = ", ".join(shown(judge, _NAME) for judge in judges[:_VOTES])
    return named if len(judges) <= _VOTES else f"{named} and {len(judges) - _VOTES} more"
