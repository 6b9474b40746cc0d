"""Several Ray nodes on one machine, with cards that are only counted: a node dies in mid-run and the result is the same."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from operators.inspection import findings
from operators.store import Store
from tests.pipelines.cli import ROOT, TOY_PATH, TOYS, evaluated
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines
from tests.pipelines.test_resume import stored

# Whole runs on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

ROWS = 96
# Four workers with a card each: all cards of both nodes, so that none is left over when a node dies.
WORKERS = [f"cluster.m1.{key}" for key in ("actors=4", "gpus=1", "cpus=0.5", "batch_size=8")]


@contextmanager
def two_nodes(head, others):
    """A head without cards, started in the folder `head`, and two nodes with two each, started in the folder `others`."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    ray.shutdown()  # one that other files use
    memory, here = {"object_store_memory": 100 << 20}, os.getcwd()
    os.chdir(head)
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **memory}
    )
    os.chdir(others)
    workers = [nodes.add_node(num_cpus=1, num_gpus=2, **memory) for _ in range(2)]
    os.chdir(here)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield nodes, workers
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def slow_rows(monkeypatch, tmp_path):
    """Every row takes its workers a while, and is logged."""
    monkeypatch.setenv("TOY_DELAY", "0.02")
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / "log"


def files(folder):
    folder.mkdir()
    for clip in range(8):
        tone(folder / f"{clip}.wav", pitch=300 + clip)
    write_lines(folder / "q.jsonl", [question(n, f"{n % 8}.wav") for n in range(ROWS)])
    write_lines(folder / "r.jsonl", [said(n, "word " * (n % 50) + f"number{n}") for n in range(ROWS)])
    return folder


def run(folder):
    return evaluated(folder, TOY_PATH, "scorers=toy", *recorded(folder), *WORKERS)


def kill_when_busy(nodes, node, folder, done):
    """Kill `node` without warning once all cards work and something is stored."""
    import ray

    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and not done.is_set():
        if stored(folder) and ray.available_resources().get("GPU", 0.0) == 0:
            nodes.remove_node(node, allow_graceful=False)
            return done.set()
        time.sleep(0.02)


def test_a_node_that_dies_in_mid_run_changes_nothing(slow_rows, tmp_path):
    whole, struck = files(tmp_path / "whole"), files(tmp_path / "struck")
    with two_nodes(tmp_path, tmp_path) as (nodes, (_, doomed)):
        undisturbed = run(whole)
        assert undisturbed.returncode == 0, undisturbed.stderr

        killed = threading.Event()
        killer = threading.Thread(target=kill_when_busy, args=(nodes, doomed, struck, killed))
        killer.start()
        disturbed = run(struck)
        was_killed = killed.is_set()
        killed.set()
        killer.join()
    assert disturbed.returncode == 0, disturbed.stderr
    assert was_killed, "the run ended before a node could be killed"

    assert sum(stored(struck)) == ROWS, "every key once"
    assert record(struck)["stages"]["m6"]["failed"] == 0
    assert results(struck).drop_columns("audio_uris").equals(results(whole).drop_columns("audio_uris"))


# A folder of each process's own: the driver and what stands beside it find the store there, workers of other nodes nothing.
HERE = "/proc/self/cwd"


def scores_of(folder):
    """{shelf: {key: row}} of the scores in the store of `folder`, which is sound and holds no key twice."""
    shelves = list(Store(str(folder / "store")).shelves("scores"))
    assert [one for shelf in shelves for one in findings(shelf)] == []
    return {shelf.name: {row["key"]: row for row in shelf.read().to_pylist()} for shelf in shelves}


@pytest.mark.skipif(not Path(HERE).exists(), reason="this system does not say where a process is")
def test_a_driver_killed_while_its_workers_do_not_see_the_store_costs_one_part_per_worker(
    slow_rows, tmp_path
):
    whole, struck, elsewhere = files(tmp_path / "whole"), files(tmp_path / "struck"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    with two_nodes(struck, elsewhere) as (nodes, _):
        where = [f"cluster.address={nodes.address}", f"store.root={HERE}/store", f"out={struck / 'run'}"]
        words = [*TOYS, *recorded(struck), *WORKERS, *where]
        command = [sys.executable, "-m", "pipelines.aria_eval", *words]
        with (tmp_path / "told").open("w") as told:
            driver = subprocess.Popen(command, cwd=struck, start_new_session=True, stdout=told, stderr=told)
        deadline = time.monotonic() + 240
        while sum(stored(struck)) < ROWS // 4 and driver.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert driver.poll() is None, f"too soon: {(tmp_path / 'told').read_text()[-2000:]}"
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        assert ROWS // 4 <= sum(stored(struck)) < ROWS

        again = subprocess.run(command, cwd=struck, capture_output=True, text=True, timeout=240)
        done = Counter(slow_rows.read_text().splitlines())
        undisturbed = run(whole)
    assert (again.returncode, undisturbed.returncode) == (0, 0), again.stderr + undisturbed.stderr
    assert list(elsewhere.iterdir()) == [] and "stored by the driver" not in again.stderr, "the desk did"
    assert len(done) == 6 * ROWS and sum(done.values()) - len(done) <= 4 * 8, "one part per worker"
    assert results(struck).drop_columns("audio_uris").equals(results(whole).drop_columns("audio_uris"))
    assert scores_of(struck) == scores_of(whole)
