"""The command line, one file per command; functions import late what `--help` does not need."""

from autorubric.cli.app import main

__all__ = ["main"]
