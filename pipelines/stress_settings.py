"""The schema of `conf/stress.yaml`, and which rows of a run it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hydra.core.config_store import ConfigStore

from operators.analysis.correlations import item_labels
from operators.stress import NAMES
from pipelines.config import Cluster, ConfigError, Scorers, StoreConfig, unknown_key


@dataclass
class Stress:
    """`python -m pipelines.stress`."""

    run: Any = None  # folder of a finished run, or a list of them; null: the newest in runs/
    models: list[str] | None = None  # null: all models of the run
    limit: int | None = None  # keep the first so many items
    manipulations: list[str] | None = None  # null: all of them
    seed: int = 0
    n_resamples: int = 10_000  # of the paired bootstrap
    scorers: Scorers = field(default_factory=Scorers)
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    # Of a stage's usable rows, and of the items; past it the run exits with status 1. Null: 0.5 of the former, all of the latter.
    max_failure_rate: float | None = None
    out: str | None = None  # folder for the tables; null: runs/<time>-stress-<name of the run>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


ConfigStore.instance().store(name="stress_schema", node=Stress)


def chosen_manipulations(settings: Stress) -> tuple[str, ...]:
    """The names asked for, in the order of the table. Raises ConfigError for an unknown one."""
    asked = NAMES if settings.manipulations is None else settings.manipulations
    for name in asked:
        if name not in NAMES:
            raise ConfigError(unknown_key(f"manipulations.{name}", list(NAMES)))
    if not asked:
        raise ConfigError("config key manipulations: name at least one, or leave it out for all of them")
    return tuple(name for name in NAMES if name in asked)


def chosen_rows(settings: Stress, results: pa.Table) -> pa.Table:
    """The rows of the models and items asked for. Raises ConfigError where a name is unknown."""
    known = sorted(set(results["model"].to_pylist()))
    for name in settings.models or ():
        if name not in known:
            raise ConfigError(f"config key models: the run has no model {name!r}; it has {', '.join(known)}")
    if settings.limit is not None and settings.limit < 1:
        raise ConfigError(f"config key limit: at least 1, not {settings.limit}")
    if settings.n_resamples < 100:
        raise ConfigError(f"config key n_resamples: at least 100, not {settings.n_resamples}")
    labels = item_labels(results)
    items = set(list(dict.fromkeys(labels))[: settings.limit])
    kept = results.filter(pa.array([label in items for label in labels], pa.bool_()))
    return kept.filter(pc.is_in(kept["model"], pa.array(settings.models or known, pa.string())))
