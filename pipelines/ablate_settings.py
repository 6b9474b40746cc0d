"""The schema of `conf/ablate.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from pipelines.config import Cluster, StoreConfig


@dataclass
class Ablate:
    """`python -m pipelines.ablate`."""

    metric: str | None = None  # m1 .. m6
    # Options of scorers/<metric>, the first is the reference; "option:key=value,..." sets fields in it.
    backbones: list[str] = field(default_factory=list)
    stored: bool = False  # score every stored response instead of `model` on `benchmark`
    model: Any = MISSING
    benchmark: Any = MISSING
    yardsticks: bool = True  # also score the response sets that a benchmark ships for comparison
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    max_failure_rate: float = 0.5  # of usable rows, per backbone; past it the run exits with status 1
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-ablate-<metric>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


ConfigStore.instance().store(name="ablate_schema", node=Ablate)
