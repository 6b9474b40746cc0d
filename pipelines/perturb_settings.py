"""The schema of `conf/perturb.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from operators.perturbations import CONDITIONS, INJECTED
from pipelines.config import Cluster, ConfigError, StoreConfig, unknown_key


@dataclass
class Perturb:
    """`python -m pipelines.perturb`."""

    model: Any = MISSING
    benchmark: Any = MISSING
    conditions: list[str] = field(default_factory=lambda: list(CONDITIONS))
    beside: list[str] = field(
        default_factory=list
    )  # folders of aria_eval runs, for the modes of their profiles
    seed: int = 0  # of the hints, the borrowed perceptions and the injected chains
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    # Of usable generations, and of the items; past it the run exits with status 1. Null: 0.5 of the former, all of the latter.
    max_failure_rate: float | None = None
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-perturb-<benchmark>-<model>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


ConfigStore.instance().store(name="perturb_schema", node=Perturb)


def asked_conditions(settings: Perturb) -> list[str]:
    """The conditions in their order, `cot` first: every other one is compared with it. Raises ConfigError."""
    for name in settings.conditions:
        if name not in CONDITIONS:
            raise ConfigError(unknown_key(f"conditions.{name}", list(CONDITIONS)))
    return ["cot", *(name for name in CONDITIONS if name in settings.conditions and name != "cot")]


def tells_a_mode(conditions: list[str]) -> bool:
    """Whether the injected chains, from which a mode follows, are both among the conditions."""
    return set(INJECTED) <= set(conditions)
