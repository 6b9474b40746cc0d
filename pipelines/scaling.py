"""A bound on how long a phase of a run takes, from what one worker does in a second. Needs no ray.

A phase streams blocks of rows through stages that work side by side. Nothing in it ends before its slowest part has:

    phase = start + driver_row * rows + max( max_s work_s , driver_block * blocks * stages ) + fill
    work_s = ceil(blocks / actors_s) * block / rate_s             the busiest actor of stage s
    fill   = sum over all stages but the slowest of block / rate_s     first and last block on their way through

The rest is a fluid model: every actor of a stage is equally fast, blocks wait for nothing but actors, and the network
and the store keep up. driver_row is the part that no worker shares (Amdahl): keys, the look-up in the store, the table;
driver_block, what the driver does for a block that workers compute and store, goes on while they work. Rates are inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from operators.base import Resources
from pipelines.blocks import block_rows

DRIVER, START = "driver", "start"
LOOK_UP, BLOCKS = "driver: keys and look-up", "driver: blocks"


@dataclass(frozen=True)
class Driver:
    """Seconds of the one process that leads a run: per row and phase, per block and stage; `start`: per phase."""

    row: float
    block: float
    start: float


@dataclass(frozen=True)
class Phase:
    """Seconds of one phase and its parts; `work`: of the busiest actor of each stage, `use`: share of all its actors."""

    name: str
    rows: int
    seconds: float
    work: Mapping[str, float]
    use: Mapping[str, float]
    # What the seconds are made of: start, look-up, and the slowest stage or the driver.
    parts: Mapping[str, float]

    @property
    def bottleneck(self) -> str:
        return max(self.parts, key=self.parts.__getitem__)


def times(resources: Resources, boxes: float) -> Resources:
    """What a stage of one box has on `boxes` of them."""
    return replace(resources, actors=max(1, round(resources.actors * boxes)))


def phase(
    name: str, rows: int, stages: Mapping[str, Resources], rates: Mapping[str, float], driver: Driver
) -> Phase:
    """One phase over `rows` rows; `rates`: rows per second of one actor of each stage. No rows: no time at all."""
    if not rows:
        return Phase(name, 0, 0.0, {}, {}, {START: 0.0})
    needs = stages.values()
    block = block_rows(rows, min(r.batch_size for r in needs), max(r.actors for r in needs))
    blocks = ceil(rows / block)
    work = {stage: ceil(blocks / r.actors) * min(block, rows) / rates[stage] for stage, r in stages.items()}
    slowest = max(work, key=work.__getitem__)
    fill = sum(min(block, rows) / rates[stage] for stage in stages if stage != slowest)
    parts = {START: driver.start, LOOK_UP: driver.row * rows}
    leading = driver.block * blocks * len(stages)
    parts[BLOCKS if leading > work[slowest] else slowest] = max(leading, work[slowest])
    seconds = sum(parts.values()) + fill
    use = {stage: rows / rates[stage] / (r.actors * seconds) for stage, r in stages.items()}
    return Phase(name, rows, seconds, work, use, parts)


def bottleneck(phases: Sequence[Phase]) -> tuple[str, float]:
    """The part that takes most of all phases together, and its share of their seconds."""
    total = sum(one.seconds for one in phases)
    parts: dict[str, float] = {}
    for one in phases:
        for part, seconds in one.parts.items():
            parts[part] = parts.get(part, 0.0) + seconds
    worst = max(parts, key=parts.__getitem__)
    return worst, parts[worst] / total if total else 0.0


def together(stages: Mapping[str, Resources], rates: Mapping[str, float]) -> dict[str, float]:
    """Rows per second of all actors of each stage."""
    return {stage: rates[stage] * r.actors for stage, r in stages.items()}
