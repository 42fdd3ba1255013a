"""The command line, with one file per command that parses, calls the library and prints.

Functions import what `--help` does not need, so that `--help` is fast.
"""

from autorubric.cli._app import main

__all__ = ["main"]
