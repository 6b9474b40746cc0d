"""The schemas of `conf/rescore.yaml` and `conf/compare.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore

from pipelines.config import Cluster, Scorers, StoreConfig


@dataclass
class Rescore:
    """`python -m pipelines.rescore`."""

    scorers: Scorers = field(default_factory=Scorers)
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    series: str | None = None  # nights of one series are compared; null: the name of the chosen scorers
    against: str | None = None  # a night of the series to compare with; null: the last one
    rows_at_once: int = 10_000  # how many responses are scored, and held in memory, together
    results: bool = (
        False  # also write results.parquet, with all texts: every stored response is then read anew
    )
    max_failure_rate: float = (
        0.5  # of the rows scored tonight, per metric; past it the run exits with status 1
    )
    # Metrics (m1 .. m6) that are known not to work: the report still names them, the exit status does not.
    acknowledged: list[str] = field(default_factory=list)
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-rescore-<series>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


@dataclass
class Compare:
    """`python -m pipelines.compare`."""

    last: str | None = None  # folder of the earlier run: results.parquet and run.json
    now: str | None = None  # folder of the later run
    force: bool = False  # compare although the scorers differ or are not recorded
    out: str | None = None  # folder for drift.md and drift.json; null: only print


ConfigStore.instance().store(name="rescore_schema", node=Rescore)
ConfigStore.instance().store(name="compare_schema", node=Compare)
