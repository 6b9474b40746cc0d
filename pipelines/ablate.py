"""One metric under several backbones, on the same responses: ARIA-Rubrics, appendix B.5.

python -m pipelines.ablate metric=m3 'backbones=[qwen2_5_1_5b,qwen2_5_32b,gemma3n_e2b]' stored=true
python -m pipelines.ablate metric=m5 'backbones=[minilm_nli,"minilm_nli:granularity=whole"]'
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from operators import ablation_report
from operators.ablation import agreement, means
from operators.asked import PLACE, answered, names_in_results, stored_batches
from operators.base import Spec, Stage
from operators.extraction import Extract
from operators.fingerprint import fingerprint
from operators.schema import ITEM, METRICS
from operators.store import Store, StoreError
from operators.weights import require
from pipelines import plan
from pipelines.ablate_settings import Ablate
from pipelines.aria_eval import read_recorded
from pipelines.config import ConfigError, build, entry, plain
from pipelines.execution import resources, session
from pipelines.memory import check_memory
from pipelines.naming import model_name
from pipelines.phases import Journal, extract, score
from pipelines.preflight import check_counts, check_ready, needs_of, sized
from pipelines.record import check_out, free_folder, write_record
from pipelines.responses import gather, load_questions, to_judge
from pipelines.sweeps import with_own_folder


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows what the command chose and set."""
    ablate(with_own_folder(config), model_name(config))


def ablate(config: DictConfig, name: str) -> None:
    """One ablation: tables into the run's folder, the table of appendix B.5 on the screen."""
    settings: Ablate = plain(config)
    scorers = read_backbones(settings)
    store, journal = Store(settings.store.root), Journal()
    needs = resources(getattr(settings.cluster, settings.metric))
    stages = [Stage(settings.metric, spec, needs) for spec in scorers.values()]
    for stage in stages:  # one after the other, each alone
        check_memory([stage], settings.cluster)
    if settings.dry_run:
        plan.show(
            [(stage, 0) for stage in stages],
            settings.cluster,
            settings.store.root,
            Console(),
            (*ITEM.names, *Extract.writes, "audio_hashes"),
        )
        return

    check_out(settings.out)
    for spec in scorers.values():
        require(spec)
    with session(settings.cluster):
        responses = stored(store) if settings.stored else asked(settings, name, store, journal)
        rows = extract(responses, settings.cluster, journal)
        scored, tallies = score_with_each(settings, scorers, rows, store, journal)

    values = {backbone: found for backbone, (found, _) in scored.items()}
    table, agreements = means(rows, values), agreement(rows, values, settings.metric)
    folder = Path(settings.out) if settings.out else free_folder(f"ablate-{settings.metric}")
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(by_row(rows, scored), folder / "rows.parquet", compression="zstd")
    pq.write_table(table, folder / "means.parquet")
    pq.write_table(agreements, folder / "agreement.parquet")
    text = ablation_report.to_markdown(settings.metric, table, agreements, list(scorers))
    (folder / "ablation.md").write_text(text, encoding="utf-8")
    write_record(folder, config, {"extract": Extract(), **scorers}, journal, {"backbones": tallies})
    ablation_report.show(settings.metric, table, agreements, list(scorers))
    print(f"tables in {folder}")
    stop_if_failing(settings.max_failure_rate, journal, list(scorers))


def read_backbones(settings: Ablate) -> dict[str, Spec]:
    """{option: its scorer}. Raises ConfigError for a metric or backbone that there is not, naming those there are."""
    shorts = [metric[:2] for metric in METRICS]
    if settings.metric not in shorts:
        raise ConfigError(f"config key metric: one of {', '.join(shorts)}, not {settings.metric!r}")
    loader, group = GlobalHydra.instance().config_loader(), f"scorers/{settings.metric}"
    have = loader.get_group_options(group)
    wanted = list(dict.fromkeys(settings.backbones))
    unknown = [name for name in wanted if name.partition(":")[0] not in have]
    if len(wanted) < 2 or unknown:
        said = f"unknown backbone {unknown[0]!r}" if unknown else "two or more backbones are needed"
        raise ConfigError(f"config key backbones: {said}; {group} has {', '.join(have)}")
    built = {name: build(_option(loader, group, name), f"{group}={name}") for name in wanted}
    prints = {name: fingerprint(spec) for name, spec in built.items()}
    for one, other in combinations(wanted, 2):
        if prints[one] == prints[other]:
            raise ConfigError(
                f"config key backbones: {one} and {other} are the same scorer, which agrees with itself whatever it is: leave "
                "one out"
            )
    return built


def _option(loader: Any, group: str, name: str) -> DictConfig:
    """The config of one option of a group; "option:key=value,..." sets fields in it, so that one backbone has variants."""
    option, _, fields = name.partition(":")
    try:
        whole = loader.load_configuration(f"{group}/{option}", overrides=[], run_mode=RunMode.RUN)
        body = OmegaConf.create(OmegaConf.to_container(OmegaConf.select(whole, group.replace("/", "."))))
        return OmegaConf.merge(body, OmegaConf.from_dotlist([part for part in fields.split(",") if part]))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"config key backbones: {name}: {error}") from error


def asked(settings: Ablate, name: str, store: Store, journal: Journal) -> pa.Table:
    """The responses of `model` and the yardsticks to `benchmark`; generation runs once, and not where it is stored."""
    benchmark, model = build(settings.benchmark, "benchmark"), build(settings.model, "model")
    items = load_questions(benchmark)
    recorded = read_recorded(settings, benchmark, model, items, name)
    require(model)
    check_counts(model, needs_of(items), "choose another model, or model.limits.over_many=skip")
    model = sized(model, needs_of(items))
    check_ready(model)
    check_memory([Stage("generate", model, resources(settings.cluster.generate))], settings.cluster)
    return gather(items, recorded, name, model, store, settings.cluster, journal)


def stored(store: Store) -> pa.Table:
    """Every stored response with its item."""
    named = names_in_results(store)
    if not named:
        raise StoreError(f"the store {store.root} holds no response: run pipelines.aria_eval with it first")
    return to_judge(answered(pa.concat_tables(stored_batches(store, named, 1 << 30))))


def score_with_each(
    settings: Ablate, scorers: Mapping[str, Spec], rows: pa.Table, store: Store, journal: Journal
) -> tuple[dict[str, tuple[np.ndarray, list[str | None]]], dict[str, Any]]:
    """{backbone: its value per row (NaN: none) and the reasons}, and its tally; one backbone after the other."""
    metric = next(name for name in METRICS if name.startswith(settings.metric))
    scored, tallies = {}, {}
    for backbone, spec in scorers.items():
        mine = Journal()
        table = score(rows, {settings.metric: spec}, store, settings.cluster, mine)
        values = table[metric].to_numpy(zero_copy_only=False).astype(np.float64)
        scored[backbone] = (values, table[f"{metric}_reason"].to_pylist())
        journal.stages[backbone] = mine.stages[settings.metric]
        journal.wall_seconds[backbone] = mine.wall_seconds["score"]
        tallies[backbone] = mine.stages[settings.metric].as_dict()
    return scored, tallies


def by_row(rows: pa.Table, scored: Mapping[str, tuple[np.ndarray, list[str | None]]]) -> pa.Table:
    """Every row with every backbone's value and, where there is none, its reason."""
    table = rows.select(PLACE)
    for backbone, (values, reasons) in scored.items():
        table = table.append_column(backbone, pa.array(values, pa.float64(), mask=np.isnan(values)))
        table = table.append_column(f"{backbone}_reason", pa.array(reasons, pa.string()))
    return table


def stop_if_failing(limit: float, journal: Journal, backbones: list[str]) -> None:
    """Exit with status 1 where a backbone failed on too many rows, or had none to try."""
    failing = journal.failing(limit)
    failing += [
        f"{name} had no row to score"
        for name in backbones
        if journal.stages[name].rows == journal.stages[name].unusable
    ]
    if failing:
        raise SystemExit(
            f"error: {'; '.join(failing)} (max_failure_rate={limit:g}); reasons are in rows.parquet"
        )


if __name__ == "__main__":
    entry("ablate", main, lists=("backbones",))
