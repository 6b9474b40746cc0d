"""How many workers find room on the nodes of a cluster. Needs no ray: execution.py brings the nodes.

A node is what it has of each kind, {"CPU": 16, "GPU": 4}. A worker lives on one node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from operators.base import Stage

KINDS = ("CPU", "GPU")
Node = Mapping[str, float]


class ResourceError(RuntimeError):
    """The cluster is too small for the pools of a run."""


@dataclass(frozen=True)
class Share:
    """A pool: its stages, its workers, and what each of them takes."""

    chain: tuple[Stage, ...]
    actors: int
    cpus: float
    gpus: float

    def of(self, kind: str) -> float:
        return self.cpus if kind == "CPU" else self.gpus


def of(nodes: Mapping[str, Mapping]) -> list[Node]:
    """What each node has, from nodes as Ray describes them."""
    return [node["Resources"] for node in nodes.values()]


def shares(stages: Iterable[Stage], blocks: int, nodes: Collection[Node]) -> list[Share]:
    """The pools of `stages`: neighbours of one named pool together, every other stage alone.

    Each asks for what its neediest stage asks for, and for no more workers than there are blocks; a pool that names no
    CPUs gets all of one node.
    """
    keyed = groupby(enumerate(stages), key=lambda pair: pair[1].resources.pool or pair[0])
    return [_share(tuple(stage for _, stage in members), blocks, nodes) for _, members in keyed]


def _share(chain: tuple[Stage, ...], blocks: int, nodes: Collection[Node]) -> Share:
    needs = [stage.resources for stage in chain]
    actors = max(1, min(max(r.actors for r in needs), blocks))
    return Share(chain, actors, max(r.cpus for r in needs) or _most(nodes, "CPU"), max(r.gpus for r in needs))


def _most(nodes: Collection[Node], kind: str) -> float:
    return max((node.get(kind, 0.0) for node in nodes), default=0.0)


def check(pools: list[Share], nodes: Collection[Node]) -> None:
    """Refuse what would wait without end: pools that need more than the nodes have, or a worker more than any one has."""
    names = ", ".join(stage.name for share in pools for stage in share.chain)
    for kind in KINDS:
        needed = sum(share.actors * share.of(kind) for share in pools)
        largest = max(share.of(kind) for share in pools)
        has, most = sum(node.get(kind, 0.0) for node in nodes), _most(nodes, kind)
        if needed > has + 1e-9 or largest > most + 1e-9:
            raise ResourceError(
                f"stages {names} together need {needed:g} {kind}s, one worker up to {largest:g}; the cluster has "
                f"{has:g}, its largest node {most:g}: lower their cpus, gpus or actors in the cluster config, "
                f"or give them one `pool`"
            )


def fits(pools: list[Share], nodes: Collection[Node]) -> bool:
    """Whether every worker finds a node, the largest first, each on the first node that has room for it."""
    free = [{kind: node.get(kind, 0.0) for kind in KINDS} for node in nodes]
    workers = [share for share in pools for _ in range(share.actors)]
    for worker in sorted(workers, key=lambda share: (share.gpus, share.cpus), reverse=True):
        home = next(
            (node for node in free if all(worker.of(kind) <= node[kind] + 1e-9 for kind in KINDS)), None
        )
        if home is None:
            return False
        for kind in KINDS:
            home[kind] -= worker.of(kind)
    return True


def shrunk(pools: list[Share], nodes: Collection[Node]) -> list[Share]:
    """`pools` with fewer workers, the largest pool giving first, until they fit; never under one worker each."""
    pools = list(pools)
    while not fits(pools, nodes) and any(share.actors > 1 for share in pools):
        largest = max(range(len(pools)), key=lambda n: pools[n].actors)
        pools[largest] = replace(pools[largest], actors=pools[largest].actors - 1)
    return pools


def lacking(asked: list[Share], got: list[Share]) -> list[str]:
    """A sentence per pool that has fewer workers than asked for."""
    return [
        f"{', '.join(stage.name for stage in more.chain)}: {fewer.actors} workers instead of {more.actors}, as nodes are gone"
        for more, fewer in zip(asked, got, strict=True)
        if fewer.actors < more.actors
    ]
