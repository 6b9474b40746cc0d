"""MUGEN end to end: items -> one decoding per clip -> trials in their orders -> generation -> option -> vote -> tables.

python -m pipelines.mugen_eval model=cascade benchmark=mugen benchmark.path=my.jsonl strategy=apsc_cot
python -m pipelines.mugen_eval 'strategy=[direct,cot,sc,apsc,sc_cot,apsc_cot]'       Table 3, one run
python -m pipelines.mugen_eval strategy=direct,cot,sc,apsc,sc_cot,apsc_cot -m        Table 3, one run each
python -m pipelines.mugen_eval 'n_candidates=[2,3,4,5]'                              Figure 3
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from operators.audio import ProbeAudio
from operators.lalms.recorded import Recorded
from operators.mugen.recorded import read_trials
from operators.mugen.report import show
from operators.mugen.tables import agreement, curve, positions, scaling, summarise
from operators.mugen.votes import vote
from operators.store import Store
from operators.weights import require
from pipelines import mugen_plan, plan
from pipelines.config import MugenEval, build, entry, plain
from pipelines.execution import session
from pipelines.mugen_phases import fan_out, generate_trials, read_options, refuse_unheard, usable
from pipelines.mugen_record import counts_of_audio, show_sweep, write_run
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
    strategies = mugen_plan.read_strategies(settings)
    voting = model if isinstance(model, Recorded) else mugen_plan.voting_model(model, settings.voting)
    sets = mugen_plan.sets_of(strategies, settings.n_trials, voting != model)
    counts = mugen_plan.candidate_counts(settings.n_candidates)
    items = mugen_plan.load_items(benchmark)
    mugen_plan.check_clips(model, items, counts)
    mugen_plan.warn_of_greedy_votes(model, voting, sets)
    if settings.dry_run:
        planned = mugen_plan.stages(settings, model, voting, items, sets, counts)
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
            clips = refuse_unheard(probe_audio(items, settings.cluster, journal))
            for stage, spec, drawn in mugen_plan.by_model(model, voting, sets):
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


def _errors(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {item["item_id"]: item["item_error"] for item in items}


def stop_if_failing(limit: float, journal: Journal, votes: pa.Table) -> None:
    """Exit with status 1 where generation failed on too many rows, or no item could be judged."""
    failing = journal.failing(limit)
    if votes["correct"].null_count == votes.num_rows:
        failing.append("no item could be judged")
    elif pc.all(pc.equal(votes["n_missing"], votes["n_trials"])).as_py():
        failing.append("no item has a response")
    if failing:
        sys.exit(f"error: {'; '.join(failing)} (max_failure_rate={limit:g}); reasons are in trials.parquet")


if __name__ == "__main__":
    entry("mugen_eval", main)
