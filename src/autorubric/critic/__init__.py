"""One criterion, one evaluator: a vote in a grader's panel, or an evaluation asked for by itself.

A criterion says what an evaluation looks like; a `Critic` puts it to an evaluator and gives back the
evaluation, an instance of the criterion's own schema:

    critic = Critic(evaluator="gpt-6-luna", criterion=LikertCriterion(name="helpfulness", scale=[...]))
    evaluation = critic(output="The answer is 42.", input="What is six times seven?")
    evaluation.rating, evaluation.explanation

A template decides what the evaluator reads. Its variables are `{criterion}`, `{output}`, `{input}`,
`{reference}`, `{context}` and any keyword argument of the call; `{material}` is all that was given,
delimited, `{instruction}` says how to answer, and `{examples}` are a panel's few-shot examples. What the
reference is depends on the criterion: the expected answer, a target, an exemplar.
"""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.critic._cast import Cast, cast_vote, cast_votes, read_answer
    from autorubric.critic._critic import Critic
    from autorubric.critic._evaluators import Called, called_of
    from autorubric.critic._prompt import DEFAULT_TEMPLATE, Prompt
    from autorubric.critic._template import Template

__all__ = [
    "DEFAULT_TEMPLATE", "Called", "Cast", "Critic", "Prompt", "Template", "called_of", "cast_vote",
    "cast_votes", "read_answer",
]  # fmt: skip

# A panel casts votes with the least of it; templates and evaluators are for critics of one's own.
_HOMES = {
    "_evaluators": ("Called", "called_of"),
    "_cast": ("Cast", "cast_vote", "cast_votes", "read_answer"),
    "_critic": ("Critic",),
    "_prompt": ("DEFAULT_TEMPLATE", "Prompt"),
    "_template": ("Template",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
