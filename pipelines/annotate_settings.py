"""The schema of `conf/annotate.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore


@dataclass
class Annotate:
    """`python -m pipelines.annotate`."""

    run: Any = None  # the run whose chains are rated, or a list of them; null: the newest in runs/
    mixed: bool = False  # allow runs that were scored by different scorers: chains are drawn over the range of their ARIA
    out: str = "annotation"  # folder: rating pages and plan.json; with read=..., ratings.parquet
    per_model: int = 10  # chains of every model
    groups: int = 3  # of raters; every chain goes to one
    raters: int = 3  # expected in a group
    seed: int = 0
    embed_mb: float = 60.0  # megabytes of audio that may stand in one page
    embed_clip_kb: float = 4000.0  # and of one clip; a larger one is linked as a file
    read: Any = None  # file, or [files], that raters saved: check them and write ratings.parquet


ConfigStore.instance().store(name="annotate_schema", node=Annotate)
