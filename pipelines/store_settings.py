"""The schema of `conf/store.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore

from pipelines.config import StoreConfig


@dataclass
class StoreCommand:
    """`python -m pipelines.store COMMAND`."""

    command: str | None = None  # ls, verify, compact, gc or export: the word after pipelines.store
    store: StoreConfig = field(default_factory=StoreConfig)
    delete: bool = False  # gc: remove what it lists
    keep_nights: int | None = None  # gc: of each nightly series, keep the last so many; null: all
    forget: list[str] = field(
        default_factory=list
    )  # gc: also everything of these model or scorer fingerprints
    kind: str = "scores"  # export: scores, responses, asked (the questions of the responses) or presented (MUGEN's trials)
    out: str | None = None  # export: a .parquet or .csv file


ConfigStore.instance().store(name="store_schema", node=StoreCommand)
