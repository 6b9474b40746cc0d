"""The schemas of `conf/mugen_eval.yaml` and `conf/mugen_calibrate.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from pipelines.config import Cluster, StoreConfig


@dataclass
class MugenEval:
    """`python -m pipelines.mugen_eval`."""

    model: Any = MISSING
    benchmark: Any = MISSING
    strategy: dict[str, Any] = field(default_factory=dict)  # one or more rows of Table 3, by name
    reader: Any = MISSING  # what reads the chosen option from a response: rules, or an LLM judge
    n_trials: int = 10  # generations per item of the strategies that vote
    n_candidates: Any = None  # null: all; a number or a list of numbers from 2 up: the scaling study
    seed: int = 0  # of the orders, of which options go first, and of what is sampled
    voting: dict[str, float | None] = field(default_factory=dict)  # sampling settings of the votes alone
    n_resamples: int = 10_000  # of the paired bootstrap
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    # Of usable generations, and of the items; past it the run exits with status 1. Null: 0.5 of the former, all of the latter.
    max_failure_rate: float | None = None
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-<benchmark>-<model>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


@dataclass
class MugenCalibrate:
    """`python -m pipelines.mugen_calibrate`."""

    reader: Any = MISSING  # rules, or an LLM judge
    labels: str | None = None  # file with responses and what people read in them


ConfigStore.instance().store(name="mugen_eval_schema", node=MugenEval)
ConfigStore.instance().store(name="mugen_calibrate_schema", node=MugenCalibrate)
