"""The schema of `conf/listen.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class Listen:
    """`python -m pipelines.listen`."""

    benchmark: Any = MISSING
    output: str = "listen.html"
    n_items: int = 50
    seed: int = 0
    both_branches: bool = False
    title: str = "Which reply suits the voice?"
    exports: list[str] | None = None


ConfigStore.instance().store(name="listen_schema", node=Listen)
