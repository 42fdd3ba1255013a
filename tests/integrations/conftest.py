"""A small Ray cluster for the tests that want one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from tests.entry_points import ROOT, write_entry_points


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ray on two processors, with the executor's entry point in sight."""
    ray = pytest.importorskip("ray")
    declared = write_entry_points(tmp_path_factory.mktemp("declared"))
    path = os.pathsep.join(filter(None, [str(declared), str(ROOT), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(declared))
        # Workers import the judges of the tests.
        patch.setenv("PYTHONPATH", path)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            address="local",
            num_cpus=2,
            object_store_memory=80 << 20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        yield
        ray.shutdown()
