"""The schema of `conf/simulate.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore

from pipelines.config import Cluster


@dataclass
class DriverSeconds:
    """Of the process that leads a run, as `python -m tests.bench.driver` measures them (pipelines.scaling.Driver)."""

    row: float = 0.0
    block: float = 0.0
    start: float = 0.0


@dataclass
class Simulate:
    """`python -m pipelines.simulate`."""

    run: str | None = None  # the run whose run.json says how fast each stage is; null: the newest in runs/
    gpus: list[int] = field(default_factory=lambda: [4, 32, 256])
    items: int = 2000
    models: int = 9
    rates: dict[str, float] = field(
        default_factory=dict
    )  # rows per second of one actor, instead of the run's
    driver: DriverSeconds = field(default_factory=DriverSeconds)
    cluster: Cluster = field(default_factory=Cluster)  # one box; more GPUs are more such boxes
    json: str | None = None  # a file for every figure


ConfigStore.instance().store(name="simulate_schema", node=Simulate)
