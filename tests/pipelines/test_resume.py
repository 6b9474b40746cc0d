"""A run that is killed half way loses little, and its successor ends with the same table."""

import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from tests.pipelines.cli import ROOT, TOY_PATH, TOYS, evaluated, own_ray
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines

# Whole runs on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

ROWS, BLOCK = 120, 10


def arguments(folder, out):
    where = [f"store.root={folder / 'store'}", f"out={folder / out}"]
    return [*TOYS, *recorded(folder), f"cluster.m1.batch_size={BLOCK}", *where]


def stored(folder):
    return [
        pq.read_metadata(part).num_rows for part in (folder / "store").glob("scores/m6*/*/part-*.parquet")
    ]


def test_after_a_kill_only_the_missing_rows_are_computed(tmp_path, monkeypatch):
    for name in ("killed", "undisturbed"):
        folder = tmp_path / name
        folder.mkdir()
        for clip in range(24):
            tone(folder / f"{clip}.wav", pitch=300 + clip)
        write_lines(folder / "q.jsonl", [question(n, f"{n % 24}.wav") for n in range(ROWS)])
        write_lines(folder / "r.jsonl", [said(n, "word " * (n % 90) + f"number{n}") for n in range(ROWS)])
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "pipelines.aria_eval", *arguments(folder, "run")]
    environment = {**os.environ, "TOY_DELAY": "0.02", "TOY_LOG": str(folder / "first.log")}
    told = tmp_path / "told"
    with told.open("w") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, start_new_session=True, stdout=file, stderr=file
        )
    deadline = time.monotonic() + 240
    while sum(stored(folder)) < ROWS // 4 and time.monotonic() < deadline:
        assert process.poll() is None, f"the run ended before it could be killed: {told.read_text()[-2000:]}"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert ROWS // 4 <= sum(stored(folder)) < ROWS
    assert not (folder / "run" / "results.parquet").exists()

    monkeypatch.setenv("TOY_LOG", str(folder / "second.log"))
    whole = tmp_path / "undisturbed"
    with own_ray():
        again = evaluated(folder, TOY_PATH, "scorers=toy", *recorded(folder))
        first, second = (set((folder / f"{n}.log").read_text().splitlines()) for n in ("first", "second"))
        undisturbed = evaluated(whole, TOY_PATH, "scorers=toy", *recorded(whole))
    assert again.returncode == undisturbed.returncode == 0, again.stderr + undisturbed.stderr
    assert len(first) < 6 * ROWS and len(first | second) == 6 * ROWS
    assert len(first & second) <= BLOCK, (
        "of all metrics together the one part that the actor had in its hands"
    )
    m6 = record(folder)["stages"]["m6"]
    assert m6["from_store"] + m6["computed"] == ROWS and m6["from_store"] >= ROWS // 4
    assert sum(stored(folder)) == ROWS, "every key once"
    assert results(folder).drop_columns("audio_uris").equals(results(whole).drop_columns("audio_uris"))
