"""Estimates of a plan: from what earlier runs measured on the same cluster, and none where none did."""

import io
import json
import os

import pytest
from rich.console import Console

from operators.base import Resources, Stage
from operators.fingerprint import fingerprint
from pipelines import plan
from pipelines.config import Cluster
from pipelines.throughput import Rate, lasting, measured
from tests.toys import M2, M3


def leave(folder, name, rate, cluster="local", computed=100, when=1):
    run = folder / "runs" / name
    run.mkdir(parents=True)
    tally = {"rows": computed, "computed": computed, "rows_per_second": rate}
    record = {
        "config": {"cluster": {"name": cluster}},
        "fingerprints": {"m2": fingerprint(M2())},
        "stages": {"m2": tally},
    }
    (run / "run.json").write_text(json.dumps(record))
    os.utime(run / "run.json", (when, when))


def test_the_newest_run_on_this_cluster_counts(tmp_path):
    leave(tmp_path, "old", 5.0, when=1)
    leave(tmp_path, "new", 4.0, when=2)
    leave(tmp_path, "elsewhere", 400.0, cluster="a6000x4", when=3)
    leave(tmp_path, "all-from-the-store", 0.5, computed=3, when=4)
    assert measured(tmp_path / "runs", "local") == {fingerprint(M2()): Rate(4.0, "new")}
    assert measured(tmp_path / "none", "local") == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"fingerprints": {"m2": "x"}, "stages": []}', '{"config": "x"}']
)
def test_a_record_of_another_make_is_passed_over(tmp_path, text):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text(text)
    assert measured(tmp_path, "local") == {}


def test_the_plan_says_how_long_and_of_what_it_knows_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave(tmp_path, "before", 2.0)
    actors = Resources(1, 0, 2, 64)
    stages = [(Stage("m2", M2(), actors), 1200), (Stage("m3", M3(), actors), 1200)]
    console = Console(file=io.StringIO(), width=150)
    plan.show(stages, Cluster(), "store", console, available=["reasoning"])
    said = console.file.getvalue()
    # 1200 rows / (2 rows/s x 2 actors) = 300 s
    assert "about 5.0 min, from 2 rows/s of one actor in runs/before" in said
    assert "no estimate: no earlier run on this cluster measured it" in said
    assert "estimated time: 5.0 min if the store holds none of it, beside loading weights; without m3" in said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "under 1 s"), (90, "90 s"), (150, "2.5 min"), (9000, "2.5 h"), (216000, "2.5 days")],
)
def test_durations_are_readable(seconds, said):
    assert lasting(seconds) == said
