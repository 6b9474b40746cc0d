"""One Ray for the files that a test process goes through: to start one takes several seconds of every core."""

from contextlib import ExitStack

import pytest

from pipelines.config import Cluster
from pipelines.execution import session


@pytest.fixture(scope="session")
def open_sessions():
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def ray_session(open_sessions):
    """An open Ray, on which the runs of this process work. Tests that need another environment for workers open `own_ray`."""
    import ray

    if not ray.is_initialized():
        open_sessions.enter_context(session(Cluster(num_cpus=2)))
