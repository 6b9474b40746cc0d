"""The command with no override: the embedded cascade on the built-in audit, offline, with real weights and real speech."""

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from tests.pipelines.cli import ROOT

pytestmark = pytest.mark.weights


def run(folder, *arguments):
    where = [f"store.root={folder / 'store'}", f"out={folder / 'run'}"]
    command = [sys.executable, "-m", "pipelines.judge_audit", *arguments, *where]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def test_the_command_runs_offline_with_no_override_and_finds_everything_again(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist()
    cascade = [row for row in verdicts if row["model"] == "cascade"]
    assert len(cascade) == 4 * 3 * 9 and all(row["pred"] for row in cascade)
    assert {row["model"] for row in verdicts} == {"cascade", "always_first", "random"}
    native = [row["correct"] for row in cascade if row["probe"] == "pointwise" and row["cue"] == "none"]
    # It has a transcript and no ears: what it gets right beyond one of two is luck with transcripts that differ.
    assert 2 <= sum(native) <= 6 and "cascade, cue" in done.stdout
    assert "What the judge fails at" in (tmp_path / "run" / "audit.html").read_text()
    again = run(tmp_path)
    assert again.returncode == 0 and "computed 0 replies" in again.stdout, again.stderr
    assert pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist() == verdicts
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["null_verdicts"] == {} and record["refused"] == {}
    assert record["fingerprints"]["generate"]
