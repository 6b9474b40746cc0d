"""Two test processes share the machine (pyproject.toml): each keeps to one core, before torch is imported."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Ray starts its workers at nice 15: beside a busy second test process they would hardly run.
    os.environ.setdefault("RAY_worker_niceness", "0")
