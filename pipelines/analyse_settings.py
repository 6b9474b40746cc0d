"""The schema of `conf/analyse.yaml`, and which runs it names."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore

from pipelines.config import ConfigError
from pipelines.runs import find_run, named, read_record, refuse_other_scorers


@dataclass
class Analyse:
    """`python -m pipelines.analyse`."""

    run: Any = None  # folder of a finished run, or a list of them; null: the newest in runs/
    table: str | None = None  # instead of runs: a summary in the shape of the paper's Table 1
    published: bool = False  # instead of runs: the paper's own tables, and which of its figures come out
    judge_scores: str | None = None  # table: model, judge, score (benchmark); or one column per judge
    ratings: str | None = None  # table: item_id, model, benchmark, trial, rater, group, rating
    ablation: str | None = None  # folder of an ablation; or table: metric, backbone, model, benchmark, mean
    stress: str | None = None  # folder of a stress test, for the manipulations of Table 13
    mixed: bool = False  # allow runs that were scored by different scorers
    n_resamples: int = 2000  # of every bootstrap
    seed: int = 0
    out: str | None = None  # folder for tables and figures; null: runs/<time>-analysis


ConfigStore.instance().store(name="analyse_schema", node=Analyse)


def check(settings: Analyse) -> None:
    """Raises ConfigError for what cannot be asked together."""
    sources = [name for name in ("run", "table") if getattr(settings, name) is not None]
    sources += ["published"] if settings.published else []
    if len(sources) > 1:
        raise ConfigError(f"config keys {' and '.join(sources)}: give one source of scores")
    if settings.ratings and (settings.table or settings.published):
        raise ConfigError("config key ratings: ratings are of chains, so the scores must come from a run")
    needed = {"matplotlib": "analysis", "statsmodels": "analysis"}
    needed |= {"krippendorff": "agreement"} if settings.ratings else {}
    for package, extra in needed.items():
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"the analysis needs the package {package}: pip install -e '.[{extra}]'")
    if settings.n_resamples < 100:
        raise ConfigError(f"config key n_resamples: at least 100, not {settings.n_resamples}")


def run_folders(settings: Analyse) -> list[Path]:
    """The folders of the runs asked for, all scored alike unless `mixed`."""
    folders = [find_run(name) for name in named(settings.run)]
    if not settings.mixed:
        refuse_other_scorers({str(folder): read_record(folder) for folder in folders}, "mixed")
    return folders
