"""MUGEN end to end: items -> one decoding per clip -> trials in their orders -> generation -> option -> vote -> tables.

python -m pipelines.mugen_eval model=cascade benchmark=mugen benchmark.path=my.jsonl strategy=apsc_cot
python -m pipelines.mugen_eval strategy=direct,cot,sc,apsc,sc_cot,apsc_cot           Table 3, one run
python -m pipelines.mugen_eval strategy=direct,cot,sc,apsc,sc_cot,apsc_cot -m        Table 3, one run each, one store
python -m pipelines.mugen_eval n_candidates=2,3,4,5                                  Figure 3
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console

from operators.audio import ProbeAudio
from operators.benchmarks.identity import notes_of
from operators.lalms.recorded import Recorded
from operators.mugen.judged import judge_of
from operators.mugen.kept import Presenting
from operators.mugen.recorded import given_path, read_trials
from operators.mugen.report import show
from operators.mugen.tables import agreement, curve, positions, scaling, summarise
from operators.mugen.votes import vote
from operators.store import Store
from operators.tables import digest
from operators.weights import require
from pipelines import mugen_plan, plan
from pipelines.at_hand import probe_at_hand
from pipelines.config import Cluster, build, entry, plain
from pipelines.execution import session
from pipelines.failing import counted, failing, told
from pipelines.memory import check_memory
from pipelines.mugen_phases import fan_out, generate_trials, read_and_keep, refuse_unheard, usable
from pipelines.mugen_record import counts_of_audio, show_sweep, write_run
from pipelines.mugen_settings import MugenEval
from pipelines.naming import model_name
from pipelines.phases import Journal, probe_audio
from pipelines.preflight import check_ready
from pipelines.record import check_out, free_folder


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options, and whether this is one job of a sweep.

    Every job of a sweep ends with the joint tables of the jobs so far.
    """
    hydra = HydraConfig.get()
    chosen = hydra.runtime.choices
    if hydra.mode != RunMode.MULTIRUN:
        title = f"{chosen['benchmark']}-{chosen['model']}"
        evaluate(config, Path(config.out) if config.out else None, model_name(config), title)
        return
    together = Path(config.out or hydra.sweep.dir)
    evaluate(config, together / str(hydra.job.num), model_name(config))
    show_sweep(together)


def evaluate(config: DictConfig, out: Path | None, name: str, title: str = "") -> None:
    """One run: results of `config` into the folder `out`, or a free one that is called by `title`, a generating model under
    `name`. SystemExit where it failed."""
    settings: MugenEval = plain(config)
    planned, reader = mugen_plan.read_plan(settings), build(settings.reader, "reader")
    check_memory(mugen_plan.generating(planned, settings.cluster), settings.cluster)
    if settings.dry_run:
        stages = mugen_plan.stages(planned, settings.cluster)
        plan.show(stages, settings.cluster, settings.store.root, Console())
        return

    check_out(settings.out)
    tell(notes_of(planned.items))
    store, journal = Store(settings.store.root), Journal()
    if isinstance(planned.model, Recorded):
        clips, said = recorded(planned, journal)
    else:
        require(planned.model)
        check_ready(planned.model)
        with session(settings.cluster):
            clips, said = generated(planned, name, store, settings.cluster, journal, reader)
    folder = out or free_folder(title)
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the results, because a system's folder for temporary files may be small, or in memory.
    with journal.phase("read"), TemporaryDirectory(dir=folder, prefix=".scratch-") as scratch:
        written = Path(scratch) / "trials.parquet"
        trials = read_and_keep(said, reader, clips, store, written)
        written.replace(folder / written.name)
    with journal.phase("vote"):
        refused = clips.filter(pc.is_valid(clips["item_error"])).to_pylist()
        votes = vote(trials, refused, planned.strategies, planned.separate_voting)
        tables = {
            "summary": summarise(votes, settings.n_resamples), "scaling": scaling(votes), "curve": curve(trials),
            "positions": positions(trials), "agreement": agreement(trials),
        }  # fmt: skip

    specs = {
        "audio": ProbeAudio(),
        "generate": planned.model,
        "generate_voting": planned.voting,
        "read": reader,
    }
    errors = {item["item_id"]: item["item_error"] for item in refused}
    notes = {"audio": counts_of_audio(planned.items, trials, journal), "refused": errors}
    write_run(folder, {"items": clips, "votes": votes, **tables}, config, specs, journal, notes)
    show(**tables)
    tell(f"{item_id}: {error}" for item_id, error in errors.items())
    print(f"tables in {folder}")
    stop_if_failing(settings.max_failure_rate, journal, clips, votes, trials)


def recorded(planned: mugen_plan.MugenPlan, journal: Journal) -> tuple[pa.Table, Iterable[dict[str, Any]]]:
    """The items, refused as a run that generates refuses them as far as their clips are at hand, and the trials of a file
    as they were presented and answered, to be iterated over once."""
    digest(given_path(planned.model))  # a file that is not there is told of before clips are decoded
    heard = probe_at_hand(planned.items, journal)
    clips = refuse_unheard(heard.items)
    found = read_trials(planned.model, clips, planned.sets, planned.counts, planned.seed)
    tell([*heard.notes, *found.notes])
    return clips, found.rows


def generated(
    planned: mugen_plan.MugenPlan, name: str, store: Store, cluster: Cluster, journal: Journal, reader: Any
) -> tuple[pa.Table, Iterable[dict[str, Any]]]:
    """The items with their decoded clips, and every trial with what the model said, to be iterated over once."""
    clips = refuse_unheard(probe_audio(planned.items, cluster, journal))
    questions = dict(zip(clips["item_id"].to_pylist(), clips["question"].to_pylist(), strict=True))
    how = Presenting(planned.strategies, planned.separate_voting, planned.seed, questions, judge_of(reader))
    said: list[Iterable[dict[str, Any]]] = []
    for stage, spec, drawn in mugen_plan.by_model(planned):
        rows = fan_out(usable(clips), drawn, planned.counts, planned.seed)
        said.append(generate_trials(rows, how, stage, name, spec, store, cluster, journal))
    return clips, chain.from_iterable(said)


def tell(notes: Iterable[str]) -> None:
    """What the user should hear, beside the tables."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def stop_if_failing(
    limit: float | None, journal: Journal, items: pa.Table, votes: pa.Table, trials: pa.Table
) -> None:
    """Exit with status 1 where generation failed on too many rows, or too many items, or all, could not be judged."""
    found = failing(limit, journal, items)
    if votes["correct"].null_count == votes.num_rows:
        found.append("no item could be judged")
    elif pc.all(pc.equal(votes["n_missing"], votes["n_trials"])).as_py():
        found.append(f"no item has a response ({counted(trials['response_error'].drop_null().to_pylist())})")
    if found:
        sys.exit(f"error: {'; '.join(found)} ({told(limit)}); reasons are in trials.parquet")


if __name__ == "__main__":
    entry("mugen_eval", main, lists=("strategy", "n_candidates"))
