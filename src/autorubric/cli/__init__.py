"""The command line, with one file per command that parses, calls the library and prints."""

from autorubric.cli._app import main

__all__ = ["main"]
