"""`-m` as a user types it: a member that dies does not stop the others, a sweep that is killed loses next to nothing."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import ray

from operators.schema import METRICS
from pipelines.aria_eval import METRIC_STAGES
from pipelines.sweeps import for_every_option
from tests.pipelines.cli import ROOT, TOY_PATH, TOYS, evaluated, own_ray
from tests.pipelines.test_aria_eval import question, said, tone, write_lines

# Whole processes: more time than the fast part has.
pytestmark = pytest.mark.weights


ROWS, BLOCK = 12, 3
MODELS, BENCHMARKS = ("first", "last"), ("x", "y")


@pytest.fixture(scope="module")
def cluster():
    """A Ray of its own, slow toys on it, that stands when a run dies: what a member of a sweep is told of it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOY_DELAY", "0.01")
        with own_ray():
            yield f"cluster.address={ray.get_runtime_context().gcs_address}"


def grid(folder):
    """What `-m` sweeps over: three models, of which the file of one is not there, on two benchmarks."""
    tone(folder / "a.wav", pitch=300)
    names = [f"{benchmark}{n}" for benchmark in BENCHMARKS for n in range(ROWS)]
    for benchmark in BENCHMARKS:
        asked = [question(0, "a.wav", id=name) for name in names if name.startswith(benchmark)]
        write_lines(folder / f"{benchmark}.jsonl", asked)
    chains = {
        model: [
            said(0, f"{model} {name} " + "word " * k, id=name, model=model) for k, name in enumerate(names)
        ]
        for model in MODELS
    }
    for model, rows in (*chains.items(), ("both", [*chains["first"], *chains["last"]])):
        write_lines(folder / f"{model}.jsonl", rows)
    return [
        [f"model.path={folder}/{model}.jsonl" for model in ("dead", *MODELS)],
        [f"benchmark.path={folder}/{benchmark}.jsonl" for benchmark in BENCHMARKS],
    ]


FEW = ["model=recorded", "benchmark=manifest", "yardsticks=false", f"cluster.m1.batch_size={BLOCK}"]


def command(folder, choices, *more):
    """The sweep over all combinations, as it is typed."""
    swept = [
        words[0].partition("=")[0] + "=" + ",".join(w.partition("=")[2] for w in words) for words in choices
    ]
    where = [f"store.root={folder / 'store'}", f"out={folder / 'out'}", f"hydra.sweep.dir={folder / 'sweep'}"]
    return [sys.executable, "-m", "pipelines.aria_eval", "-m", *TOYS, *FEW, *where, *swept, *more]


def stored(folder):
    """{metric: rows that it has in the store}, of all members."""
    parts = {short: folder.glob(f"store/scores/{short}_*/*/part-*.parquet") for short in METRIC_STAGES}
    return {short: sum(pq.read_metadata(part).num_rows for part in found) for short, found in parts.items()}


def kill_in_the_second_living_member(typed, folder):
    """Start the sweep and kill its processes once it stores scores of its second benchmark; what it had stored."""
    with open(folder / "killed.txt", "w") as told:
        process = subprocess.Popen(typed, cwd=ROOT, start_new_session=True, stdout=told, stderr=told)
    until = time.monotonic() + 240
    while stored(folder)["m1"] <= ROWS and time.monotonic() < until:
        assert process.poll() is None, (folder / "killed.txt").read_text()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return stored_at_last(folder)


def stored_at_last(folder):
    """What the store holds once the workers of the killed run are gone as well: until then they commit what is in their hands."""
    before, now = None, stored(folder)
    while now != before:
        time.sleep(4)
        before, now = now, stored(folder)
    return now


def test_a_killed_grid_with_a_dead_member_is_finished_by_the_same_command_and_nothing_is_computed_twice(
    tmp_path, cluster
):
    choices = grid(tmp_path)
    typed = command(tmp_path, choices, cluster)
    kept = kill_in_the_second_living_member(typed, tmp_path)
    assert all(ROWS <= rows < 2 * ROWS for rows in kept.values())
    assert sorted(path.parent.name for path in tmp_path.glob("out/*/results.parquet")) == ["2"]

    again = subprocess.run(typed, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert again.returncode == 1
    assert "dead.jsonl: " in again.stderr, "a dead member says why when it dies"
    end = again.stderr[again.stderr.index("error: 2 of 6 jobs failed") :]
    assert end.count("dead.jsonl") == 2 and "#0 " in end and "#1 " in end
    assert "Traceback" not in again.stderr
    records = sorted(tmp_path.glob("out/*/run.json"))
    assert [path.parent.name for path in records] == ["2", "3", "4", "5"], "each living member has its folder"
    stages = [json.loads(path.read_text())["stages"] for path in records]
    for short, rows in kept.items():
        assert [member[short]["from_store"] for member in stages] == [ROWS, rows - ROWS, 0, 0]
        assert [member[short]["computed"] for member in stages] == [0, 2 * ROWS - rows, ROWS, ROWS]
    for place, benchmark in enumerate(choices[1]):
        members = {model: records[2 * k + place].parent for k, model in enumerate(MODELS)}
        same_tables_as_undisturbed(
            members, tmp_path / f"whole{place}", f"model.path={tmp_path}/both.jsonl", benchmark
        )


def same_tables_as_undisturbed(members, folder, *choices):
    """The members ended with the tables of one run of both models that nothing disturbed."""
    whole = evaluated(folder, TOY_PATH, "scorers=toy", *FEW, *choices)
    assert whole.returncode == 0, whole.stderr
    for name in ("results", "summary"):
        table = pq.read_table(folder / f"run/{name}.parquet")
        for model, run in members.items():
            mine = pq.read_table(run / f"{name}.parquet")
            assert mine.num_rows and mine.equals(table.filter(pc.field("model") == model))
            assert name == "summary" or all(mine[metric].null_count == 0 for metric in METRICS)


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


def test_a_field_of_models_that_a_sweep_chooses_needs_no_mark(tmp_path):
    words = [
        "model=qwen2_audio,recorded",
        "model.limits.over_long=truncate",
        "out=x",
        "scorers/m3=smollm2,toy",
    ]
    expected = [words[0], "++model.limits.over_long=truncate", *words[2:], "++scorers.m3.seed=1"]
    assert for_every_option(["-m", *words, "scorers.m3.seed=1"]) == ["-m", *expected]
    assert (
        for_every_option(words) == words
        and for_every_option(["-m", "model=a", "model.x=1"])[2] == "model.x=1"
    )
    command = [
        sys.executable,
        "-m",
        "pipelines.aria_eval",
        "-m",
        *words[:2],
        "benchmark=sample",
        "dry_run=true",
    ]
    done = subprocess.run(
        [*command, f"hydra.sweep.dir={tmp_path}"], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert "TransformersChat" in done.stdout and done.returncode == 1
    assert "error: 1 of 2 jobs failed" in done.stderr and "unknown config key 'model.limits'" in done.stderr
