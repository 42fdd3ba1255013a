"""What all tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers.fixtures import openai_server, openai_server_process

__all__ = ["openai_server", "openai_server_process"]

# How long an example takes says more of the machine than of the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whatever a shell runs in the background ignores Ctrl-C, and so would the processes that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests on real judge data where it does not lie beside the repository, and says so."""
    if SHARED_DATA.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the real judge data is not there: {SHARED_DATA}")
    for item in items:
        if "shared_data" in item.keywords:
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real judge data."""
    return SHARED_DATA
