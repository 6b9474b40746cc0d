"""`-m` as a user types it: a member that dies does not stop the others, and the end names it."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from operators.schema import METRICS
from tests.pipelines.cli import ROOT, TOYS
from tests.pipelines.test_aria_eval import question, said, tone, write_lines

# Whole processes: more time than the fast part has.
pytestmark = pytest.mark.weights


def sweep(*arguments):
    command = [sys.executable, "-m", "pipelines.aria_eval", "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def grid(folder):
    """Two recorded models, and between them one whose file is not there."""
    tone(folder / "a.wav", pitch=300)
    write_lines(folder / "q.jsonl", [question(n, "a.wav") for n in range(3)])
    for model in ("first", "last"):
        write_lines(folder / f"{model}.jsonl", [said(n, f"{model} word{n}") for n in range(3)])
    models = ",".join(f"{folder}/{name}.jsonl" for name in ("first", "dead", "last"))
    where = [f"store.root={folder / 'store'}", f"out={folder / 'out'}", f"hydra.sweep.dir={folder / 'sweep'}"]
    few = ["cluster.num_cpus=1", "model=recorded", "benchmark=manifest", "yardsticks=false"]
    return [*TOYS, *few, *where, f"model.path={models}", f"benchmark.path={folder}/q.jsonl"]


def test_a_dead_member_stops_no_other_and_a_second_sweep_computes_nothing_again(tmp_path):
    arguments = grid(tmp_path)
    first = sweep(*arguments)
    assert first.returncode == 1
    assert "dead.jsonl: " in first.stderr, "a dead member says why when it dies"
    end = first.stderr[first.stderr.index("error: 1 of 3 jobs failed") :]
    assert end.count("dead.jsonl") == 1 and "#1 " in end
    assert "Traceback" not in first.stderr
    runs = sorted(path.parent.name for path in (tmp_path / "out").glob("*/results.parquet"))
    assert runs == ["0", "2"], "every member has a folder of its own"
    for run in runs:
        rows = pq.read_table(tmp_path / "out" / run / "results.parquet")
        assert rows.num_rows == 3 and all(rows[name].null_count == 0 for name in METRICS)

    write_lines(tmp_path / "dead.jsonl", [said(n, f"revived word{n}") for n in range(3)])
    again = sweep(*arguments)
    assert again.returncode == 0, again.stderr
    computed = {
        run: json.loads((tmp_path / "out" / run / "run.json").read_text())["stages"]["m6"]["computed"]
        for run in "012"
    }
    assert computed == {"0": 0, "1": 3, "2": 0}


@pytest.mark.parametrize("how", [["-m"], ["hydra.output_subdir=.hydra"]], ids=["sweep", "one run"])
def test_a_secret_in_an_address_never_reaches_the_disk(tmp_path, how):
    secret = "s3://KEY:hushhush@bucket/x"
    mine = tmp_path / "conf" / "scorers" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text(f"# @package _global_\nstore: {{root: '{secret}'}}\n")
    written = [f"hydra.{kind}.dir={tmp_path / kind}" for kind in ("run", "sweep")]
    for words, key in (
        ([f"store.root={secret}"], "store.root"),
        (["--config-dir", str(tmp_path / "conf"), "+scorers@_global_=mine"], "config key store.root"),
    ):
        command = [sys.executable, "-m", "pipelines.rescore", *words, *written, *how]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 1 and ended.stderr.startswith(f"error: {key}: its address comes with cred")
        assert "hushhush" not in ended.stdout + ended.stderr
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine], (
            "Hydra wrote none of its files"
        )
