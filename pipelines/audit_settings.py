"""The schema of `conf/judge_audit.yaml`, and what a configuration must agree on before anything starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from operators.audit.controls import BLIND, BLUFFS, CONTROLS
from operators.audit.presentation import PROBES, Design, cues_of, n_clips
from operators.benchmarks.emotions import EmotionAudit
from operators.lalms.asking import Lalm
from operators.lalms.cascade import Cascade
from operators.lalms.cascade_judge import CascadeJudge
from pipelines.config import Cluster, ConfigError, StoreConfig, build, unknown_key
from pipelines.preflight import check_counts, sized


@dataclass
class JudgeAudit:
    """`python -m pipelines.judge_audit`."""

    model: Any = MISSING
    benchmark: Any = MISSING
    probes: list[str] = field(default_factory=lambda: list(PROBES))
    cues: list[str] | None = None  # null: all that make sense for the benchmark
    controls: list[str] = field(default_factory=lambda: list(BLUFFS))
    counterbalance: bool = False  # ask every call in both orders
    attempts: int = 5  # replies asked for until one can be read
    seed: int = 0  # of the presentation orders
    n_resamples: int = 10_000  # of the paired bootstrap
    cluster: Cluster = field(default_factory=Cluster)
    store: StoreConfig = field(default_factory=StoreConfig)
    # Of calls, without a reply or without a readable one, and of the items; past it the run exits with status 1. Null: 0.5
    # of the former, all of the latter.
    max_failure_rate: float | None = None
    out: str | None = None  # folder for the tables of this run; null: runs/<time>-<benchmark>-<model>
    dry_run: bool = False  # print the plan and stop: no Ray, no weights


ConfigStore.instance().store(name="judge_audit_schema", node=JudgeAudit)


class AuditPlan(NamedTuple):
    """What a run asks: which judge, about which items, in which designs. `bluffs`: controls that are no judge at all."""

    items: pa.Table
    judge: Any
    designs: list[Design]
    bluffs: list[str]


def read_plan(settings: JudgeAudit) -> AuditPlan:
    """The plan that a configuration stands for. Raises ConfigError, or TableError, for one that cannot run."""
    benchmark, model = build(settings.benchmark, "benchmark"), build(settings.model, "model")
    if not isinstance(benchmark, EmotionAudit):
        raise ConfigError(
            f"benchmark {type(benchmark).__name__} holds no counterfactual items; choose benchmark=single_turn_emotions, "
            "positional_emotion or emotional_conversations"
        )
    for key, least in (("attempts", 1), ("n_resamples", 1)):
        if getattr(settings, key) < least:
            raise ConfigError(f"config key {key}: at least {least}, not {getattr(settings, key)}")
    probes = _chosen("probes", settings.probes, PROBES)
    cues = _chosen("cues", settings.cues or cues_of(benchmark.kind), cues_of(benchmark.kind), benchmark.kind)
    controls = _chosen("controls", settings.controls, CONTROLS) if settings.controls else ()
    if "staging" in probes and "perception" not in probes:
        raise ConfigError(
            "config key probes: staging tells the judge what it heard, so it needs perception too"
        )
    plain = Design(probes, cues, settings.seed, settings.counterbalance)
    blind = [plain._replace(control=name) for name in controls if name in BLIND]
    judge, items = as_judge(model), benchmark.load()
    advice = "choose another model, fewer probes or shorter conversations"
    check_counts(judge, clip_needs(items, probes), advice)
    judge = sized(judge, clip_needs(items, probes))
    return AuditPlan(items, judge, [plain, *blind], [name for name in controls if name in BLUFFS])


def as_judge(model: Any) -> Any:
    """`model` as what answers a probe: the cascade by weighing, a LALM without a prompt of its own; others as they are."""
    if isinstance(model, Cascade):
        return CascadeJudge(model)
    return dataclasses.replace(model, prompt=None) if isinstance(model, Lalm) else model


def _chosen(key: str, given: Any, allowed: tuple[str, ...], kind: str | None = None) -> tuple[str, ...]:
    """The chosen names in the usual order. Raises ConfigError for none, or for one that there is not."""
    wrong = [name for name in given if name not in allowed]
    if wrong:
        of_kind = f"{kind} has no such cue; " if kind else ""
        raise ConfigError(of_kind + unknown_key(f"{key}.{wrong[0]}", list(allowed)))
    if not given:
        raise ConfigError(f"config key {key}: choose at least one of {', '.join(allowed)}")
    return tuple(name for name in allowed if name in given)


def clip_needs(items: pa.Table, probes: Sequence[str]) -> Iterable[tuple[int, str]]:
    """(clips of the longest call, item id) of the items that can be asked."""
    for item in items.to_pylist():
        if item["item_error"] is None:
            yield max(n_clips(item, probe) for probe in probes), item["item_id"]
