"""Prompt injections against a judge: a set of attacks, and how often they turn its verdicts.

    report = await red_team(dataset, CriterionGrader(judges=["gpt-6-luna"]), limit=20)
    print(report.summary())
    report.overall.rate, report.overall.noise, report.by_criterion["capital"].rate

Each attack is written into each item, which is graded again; a verdict counts as flipped where it moved the
way the attack is aimed.
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
