"""The schema of `conf/audit_validity.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class AuditValidity:
    """`python -m pipelines.audit_validity`."""

    check: str = MISSING
    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)
    benchmark: Any = MISSING
    rater: Any = None
    n_resamples: int = 2000
    seed: int = 0
    out: str | None = None


ConfigStore.instance().store(name="audit_validity_schema", node=AuditValidity)
