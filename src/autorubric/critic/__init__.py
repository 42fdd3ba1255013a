"""Critics: one criterion and one evaluator, used as a judge in a panel or on their own.

A criterion defines the fields of an evaluation. A `Critic` sends the criterion to an evaluator and returns
the evaluation, an instance of the criterion's schema:

    critic = Critic(evaluator="gpt-6-luna", criterion=LikertCriterion(name="helpfulness", scale=[...]))
    evaluation = critic(output="The answer is 42.", input="What is six times seven?")
    evaluation.rating, evaluation.explanation

A template determines the evaluator's prompt. Its variables are `{criterion}`, `{output}`, `{input}`,
`{reference}`, `{context}` and any keyword argument of the call; `{material}` is all inputs, delimited,
`{instruction}` describes the reply format, and `{examples}` are a panel's few-shot examples. The meaning of
the reference depends on the criterion: an expected answer, a target or an exemplar.
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

# Loaded at first use: panels without critics need only `_cast`.
_HOMES = {
    "_evaluators": ("Called", "called_of"),
    "_cast": ("Cast", "cast_vote", "cast_votes", "read_answer"),
    "_critic": ("Critic",),
    "_prompt": ("DEFAULT_TEMPLATE", "Prompt"),
    "_template": ("Template",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
