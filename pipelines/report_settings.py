"""The schema of `conf/report.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore


@dataclass
class Report:
    """`python -m pipelines.report`."""

    run: Any = None  # a run's folder, or [a,b]: one report on several; null: the newest in runs/
    out: str | None = None  # the file to write; null: report.html in the (first) run's folder
    title: str | None = None
    force: bool = False  # also put runs beside each other whose scorers differ; the page says so
    embed_mb: float = 24.0  # megabytes of audio that may stand in the page, in all
    embed_clip_kb: float = 1500.0  # and of one clip; a larger one is linked as a file
    embed_text_mb: float = (
        150.0  # megabytes of responses in the page (it compresses them); past it rows show all the rest
    )


ConfigStore.instance().store(name="report_schema", node=Report)
