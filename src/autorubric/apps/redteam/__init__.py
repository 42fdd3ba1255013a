"""Prompt injection attacks against judges, and measurement of how often they flip verdicts.

    report = await red_team(dataset, CriterionGrader(judges=["gpt-6-luna"]), limit=20)
    print(report.summary())
    report.overall.rate, report.overall.noise, report.by_criterion["capital"].rate

Each attack is inserted into each item, and the item is graded again. A verdict counts as flipped if it moved
in the direction of the attack.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
