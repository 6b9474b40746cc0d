"""Whether models fit where the cluster config puts them: said in the plan, and before anything starts."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from operators.base import Stage
from pipelines.config import Cluster
from pipelines.room import ResourceError, Share, shares


def check_memory(stages: Iterable[Stage], cluster: Cluster) -> None:
    """Refuse a worker whose models need more than its share of cards has. Raises ResourceError.

    A cluster that does not say what its cards have is not judged. Main memory is only warned of: the machine that runs
    a plan may not be the one that runs the work.
    """
    for share in shares(stages, sys.maxsize, ()):
        needed, there = need(share.chain), _of_cards(share, cluster)
        if not needed:
            continue
        if there is not None and needed > there:
            raise ResourceError(_refusal(share, needed, there, cluster))
        if not share.gpus and not cluster.address and share.actors * needed > main_memory():
            print(f"note: {_names(share)}: {in_words(share.chain, cluster)}", file=sys.stderr)


def in_words(chain: Iterable[Stage], cluster: Cluster) -> str | None:
    """What the models of a worker need and what it gets; None where there is no model that could say."""
    (share,) = shares(chain, sys.maxsize, ())
    needed = need(share.chain)
    if not needed:
        silent = any(hasattr(stage.spec, "memory_gb") for stage in share.chain)
        return "not known: memory_gb says how much it needs" if silent else None
    least = f"{needed:g} GB at least"
    if share.gpus:
        there = _of_cards(share, cluster)
        unknown = "of cards whose memory cluster.gpu_memory_gb does not say"
        return f"{least}, {unknown if there is None else f'of {there:g} GB on {share.gpus:g} GPU'}"
    if cluster.address:
        return f"{least}, in main memory"
    short = "" if share.actors * needed <= main_memory() else ": too little; a cluster config gives it a GPU"
    times = f" for each of {share.actors} workers" if share.actors > 1 else ""
    return f"{least}{times}, in main memory; this machine has {main_memory():.0f} GB{short}"


def need(chain: Iterable[Stage]) -> float:
    """GB that the models of a worker need at least. Stages that name the same model share one copy."""
    models: list[Any] = []
    for stage in chain:
        models += [model for model in _models(stage.spec) if model not in models]
    return sum(model.memory_gb * (2 if model.dtype == "float32" else 1) for model in models)


def _models(value: Any) -> Iterator[Any]:
    """The parts of a Spec that say what memory they need."""
    if getattr(value, "memory_gb", None) is not None:
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _models(getattr(value, field.name))


def _of_cards(share: Share, cluster: Cluster) -> float | None:
    """GB of cards that the models of a worker can use; None: it has no card, or nobody says what they have."""
    if not share.gpus or cluster.gpu_memory_gb is None:
        return None
    return cluster.gpu_memory_gb * min(_cards(stage.spec, share.gpus) for stage in share.chain)


def _cards(spec: Any, gpus: float) -> float:
    """How much of `gpus` cards a model can use: one card, unless it says otherwise."""
    usable = getattr(spec, "usable_cards", None)
    return min(gpus, 1.0) if usable is None else usable(gpus)


def _refusal(share: Share, needed: float, there: float, cluster: Cluster) -> str:
    first, card = share.chain[0], float(cluster.gpu_memory_gb or 0)
    key = f"cluster.{first.name.removesuffix('_voting')}"
    if enough := _enough(share, needed, card):
        change = f"set {key}.gpus={enough} and {key}.actors to what the cards allow"
    else:
        change = "it runs on one card: choose a smaller model, or a cluster with larger cards"
    return (
        f"{_names(share)}: by its memory_gb the model needs {needed:g} GB at least, a worker gets {there:g} GB "
        f"({share.gpus:g} GPU of {card:g} GB, cluster {cluster.name}); {change}"
    )


def _enough(share: Share, needed: float, card: float) -> int | None:
    """The least number of cards, a power of two as tensor parallel wants it, on which all stages of a worker fit."""
    for power in range(6):
        if all(card * _cards(stage.spec, 2.0**power) >= needed for stage in share.chain):
            return 2**power
    return None


def _names(share: Share) -> str:
    return ", ".join(f"{stage.name} ({type(stage.spec).__name__})" for stage in share.chain)


def main_memory() -> float:
    """GB of this machine's main memory."""
    known = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in known:
        return math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
