"""Prompt injection attacks against judges, and measurement of how often they flip verdicts.

    report = await red_team(dataset, CriterionGrader(judges=["gpt-6-luna"]), limit=20)
    print(report.summary())
    report.overall.rate, report.overall.noise, report.by_criterion["capital"].rate

Each attack is inserted into each item, and the item is graded again. A verdict counts as flipped if it moved
in the direction of the attack.
"""

from autorubric.redteam._attacks import Aim, Attack, builtin_attacks, choose_attacks
from autorubric.redteam._cells import AttackedCell, Outcome
from autorubric.redteam._report import FlipRate, RedteamReport
from autorubric.redteam._run import red_team, red_team_sync

__all__ = [
    "Aim",
    "Attack",
    "AttackedCell",
    "FlipRate",
    "Outcome",
    "RedteamReport",
    "builtin_attacks",
    "choose_attacks",
    "red_team",
    "red_team_sync",
]
