"""Pure functions that compute a score, and its length penalty, from answers, weights and policies.

With `v` the value of a criterion in [0, 1] and `w` its weight, the raw score is Σ v·w. The normalized score
is `clamp(Σ v·w / Σ positive w, 0, 1)`, or `clamp(1 + Σ v·w / Σ |w|, 0, 1)` if there are only penalties. Each
group of a tree is scored this way, from the leaves up. Bonuses are not part of the denominators.
"""

from autorubric.scoring._formula import (
    Score,
    Term,
    compute_length_penalty,
    penalised,
    score_terms,
    submission_length_penalty,
)
from autorubric.scoring._tree import (
    Entry,
    OpenGate,
    TreeScore,
    apply_conditions,
    entering_value,
    entry_of,
    score_tree,
)

__all__ = [
    "Entry",
    "OpenGate",
    "Score",
    "Term",
    "TreeScore",
    "apply_conditions",
    "compute_length_penalty",
    "entering_value",
    "entry_of",
    "penalised",
    "score_terms",
    "score_tree",
    "submission_length_penalty",
]
