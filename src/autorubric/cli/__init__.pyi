from . import (
    audit as audit,
    demo_figures as demo_figures,
    run_files as run_files,
    tool_calls as tool_calls,
    view_server as view_server,
)
from .app import main as main

__all__: list[str]
