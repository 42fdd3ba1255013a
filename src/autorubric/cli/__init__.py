"""The command line: one file a command, which parses, calls the library and prints."""

from autorubric.cli._app import main

__all__ = ["main"]
