"""Whatever ends a run, the next one finishes with the same table and every key once."""

import errno
import os
import subprocess
import sys
from collections import Counter

import pytest

from operators.inspection import findings
from operators.store import Store, StoreError
from tests.pipelines.cli import ROOT, TOY_PATH, TOYS, evaluated, own_ray
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines

# Whole runs on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

ROWS = 40
SMALL_BLOCKS = "cluster.m1.batch_size=10"


@pytest.fixture(scope="module", autouse=True)
def broken(tmp_path_factory):
    """A Ray session whose workers fail to commit while the file that this is says so (tests/toys.py), and log what they do."""
    folder = tmp_path_factory.mktemp("broken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_BREAK", str(folder / "how"))
        patch.setenv("TOY_LOG", str(folder / "log"))
        with own_ray():
            yield folder / "how"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    for clip in range(4):
        tone(folder / f"{clip}.wav", pitch=300 + clip)
    write_lines(folder / "q.jsonl", [question(n, f"{n % 4}.wav") for n in range(ROWS)])
    write_lines(folder / "r.jsonl", [said(n, "word " * n + f"number{n}") for n in range(ROWS)])
    return folder


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(folder, inputs, SMALL_BLOCKS).returncode == 0
    return folder


def run(folder, inputs, *more):
    return evaluated(folder, TOY_PATH, "scorers=toy", *recorded(inputs), *more)


def kept(folder):
    """{shelf: {key: what is stored under it}}, and that it is stored once and soundly."""
    store = Store(str(folder / "store"))
    assert [found for shelf in store.shelves() for found in findings(shelf) if found.grave] == []
    shelves = {shelf.name: shelf.read().to_pylist() for shelf in store.shelves("scores", "responses")}
    return {name: {row["key"]: row for row in rows} for name, rows in shelves.items()}


FULL_DISK = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("end", "raised", "stored"),
    [(FULL_DISK, StoreError, 0), (FULL_DISK, StoreError, 15), (KeyboardInterrupt(), KeyboardInterrupt, 15)],
    ids=["disk full at once", "disk full half way", "the driver, between write and commit"],
)
def test_the_next_run_ends_with_the_same_table(
    tmp_path, inputs, undisturbed, broken, monkeypatch, end, raised, stored
):
    """The worker's disk is full after so many commits; what it leaves to the driver ends the driver."""
    replace = os.replace

    def failing(source, target):
        if "/store/scores/" in str(target):
            raise end
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    broken.write_text(f"{stored} full")
    with pytest.raises(raised):
        run(tmp_path, inputs, SMALL_BLOCKS)
    monkeypatch.undo()
    broken.unlink()
    before = {name: set(rows) for name, rows in kept(tmp_path).items()}
    assert sum(map(len, before.values())) > 0 or not stored
    assert not (tmp_path / "run" / "results.parquet").exists()
    assert run(tmp_path, inputs, SMALL_BLOCKS).returncode == 0
    assert results(tmp_path).equals(results(undisturbed)) and kept(tmp_path) == kept(undisturbed)
    for name, keys in before.items():
        assert keys <= set(kept(undisturbed)[name])


def test_a_worker_that_dies_between_write_and_commit_costs_one_part(tmp_path, inputs, undisturbed, broken):
    """30 parts of 8 rows; the 21st file kills the worker, and its successor begins with what that one was about."""
    log = broken.with_name("log")
    log.unlink(missing_ok=True)
    broken.write_text("20 kill")
    assert run(tmp_path, inputs, SMALL_BLOCKS).returncode == 0
    broken.unlink()
    assert results(tmp_path).equals(results(undisturbed)) and kept(tmp_path) == kept(undisturbed)
    done = Counter(log.read_text().splitlines())
    assert len(done) == 6 * ROWS
    assert sum(done.values()) - len(done) == 8, "the part in its hands, and no other"


def test_neither_blocks_nor_workers_change_keys_or_scores(tmp_path, inputs, undisturbed):
    apart = [
        f"cluster.m{n}={{pool: p{n % 2}, cpus: 0.1, actors: 2, batch_size: {3 + n}}}" for n in range(1, 7)
    ]
    assert run(tmp_path, inputs, *apart).returncode == 0
    assert results(tmp_path).equals(results(undisturbed)) and kept(tmp_path) == kept(undisturbed)


def test_another_audio_under_the_same_name_is_another_row(tmp_path):
    write_lines(tmp_path / "q.jsonl", [question(0, "a.wav")])
    write_lines(tmp_path / "r.jsonl", [said(0)])
    for pitch in (440.0, 999.0):
        tone(tmp_path / "a.wav", pitch=pitch)
        assert run(tmp_path, tmp_path).returncode == 0
    stages = record(tmp_path)["stages"]
    # Only what hears the clip is computed anew.
    assert (stages["m1"]["computed"], stages["m2"]["computed"]) == (1, 0)


def test_two_runs_on_one_store_at_once_leave_it_sound(tmp_path, inputs, undisturbed):
    def started(out):
        where = [f"store.root={tmp_path / 'store'}", f"out={tmp_path / out / 'run'}", SMALL_BLOCKS]
        command = [sys.executable, "-m", "pipelines.aria_eval", *TOYS, *recorded(inputs), *where]
        environment = {**os.environ, "TOY_DELAY": "0.005"}
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )

    for process in [started("one"), started("two")]:
        _, told = process.communicate(timeout=400)
        assert process.returncode == 0, told.decode()
    assert results(tmp_path / "one").equals(results(undisturbed))
    assert results(tmp_path / "two").equals(results(undisturbed))
    assert kept(tmp_path) == kept(undisturbed)
