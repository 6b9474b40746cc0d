"""What a MUGEN run leaves behind: trials, votes and tables as Parquet, and run.json with counts of the audio work."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from omegaconf import DictConfig

from operators.base import Spec
from operators.mugen.report import show
from operators.mugen.tables import AGREEMENT, CURVE, POSITIONS, scaling, summarise
from pipelines.lookup import Tally
from pipelines.phases import Journal
from pipelines.record import write_record

CELL = ["model", "benchmark", "n_candidates", "strategy"]  # one cell of Table 3 or Figure 3


def counts_of_audio(items: pa.Table, trials: pa.Table, journal: Journal) -> dict[str, Any]:
    """How much audio work this run cost.

    clips_named: over all items; clips_distinct: different locators among them; clips_presented: over all generations;
    clips_per_prompt: how many generations were given 5, 6 ... clips. clips_decoded: once to be hashed, and once more by
    a model that keeps what it made of a clip, whatever the number of trials (recorded answers: once, where the clips are
    at hand). encoder_calls: clips that an encoder was given in this run: by the count of a stage's memory "clips"
    (`stages.<stage>.encoded` of run.json), else those in the prompts of the responses generated now (`usage.n_audio`): a
    hosted model hears them all, vLLM and other servers may keep what they made of a clip, and do not tell; null where the
    model tells neither. cache_hits: presented clips that needed no call, because the model had met them or the response was
    in the store.
    """
    usable = items.filter(pc.is_null(items["item_error"]))
    named = [uri for uris in usable["audio_uris"].to_pylist() for uri in uris]
    given = pc.add(pc.list_value_length(trials["audio_order"]), trials["n_reference"]).to_pylist()
    generated = [tally for name, tally in journal.stages.items() if name != "audio"]
    calls = encoder_calls(generated)
    return {
        "clips_named": len(named),
        "clips_distinct": len(set(named)),
        "clips_decoded": sum(
            tally.encoded.get("decoded", tally.encoded.get("clips", 0)) for tally in journal.stages.values()
        ),
        "clips_presented": sum(given),
        "clips_per_prompt": {str(n): count for n, count in sorted(Counter(given).items())},
        "encoder_calls": calls,
        "cache_hits": None if calls is None else sum(given) - calls,
        "generations_computed": sum(tally.computed for tally in generated),
        "generations_from_store": sum(tally.from_store for tally in generated),
    }


def encoder_calls(generated: Sequence[Tally]) -> int | None:
    """Clips that a model was given in this run; None where it does not tell."""
    calls = [tally.encoded.get("clips", tally.usage.get("n_audio")) for tally in generated if tally.computed]
    return None if None in calls else int(sum(calls))


def write_run(
    folder: Path,
    tables: Mapping[str, pa.Table],
    config: DictConfig,
    specs: Mapping[str, Spec],
    journal: Journal,
    notes: Mapping[str, Any],
) -> None:
    """<name>.parquet for every table, and run.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    write_record(folder, config, specs, journal, notes)


def show_sweep(folder: Path) -> None:
    """The joint tables of all finished jobs under `folder`: Table 3 or Figure 3 from runs of one cell each."""
    parts = [pq.read_table(path) for path in sorted(folder.glob("*/votes.parquet"))]
    if len(parts) < 2:
        return
    runs = [set(map(tuple, map(dict.values, part.select(CELL).to_pylist()))) for part in parts]
    if sum(map(len, runs)) > len(set().union(*runs)):
        told = "repeat a model and strategy, so they have no joint table"
        print(f"note: jobs under {folder} {told}", file=sys.stderr)
        return
    votes = pa.concat_tables(parts)
    summary, scaled = summarise(votes), scaling(votes)
    pq.write_table(summary, folder / "summary.parquet")
    pq.write_table(scaled, folder / "scaling.parquet")
    print(f"\nall {len(parts)} finished jobs of {folder}:")
    show(summary, scaled, *(schema.empty_table() for schema in (CURVE, POSITIONS, AGREEMENT)))
