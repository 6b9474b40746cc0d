"""`python -m pipelines.store`: what a user types and sees."""

import errno
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir

from operators.store import Store, StoreError
from pipelines import store as command
from pipelines.config import CONF, ConfigError
from tests.operators.test_store import Scorer, scores
from tests.pipelines.cli import ROOT


@pytest.fixture
def shelf(tmp_path):
    shelf = Store(str(tmp_path / "store")).scores("m1", Scorer("[red]x"))
    shelf.append(scores(a=0.25, b=0.5))
    shelf.append(scores(b=0.5, c=0.75))
    return shelf


def run(tmp_path, *overrides):
    words = command.as_override(["store", *overrides])[1:]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        command.main(compose("store", overrides=[*words, f"store.root={tmp_path / 'store'}"]))


def test_ls_counts_rows_parts_and_bytes(shelf, tmp_path, capsys):
    run(tmp_path, "ls")
    told = capsys.readouterr().out
    assert "4 rows" in told.splitlines()[0]
    (line,) = [line for line in told.splitlines() if line.startswith("scores")]
    assert line.split()[1:5] == ["m1", shelf.name.split("/")[-1], "4", "2"]


def test_verify_notes_repeats_compact_leaves_them_out_and_verify_is_content(shelf, tmp_path, capsys):
    run(tmp_path, "verify")
    assert "1 rows repeat a key" in capsys.readouterr().out
    run(tmp_path, "compact")
    assert "2 parts are now 1; 1 repeated rows left out" in capsys.readouterr().out
    run(tmp_path, "verify")
    assert capsys.readouterr().out == "1 shelves read: 0 wrong, 0 notes\n"


def test_a_root_without_a_store_is_named(tmp_path):
    with pytest.raises(StoreError, match="no store at"):
        run(tmp_path, "ls")


def test_verify_fails_where_something_is_wrong_and_names_it(shelf, tmp_path, capsys):
    with open(shelf.parts()[0], "r+b") as part:
        part.truncate(40)
    with pytest.raises(SystemExit, match="error"):
        run(tmp_path, "verify")
    assert f"WRONG  {shelf.name}/part-" in capsys.readouterr().out


def test_gc_is_dry_unless_told_and_forgets_only_what_it_is_told(shelf, tmp_path, capsys):
    fingerprint = shelf.name.split("/")[-1]
    run(tmp_path, "gc")
    assert capsys.readouterr().out == "nothing to remove\n"
    run(tmp_path, "gc", f"forget=[{fingerprint}]")
    assert "nothing was removed; delete=true removes them" in capsys.readouterr().out
    assert shelf.read().num_rows == 3
    run(tmp_path, "gc", f"forget=[{fingerprint}]", "delete=true")
    assert list(shelf.store.shelves()) == []
    with pytest.raises(ConfigError, match="no fingerprint 'typo'"):
        run(tmp_path, "gc", "forget=[typo]")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_export_has_every_key_once_and_where_it_is_from(shelf, tmp_path, name):
    out = tmp_path / "new" / name
    run(tmp_path, "export", f"out={out}")
    table = pyarrow.csv.read_csv(out) if name.endswith("csv") else pq.read_table(out)
    found = {row["key"]: (row["value"], row["metric"], row["spec"]) for row in table.to_pylist()}
    assert table.num_rows == 3 and found["c"] == (0.75, "m1", "Scorer")
    assert list(out.parent.iterdir()) == [out], "nothing unfinished is left"


def test_an_exported_text_is_no_formula(shelf, tmp_path):
    rows = pa.table({"key": ["f"], "value": [0.5], "details": ['=HYPERLINK("http://x")']})
    shelf.append(rows)
    run(tmp_path, "export", f"out={tmp_path / 'x.csv'}")
    details = {row["key"]: row["details"] for row in pyarrow.csv.read_csv(tmp_path / "x.csv").to_pylist()}
    assert details["f"] == '\'=HYPERLINK("http://x")'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lss"], "did you mean 'ls'"),
        ([], "name a command"),
        (["export"], "out=<file>.parquet"),
        (["export", "out=x.csv", "kind=score"], "one of scores, responses, asked"),
        (["gc", "keep_nights=0"], "at least 1"),
    ],
)
def test_a_wrong_command_is_answered_with_what_there_is(shelf, tmp_path, words, said):
    with pytest.raises(ConfigError, match=said):
        run(tmp_path, *words)


@pytest.mark.parametrize(
    ("out", "why"),
    [("file/x.csv", "File exists"), ("folder.csv", "Is a directory"), ("/proc/x.csv", "No such file")],
)
def test_an_export_that_cannot_be_written_is_told_by_its_file_and_leaves_nothing(shelf, tmp_path, out, why):
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ConfigError, match=rf"config key out: nothing can be written to .*{out} \({why}"):
        run(tmp_path, "export", f"out={tmp_path / out}")
    assert {one.name for one in tmp_path.iterdir()} == {"file", "folder.csv", "store"}


def test_an_export_that_fails_half_way_leaves_nothing(shelf, tmp_path, monkeypatch):
    write, parts = pyarrow.csv.CSVWriter.write_table, []

    class Full(pyarrow.csv.CSVWriter):
        def write_table(self, table):
            if parts:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            parts.append(table)
            write(self, table)

    monkeypatch.setattr(pyarrow.csv, "CSVWriter", Full)
    with pytest.raises(ConfigError, match=r"config key out: .*x.csv cannot be written \(No space left"):
        run(tmp_path, "export", f"out={tmp_path / 'x.csv'}")
    assert len(parts) == 1 and [one.name for one in tmp_path.iterdir()] == ["store"]


@pytest.mark.weights
def test_a_user_sees_the_commands_and_errors_on_one_line(tmp_path):
    def typed(*words):
        line = [sys.executable, "-m", "pipelines.store", *words]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120)

    shown = typed("--help")
    for name in command.COMMANDS:
        assert f"python -m pipelines.store {name}" in shown.stdout
    missing = typed("ls", f"store.root={tmp_path / 'none'}")
    assert missing.returncode == 1 and "Traceback" not in missing.stderr and "no store at" in missing.stderr
