"""Test processes share the machine (pyproject.toml): each keeps to one core, before torch is imported."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Ray starts its workers at nice 15: beside busy test processes they would hardly run.
    os.environ.setdefault("RAY_worker_niceness", "0")


def pytest_collection_modifyitems(items):
    """Files with slow tests first: the many quick ones then fill the end, and no process waits alone for the last slow file."""
    slow = {item.path for item in items if item.get_closest_marker("weights")}
    items.sort(key=lambda item: item.path not in slow)
