"""Processor seconds of the one process that leads a run: per row, and per block and stage.

    python -m tests.bench.driver [--rows 4000]

Scores rows with six metrics that cost nothing, into an empty store, in few blocks and in many. What keys, look-up and
table take is per row; what the two runs differ by is per block. Processor seconds, so that other work on the machine
says little; waiting for a store on the network is therefore left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence

import pyarrow as pa

from operators.base import Resources, Stage
from operators.schema import METRICS
from operators.store import Store
from pipelines.blocks import block_rows
from pipelines.config import Cluster
from pipelines.execution import session
from pipelines.lookup import Lookup, find_or_compute
from tests import toys

SMALL, LARGE = 8, 2048  # rows per block at most


def one_pass(rows: pa.Table, most: int) -> tuple[float, float, int]:
    """Driver's processor seconds of keys, look-up and table, and of the stream of blocks; how many blocks there were."""
    specs = [getattr(toys, f"M{number}")() for number in range(1, len(METRICS) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        store, began = Store(folder), time.process_time()
        lookups = [
            Lookup(
                Stage(metric[:2], spec, Resources(cpus=0.3, batch_size=most)),
                store.scores(metric, spec),
                rows,
                [None] * rows.num_rows,
                f"{metric}_reason",
                {"value": metric, "details": f"{metric}_details"},
            )
            for metric, spec in zip(METRICS, specs, strict=True)
        ]
        looked_up = time.process_time()
        find_or_compute(lookups, rows, f"blocks of {most}")
        streamed = time.process_time()
        for lookup in lookups:
            lookup.results()
        alone = looked_up - began + time.process_time() - streamed
    return alone, streamed - looked_up, -(-rows.num_rows // block_rows(rows.num_rows, most, 1))


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4000)
    given = parser.parse_args(arguments)
    texts = [f"{'word ' * (n % 200)}number {n}" for n in range(given.rows)]
    rows = pa.table(
        {"reasoning": texts, "audio_uris": [["a.wav"]] * given.rows, "audio_hashes": [["0"]] * given.rows}
    )
    with session(Cluster(num_cpus=2)):
        one_pass(rows.slice(0, 64), LARGE)  # imports and the first actors are not what is measured
        alone, few_seconds, few = one_pass(rows, LARGE)
        _, many_seconds, many = one_pass(rows, SMALL)
    block = (many_seconds - few_seconds) / (many - few) / len(METRICS)
    stream = max(0.0, few_seconds - block * few * len(METRICS))
    found = {"row": (alone + stream) / given.rows, "block": block}
    print(
        f"{few} and {many} blocks: {few_seconds:.2f} and {many_seconds:.2f} s; keys, look-up and table {alone:.2f} s"
    )
    print(f"driver: row {found['row']:.2g} s, block {found['block']:.2g} s per stage")
    return found


if __name__ == "__main__":
    main()
