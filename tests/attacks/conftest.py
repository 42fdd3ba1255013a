"""The command line to call."""

from tests.cli.conftest import cli

__all__ = ["cli"]
