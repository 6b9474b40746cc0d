"""Several Ray nodes on one machine, with cards that are only counted: a node dies in mid-run and the result is the same."""

import threading
import time

import pytest

from tests.pipelines.cli import TOY_PATH, evaluated
from tests.pipelines.test_aria_eval import question, record, recorded, results, said, tone, write_lines
from tests.pipelines.test_resume import stored

# Whole runs on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

ROWS = 96
# Four workers with a card each: all cards of both nodes, so that none is left over when a node dies.
WORKERS = [f"cluster.m1.{key}" for key in ("actors=4", "gpus=1", "cpus=0.5", "batch_size=8")]


@pytest.fixture
def cluster(monkeypatch):
    """A head without cards and two nodes with two each; every row takes its workers a while."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("TOY_DELAY", "0.02")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.shutdown()  # one that other files use
    memory = {"object_store_memory": 100 << 20}
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **memory}
    )
    workers = [nodes.add_node(num_cpus=1, num_gpus=2, **memory) for _ in range(2)]
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield nodes, workers
    ray.shutdown()
    nodes.shutdown()


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


def test_a_node_that_dies_in_mid_run_changes_nothing(cluster, tmp_path):
    nodes, (_, doomed) = cluster
    whole, struck = files(tmp_path / "whole"), files(tmp_path / "struck")
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
