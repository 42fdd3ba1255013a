from .attacks import Attack as Attack, builtin_attacks as builtin_attacks, choose_attacks as choose_attacks
from .report import AttackedCell as AttackedCell, FlipRate as FlipRate, RedteamReport as RedteamReport
from .run import red_team as red_team, red_team_sync as red_team_sync

__all__: list[str]
