"""What `pipelines.build_mugen` was asked for: corpora and tasks, or an error that names the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from operators.construction import writing
from operators.construction.corpora import Corpus
from operators.construction.draws import AnyTask
from operators.construction.measurements import SCALES, missing_packages
from pipelines.config import ConfigError, build, unknown_key

EXAMPLE = """for example:
  +corpora.mine.labels=clips/labels.csv +corpora.mine.licence="CC BY 4.0" +corpora.mine.constant.content=speech"""


@dataclass
class BuildMugen:
    """`python -m pipelines.build_mugen`."""

    corpora: dict[str, Any] = field(
        default_factory=dict
    )  # name -> fields of operators.construction.corpora.Corpus
    tasks: dict[str, Any] = field(default_factory=dict)
    only: list[str] | None = None  # names of the tasks to build; null: all
    output: str = "mugen_built"
    overwrite: bool = False  # replace the benchmark that `output` holds
    audio: str = "copy"  # or "reference"
    seed: int = 0
    n_candidates: int = 5
    items_per_task: int = 50
    gold_uses: int = 3  # how often one clip may be the right option of one task
    margins: dict[str, float] = field(default_factory=dict)  # property -> ratio or gap that counts as clear
    measurements: Any = MISSING
    workers: int = 1  # processes that measure


ConfigStore.instance().store(name="build_mugen_schema", node=BuildMugen)


def read_settings(settings: BuildMugen, output: Path) -> tuple[list[Corpus], dict[str, AnyTask]]:
    """Corpora and tasks, with the margins in force. Raises ConfigError for what cannot be meant."""
    checks = {"n_candidates": (settings.n_candidates, 2), "items_per_task": (settings.items_per_task, 1)}
    checks |= {"gold_uses": (settings.gold_uses, 1), "workers": (settings.workers, 1)}
    for key, (value, least) in checks.items():
        if value < least:
            raise ConfigError(f"config key {key}: at least {least}, not {value}")
    if settings.audio not in ("copy", "reference"):
        raise ConfigError(f"config key audio: 'copy' or 'reference', not {settings.audio!r}")
    if wrong := [name for name in settings.margins if name not in SCALES]:
        raise ConfigError(unknown_key(f"margins.{wrong[0]}", list(SCALES)))
    if wrong := [name for name in settings.only or () if name not in settings.tasks]:
        raise ConfigError(f"config key only: no task is called {wrong[0]!r}; {', '.join(settings.tasks)}")
    if not settings.corpora:
        raise ConfigError(f"name a corpus, {EXAMPLE}")
    try:
        writing.check_output(output, settings.overwrite)
    except writing.OutputError as error:
        raise ConfigError(str(error)) from error
    standard = {"_target_": "operators.construction.corpora.Corpus"}
    corpora = [
        build({**standard, "name": name, **dict(fields)}, f"corpora.{name}")
        for name, fields in settings.corpora.items()
    ]
    names = settings.only or list(settings.tasks)
    tasks = {name: build(settings.tasks[name], f"tasks.{name}") for name in names}
    return corpora, {name: with_margin(name, task, settings.margins) for name, task in tasks.items()}


def with_margin(name: str, task: AnyTask, margins: Mapping[str, float]) -> AnyTask:
    """A measured task with the margin of its property, unless it has one of its own."""
    if not task.needs_property or task.margin is not None or task.needs_property not in margins:
        return task
    fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    kind = f"{type(task).__module__}.{type(task).__qualname__}"
    return build({"_target_": kind, **fields, "margin": margins[task.needs_property]}, f"tasks.{name}")


def require_packages(tasks: Mapping[str, AnyTask]) -> None:
    """Raise ConfigError where a task needs a measurement whose package is not installed."""
    measuring = [name for name, task in tasks.items() if task.needs_property not in (None, "duration")]
    missing = missing_packages() if measuring else []
    if missing:
        raise ConfigError(
            f"measuring needs {' and '.join(missing)}: pip install 'audio-reasoning-eval[build]'. "
            f"Without it, leave out the tasks {', '.join(measuring)} with only=[...]"
        )
