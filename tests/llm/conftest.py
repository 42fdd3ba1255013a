"""Fixtures for the tests of the models."""

from tests.servers.fixtures import openai_server, openai_server_process

__all__ = ["openai_server", "openai_server_process"]
