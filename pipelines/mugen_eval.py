"""MUGEN end to end: items -> one decoding per clip -> trials in their orders -> generation -> option -> vote -> tables.

python -m pipelines.mugen_eval model=cascade benchmark=mugen benchmark.path=my.jsonl strategy=apsc_cot
python -m pipelines.mugen_eval 'strategy=[direct,cot,sc,apsc,sc_cot,apsc_cot]'       Table 3, one run
python -m pipelines.mugen_eval strategy=direct,cot,sc,apsc,sc_cot,apsc_cot -m        Table 3, one run each
python -m pipelines.mugen_eval 'n_candidates=[2,3,4,5]'                              Figure 3
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from operators.audio import ProbeAudio
from operators.base import Stage
from operators.lalms.recorded import Recorded
from operators.mugen import GenerationSet, Strategy
from operators.mugen_recorded import read_trials
from operators.mugen_report import show
from operators.mugen_tables import (
    AGREEMENT,
    CURVE,
    POSITIONS,
    agreement,
    curve,
    positions,
    scaling,
    summarise,
)
from operators.mugen_votes import vote
from operators.store import Store
from operators.weights import require
from pipelines import plan
from pipelines.config import ConfigError, MugenEval, build, entry, plain
from pipelines.execution import resources, session
from pipelines.mugen_phases import (
    by_model,
    check_clips,
    fan_out,
    generate_trials,
    read_options,
    refuse_same_sound,
    sets_of,
    usable,
    voting_model,
)
from pipelines.mugen_record import counts_of_audio, write_run
from pipelines.phases import Journal, probe_audio
from pipelines.record import free_folder


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options, and whether this is one job of a sweep.

    Every job of a sweep ends with the joint tables of the jobs so far.
    """
    hydra = HydraConfig.get()
    chosen = hydra.runtime.choices
    if hydra.mode != RunMode.MULTIRUN:
        folder = Path(config.out) if config.out else free_folder(f"{chosen['benchmark']}-{chosen['model']}")
        evaluate(config, folder, chosen["model"])
        return
    together = Path(config.out or hydra.sweep.dir)
    evaluate(config, together / str(hydra.job.num), chosen["model"])
    show_sweep(together)


def evaluate(config: DictConfig, folder: Path, name: str) -> None:
    """One run: results of `config` into `folder`, a generating model under `name`. SystemExit where it failed."""
    settings: MugenEval = plain(config)
    benchmark, reader = build(settings.benchmark, "benchmark"), build(settings.reader, "reader")
    model = build(settings.model, "model")
    strategies = read_strategies(settings)
    voting = model if isinstance(model, Recorded) else voting_model(model, settings.voting)
    sets = sets_of(strategies, settings.n_trials, voting != model)
    counts = candidate_counts(settings.n_candidates)
    items = benchmark.load()
    check_clips(model, items, counts)
    warn_of_greedy_votes(model, voting, sets)
    if settings.dry_run:
        planned = stages(settings, model, voting, items, sets, counts)
        plan.show(planned, settings.cluster, settings.store.root, Console())
        return

    store, journal = Store(settings.store.root), Journal()
    if isinstance(model, Recorded):
        clips = items
        found = read_trials(model, items, sets, counts, settings.seed)
        for note in found.notes:
            print(f"note: {note}", file=sys.stderr)
        said = found.rows
    else:
        require(model)
        said = []
        with session(settings.cluster):
            clips = refuse_same_sound(probe_audio(items, settings.cluster, journal))
            for stage, spec, drawn in by_model(model, voting, sets):
                rows = fan_out(usable(clips), drawn, counts, settings.seed)
                said += generate_trials(rows, stage, name, spec, store, settings.cluster, journal)
    with journal.phase("read"):
        trials = read_options(said, reader, clips, store)
    with journal.phase("vote"):
        refused = clips.filter(pc.is_valid(clips["item_error"])).to_pylist()
        votes = vote(trials, refused, strategies, voting != model)
        tables = {
            "summary": summarise(votes, settings.n_resamples), "scaling": scaling(votes), "curve": curve(trials),
            "positions": positions(trials), "agreement": agreement(trials),
        }  # fmt: skip

    specs = {"audio": ProbeAudio(), "generate": model, "generate_voting": voting, "read": reader}
    counted = {"audio": counts_of_audio(items, trials, journal), "refused": _errors(refused)}
    write_run(folder, {"trials": trials, "votes": votes, **tables}, config, specs, journal, counted)
    show(**tables)
    for item in refused:
        print(f"note: {item['item_id']}: {item['item_error']}", file=sys.stderr)
    print(f"tables in {folder}")
    stop_if_failing(settings.max_failure_rate, journal, votes)


def read_strategies(settings: MugenEval) -> dict[str, Strategy]:
    """The strategies of a run by name. Raises ConfigError for none, or for one that cannot be read."""
    if not settings.strategy:
        raise ConfigError("choose a strategy: strategy=direct, or several: 'strategy=[direct,sc,apsc]'")
    if settings.n_trials < 1:
        raise ConfigError(f"config key n_trials: at least 1 generation is needed, not {settings.n_trials}")
    target = {"_target_": "operators.mugen.Strategy"}
    return {name: build(target | dict(body), f"strategy.{name}") for name, body in settings.strategy.items()}


def candidate_counts(given: Any) -> list[int | None]:
    """`n_candidates` as a list; [None] for all candidates, outside a scaling study. Raises ConfigError."""
    listed = given if isinstance(given, (list, tuple)) else [given]
    if listed == [None]:
        return [None]
    if not listed or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 2 for n in listed):
        raise ConfigError(
            f"config key n_candidates: null, a number or a list of numbers from 2 up, not {given!r}"
        )
    return sorted(set(listed))


def warn_of_greedy_votes(model: Any, voting: Any, sets: Mapping[GenerationSet, int]) -> None:
    """Ten greedy answers to one presentation are one answer: say so, since only the user knows whether it was meant."""
    greedy = getattr(voting, "temperature", None) == 0
    if greedy and any(n > 1 and not drawn.permute for drawn, n in sets.items()):
        print(
            "note: the model decodes greedily, so all trials in the original order are alike and SC equals a single "
            "answer; set voting.temperature (MUGEN: 0.2 for Qwen2.5-Omni, 1 for Gemini 3 Pro)",
            file=sys.stderr,
        )


def stages(
    settings: MugenEval,
    model: Any,
    voting: Any,
    items: pa.Table,
    sets: Mapping[GenerationSet, int],
    counts: Sequence,
) -> list[tuple[Stage, int]]:
    """The stages of this run with the rows each would look at."""
    if isinstance(model, Recorded):
        return []
    cluster, kept = settings.cluster, usable(items)
    chain: list[tuple[Stage, int]] = [
        (Stage("audio", ProbeAudio(), resources(cluster.audio)), items.num_rows)
    ]
    for stage, spec, drawn in by_model(model, voting, sets):
        rows = fan_out(kept, drawn, counts, settings.seed).num_rows
        chain.append((Stage(stage, spec, resources(cluster.generate)), rows))
    return chain


def _errors(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {item["item_id"]: item["item_error"] for item in items}


def stop_if_failing(limit: float, journal: Journal, votes: pa.Table) -> None:
    """Exit with status 1 where generation failed on too many rows, or no item could be judged."""
    failing = [
        f"{name} failed on {tally.failed} of {tally.rows - tally.unusable} usable rows"
        for name, tally in journal.stages.items()
        if name != "audio" and tally.failure_rate > limit
    ]
    if votes["correct"].null_count == votes.num_rows:
        failing.append("no item could be judged")
    elif pc.all(pc.equal(votes["n_missing"], votes["n_trials"])).as_py():
        failing.append("no item has a response")
    if failing:
        sys.exit(f"error: {'; '.join(failing)} (max_failure_rate={limit:g}); reasons are in trials.parquet")


def show_sweep(folder: Path) -> None:
    """The joint tables of all finished jobs under `folder`: Table 3 or Figure 3 from runs of one cell each."""
    parts = [pq.read_table(path) for path in sorted(folder.glob("*/votes.parquet"))]
    cells = [set(zip(*(part[name].to_pylist() for name in ("model", "benchmark", "n_candidates", "strategy")), strict=True)) for part in parts]  # fmt: skip
    if len(parts) < 2:
        return
    if sum(map(len, cells)) > len(set().union(*cells)):
        print(
            f"note: jobs under {folder} repeat a model and strategy, so they have no joint table",
            file=sys.stderr,
        )
        return
    votes = pa.concat_tables(parts)
    summary, scaled = summarise(votes), scaling(votes)
    pq.write_table(summary, folder / "summary.parquet")
    pq.write_table(scaled, folder / "scaling.parquet")
    print(f"\nall {len(parts)} finished jobs of {folder}:")
    show(summary, scaled, *(schema.empty_table() for schema in (CURVE, POSITIONS, AGREEMENT)))


if __name__ == "__main__":
    entry("mugen_eval", main)
