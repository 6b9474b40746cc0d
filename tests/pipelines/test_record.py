import csv
import json

import pyarrow as pa
import pytest

from operators.aggregate import SUMMARY
from operators.failures import FAILURES
from pipelines.aria_eval import evaluate
from pipelines.config import ConfigError
from pipelines.lookup import Tally
from pipelines.mugen_record import encoder_calls
from pipelines.record import check_out, free_folder, presentable, write_summary
from tests.pipelines.cli import composed


def test_two_runs_of_one_second_get_two_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [free_folder("sample-cascade") for _ in range(4)]
    assert len(set(folders)) == 4 and all(folder.is_dir() for folder in folders)


def test_a_model_named_like_a_formula_is_no_formula_in_the_table_of_failures(tmp_path):
    row = {"model": '=HYPERLINK("http://x")', "stage": "m1", "reason": "r", "example_item_id": "@SUM(1)"}
    failures = pa.Table.from_pylist([row], schema=FAILURES)
    write_summary(tmp_path, SUMMARY.empty_table(), failures)
    (told,) = csv.DictReader((tmp_path / "failures.csv").read_text().splitlines())
    assert told["model"] == '\'=HYPERLINK("http://x")' and told["example_item_id"] == "'@SUM(1)"


@pytest.mark.parametrize("secret", ["s3://KEY:SECRET@bucket/x", "https://h/a.wav?X-Amz-Signature=SECRET"])
def test_no_credential_of_a_uri_is_written_down(secret):
    written = json.dumps(presentable({"store": {"root": secret}, "list": [secret, 3, None]}))
    assert "SECRET" not in written and "KEY" not in written
    assert presentable("runs/a folder?x=1") == "runs/a folder?x=1", "a path is no URI"


def test_clips_given_to_a_model_are_those_of_its_memory_or_else_of_its_prompts():
    remembers = Tally(computed=40, encoded={"clips": 27}, usage={"n_audio": 240})
    sends = Tally(computed=40, encoded={"decoded": 27}, usage={"n_audio": 240})
    silent = Tally(computed=40, encoded={"decoded": 27})
    assert encoder_calls([remembers]) == 27 and encoder_calls([sends]) == 240
    assert encoder_calls([remembers, sends]) == 27 + 240
    assert encoder_calls([sends, silent]) is None, "a part that is not known makes the sum unknown"
    assert encoder_calls([Tally(from_store=40)]) == encoder_calls([]) == 0


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "file").write_text("")
    for out in ("/proc/x", str(tmp_path / "file"), str(tmp_path / "file" / "x")):
        with pytest.raises(ConfigError, match=rf"^config key out: nothing can be written to {out} \("):
            check_out(out)
    with pytest.raises(ConfigError, match="a folder of this machine is needed, not s3://bucket/x"):
        check_out("s3://bucket/x")
    check_out(str(tmp_path / "new" / "one"))
    assert not (tmp_path / "new").exists(), "no folder looks like a result before there is one"
    (tmp_path / "new").mkdir()
    check_out(str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir() and not list((tmp_path / "new").iterdir())
    check_out(None)


def test_a_run_into_such_a_folder_ends_before_it_starts(capsys):
    with pytest.raises(ConfigError, match="config key out"):
        evaluate(composed("out=/proc/x"), "model", "test")
