"""Nodes that die under a job. Needs no ray: execution.py says which nodes are alive."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping

from pipelines import room
from pipelines.room import Share

LOOK_EVERY = 1.0  # seconds between two looks at which nodes are alive
KNOWN_WITHIN = 60.0  # seconds in which Ray learns of a node that has died

Nodes = Mapping[str, Mapping]  # by id, as Ray describes them


class NodesDied(RuntimeError):
    """Nodes died under a job; no row is to blame."""


class Watch:
    """Ends a job whose pools find no room any more because nodes died. Ray Data calls it as it schedules the job.

    `dismiss` kills the workers of the job.
    """

    def __init__(
        self, pools: list[Share], nodes: Nodes, alive: Callable[[], Nodes], dismiss: Callable[[], None]
    ) -> None:
        self._pools, self._nodes = pools, set(nodes)
        self._alive, self._dismiss, self._looked = alive, dismiss, time.monotonic()

    def on_execution_step(self, executor: object) -> None:
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked, left = time.monotonic(), self._alive()
        if self._nodes <= left.keys() or room.fits(self._pools, room.of(left)):
            return
        # Wakes up whoever waits for a block that is gone and that only these workers could make again.
        self._dismiss()
        raise NodesDied(f"nodes died: {', '.join(sorted(self._nodes - left.keys()))}")

    def before_execution_starts(self, executor: object) -> None: ...

    def after_execution_succeeds(self, executor: object) -> None: ...

    def after_execution_fails(self, executor: object, error: Exception) -> None: ...


def have_died(nodes: Nodes, alive: Callable[[], Nodes]) -> bool:
    """Whether one of `nodes` is dead. Ray may learn of it late: until then this waits, as the next job would go there too.

    A node that is silent and stays alive for Ray is alive: work that fails there for a reason of its own ends some time.
    """
    silent = {name for name, node in nodes.items() if not _answers(node)}
    deadline = time.monotonic() + KNOWN_WITHIN
    while silent & alive().keys() and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY)
    return not nodes.keys() <= alive().keys()


def _answers(node: Mapping) -> bool:
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=5).close()
    except OSError:
        return False
    return True
