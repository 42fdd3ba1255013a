"""Answers, weights and policies to a score; and what length takes off it. All pure.

With `v` the value of a criterion on [0, 1] and `w` its weight, the raw score is Σ v·w. Normalised it is
`clamp(Σ v·w / Σ positive w, 0, 1)`; penalties alone score `clamp(1 + Σ v·w / Σ |w|, 0, 1)`. Every group of a
tree is scored so, from the leaves up. Bonuses are left out of the denominators.
"""

from autorubric.scoring._entries import Entry, apply_conditions, entering_value, entry_of
from autorubric.scoring._formula import Score, Term, penalised, score_terms
from autorubric.scoring._length import compute_length_penalty, submission_length_penalty
from autorubric.scoring._tree import OpenGate, TreeScore, score_tree

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
