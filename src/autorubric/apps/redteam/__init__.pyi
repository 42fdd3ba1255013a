from .attacks import (
    Attack as Attack,
    AttackedCell as AttackedCell,
    builtin_attacks as builtin_attacks,
    choose_attacks as choose_attacks,
)
from .run import (
    FlipRate as FlipRate,
    RedteamReport as RedteamReport,
    red_team as red_team,
    red_team_sync as red_team_sync,
)

__all__: list[str]
