from . import (
    audit as audit,
    demo_figures as demo_figures,
    tool_calls as tool_calls,
    view_server as view_server,
)
from .app import main as main

__all__: list[str]
