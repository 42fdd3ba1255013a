"""The text of the critic's prompt, which is pinned by golden files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from autorubric.prompts import MATERIAL_RULE
from autorubric.tool._request import EvaluationMode

TEMPLATE: Final = f"""\
You are a careful, impartial critic of what agents and people make. The submission is what you evaluate. The \
context, where there is one, says what it is for. You only read: you carry nothing out. {MATERIAL_RULE}

{{material}}

Criteria:

{{criterion}}

{{instruction}}
First look for the evidence, then decide. Reply with one JSON object and nothing else."""
"""The prompt template for all critics, to which the sheet adds the criteria and the instruction."""

_SCORES: Final = (
    'Judge every criterion by itself. "criteria_scores" has one object for each criterion, with its name as '
    '"criterion" and these fields.'
)
_ISSUES: Final = (
    '"issues" lists what is wrong, at most {most} for each criterion, the worst first: the "criterion" that '
    'it counts against, its "severity" (low, medium, high or critical), its "location" (a line, a range, a '
    'file of the submission; empty where it has none), a "description" that can be checked, and a '
    '"suggestion" of '
    "what to do. List nothing that you cannot point at; no issue is a good answer."
)
_SUMMARY: Final = '"summary" says in one or two sentences what matters most.'
_SUGGESTIONS: Final = '"suggestions" lists what to do next, the most useful first; it may be empty.'


def instruction_text(
    content_note: str, hows: Mapping[str, Sequence[str]], mode: EvaluationMode, max_issues: int
) -> str:
    """Return the instruction for the critic.

    Args:
        content_note: A note about the content.
        hows: Names of the criteria by their answering instruction.
        mode: The information to ask for in addition to the scores.
        max_issues: Maximum number of issues per criterion.
    """
    if len(hows) == 1:
        answers = list(hows)
    else:
        answers = [f"- For {', '.join(names)}: {how}" for how, names in hows.items()]
    lines = [content_note, _SCORES, *answers]
    if mode == "detailed":
        lines.append(_ISSUES.format(most=max_issues))
    if mode != "score_only":
        lines.append(_SUMMARY)
    if mode == "detailed":
        lines.append(_SUGGESTIONS)
    return "\n".join(line for line in lines if line)
