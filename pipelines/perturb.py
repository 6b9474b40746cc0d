"""Does the answer follow from the chain? The same questions under other prompts, hints and injected chains (Tables 4, 6, 7).

python -m pipelines.perturb model=qwen2_5_omni benchmark=mmar benchmark.path=MMAR
python -m pipelines.perturb --help                  every group and field
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.console import Console

from operators.audio import ProbeAudio
from operators.base import Stage
from operators.benchmarks.identity import notes_of
from operators.extraction import Extract
from operators.frames import with_columns
from operators.lalms.asking import Lalm
from operators.mode_table import NEEDED, modes_side_by_side, unlike
from operators.perturbation_effects import behaviour_of, effects
from operators.perturbation_report import show, to_markdown
from operators.perturbations import CONDITIONS, INJECTED, wrong_choices
from operators.remote import explain
from operators.weights import require
from pipelines import plan
from pipelines.config import ConfigError, build, entry, plain
from pipelines.execution import resources, session
from pipelines.failing import failing, told
from pipelines.memory import check_memory
from pipelines.naming import model_name
from pipelines.perturb_phases import answered, under
from pipelines.perturb_settings import Perturb, asked_conditions, tells_a_mode
from pipelines.phases import Journal, probe_audio
from pipelines.preflight import check_counts, check_ready, needs_of, sized
from pipelines.record import check_out, free_folder, write_record
from pipelines.responses import load_questions
from pipelines.sweeps import with_own_folder


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options."""
    chosen = HydraConfig.get().runtime.choices
    evaluate(with_own_folder(config), model_name(config), f"perturb-{chosen['benchmark']}-{chosen['model']}")


def evaluate(config: DictConfig, name: str, title: str) -> None:
    """One run of `config`; the model goes by `name`. SystemExit where too much failed."""
    settings: Perturb = plain(config)
    conditions = asked_conditions(settings)
    benchmark, model = build(settings.benchmark, "benchmark"), build(settings.model, "model")
    if not isinstance(model, Lalm):
        raise ConfigError(
            f"model {name}: only a model that is given a prompt can be given another one; choose one that is"
        )
    profiles = [summary_of(folder) for folder in settings.beside]
    if why := unlike(profiles):
        raise ConfigError(
            f"config key beside: {why}; name runs in which all models were measured on the same"
        )
    items = load_questions(benchmark, settings.dry_run)
    check_counts(model, needs_of(items), "choose another model")
    model = sized(model, needs_of(items))
    asks = Stage("generate", model, resources(settings.cluster.generate))
    check_memory([asks], settings.cluster)
    if settings.dry_run:
        n = items.num_rows * len(conditions)
        reads = Stage("extract", Extract(), resources(settings.cluster.extract))
        hears = Stage("audio", ProbeAudio(), resources(settings.cluster.audio))
        plan.show(
            [(hears, items.num_rows), (asks, n), (reads, n)], settings.cluster, settings.store.root, Console()
        )
        return

    check_out(settings.out)
    for note in notes_of(items):
        print(f"note: {note}", file=sys.stderr)
    require(model)
    check_ready(model)
    journal = Journal()
    with session(settings.cluster):
        clips = probe_audio(items, settings.cluster, journal)
        rows = answered(clips, conditions, name, model, settings, journal)
    table, modes = compared(rows, name, profiles, settings.seed)
    folder = Path(settings.out) if settings.out else free_folder(title)
    write(folder, rows, table, modes)
    specs = {condition: under(model, condition) for condition in conditions}
    write_record(folder, config, {"extract": Extract(), **specs}, journal, {"conditions": conditions})
    show(table, modes)
    print(f"tables in {folder}")
    limit = settings.max_failure_rate
    if found := failing(limit, journal, clips):
        sys.exit(f"error: {'; '.join(found)} ({told(limit)}); reasons are in responses.parquet")


def compared(
    rows: dict[str, pa.Table], name: str, profiles: list[pa.Table], seed: int
) -> tuple[pa.Table, pa.Table]:
    """What the conditions do to the answers, and the modes that follow from it and from the profiles."""
    by_condition = {condition: table.to_pylist() for condition, table in rows.items()}
    table = effects(by_condition, {condition: CONDITIONS[condition].title for condition in rows})
    behaviours = {}
    if tells_a_mode(list(rows)):
        own, (words, chains) = by_condition["cot"], (by_condition[condition] for condition in INJECTED)
        behaviours[name] = behaviour_of(own, chains, words, wrong_choices(own, own, seed))
    return table, modes_side_by_side(behaviours, profiles)


def summary_of(folder: str) -> pa.Table:
    """The summary of a finished run. Raises ConfigError where the folder has none, or one of another kind of run."""
    path = Path(folder) / "summary.parquet"
    if not path.is_file():
        raise ConfigError(
            f"config key beside: {folder} is not the folder of a finished aria_eval run (no summary.parquet)"
        )
    try:
        summary = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"config key beside: {path} cannot be read: {explain(error)}") from error
    if missing := NEEDED - {*summary.column_names}:
        raise ConfigError(
            f"config key beside: {path} is not the summary of an aria_eval run (no column {min(missing)})"
        )
    return summary


def write(folder: Path, rows: dict[str, pa.Table], table: pa.Table, modes: pa.Table) -> None:
    """responses.parquet (one row per item and condition), perturbation.parquet and modes.parquet, perturbation.md."""
    folder.mkdir(parents=True, exist_ok=True)
    named = [
        with_columns(part, {"condition": pa.array([name] * len(part), pa.string())})
        for name, part in rows.items()
    ]
    pq.write_table(pa.concat_tables(named), folder / "responses.parquet", compression="zstd")
    pq.write_table(table, folder / "perturbation.parquet")
    pq.write_table(modes, folder / "modes.parquet")
    (folder / "perturbation.md").write_text(to_markdown(table, modes), encoding="utf-8")


if __name__ == "__main__":
    entry("perturb", main, lists=("conditions",))
